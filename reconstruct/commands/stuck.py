"""`reconstruct stuck`: what everything waits for, and what was open when a process died."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.selection import Selection, instant_of, selection_options
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
    wrapped,
)

__all__ = ["command"]

_COLUMNS: Final = [
    Column("run_id", "RUN"),
    Column("rollout_id", "ROLLOUT"),
    Column("service_name", "SERVICE"),
    Column("name", "SPAN"),
    Column("kind", "KIND"),
    Column("route", "ROUTE"),
    Column("ending", "ENDING"),
    Column("is_stuck", "STUCK"),
    Column("is_innermost", "INNERMOST"),
    Column("open_ns", "OPEN", "duration"),
    Column("waited_ns", "WAITED", "duration"),
    Column("kind_p99_ns", "P99 OF ITS KIND", "duration"),
    Column("longest_peer_ns", "LONGEST OTHER", "duration"),
    Column("finished_peers", "OTHERS", "count"),
    Column("waits_for", "WAITS FOR"),
    Column("instance", "PROCESS"),
    Column("process_state", "ITS STATE"),
    Column("process_pid", "PID"),
    Column("host_name", "HOST"),
    Column("last_sign_of_life_unix_nano", "LAST SIGN OF LIFE", "instant"),
    Column("last_file", "FILE OF ITS LAST LINE"),
    Column("last_line", "ITS LAST LINE"),
    Column("start_time_unix_nano", "START", "instant"),
    Column("trace_id", "TRACE"),
    Column("span_id", "SPAN ID"),
    Column("file", "FILE"),
    Column("line", "LINE"),
]
_GROUPS: Final = 20
"""So many places are named; `--json` has all of them."""
_SURE: Final = 100
"""Of fewer spans the 99th percentile is the longest."""
_STATES: Final = {
    "alive": ", alive",
    "unknown": ", of which nothing says whether it lives",
    "stopped": ", stopped",
    "dead": ", dead",
}
_OWN_WORK: Final = "its own work"
"""What `waits_for` says of a span that called nobody."""
_MIN_ROOM: Final = 40
_INDENT: Final = " " * 4


@click.command("stuck", short_help="Say what everything waits for, and who died with what.")
@on_logs
@click.option(
    "--at",
    metavar="TIME",
    help="What ran at TIME, as --since has it, also if it ended later. When left out: what has no "
    "end when the logs end.",
)
@explained(*_COLUMNS, relation="stuck_work")
@selection_options
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Spans to show for each place; 0 shows all.",
)
def command(logs: Logs, at: str | None, selection: Selection, examples: int) -> None:
    """Say what everything waits for: the innermost spans without an end, by the place where they
    hang, for how long, beside what their kind usually takes, in which process; and the processes
    that stopped or died with work open.

    \b
    Example: what was running ten seconds before the logs end?
      reconstruct stuck logs/ --at 10s
    """
    with logs.read() as engine:
        chosen = selection.of(engine)
        when = instant_of(engine, "--at", at)
        question = Question(
            f"""
            SELECT {", ".join(f"work.{column.key}" for column in _COLUMNS)}
            FROM stuck_work_at($instant) AS work
            JOIN spans AS span ON span.rowid = work.node
            WHERE (work.ending <> 'cancelled' OR work.is_stuck) AND {chosen.spans}
            ORDER BY work.start_time_unix_nano, work.trace_id, work.span_id, work.occurrence
            """,
            {**chosen.parameters, "instant": when},
        )
        if logs.as_sql:
            print_sql(logs, question)
            return
        rows: list[Row] = list(question.ask(engine))
        (run,) = engine.rows("SELECT max(last_time_unix_nano) AS last_time FROM instances")
    if logs.as_json:
        logs.console.json(rows)
        return
    last_time = run["last_time"] if when is None else when
    logs.console.lines(_report(rows, when, last_time, examples, logs.console.columns))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where spans hang: their process if that is gone, their service, what they do."""

    rows: Sequence[Row]

    @property
    def label(self) -> str:
        """Name the place; a route says nothing where the name has it."""
        row = self.rows[0]
        route = row["route"]
        name = row["name"] if route is None or route in row["name"] else f"{row['name']} {route}"
        return name if row["service_name"] is None else f"{name} in {row['service_name']}"

    @property
    def order(self) -> tuple[bool, int, int, str]:
        """What is stuck comes first, then the most, then the longest."""
        longest = max(row["open_ns"] for row in self.rows)
        return not self.is_stuck, -len(self.rows), -longest, self.label

    @property
    def is_stuck(self) -> bool:
        """Whether some of them were open for longer than is usual."""
        return any(row["is_stuck"] for row in self.rows)


def _report(
    rows: Sequence[Row], when: int | None, last_time: int | None, examples: int, columns: int
) -> Iterator[Line]:
    moment = "when the logs end" if when is None else "then"
    if not rows:
        yield (Part(f"Nothing is unfinished {moment}.", "good"),)
        return
    innermost = [row for row in rows if row["is_innermost"]]
    traces = plural(len({row["trace_id"] for row in rows}), "trace")
    unfinished = f"   {plural(len(rows), 'span')} unfinished in {traces}, "
    unfinished += f"{count(len(innermost))} of them innermost"
    yield (Part(instant(last_time or 0), "title"), Part(unfinished))
    alive = [row for row in innermost if row["ending"] != "lost"]
    yield from _places(alive, when, examples, columns)
    for instance in sorted({row["instance"] for row in rows if row["ending"] == "lost"}):
        lost = [row for row in rows if row["instance"] == instance and row["ending"] == "lost"]
        yield ()
        yield from _death(lost, last_time or 0, columns)
        hung = [row for row in lost if row["is_innermost"]]
        yield from _places(hung, when, examples, columns)


def _death(lost: Sequence[Row], last_time: int, columns: int) -> Iterator[Line]:
    row = lost[0]
    ended = "stopped" if row["process_state"] == "stopped" else "died"
    silent = duration(max(last_time - row["last_sign_of_life_unix_nano"], 0))
    words = f"{_process(row)} {ended} with {plural(len(lost), 'span')} open"
    yield (Part("✗ ", "error"), Part(words, "title"))
    place = f"its last line is {row['last_file']}:{row['last_line']}" if row["last_file"] else ""
    yield from _quiet([f"last heard of {silent} earlier", place], columns)


def _places(rows: Iterable[Row], when: int | None, examples: int, columns: int) -> Iterator[Line]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        key = (row["run_id"], row["service_name"], row["name"], row["route"], row["ending"])
        groups.setdefault(key, []).append(row)
    places = sorted((_Place(group) for group in groups.values()), key=lambda place: place.order)
    for place in places[:_GROUPS]:
        yield ()
        yield from _described(place, when, examples, columns)
    if (left := len(places) - _GROUPS) > 0:
        yield ()
        yield (Part(f"… {plural(left, 'more place')}; --json has all", "quiet"),)


def _described(place: _Place, when: int | None, examples: int, columns: int) -> Iterator[Line]:
    rows = sorted(place.rows, key=lambda row: -row["open_ns"])
    first = rows[0]
    stuck = sum(row["is_stuck"] is True for row in rows)
    marks = "" if not stuck else "   stuck" if stuck == len(rows) else f"   {count(stuck)} stuck"
    yield (Part(f"{count(len(rows))} × {clean(place.label)}", "title"), Part(marks, "error"))
    room = max(columns - len(_INDENT), _MIN_ROOM)
    for words in (f"{_how_long(rows)}; {_usually(first)}", _waiting(rows)):
        for line in wrapped(words, room):
            yield (Part(_INDENT + line),)
    if first["ending"] != "lost":
        yield from _quiet([_processes(rows, when)], columns)
    shown = rows[:examples] if examples else rows
    for row in shown:
        yield from _quiet(_example(row), columns)
    if left := len(rows) - len(shown):
        yield (Part(f"{_INDENT}… {count(left)} more; --examples 0 shows all", "quiet"),)


def _waiting(rows: Sequence[Row]) -> str:
    waits = Counter(row["waits_for"] for row in rows).most_common()
    (usual, number), *others = waits
    words = "busy, or waiting for what is no span" if usual == _OWN_WORK else f"waiting for {usual}"
    return f"{words} ({count(number)} of {count(len(rows))})" if others else words


def _how_long(rows: Sequence[Row]) -> str:
    longest, shortest = duration(rows[0]["open_ns"]), duration(rows[-1]["open_ns"])
    lengths = longest if longest == shortest else f"{shortest} to {longest}"
    match rows[0]["ending"]:
        case "shutdown":
            return f"ended by a shutdown after {lengths}"
        case "cancelled":
            return f"cancelled after {lengths}"
    return f"open for {lengths}"


def _usually(row: Row) -> str:
    others = row["finished_peers"]
    if not others:
        return "no other of its kind has finished, so what is usual is unknown"
    longest = f"{plural(others, 'other')} took at most {duration(row['longest_peer_ns'])}"
    if row["kind_p99_ns"] is None:
        return f"{longest}: too few to tell what is usual"
    if others < _SURE:
        return longest
    return f"99 % of {count(others)} others took at most {duration(row['kind_p99_ns'])}"


def _process(row: Row) -> str:
    facts = [f"pid {row['process_pid']}" if row["process_pid"] is not None else ""]
    facts.append(f"host {row['host_name']}" if row["host_name"] else "")
    known = ", ".join(fact for fact in facts if fact)
    return clean(row["instance"] + (f" ({known})" if known else ""))


def _processes(rows: Sequence[Row], when: int | None) -> str:
    """Say which processes they are in, and what became of these by the end of the logs."""
    by_instance = {row["instance"]: row for row in rows}
    if len(by_instance) == 1:
        state = _STATES[rows[0]["process_state"]] if when is None else ""
        return f"process {_process(rows[0])}{state}"
    if when is not None:
        return f"in {len(by_instance)} processes"
    states = Counter(row["process_state"] for row in by_instance.values())
    words = ", ".join(f"{count(number)} {state}" for state, number in sorted(states.items()))
    return f"in {len(by_instance)} processes: {words}"


def _example(row: Row) -> Iterator[str]:
    if row["rollout_id"] is not None:
        yield f"rollout {row['rollout_id']}"
    yield duration(row["open_ns"])
    yield f"{row['file']}:{row['line']}"
    yield f"trace {row['trace_id']}"
    yield f"span {row['span_id']}"


def _quiet(facts: Iterable[str], columns: int) -> Iterator[Line]:
    yield from flow(((Part(clean(fact), "quiet"),) for fact in facts if fact), columns, _INDENT)
