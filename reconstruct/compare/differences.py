"""Two rollouts, or traces, as one tree: what is only in one of them, and what went otherwise.

Spans that are each other's (see `alignment`) are one pair. The tree is that of `b`; what is only in
`a` stands where it stood there. A pair is slower or faster when the durations differ by more than
1 ms and a share of the longer one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconstruct.compare.alignment import Item, align
from reconstruct.compare.identity import changed_attributes, identity
from reconstruct.intake.json_text import Json
from reconstruct.tree import Span, Trace

__all__ = ["CHANGES", "Comparison", "Pair", "compare"]

CHANGES: Final = ("added", "removed", "moved", "slower", "faster", "status", "attributes")
_LEAST_NS: Final = 1_000_000
_FAILED: Final = "ERROR"


@dataclass(slots=True, eq=False)
class Pair:
    """A span of both, or of one, among its children."""

    a: Span | None
    b: Span | None
    depth: int
    changes: tuple[str, ...]
    """added; removed; moved, slower, faster, status, attributes."""
    attributes: dict[str, tuple[Json, Json]]
    """Those that changed: what they say in `a` and in `b`."""
    is_itself: bool = False
    """Its self time is longer or shorter too, and not only its children's time."""
    moved_from: Span | None = None
    """What it stood under in `a`, when it has moved; None for the top."""
    children: list["Pair"] = field(default_factory=list, repr=False)

    @property
    def span(self) -> Span:
        """The span of `b`, or the only one."""
        span = self.b or self.a
        assert span is not None, "a pair has a span"
        return span

    @property
    def difference_ns(self) -> int | None:
        """How much longer it takes in `b`; None when either is unfinished or not there."""
        if self.a is None or self.b is None:
            return None
        if self.a.duration_ns is None or self.b.duration_ns is None:
            return None
        return self.b.duration_ns - self.a.duration_ns

    # Any: a value for each of the columns
    def facts(self) -> dict[str, Any]:
        """Return it as one flat row, without its children."""
        sides = (("a", self.a), ("b", self.b))
        return {
            "changes": list(self.changes),
            "depth": self.depth,
            "service_name": self.span.service_name,
            "name": self.span.name,
            "kind": self.span.kind,
            **{f"trace_id_{side}": span and span.trace_id for side, span in sides},
            **{f"span_id_{side}": span and span.span_id for side, span in sides},
            **{f"duration_{side}_ns": span and span.duration_ns for side, span in sides},
            "difference_ns": self.difference_ns,
            **{f"self_time_{side}_ns": span and span.self_time_ns for side, span in sides},
            **{f"status_{side}": span and span.status_code for side, span in sides},
            "attributes": {key: list(values) for key, values in self.attributes.items()},
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The pairs of two rollouts, or traces, as trees."""

    roots: list[Pair]
    is_exact: bool
    """False when siblings were so many and so different that they may be matched better."""

    def walk(self) -> Iterator[Pair]:
        """Yield every pair from top to bottom, parents before children."""
        waiting = self.roots[::-1]
        while waiting:
            pair = waiting.pop()
            yield pair
            waiting += reversed(pair.children)

    def count(self, change: str) -> int:
        """Count the pairs that have changed so."""
        return sum(change in pair.changes for pair in self.walk())


def compare(
    a: Sequence[Trace], b: Sequence[Trace], *, tolerance: float = 0.25, keys: Iterable[str] = ()
) -> Comparison:
    """Compare the spans of two rollouts or traces; `keys` are attributes that tell spans apart."""
    keys = frozenset(keys)
    spans_a, items_a = _items(a, keys)
    spans_b, items_b = _items(b, keys)
    alignment = align(items_a, items_b)
    of_a = dict(alignment.pairs)
    of_b = {j: i for i, j in alignment.pairs}
    roots: list[Pair] = []
    pairs_b: list[Pair] = []
    for j, span in enumerate(spans_b):
        i = of_b.get(j)
        above = roots if items_b[j].parent < 0 else pairs_b[items_b[j].parent].children
        depth = 0 if items_b[j].parent < 0 else pairs_b[items_b[j].parent].depth + 1
        if i is None:
            pair = Pair(None, span, depth, ("added",), {})
        else:
            pair = _paired(spans_a[i], span, depth, tolerance, has_moved=i in alignment.moved)
            if "moved" in pair.changes and items_a[i].parent >= 0:
                pair.moved_from = spans_a[items_a[i].parent]
        pairs_b.append(pair)
        above.append(pair)
    pairs_a = [pairs_b[of_a[i]] if i in of_a else None for i in range(len(spans_a))]
    _insert_removed(roots, spans_a, items_a, pairs_a)
    return Comparison(roots, alignment.is_exact)


def _items(traces: Sequence[Trace], keys: frozenset[str]) -> tuple[list[Span], list[Item]]:
    """List the spans of traces in tree order, and what is to be aligned of them."""
    spans: list[Span] = []
    items: list[Item] = []
    for trace in traces:
        waiting = [(root, -1) for root in reversed(trace.roots)]
        while waiting:
            span, parent = waiting.pop()
            items.append(Item(identity(span, keys), parent))
            spans.append(span)
            waiting += [(child, len(spans) - 1) for child in reversed(span.children)]
    return spans, items


def _paired(a: Span, b: Span, depth: int, tolerance: float, *, has_moved: bool) -> Pair:
    attributes = changed_attributes(a, b, tolerance)
    pair = Pair(a, b, depth, (), attributes)
    found = {
        "moved": has_moved,
        "slower": _is_longer(b.duration_ns, a.duration_ns, tolerance),
        "faster": _is_longer(a.duration_ns, b.duration_ns, tolerance),
        "status": (a.status_code == _FAILED) != (b.status_code == _FAILED) or a.state != b.state,
        "attributes": bool(attributes),
    }
    pair.changes = tuple(change for change, is_so in found.items() if is_so)
    pair.is_itself = _is_longer(a.self_time_ns, b.self_time_ns, tolerance) or _is_longer(
        b.self_time_ns, a.self_time_ns, tolerance
    )
    return pair


def _is_longer(one: int | None, other: int | None, tolerance: float) -> bool:
    return one is not None and other is not None and one - other > _LEAST_NS + tolerance * one


def _insert_removed(
    roots: list[Pair],
    spans: Sequence[Span],
    items: Sequence[Item],
    pairs: list[Pair | None],
) -> None:
    """Put the spans that are only in `a` below their parents, each after its sibling before."""
    children: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        children.setdefault(item.parent, []).append(place)
    # Parents come before their children, so that each has its pair when its children need it.
    for parent, places in sorted(children.items()):
        above = None if parent < 0 else pairs[parent]
        below = roots if above is None else above.children
        depth = 0 if above is None else above.depth + 1
        present = {id(pair) for pair in below}
        after: dict[int, list[Pair]] = {}
        last = 0  # the sibling before that is here; 0 for none
        for place in places:
            pair = pairs[place]
            if pair is None:
                pair = pairs[place] = Pair(spans[place], None, depth, ("removed",), {})
                after.setdefault(last, []).append(pair)
            elif id(pair) in present:
                last = id(pair)
        if after:
            merged = [*after.get(0, []), *below]
            if len(after) > (0 in after):
                merged = list(after.get(0, []))
                for pair in below:
                    merged += [pair, *after.get(id(pair), [])]
            below[:] = merged
