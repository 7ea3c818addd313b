"""What a page holds: the spans chosen, in tree order, with all that is known about them.

Everything is asked of SQL for the chosen traces at once. Times are int64 ns since 1970. Memory is
that of the spans chosen, which the command limits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reconstruct.render.text import plural
from reconstruct.tree import MISSING
from reconstruct.viewer.choice import Choice

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["BUCKETS", "Contents", "contents"]

Row = dict[str, Any]  # Any: a row's values are of as many types as its columns

BUCKETS: Final = 160
"""Equal parts of the time in which concurrency is shown."""
_ROLLOUTS: Final = 20_000
_LOGS: Final = 100_000

_SPANS: Final = """
    SELECT
        tree.node,
        tree.parent,
        tree.orphan,
        tree.cycle,
        span.trace_id,
        span.span_id,
        span.parent_span_id,
        span.name,
        span.kind,
        span.state,
        coalesce(span.service_name, '(no service)') AS service_name,
        span.service_instance_id,
        span.run_id,
        coalesce(member.rollout_id, span.rollout_id) AS rollout_id,
        span.start_time_unix_nano,
        coalesce(span.duration_ns, span.open_ns, 0) AS length_ns,
        own.self_time_ns,
        coalesce(span.status_code = 'ERROR', FALSE) AS is_error,
        span.status_message,
        span.attributes,
        span.events,
        span.links,
        span.dropped_attributes_count,
        span.file,
        span.line
    FROM span_tree_of($trace_ids) AS tree
    JOIN spans AS span ON span.rowid = tree.node
    JOIN traces AS trace ON trace.trace_id = tree.trace_id
    LEFT JOIN _self_times_of($trace_ids) AS own ON own.node = tree.node
    LEFT JOIN _rollout_spans AS member ON member.node = tree.node
    WHERE len($rollout_ids) = 0
        OR (member.rollout_id IN (SELECT unnest($rollout_ids)))
    ORDER BY trace.start_time_unix_nano, tree.trace_id, tree.path
"""
_OFFSETS: Final = """
    SELECT
        node,
        offset_ns
    FROM aligned_spans_of($trace_ids)
    WHERE offset_ns <> 0
"""
_ROLLOUT_PATH: Final = """
    SELECT
        run_id,
        rollout_id,
        node,
        start_time_unix_nano,
        duration_ns
    FROM rollout_path_of($trace_ids)
    WHERE node IS NOT NULL
    ORDER BY start_time_unix_nano, node
"""
_TRACE_PATH: Final = """
    SELECT
        node,
        start_time_unix_nano,
        duration_ns
    FROM critical_path_of($trace_ids)
    ORDER BY start_time_unix_nano, node
"""
_LOG_RECORDS: Final = """
    SELECT
        trace_id,
        span_id,
        time_unix_nano,
        severity_number,
        severity_text,
        body,
        attributes,
        scope_name
    FROM log_records
    WHERE trace_id IN (SELECT unnest($trace_ids))
    ORDER BY time_unix_nano, trace_id, span_id, file, line
"""
_SHARES: Final = """
    SELECT
        run_id,
        rollout_id,
        start_time_unix_nano,
        duration_ns,
        outcome,
        span_count,
        error_count,
        open_count,
        why
    FROM rollout_shares
    WHERE len($rollout_ids) = 0 OR rollout_id IN (SELECT unnest($rollout_ids))
    ORDER BY start_time_unix_nano, run_id, rollout_id
"""
_CAUSES: Final = """
    SELECT
        run_id,
        step,
        aspect,
        value,
        rollouts_with,
        slow_with,
        rollouts_without,
        slow_without
    FROM straggler_causes
    WHERE is_cause AND run_id IN (SELECT unnest($run_ids))
    ORDER BY chance, run_id, step, aspect, value
    LIMIT 20
"""
_EDGES: Final = """
    SELECT
        client,
        server,
        kind,
        calls,
        failed_calls,
        duration_p50_ns,
        duration_p95_ns,
        unfinished_calls
    FROM service_edges_of($trace_ids)
    ORDER BY calls DESC, client, server, kind
"""
_CONCURRENCY: Final = """
    SELECT
        start_time_unix_nano,
        mean_running,
        max_running
    FROM concurrency_in($since, $until, $buckets)
    WHERE counted = 'rollouts' AND run_id = $run_id
    ORDER BY start_time_unix_nano
"""


@dataclass(frozen=True, slots=True)
class Contents:
    """Spans and what goes with them. `parent` and `span` in rows are places in `spans`."""

    title: str
    spans: Sequence[Row]
    path: Sequence[Row]
    """Sections of critical paths, by span and start."""
    logs: Sequence[Row]
    rollouts: Sequence[Row]
    causes: Sequence[Row]
    edges: Sequence[Row]
    concurrency: Sequence[Row] = ()
    notes: list[str] = field(default_factory=list)
    """What is left out, a sentence each."""


def contents(engine: "Engine", choice: Choice) -> Contents:
    """Ask for everything about a choice."""
    chosen = {
        "trace_ids": list(choice.trace_ids),
        "rollout_ids": [rollout for _, rollout in choice.rollouts],
    }
    only_traces = {"trace_ids": chosen["trace_ids"]}
    notes = []
    if choice.left_out_traces:
        notes.append(
            f"left out: {plural(choice.left_out_spans, 'span')} of "
            f"{plural(choice.left_out_traces, 'later trace')}; --limit 0 takes all"
        )
    rows = engine.rows(_SPANS, chosen)
    if choice.rollouts:
        runs = set(choice.rollouts)
        rows = [row for row in rows if (row["run_id"], row["rollout_id"]) in runs]
    for node, offset_ns in ((row["node"], row["offset_ns"]) for row in _offsets(engine, rows)):
        rows[node]["offset_ns"] = offset_ns
    spans = list(_nested(rows))
    places = {row["node"]: place for place, row in enumerate(spans) if row["node"] is not None}
    logs = _logs(engine, spans, only_traces)
    if len(logs) > _LOGS:
        notes.append(f"left out: {plural(len(logs) - _LOGS, 'later log record')}")
        del logs[_LOGS:]
    run_ids = sorted({row["run_id"] for row in spans} - {None})
    rollouts = _rollouts(engine, choice, spans, chosen)
    if len(rollouts) > _ROLLOUTS:
        left = plural(len(rollouts) - _ROLLOUTS, "later rollout")
        notes.append(f"left out of the overview: {left}")
        del rollouts[_ROLLOUTS:]
    is_whole = not choice.rollouts
    return Contents(
        title=choice.title,
        spans=spans,
        path=_path(engine, spans, places, only_traces),
        logs=logs,
        rollouts=rollouts,
        causes=engine.rows(_CAUSES, {"run_ids": run_ids}) if rollouts and is_whole else [],
        edges=engine.rows(_EDGES, only_traces),
        concurrency=_concurrency(engine, spans, run_ids) if is_whole else (),
        notes=notes,
    )


def _offsets(engine: "Engine", rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the spans whose clock is off, their node replaced by their place in `rows`."""
    places = {row["node"]: place for place, row in enumerate(rows)}
    trace_ids = sorted({row["trace_id"] for row in rows})
    for row in engine.rows(_OFFSETS, {"trace_ids": trace_ids}):
        if row["node"] in places:
            yield {"node": places[row["node"]], "offset_ns": row["offset_ns"]}


def _nested(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield rows in tree order with `parent` as a place in it, orphans below their missing parent.

    `rows` come trace by trace in the order of their paths, so what stands under a span follows it.
    """
    known = {row["node"] for row in rows}
    blocks: list[list[Row]] = []
    groups: dict[tuple[str, str | None], list[list[Row]]] = {}
    order: list[list[list[Row]]] = []
    for row in rows:
        if row["parent"] in known:
            blocks[-1].append(row)
            continue
        block = [row]
        blocks.append(block)
        if not row["orphan"]:
            order.append([block])
            continue
        key = (row["trace_id"], row["parent_span_id"])
        if key not in groups:
            groups[key] = []
            order.append(groups[key])
        groups[key].append(block)
    place = 0
    places: dict[int, int] = {}
    for group in order:
        above = -1
        if group[0][0]["orphan"]:
            above = place
            place += 1
            yield _missing([block[0] for block in group])
        for row in (row for block in group for row in block):
            places[row["node"]] = place
            place += 1
            yield row | {"parent": places.get(row["parent"], above)}


def _missing(children: Sequence[Row]) -> Row:
    first = children[0]
    start = min(row["start_time_unix_nano"] for row in children)
    end = max(row["start_time_unix_nano"] + row["length_ns"] for row in children)
    return first | {
        "node": None,
        "parent": -1,
        "orphan": False,
        "cycle": False,
        "span_id": first["parent_span_id"],
        "name": "(missing span)",
        "kind": "INTERNAL",
        "state": MISSING,
        "service_name": "(missing)",
        "service_instance_id": None,
        "start_time_unix_nano": start,
        "length_ns": end - start,
        "self_time_ns": None,
        "is_error": False,
        "status_message": None,
        "attributes": "{}",
        "events": "[]",
        "links": "[]",
        "dropped_attributes_count": 0,
        "file": None,
        "line": None,
    }


def _path(
    engine: "Engine", spans: Sequence[Row], places: dict[int, int], asked: dict[str, list[str]]
) -> list[Row]:
    """Return the sections of the rollouts' paths, and of traces that belong to no rollout."""
    rollouts = {(row["run_id"], row["rollout_id"]) for row in spans}
    found = [
        row
        for row in engine.rows(_ROLLOUT_PATH, asked)
        if (row["run_id"], row["rollout_id"]) in rollouts
    ]
    in_rollouts = {row["trace_id"] for row in spans if row["rollout_id"] is not None}
    others = sorted({row["trace_id"] for row in spans} - in_rollouts)
    if others:
        found += engine.rows(_TRACE_PATH, {"trace_ids": others})
    sections = [row | {"span": places[row["node"]]} for row in found if row["node"] in places]
    return sorted(sections, key=lambda row: (row["span"], row["start_time_unix_nano"]))


def _logs(engine: "Engine", spans: Sequence[Row], asked: dict[str, list[str]]) -> list[Row]:
    """Return log records with `span`: the place of the span they were written in."""
    records = engine.rows(_LOG_RECORDS, asked)
    if not records:
        return []
    places = {(row["trace_id"], row["span_id"]): at for at, row in enumerate(spans)}
    found = (row | {"span": places.get((row["trace_id"], row["span_id"]))} for row in records)
    return [row for row in found if row["span"] is not None]


def _rollouts(
    engine: "Engine", choice: Choice, spans: Sequence[Row], asked: dict[str, list[str]]
) -> list[Row]:
    shown = {(row["run_id"], row["rollout_id"]) for row in spans if row["rollout_id"] is not None}
    if not shown:
        return []
    wanted = set(choice.rollouts) or shown
    places: dict[tuple[str | None, str], int] = {}
    for place, row in enumerate(spans):
        places.setdefault((row["run_id"], row["rollout_id"]), place)
    rows = engine.rows(_SHARES, {"rollout_ids": asked["rollout_ids"]})
    return [
        row | {"span": places.get((row["run_id"], row["rollout_id"]), -1)}
        for row in rows
        if (row["run_id"], row["rollout_id"]) in wanted
    ]


def _concurrency(engine: "Engine", spans: Sequence[Row], run_ids: Sequence[str]) -> list[Row]:
    if len(run_ids) != 1:
        return []
    since = min(row["start_time_unix_nano"] for row in spans)
    until = max(row["start_time_unix_nano"] + row["length_ns"] for row in spans)
    if until - since < BUCKETS:
        return []
    asked = {"since": since, "until": until, "buckets": BUCKETS, "run_id": run_ids[0]}
    return engine.rows(_CONCURRENCY, asked)
