"""Who calls whom, as an indented graph for a terminal: each node once, with what it calls below it.

A node that something else calls too is drawn where it is first met and referred to (`↑`) elsewhere.
Callers come before those they call; where calls go round in a circle the first name begins. The
figures of a line are those of the call to it. Nodes are told apart by a mark and a word: services,
databases, external addresses, and those who stand for what the logs do not show.
"""

import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reconstruct.render.call_graph import Edge, Node, Row, labels
from reconstruct.render.text import (
    Line,
    Part,
    count,
    duration,
    fit,
    flow,
    plural,
    width,
)

__all__ = ["service_map"]

MIN_LABEL: Final = 18
"""Names get so many columns at least, however narrow the terminal is."""

_MARKS: Final = {
    "service": "●",
    "database": "◆",
    "external": "◇",
    "entry": "○",
    "missing": "?",
    "unknown": "?",
}
_WORDS: Final = {
    "entry": "callers outside these logs",
    "missing": "callers whose span is not in the input",
    "unknown": "calls that name no address",
}
_KIND_WORDS: Final = {"queue", "internal"}
"""Kinds of calls that are named; their nodes say the others."""
_SEEN_ABOVE: Final = " ↑"
_SERVICE_STYLES: Final = 8
_MAX_DEPTH: Final = 12
"""Deeper than this a number stands for the branches: `⋯13`."""


def service_map(edges: Sequence[Edge], *, columns: int = 100) -> list[Line]:
    """Draw the graph as lines at most `columns` wide, where names leave room for figures."""
    if not edges:
        return []
    names = labels(edges)
    services = [node for node in names if node.kind == "service"]
    styles = {node: f"service{i % _SERVICE_STYLES}" for i, node in enumerate(services)}
    rows = list(_rows(edges))
    drawn = [_label(row, names, styles) for row in rows]
    figures = _figures(edges)
    cells = [[figure.text(row.edge.row) if row.edge else "" for figure in figures] for row in rows]
    headings = [figure.heading for figure in figures]
    widths = [max(map(width, texts)) for texts in zip(headings, *cells, strict=True)]
    sizes = [sum(width(part.text) for part in label) for label in drawn]
    longest = max(size for row, size in zip(rows, sizes, strict=True) if row.edge)
    room = max(MIN_LABEL, min(longest, columns - sum(widths) - 2 * len(widths)))
    head = "  ".join(
        fit(text, size, right=True) for text, size in zip(headings, widths, strict=True)
    )
    lines: list[Line] = [_heading(edges), (), (Part(" " * (room + 2) + head, "title"),)]
    for row, label, texts in zip(rows, drawn, cells, strict=True):
        if row.edge is None:
            lines.append(_cut(label, columns))
            continue
        parts = (
            Part(
                "  " + fit(text, size, right=True),
                "error" if figure.is_bad(row.edge.row) else "",
            )
            for figure, text, size in zip(figures, texts, widths, strict=True)
        )
        lines.append((*_cut(label, room), *parts))
    return [*lines, (), *_legend(edges, rows, columns)]


# ---- rows: in which order the nodes stand ----


@dataclass(frozen=True, slots=True)
class _Row:
    """A line: a node, and the edge that led to it (None above all)."""

    lead: str
    node: Node
    edge: Edge | None
    depth: int
    is_seen: bool = False


def _rows(edges: Sequence[Edge]) -> Iterator[_Row]:
    below = _below(edges)
    seen: set[Node] = set()
    for root in _roots(edges):
        # One entry per line to come: its row, and the lead of what is below it.
        waiting = [(_Row("", root, None, 0), "")] if root not in seen else []
        while waiting:
            row, under = waiting.pop()
            yield replace(row, is_seen=row.node in seen)
            followers = [] if row.node in seen else below.get(row.node, [])
            seen.add(row.node)
            depth = row.depth + 1
            for index, edge in reversed(list(enumerate(followers))):
                branch, rest = ("└╴", "  ") if index == len(followers) - 1 else ("├╴", "│ ")
                lead = under + branch if depth <= _MAX_DEPTH else f"⋯{depth} "
                rest = under + rest if depth <= _MAX_DEPTH else ""
                waiting.append((_Row(lead, edge.server, edge, depth), rest))


def _below(edges: Sequence[Edge]) -> dict[Node, list[Edge]]:
    """List what each node calls, most calls first; callees of nobody else first from outside."""
    called = {edge.server for edge in edges if edge.client.is_real}
    below: dict[Node, list[Edge]] = defaultdict(list)
    for edge in edges:
        below[edge.client].append(edge)
    for client, followers in below.items():
        followers.sort(key=lambda edge: (-edge.row["calls"], edge.server, edge.kind))
        if not client.is_real:
            followers.sort(key=lambda edge: edge.server in called)
    return below


def _roots(edges: Sequence[Edge]) -> list[Node]:
    """List whom nobody calls, then who stands for others, then all: some go round in circles."""
    clients = sorted({edge.client for edge in edges})
    called = {edge.server for edge in edges}
    return [
        *(node for node in clients if node.is_real and node not in called),
        *(node for node in clients if not node.is_real),
        *clients,
    ]


# ---- lines: what each looks like ----


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of an edge; its text is an error where `is_bad`."""

    heading: str
    text: Callable[[Row], str]
    is_bad: Callable[[Row], bool] = lambda _: False


def _length(key: str) -> Callable[[Row], str]:
    return lambda row: "-" if row[key] is None else duration(row[key])


def _gap(row: Row) -> str:
    gap_ns = row["gap_p50_ns"]
    if gap_ns is None:
        return "-"
    # A consumer cannot start before its message is there; whatever else it is, it is no length.
    return _CLOCK if gap_ns < 0 and row["kind"] == "queue" else duration(gap_ns)


_CLOCK: Final = "clock"
_CALLS: Final = _Figure("CALLS", lambda row: count(row["calls"]))
_FAILED: Final = _Figure(
    "FAILED", lambda row: count(row["failed_calls"]), lambda row: row["failed_calls"] > 0
)
_UNFINISHED: Final = _Figure(
    "UNFINISHED",
    lambda row: count(row["unfinished_calls"]),
    lambda row: row["unfinished_calls"] > 0,
)
_ATTEMPTS: Final = _Figure("ATTEMPTS", lambda row: count(row["attempts"]))
_FAILED_ATTEMPTS: Final = _Figure(
    "FAILED", lambda row: count(row["failed_attempts"]), lambda row: row["failed_attempts"] > 0
)
_LENGTHS: Final = (
    _Figure("P50", _length("duration_p50_ns")),
    _Figure("P95", _length("duration_p95_ns")),
    _Figure("GAP", _gap),
)


def _figures(edges: Sequence[Edge]) -> list[_Figure]:
    """Choose what is worth a column: attempts where they are not what calls are."""
    rows = [edge.row for edge in edges]
    answered = [row for row in rows if row["attempts"]]
    figures = [_CALLS, _FAILED]
    if any(row["unfinished_calls"] for row in rows):
        figures.append(_UNFINISHED)
    if any(
        row["attempts"] != row["calls"] or row["failed_attempts"] != row["failed_calls"]
        for row in answered
    ):
        figures += [_ATTEMPTS, _FAILED_ATTEMPTS]
    return [*figures, *_LENGTHS]


def _label(row: _Row, names: Mapping[Node, str], styles: Mapping[Node, str]) -> Line:
    node = row.node
    words = [] if node.kind == "service" else [_WORDS.get(node.kind, node.kind)]
    if row.edge is not None and row.edge.kind in _KIND_WORDS:
        words.append(row.edge.kind)
    name = [] if node.kind == "unknown" else [names[node] + _SEEN_ABOVE * row.is_seen]
    return (
        Part(row.lead, "quiet"),
        Part(_MARKS[node.kind] + " ", styles.get(node, "")),
        *(Part(text, styles.get(node, "")) for text in name),
        Part("  " * len(name) + "  ".join(words) if words else "", "quiet"),
    )


def _cut(label: Line, room: int) -> Line:
    """Fit a label into its column; what is cut ends in `…`."""
    parts = []
    for part in label:
        text = fit(part.text, room) if width(part.text) > room else part.text
        parts.append(Part(text, part.style))
        room -= width(text)
    return (*parts, Part(" " * room))


def _heading(edges: Sequence[Edge]) -> Line:
    services = len({node.name for edge in edges for node in edge.ends if node.kind == "service"})
    calls = sum(edge.row["calls"] for edge in edges)
    failed = sum(edge.row["failed_calls"] for edge in edges)
    words = f"{plural(services, 'service')}, {plural(calls, 'call')}"
    return (
        Part(words, "title"),
        Part(f", {count(failed)} failed" if failed else "", "error"),
    )


def _legend(edges: Sequence[Edge], rows: Sequence[_Row], columns: int) -> Iterator[Line]:
    """Say what the marks mean that are there."""
    notes = []
    if any(row.is_seen for row in rows):
        notes.append("↑ drawn above, with what it calls")
    if any(edge.row["gap_p50_ns"] is not None for edge in edges):
        notes.append("GAP median time between client and server: network and waiting")
    if any(edge.kind == "internal" for edge in edges):
        notes.append("internal: below a span of the other service, with no call between them")
    outlasted = sum(edge.row["negative_gaps"] for edge in edges if edge.kind != "queue")
    if outlasted:
        notes.append(
            f"in {plural(outlasted, 'call')} the server worked on when its client had ended"
        )
    skewed = sum(edge.row["negative_gaps"] for edge in edges if edge.kind == "queue")
    if skewed:
        notes.append(f"in {plural(skewed, 'queue call')} clocks differ: received before sent")
    pieces = (line for note in notes for line in textwrap.wrap(note, columns))
    yield from flow(((Part(piece, "quiet"),) for piece in pieces), columns)
