"""Two rollouts or traces as one tree, with both durations and what has changed beside each span.

What has not changed is not drawn but where something below it has: a line counts it. Lines are at
most as wide as asked, names and services are cut, durations never.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconstruct.compare.differences import CHANGES, Comparison, Pair
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    duration,
    fit,
    flow,
    json_text,
    plural,
    short_names,
    width,
)
from reconstruct.tree import MISSING, Span

__all__ = ["MIN_COLUMNS", "change_of", "tree_of_differences"]

MIN_COLUMNS: Final = 60
_MARKS: Final = {
    "added": ("+", "good"),
    "removed": ("-", "error"),
    "moved": (">", "warning"),
    "status": ("✗", "error"),
    "slower": ("▲", "warning"),
    "slower below": ("△", "quiet"),
    "faster": ("▼", "good"),
    "faster below": ("▽", "quiet"),
    "attributes": ("≠", "quiet"),
}
"""One mark for a row, the first of these; a hollow one where only what is below has changed."""
_NOUNS: Final = {
    "added": "added",
    "removed": "removed",
    "moved": "moved",
    "slower": "slower",
    "slower below": "because of what is below",
    "faster": "faster",
    "faster below": "because of what is below",
    "status": "other status",
    "attributes": "other attributes",
}
_MAX_LEAD: Final = 60
_VALUE: Final = 40
"""Characters of an attribute's value that are shown."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the tree: a pair, or words below one."""

    lead: str
    words: str
    pair: Pair | None = None
    style: str = ""


def tree_of_differences(
    comparison: Comparison, *, columns: int = 100, max_rows: int = 0
) -> Iterator[Line]:
    """Draw what differs, at most `max_rows` spans of it (0: all), and count it all above."""
    columns = max(columns, MIN_COLUMNS)
    yield from _counts(comparison, columns)
    if not any(pair.changes for pair in comparison.walk()):
        return
    yield ()
    rows, left_out = _limited(_rows(comparison), max_rows)
    names = short_names(pair.span.service_name for pair in comparison.walk())
    shown = [row.pair for row in rows if row.pair is not None]
    service = min(max(width(names[pair.span.service_name]) for pair in shown), columns // 5)
    figures = [_figures(pair) for pair in shown]
    heads = ("A", "B", "CHANGE")
    widths = [max(map(width, column)) for column in zip(heads, *figures, strict=True)]
    room = columns - 2 - 1 - service - sum(widths) - 2 * len(widths)
    label = max(width(row.lead) + width(clean(row.words)) for row in rows if row.pair)
    label = max(min(label, room), 1)
    yield (
        Part(" " * (2 + label + 1 + service)),
        *(
            Part("  " + fit(head, room, right=True), "quiet")
            for head, room in zip(heads, widths, strict=True)
        ),
    )
    for row in rows:
        lead = row.lead if width(row.lead) * 3 <= label * 2 else "⋯ "
        if row.pair is None:
            yield (
                Part("  " + lead, "quiet"),
                Part(fit(row.words, columns - 2 - width(lead)), row.style),
            )
            continue
        mark, style = _mark(row.pair)
        yield (
            Part(mark + " ", style),
            Part(lead, "quiet"),
            Part(fit(row.words, label - width(lead)) + " ", style if mark in "+-" else ""),
            Part(fit(names[row.pair.span.service_name], service, keep_end=True), "quiet"),
            *(
                Part("  " + fit(figure, room, right=True), style if index == 2 else "")
                for index, (figure, room) in enumerate(zip(_figures(row.pair), widths, strict=True))
            ),
        )
    if left_out:
        yield (Part(f"  … {plural(left_out, 'more span')}; --limit 0 shows all", "quiet"),)
    yield ()
    yield from _legend(shown, columns)
    if not comparison.is_exact:
        words = "  So many siblings differ that some may be matched better than here."
        yield (Part(words, "warning"),)


def change_of(difference_ns: int) -> str:
    """Write a difference with its sign."""
    return duration(difference_ns) if difference_ns <= 0 else f"+{duration(difference_ns)}"


def _counts(comparison: Comparison, columns: int) -> Iterator[Line]:
    pairs = list(comparison.walk())
    found = {change: comparison.count(change) for change in CHANGES}
    same = sum(not pair.changes for pair in pairs)
    chunks = [
        (Part(f"{number:,} {_NOUNS[change]}", _MARKS[change][1]),)
        for change, number in found.items()
        if number
    ]
    if not chunks:
        yield (Part(f"No difference: {plural(same, 'span')} in both.", "good"),)
        return
    yield from flow([*chunks, (Part(f"{same:,} unchanged"),)], columns)


def _mark(pair: Pair) -> tuple[str, str]:
    return next((_MARKS[change] for change in _MARKS if change in _looks(pair)), (" ", ""))


def _looks(pair: Pair) -> set[str]:
    """Return its changes; slower or faster is told of the span itself or of what is below it."""
    return {
        f"{change} below" if change in ("slower", "faster") and not pair.is_itself else change
        for change in pair.changes
    }


def _figures(pair: Pair) -> tuple[str, str, str]:
    change = pair.difference_ns
    return (
        "" if pair.a is None else _length(pair.a.duration_ns, pair.a.state),
        "" if pair.b is None else _length(pair.b.duration_ns, pair.b.state),
        "" if change is None else change_of(change),
    )


def _length(duration_ns: int | None, state: str) -> str:
    return ("-" if state == MISSING else state) if duration_ns is None else duration(duration_ns)


def _legend(shown: Sequence[Pair], columns: int) -> Iterator[Line]:
    met = {change for pair in shown for change in _looks(pair)}
    chunks = [
        (Part(f"{_MARKS[change][0]} {noun}", "quiet"),)
        for change, noun in _NOUNS.items()
        if change in met
    ]
    yield from flow(chunks, columns, "  ")


def _limited(rows: Iterator[_Row], max_rows: int) -> tuple[list[_Row], int]:
    kept: list[_Row] = []
    spans = left_out = 0
    for row in rows:
        spans += row.pair is not None
        if not max_rows or spans <= max_rows:
            kept.append(row)
        else:
            left_out += row.pair is not None
    return kept, left_out


def _rows(comparison: Comparison) -> Iterator[_Row]:
    """Yield the changed pairs and what stands above them; for the rest, how many there are."""
    sizes: dict[int, int] = {}
    touched: set[int] = set()
    for pair in reversed(list(comparison.walk())):  # children before their parents
        sizes[id(pair)] = 1 + sum(sizes[id(child)] for child in pair.children)
        if pair.changes or any(id(child) in touched for child in pair.children):
            touched.add(id(pair))
    roots = _branches(comparison.roots, "", touched, sizes)
    waiting: list[tuple[Pair | int, str, str]] = [(what, "", "") for what, _, _ in roots]
    waiting.reverse()
    while waiting:
        what, lead, under = waiting.pop()
        if isinstance(what, int):
            yield _Row(lead, f"… {plural(what, 'unchanged span')}", style="quiet")
            continue
        yield _Row(
            lead,
            f"missing parent {what.span.span_id}" if what.span.state == MISSING else what.span.name,
            what,
        )
        below = under if len(under) <= _MAX_LEAD else ""
        for words, style in _notes(what):
            yield _Row(below + ("│ " if what.children else "  "), "↳ " + words, style=style)
        waiting += reversed(list(_branches(what.children, below, touched, sizes)))


def _branches(
    pairs: Sequence[Pair], under: str, touched: set[int], sizes: dict[int, int]
) -> Iterator[tuple[Pair | int, str, str]]:
    """Yield children with their leads; neighbours in which nothing changed are one number."""
    folded: list[Pair | int] = []
    for pair in pairs:
        if id(pair) in touched:
            folded.append(pair)
        elif folded and isinstance(folded[-1], int):
            folded[-1] += sizes[id(pair)]
        else:
            folded.append(sizes[id(pair)])
    for index, what in enumerate(folded):
        is_last = index == len(folded) - 1
        branch, below = ("└╴", "  ") if is_last else ("├╴", "│ ")
        yield what, under + branch, under + below


def _notes(pair: Pair) -> Iterator[tuple[str, str]]:
    if "moved" in pair.changes:
        above = "at the top" if pair.moved_from is None else f"below {pair.moved_from.name}"
        yield f"stood {above} in A", "warning"
    if "status" in pair.changes and pair.a is not None and pair.b is not None:
        said = pair.b.status_message or pair.a.status_message
        yield f"{_status(pair.a)} → {_status(pair.b)}" + (f": {said}" if said else ""), "error"
    for key, (one, other) in pair.attributes.items():
        yield f"{key} {_value(one)} → {_value(other)}", "quiet"


def _status(span: Span) -> str:
    return span.status_code if span.state == "finished" and span.status_code else span.state


def _value(value: object) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json_text(value)
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"
