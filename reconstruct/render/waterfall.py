"""A rollout's or a trace's spans as a waterfall: the tree at the left, a time axis at the right.

Each row is a span: mark, place in the tree, name, service, duration, bar. Several traces share one
axis, so the gaps between them show. Children whose parent was never read hang under a row that
names the missing parent; what never ended is hatched up to the last moment known. The result is
lines of styled parts; what a style looks like is the console's business.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gymlog.semconv import ERROR_TYPE
from reconstruct.render.bars import HATCH, OWN, WAITING, Axis
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    duration,
    fit,
    flow,
    instant,
    plural,
    short_names,
    width,
)
from reconstruct.tree import MISSING, Span, Trace

__all__ = ["MIN_COLUMNS", "waterfall"]

MIN_COLUMNS: Final = 60
"""Below this a waterfall is drawn as if the terminal were this wide."""

_ERROR_MARK: Final = "✗"
_GUIDE: Final = "┊"
_UNFINISHED: Final = "unfinished"
_SERVICE_STYLES: Final = 8
"""Services take the styles `service0` … `service7` in the order in which they first appear."""
_MAX_LEAD: Final = 80
"""Branches are not drawn longer than this, so that a chain of n spans costs n, not n²."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of the tree: a span, or words (`span` is None) that stand below or above one.

    `lead` draws the branches, two columns for each of the `depth` levels.
    """

    lead: str
    label: str
    style: str = ""
    span: Span | None = None
    depth: int = 0


@dataclass(frozen=True, slots=True)
class _Layout:
    """How many terminal columns each part of a row takes; they are one column apart."""

    indent: int
    """Columns for a level of depth: 2, or 1 where names would get too little room."""
    name: int
    service: int
    duration: int
    bar: int


def waterfall(
    traces: Sequence[Trace],
    *,
    columns: int = 100,
    max_rows: int = 0,
    notes: Sequence[Line] = (),
) -> list[Line]:
    """Draw traces in order of start, as lines at most `columns` (60 or more) wide.

    At most `max_rows` spans are drawn (0: all of them); a last line says how many were not.
    `notes` are pieces of a line under the heading.
    """
    columns = max(columns, MIN_COLUMNS)
    traces = sorted(traces, key=lambda trace: (trace.start_time_unix_nano, trace.trace_id))
    spans = [span for trace in traces for span in trace.walk() if span.state != MISSING]
    if not spans:
        return []
    rows, left_out = _limited(traces, max_rows)
    services = _Services(spans)
    layout = _layout(rows, services, columns)
    start_ns = min(span.start_time_unix_nano for span in spans)
    axis = Axis(start_ns, max(start_ns + 1, *map(_last_moment, spans)), layout.bar)
    heading = [*_heading(traces, spans, axis, columns), *flow(notes, columns)]
    lines = [*heading, (), _ruler(axis, layout)]
    guides = frozenset(column for column, _ in axis.ticks())
    for row in rows:
        if row.span is None:
            lines.append(_words(row, layout, columns))
        else:
            lines.append(_drawn(row, row.span, axis, guides, layout, services))
    if left_out:
        lines.append((Part(f"  … {plural(left_out, 'more span')}; --limit 0 shows all", "quiet"),))
    return [*lines, (), _legend(spans)]


def _last_moment(span: Span) -> int:
    return max(span.start_time_unix_nano, span.seen_until_unix_nano)


# ---- rows: which lines there are ----


def _limited(traces: Sequence[Trace], max_rows: int) -> tuple[list[_Row], int]:
    """List the rows of all trees, and count the spans that `max_rows` leaves out."""
    rows: list[_Row] = []
    spans = left_out = 0
    for trace in traces:
        if len(traces) > 1:
            rows.append(_Row("", f"trace {trace.trace_id}", "quiet"))
        for row in _tree_rows(trace.roots):
            spans += row.span is not None
            if not max_rows or spans <= max_rows:
                rows.append(row)
            elif row.span is not None:
                left_out += 1
    return rows, left_out


def _tree_rows(roots: Sequence[Span]) -> Iterator[_Row]:
    # One entry per span to come: the span, its lead, the lead of what is under it, its depth.
    waiting: list[tuple[Span, str, str, int]] = [(span, "", "", 0) for span in reversed(roots)]
    while waiting:
        span, lead, under, depth = waiting.pop()
        if span.state == MISSING:
            yield _Row(lead, f"missing parent {span.span_id}", "warning")
        else:
            style = "error" if span.status_code == "ERROR" else ""
            yield _Row(lead, span.name, style, span, depth)
        for words, style in _notes(span):
            yield _Row(under + ("│ " if span.children else "  "), "↳ " + words, style, None, depth)
        if len(under) > _MAX_LEAD:
            under = ""
        last = len(span.children) - 1
        for index in range(last, -1, -1):
            branch, below = ("└╴", "  ") if index == last else ("├╴", "│ ")
            waiting.append((span.children[index], under + branch, under + below, depth + 1))


def _notes(span: Span) -> Iterator[tuple[str, str]]:
    """Say below a span what its row cannot: what went wrong, whose end took it along."""
    words = _error_words(span)
    if words and all(_error_words(child) != words for child in span.children):
        yield words, "error"
    if span.state in {"lost", "open"}:
        process = "its process" if span.process_pid is None else f"process {span.process_pid}"
        until = "was last heard of" if span.state == "lost" else "was still writing"
        yield f"open for {duration(span.open_ns or 0)} when {process} {until}", "warning"
    if span.cycle:
        yield "its parents lead in a circle", "warning"


def _error_words(span: Span) -> str:
    if span.status_code != "ERROR":
        return ""
    return span.status_message or str(span.attributes.get(ERROR_TYPE, ""))


# ---- lines: what each looks like ----


class _Services:
    """The short name and the style of each service."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.names = short_names(span.service_name for span in spans)
        self._styles = {name: f"service{i % _SERVICE_STYLES}" for i, name in enumerate(self.names)}

    def label(self, span: Span) -> str:
        return self.names[span.service_name]

    def style(self, span: Span) -> str:
        return self._styles[span.service_name]


def _layout(rows: Sequence[_Row], services: _Services, columns: int) -> _Layout:
    """Share out the columns: bars take what names, services and durations leave, 1/3 at least."""
    spans = [(row, row.span) for row in rows if row.span is not None]
    service = min(max(map(width, services.names.values())), columns // 5)
    length = max(width(_length(span)) for _, span in spans)
    room = columns - 2 - service - length - 3
    most = room - columns // 3
    indent = 2 if max(len(row.lead) for row, _ in spans) * 2 <= most else 1
    name = max(width(_lead(row, indent, most)) + width(clean(row.label)) for row, _ in spans)
    name = min(name, most)
    return _Layout(indent, name, service, length, room - name)


def _length(span: Span) -> str:
    return _UNFINISHED if span.duration_ns is None else duration(span.duration_ns)


def _heading(
    traces: Sequence[Trace], spans: Sequence[Span], axis: Axis, columns: int
) -> list[Line]:
    """Name what is drawn, then when it was, how long and how much; wrapped to `columns`."""
    names = [
        *(("rollout", trace.rollout_id) for trace in traces if trace.rollout_id),
        ("trace", traces[0].trace_id if len(traces) == 1 else None),
        *(("run", trace.run_id) for trace in traces if trace.run_id),
    ]
    title = [
        (Part(noun + " ", "quiet"), Part(clean(name), "title"))
        for noun, name in dict.fromkeys(names)
        if name
    ]
    services = len({span.service_name for span in spans})
    errors = sum(span.status_code == "ERROR" for span in spans)
    unfinished = sum(span.duration_ns is None for span in spans)
    facts = [
        Part(instant(axis.start_ns)),
        Part(duration(axis.end_ns - axis.start_ns)),
        *([Part(plural(len(traces), "trace"))] if len(traces) > 1 else []),
        Part(plural(len(spans), "span")),
        Part(plural(services, "service")),
        Part(plural(errors, "error") if errors else "no errors", "error" if errors else ""),
        *([Part(f"{unfinished:,} {_UNFINISHED}", "warning")] if unfinished else []),
    ]
    return [*flow(title, columns), *flow([(fact,) for fact in facts], columns)]


def _ruler(axis: Axis, layout: _Layout) -> Line:
    before = 2 + layout.name + 1 + layout.service + 1 + layout.duration + 1
    return (Part(" " * before), Part(axis.ruler(), "quiet"))


def _words(row: _Row, layout: _Layout, columns: int) -> Line:
    lead = _lead(row, layout.indent, layout.name)
    label = fit(row.label, columns - 2 - width(lead))
    return (Part("  " + lead, "quiet"), Part(label, row.style))


def _drawn(
    row: _Row,
    span: Span,
    axis: Axis,
    guides: frozenset[int],
    layout: _Layout,
    services: _Services,
) -> Line:
    lead = _lead(row, layout.indent, layout.name)
    first, bar = _bar(span, axis)
    style = services.style(span)
    return (
        _mark(span),
        Part(lead, "quiet"),
        Part(fit(row.label, layout.name - width(lead)) + " ", row.style),
        # Names of services differ at their end.
        Part(fit(services.label(span), layout.service, keep_end=True) + " ", style),
        Part(fit(_length(span), layout.duration, right=True) + " "),
        Part(_blank(guides, 0, first), "guide"),
        Part(bar, style),
        Part(_blank(guides, first + len(bar), layout.bar), "guide"),
    )


def _lead(row: _Row, indent: int, columns: int) -> str:
    """Draw the branches, or just the depth where they would leave a name too little room."""
    lead = row.lead if indent == 2 else row.lead[::2]
    return lead if len(lead) * 3 <= columns * 2 else f"⋯{row.depth} "


def _mark(span: Span) -> Part:
    if span.status_code == "ERROR":
        return Part(_ERROR_MARK + " ", "error")
    return Part(HATCH + " ", "warning") if span.duration_ns is None else Part("  ")


def _bar(span: Span, axis: Axis) -> tuple[int, str]:
    start_ns, end_ns = span.start_time_unix_nano, span.seen_until_unix_nano
    if span.end_time_unix_nano is None:
        return axis.hatched(start_ns, end_ns)
    children = ((child.start_time_unix_nano, child.seen_until_unix_nano) for child in span.children)
    return axis.bar(start_ns, end_ns, children)


def _blank(guides: frozenset[int], first: int, last: int) -> str:
    return "".join(_GUIDE if column in guides else " " for column in range(first, last))


def _legend(spans: Sequence[Span]) -> Line:
    words = f"  {OWN} own work   {WAITING} in children"
    if any(span.duration_ns is None for span in spans):
        words += f"   {HATCH} {_UNFINISHED}"
    if any(span.status_code == "ERROR" for span in spans):
        words += f"   {_ERROR_MARK} error"
    return (Part(words, "quiet"),)
