"""Rows become nested spans: the trees of a trace or of a rollout, for whatever draws them.

Which span stands under which is decided in SQL (`span_tree_of`); here the rows are only nested. A
parent that is not in the input becomes one synthetic span, however many children it left behind.
Cost is linear in the spans, nothing recurses. Times are ns since 1970.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconstruct.engine import Engine
from reconstruct.intake.json_text import Json, decode_encoded

__all__ = ["MISSING", "Span", "Trace", "rollout_traces", "trace_tree"]

MISSING: Final = "missing"
"""State of a synthetic span: its children name it as their parent, and no line has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """A span among its children, who are in order of their start."""

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: str
    state: str
    """finished, open, lost or `MISSING`."""
    service_name: str | None
    service_instance_id: str | None
    server_name: str | None
    process_pid: int | None
    run_id: str | None
    rollout_id: str | None
    start_time_unix_nano: int
    end_time_unix_nano: int | None
    """None while unfinished, and of a missing one."""
    duration_ns: int | None
    open_ns: int | None
    """Of an unfinished span, how long it was seen to be open."""
    self_time_ns: int | None
    status_code: str | None
    status_message: str | None
    file: str | None
    line: int | None
    depth: int
    """Spans above it in this tree, a missing one too."""
    orphan: bool
    cycle: bool
    attributes: dict[str, Json] = field(repr=False)
    events: list[dict[str, Json]] = field(repr=False)
    links: list[dict[str, Json]] = field(repr=False)
    children: tuple["Span", ...] = field(repr=False)
    offset_ns: int = 0
    """How far its clock was ahead; taken off its times where they are to be aligned."""

    @property
    def seen_until_unix_nano(self) -> int:
        """Its end, or the last time it was seen open."""
        if self.end_time_unix_nano is not None:
            return self.end_time_unix_nano
        return self.start_time_unix_nano + (self.open_ns or 0)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """The trees of one trace, or of the part of it that belongs to a rollout."""

    trace_id: str
    roots: tuple[Span, ...] = field(repr=False)
    """Roots first, then missing parents with their orphans, by start; cycles last."""
    span_count: int
    """Without missing ones."""
    start_time_unix_nano: int
    end_time_unix_nano: int
    run_id: str | None
    rollout_id: str | None
    """None when the trace has none or several."""

    @property
    def duration_ns(self) -> int:
        """From the earliest start to the latest end."""
        return self.end_time_unix_nano - self.start_time_unix_nano

    def walk(self) -> Iterator[Span]:
        """Yield every span from top to bottom, parents before children."""
        stack = list(reversed(self.roots))
        while stack:
            span = stack.pop()
            yield span
            stack.extend(reversed(span.children))


_PLACES: Final = """
    SELECT
        tree.node,
        tree.parent,
        tree.orphan,
        tree.cycle,
        own.self_time_ns
    FROM span_tree_of($trace_ids) AS tree
    LEFT JOIN _self_times_of($trace_ids) AS own ON own.node = tree.node
    ORDER BY tree.trace_id, tree.path
"""
_SPANS: Final = """
    SELECT
        rowid AS node,
        trace_id,
        span_id,
        parent_span_id,
        name,
        kind,
        state,
        service_name,
        service_instance_id,
        server_name,
        process_pid,
        run_id,
        rollout_id,
        start_time_unix_nano,
        end_time_unix_nano,
        duration_ns,
        open_ns,
        status_code,
        status_message,
        file,
        line,
        attributes,
        events,
        links
    FROM spans
    WHERE rowid IN (SELECT unnest($nodes))
"""
_OFFSETS: Final = """
    SELECT
        node,
        offset_ns
    FROM aligned_spans_of($trace_ids)
    WHERE offset_ns <> 0
"""


def trace_tree(engine: Engine, trace_id: str, *, align: bool = False) -> Trace:
    """Return the whole trace; `trace_id` is its 32 hex digits. Raises `KeyError` for none.

    `align` takes off the times of each span how far its clock was ahead, by `clock_offsets`.
    """
    rows = _rows(engine, [trace_id], align=align)
    if not rows:
        raise KeyError(trace_id)
    return _trace(rows)


def rollout_traces(
    engine: Engine, rollout_id: str, run_id: str | None = None, *, align: bool = False
) -> list[Trace]:
    """Return what each trace holds of a rollout, by start; of every run when none is named.

    Spans of other rollouts in the same trace, and what stands above this one, are left out.
    `align` is that of `trace_tree`. Raises `KeyError` when no span belongs to the rollout.
    """
    rollout = {"rollout_id": rollout_id, "run_id": run_id}
    found = engine.rows(
        """
        SELECT DISTINCT trace_id
        FROM _rollout_traces
        WHERE rollout_id = $rollout_id
            AND ($run_id::VARCHAR IS NULL OR run_id = $run_id)
        ORDER BY trace_id
        """,
        rollout,
    )
    if not found:
        raise KeyError(rollout_id)
    trace_ids = [row["trace_id"] for row in found]
    members = engine.rows(
        """
        SELECT node
        FROM _rollout_spans
        WHERE trace_id IN (SELECT unnest($trace_ids))
            AND rollout_id = $rollout_id
            AND ($run_id::VARCHAR IS NULL OR run_id = $run_id)
        """,
        {**rollout, "trace_ids": trace_ids},
    )
    by_trace: dict[str, list[dict[str, Any]]] = {}  # Any: values of as many types as columns
    for row in _rows(engine, trace_ids, {row["node"] for row in members}, align=align):
        by_trace.setdefault(row["trace_id"], []).append(row)
    traces = [_trace(rows) for rows in by_trace.values()]
    return sorted(traces, key=lambda trace: (trace.start_time_unix_nano, trace.trace_id))


# Any: a row's values are of as many types as its columns
def _rows(
    engine: Engine,
    trace_ids: Sequence[str],
    kept: Container[int] | None = None,
    *,
    align: bool,
) -> list[dict[str, Any]]:
    """Return the spans of traces in order of their path, all or those of some nodes.

    Their places are looked up first: told the numbers of the rows, DuckDB reads no others.
    """
    places = [
        place
        for place in engine.rows(_PLACES, {"trace_ids": trace_ids})
        if kept is None or place["node"] in kept
    ]
    nodes = [place["node"] for place in places]
    spans = {span["node"]: span for span in engine.rows(_SPANS, {"nodes": nodes})}
    rows = [place | spans[place["node"]] for place in places]
    if align:
        offsets = engine.rows(_OFFSETS, {"trace_ids": trace_ids})
        _align(rows, {row["node"]: row["offset_ns"] for row in offsets})
    return rows


# Any: a row's values are of as many types as its columns
def _align(rows: Sequence[dict[str, Any]], offsets: Mapping[int, int]) -> None:
    for row in rows:
        row["offset_ns"] = offset_ns = offsets.get(row["node"], 0)
        row["start_time_unix_nano"] -= offset_ns
        if row["end_time_unix_nano"] is not None:
            row["end_time_unix_nano"] -= offset_ns


# Any: a row's values are of as many types as its columns
def _trace(rows: Sequence[dict[str, Any]]) -> Trace:
    """Nest the rows of one trace, which come in order of their path."""
    depths = _depths(rows)
    children: dict[int, list[Span]] = {}
    tops: list[Span] = []
    for row in reversed(rows):  # children before their parents
        node = row["node"]
        below = reversed(children.pop(node, []))
        # As they are already, unless times were aligned.
        in_order = sorted(below, key=lambda span: span.start_time_unix_nano)
        span = _span(row, depths[node], tuple(in_order))
        if row["parent"] in depths:
            children.setdefault(row["parent"], []).append(span)
        else:
            tops.append(span)
    tops.reverse()
    run_ids = {row["run_id"] for row in rows} - {None}
    rollout_ids = {row["rollout_id"] for row in rows} - {None}
    return Trace(
        trace_id=rows[0]["trace_id"],
        roots=tuple(_with_missing(tops)),
        span_count=len(rows),
        start_time_unix_nano=min(row["start_time_unix_nano"] for row in rows),
        end_time_unix_nano=max(
            row["start_time_unix_nano"] + (row["open_ns"] or 0)
            if row["end_time_unix_nano"] is None
            else row["end_time_unix_nano"]
            for row in rows
        ),
        run_id=run_ids.pop() if len(run_ids) == 1 else None,
        rollout_id=rollout_ids.pop() if len(rollout_ids) == 1 else None,
    )


# Any: a row's values are of as many types as its columns
def _depths(rows: Sequence[dict[str, Any]]) -> dict[int, int]:
    depths: dict[int, int] = {}
    for row in rows:
        above = depths.get(row["parent"])
        # an orphan stands under its missing parent
        depths[row["node"]] = int(row["orphan"]) if above is None else above + 1
    return depths


# Any: a row's values are of as many types as its columns
def _span(row: dict[str, Any], depth: int, children: tuple[Span, ...]) -> Span:
    facts = {name: value for name, value in row.items() if name not in ("node", "parent")}
    for name in ("attributes", "events", "links"):
        facts[name] = decode_encoded(facts[name])
    return Span(**facts, depth=depth, children=children)


def _with_missing(tops: Sequence[Span]) -> Iterator[Span]:
    """Put orphans under one synthetic span per missing parent, where the first of them stood."""
    orphans: dict[str | None, list[Span]] = {}
    for span in tops:
        if span.orphan:
            orphans.setdefault(span.parent_span_id, []).append(span)
    for span in tops:
        if not span.orphan:
            yield span
        elif span is orphans[span.parent_span_id][0]:
            yield _missing(orphans[span.parent_span_id])


def _missing(children: Sequence[Span]) -> Span:
    first = children[0]
    start = min(span.start_time_unix_nano for span in children)
    return Span(
        trace_id=first.trace_id,
        span_id=first.parent_span_id or "",
        parent_span_id=None,
        name="(missing span)",
        kind="INTERNAL",
        state=MISSING,
        service_name=None,
        service_instance_id=None,
        server_name=None,
        process_pid=None,
        run_id=first.run_id,
        rollout_id=None,
        start_time_unix_nano=start,
        end_time_unix_nano=None,
        duration_ns=None,
        open_ns=max(span.seen_until_unix_nano for span in children) - start,
        self_time_ns=None,
        status_code=None,
        status_message=None,
        file=None,
        line=None,
        depth=0,
        orphan=False,
        cycle=False,
        attributes={},
        events=[],
        links=[],
        children=tuple(children),
    )
