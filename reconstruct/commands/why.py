"""What the time of rollouts went to, as people read it: a list of them, or one after the other.

Rows are of the relation `rollout_shares`. A kind of time that is nowhere worth a percent has no
column; the reasons stand in the last one, or under their rollout where the terminal is too narrow.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconstruct.commands.logs import Logs
from reconstruct.console import Column, Row
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    count,
    duration,
    flow,
    instant,
    plural,
    short_names,
    width,
)

__all__ = ["COLUMNS", "MEASURED", "show_each", "show_list"]

_KINDS: Final = {
    "model": Column("model_ns", "MODEL", "part"),
    "tool": Column("tool_ns", "TOOL", "part"),
    "verify": Column("verify_ns", "VERIFY", "part"),
    "sandbox": Column("sandbox_ns", "SANDBOX", "part"),
    "agent": Column("agent_ns", "OWN", "part"),
    "queue": Column("queue_ns", "QUEUE", "part"),
    "client_overhead": Column("client_overhead_ns", "CLIENT", "part"),
    "event_loop_lag": Column("event_loop_lag_ns", "LAG", "part"),
    "retry": Column("retry_ns", "RETRY", "part"),
    "unaccounted": Column("unaccounted_ns", "NOBODY", "part"),
}
_WORDS: Final = {
    "agent": "own work",
    "client_overhead": "client overhead",
    "event_loop_lag": "event loop lag",
}
_TURNS: Final = Column("turns", "TURNS", "count")
_OUTCOME: Final = Column("outcome", "OUTCOME")
_WHY: Final = Column("why", "WHY")
COLUMNS: Final = [
    _OUTCOME,
    _TURNS,
    *_KINDS.values(),
    _WHY,
    Column("tool_calls", "TOOL CALLS", "count"),
    Column("retries", "RETRIES", "count"),
    Column("failed_calls", "FAILED CALLS", "count"),
    Column("attempt", "ATTEMPT", "count"),
    Column("agent_name", "AGENT"),
    Column("resources_name", "RESOURCES"),
    Column("end_time_unix_nano", "END", "instant"),
    Column("model_sum_ns", "MODEL CALLS ADDED UP", "duration"),
    Column("model_wall_ns", "MODEL CALLS UNDER WAY", "duration"),
    Column("tool_sum_ns", "TOOL CALLS ADDED UP", "duration"),
    Column("tool_wall_ns", "TOOL CALLS UNDER WAY", "duration"),
    Column("slowest_tool", "SLOWEST TOOL"),
    Column("model_call_p50_ns", "MEDIAN MODEL CALL", "duration"),
    Column("model_call_max_ns", "LONGEST MODEL CALL", "duration"),
    Column("time_to_first_token_p50_ns", "MEDIAN FIRST TOKEN", "duration"),
    Column("captured_calls", "CAPTURED CALLS", "count"),
    Column("input_tokens", "INPUT TOKENS", "count"),
    Column("cached_input_tokens", "CACHED INPUT TOKENS", "count"),
    Column("output_tokens", "OUTPUT TOKENS", "count"),
    Column("reasoning_tokens", "REASONING TOKENS", "count"),
]
"""What `rollout_shares` has beyond what `rollouts` has."""

MEASURED: Final = ("duration_ns", *(kind.key for kind in _KINDS.values()))
"""The times of a rollout that its run's medians are of."""

_LEAST_PART: Final = 0.005
_BAR: Final = 30
"""Columns of a bar that is all of a rollout."""


def show_list(logs: Logs, rows: Sequence[Row], *, limit: int) -> None:
    """Write the first `limit` rows (0: all); say how many and which columns are left out."""
    shown = rows[:limit] if limit else rows
    if not shown:
        logs.show([], rows, limit=limit, noun="rollout")
        return
    console = logs.console
    columns, left_out = _columns(shown)
    table = console.laid_out(columns, shown)
    needed = max(sum(width(part.text) for part in line) for line in table)
    needed += 2 + max(width(_WHY.text(row)) for row in shown)
    if console.is_terminal and needed > console.columns:
        console.lines(_with_reasons_below(table, shown))
    else:
        console.table([*columns, _WHY], shown)
    if left_out:
        headings = ", ".join(column.heading for column in left_out)
        console.say(f"left out, as it rounds to 0 % everywhere: {headings}")
    if left := len(rows) - len(shown):
        console.say(f"… {plural(left, 'more rollout')}; --limit 0 shows all")


def _columns(rows: Sequence[Row]) -> tuple[list[Column], list[Column]]:
    """Return the columns in which something stands, and the kinds of time that have none."""
    columns = [Column("rollout_id", "ROLLOUT")]
    if len({row["run_id"] for row in rows}) > 1:
        columns.append(Column("run_id", "RUN"))
    if any(row["outcome"] != "success" for row in rows):
        columns.append(_OUTCOME)
    columns += [Column("duration_ns", "DURATION", "duration"), _TURNS]
    kinds = list(_KINDS.values())
    kept = [
        kind
        for kind in kinds
        if any(row[kind.key] > _LEAST_PART * row["duration_ns"] for row in rows)
    ]
    return columns + kept, [kind for kind in kinds if kind not in kept]


def _with_reasons_below(table: Sequence[Line], rows: Sequence[Row]) -> Iterator[Line]:
    yield table[0]
    for line, row in zip(table[1:], rows, strict=True):
        yield line
        if row["why"] is not None:
            yield (Part("  "), Part(clean(row["why"]), "quiet"))


def show_each(
    logs: Logs,
    rows: Sequence[Row],
    *,
    medians: Sequence[Row],
    stretches: Sequence[Row],
    limit: int,
) -> None:
    """Write each of the rollouts in detail, with its `limit` longest stretches of time.

    `medians` are those of each run; `stretches` those of all rollouts, the longest first.
    """
    console = logs.console
    for number, row in enumerate(rows):
        own = [stretch for stretch in stretches if stretch["run_id"] == row["run_id"]]
        (median,) = (median for median in medians if median["run_id"] == row["run_id"])
        console.lines([()] if number else [])
        console.lines(_head(row, console.columns))
        console.lines([(), *console.laid_out(_DIVISION, list(_division(row, median)))])
        if row["why"] is not None:
            median_of = f"the median of {plural(median['rollouts'], 'rollout')}"
            console.lines([(), (Part(f"more than {median_of}: {clean(row['why'])}"),)])
        names = short_names(stretch["service_name"] for stretch in own[:limit])
        places = [_place(stretch, row, names) for stretch in own[:limit]]
        console.lines([(), *console.laid_out(_PLACES, places)])
        if left := len(own) - len(places):
            console.say(
                f"… {plural(left, 'shorter stretch', 'shorter stretches')}, in rollout_work"
            )


_DIVISION: Final = [
    Column("spent_on", "SPENT ON"),
    Column("time", "TIME", "duration"),
    Column("share", "SHARE", "share"),
    Column("median", "MEDIAN", "duration"),
    Column("bar", ""),
]
_PLACES: Final = [
    Column("at", "AT", "duration"),
    Column("time", "TIME", "duration"),
    Column("spent_on", "SPENT ON"),
    Column("name", "SPAN"),
    Column("service", "SERVICE"),
]


def _head(row: Row, columns: int) -> Iterator[Line]:
    title = f"rollout {clean(row['rollout_id'])}"
    style = {"failure": "error", "unfinished": "warning"}.get(row["outcome"], "good")
    run = [] if row["run_id"] is None else [(Part(f"run {clean(row['run_id'])}", "quiet"),)]
    yield from flow([(Part(title, "title"),), *run, (Part(row["outcome"], style),)], columns)
    facts = [instant(row["start_time_unix_nano"]), duration(row["duration_ns"])]
    facts += [
        plural(row[key], singular, several)
        for key, singular, several in (
            ("turns", "turn", "turns"),
            ("tool_calls", "tool call", "tool calls"),
            ("failed_calls", "failed call", "failed calls"),
            ("retries", "retry", "retries"),
            ("error_count", "error", "errors"),
        )
        if row[key] or key == "turns"
    ]
    facts += [f"attempt {row['attempt']}"] if row["attempt"] else []
    yield from flow([(Part(fact),) for fact in facts], columns)
    yield from flow([(Part(fact),) for fact in _model_facts(row)], columns)
    for kind in ("model", "tool"):
        added_up, under_way = row[f"{kind}_sum_ns"], row[f"{kind}_wall_ns"]
        if added_up > under_way:
            yield (
                Part(
                    f"{kind} calls overlap: {duration(added_up)} in {duration(under_way)}, "
                    f"{added_up / under_way:.2f} at a time"
                ),
            )


def _model_facts(row: Row) -> Iterator[str]:
    if row["model_call_p50_ns"] is not None:
        source = "captured model call" if row["captured_calls"] else "model call"
        yield f"{source}: median {duration(row['model_call_p50_ns'])}"
        yield f"longest {duration(row['model_call_max_ns'])}"
    if row["time_to_first_token_p50_ns"] is not None:
        yield f"first token after {duration(row['time_to_first_token_p50_ns'])}"
    for key, part, words in (
        ("input_tokens", "cached_input_tokens", "cached"),
        ("output_tokens", "reasoning_tokens", "reasoning"),
    ):
        if row[key] is not None:
            of_them = f" ({count(row[part])} {words})" if row[part] else ""
            yield f"{count(row[key])} {key.replace('_', ' ')}{of_them}"


def _division(row: Row, median: Row) -> Iterator[Row]:
    """Yield the kinds of time that there are here or at the median, then their sum."""
    whole = row["duration_ns"]
    for kind, column in _KINDS.items():
        time = row[column.key]
        if time or median[column.key]:
            yield {
                "spent_on": _words(kind),
                "time": time,
                "share": time / (whole or 1),
                "median": median[column.key],
                "bar": "█" * round(_BAR * time / (whole or 1)),
            }
    yield {
        "spent_on": "in all",
        "time": whole,
        "share": 1,
        "median": median["duration_ns"],
        "bar": "",
    }


def _place(stretch: Row, row: Row, names: Mapping[str | None, str]) -> Row:
    at = stretch["start_time_unix_nano"] - row["start_time_unix_nano"]
    return {
        "at": at,
        "time": stretch["duration_ns"],
        "spent_on": _words(stretch["spent_on"]),
        "name": stretch["name"],
        "service": names[stretch["service_name"]],
    }


def _words(kind: str) -> str:
    return _WORDS.get(kind, kind)
