"""`reconstruct clocks`: how far the clocks of the hosts were apart, and what to do about it."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.logs import Logs, limit_option, on_logs
from reconstruct.console import Column, Row
from reconstruct.render.text import count, duration, plural

__all__ = ["command"]

_COLUMNS: Final = [
    Column("clock", "CLOCK"),
    Column("offset_ns", "OFFSET", "duration"),
    Column("uncertainty_ns", "±", "duration"),
    Column("method", "METHOD"),
    Column("parent_clock", "AGAINST"),
    Column("calls", "CALLS", "count"),
    Column("contradicting_calls", "ODD", "count"),
    Column("excluded_calls", "EXCLUDED", "count"),
    Column("reference_clock", "REFERENCE"),
    Column("from_unix_nano", "FROM", "instant"),
    Column("until_unix_nano", "UNTIL", "instant"),
]
_OFTEN_EMPTY: Final = {
    "contradicting_calls",
    "excluded_calls",
    "from_unix_nano",
    "until_unix_nano",
}
"""Columns that are shown where there is something in them; `--json` has them always."""
_MATTERS_NS: Final = 1_000_000
"""Clocks closer than this are as good as equal."""
_TOLD: Final = 5
"""So many clocks are told about in words."""
_QUESTION: Final = Question(
    """
    SELECT clock, offset_ns, uncertainty_ns, method, parent_clock, calls, contradicting_calls,
        excluded_calls, reference_clock, from_unix_nano, until_unix_nano
    FROM clock_offsets
    ORDER BY reference_clock, clock <> reference_clock,
        max(abs(offset_ns)) OVER (PARTITION BY clock) DESC, clock, from_unix_nano NULLS FIRST
    """
)


@click.command("clocks", short_help="Say how far the clocks of the hosts were apart.")
@on_logs
@explained(*_COLUMNS, relation="clock_offsets")
@limit_option(50, "row")
def command(logs: Logs, limit: int) -> None:
    """Say how far the clocks of the hosts were apart, by the calls between them: a call begins
    before it is served and ends after it, by any clock. Offsets are estimates over all the logs;
    the times in the logs stay as they are; `--align` of other commands draws and answers by them.

    \b
    Example: is a host's clock wrong?
      reconstruct clocks logs/
    """
    with logs.read(keep=("_clock_stretches", "clock_offsets")) as engine:
        if logs.as_sql:
            print_sql(logs, _QUESTION)
            return
        rows = _QUESTION.ask(engine)
    logs.show(_shown(rows), rows, limit=limit, noun="row")
    if not logs.as_json:
        for words in _verdict(rows):
            logs.console.say(words)


def _shown(rows: Sequence[Row]) -> list[Column]:
    """Leave out of the table what says nothing here: it is to fit a terminal."""
    empty = {key for key in _OFTEN_EMPTY if not any(row[key] for row in rows)}
    if len({row["reference_clock"] for row in rows if row["parent_clock"]}) < 2:
        empty.add("reference_clock")
    return [column for column in _COLUMNS if column.key not in empty]


def _verdict(rows: Sequence[Row]) -> Iterator[str]:
    """Say what the table comes to: which clocks are off, and what to do."""
    measured: dict[str, list[Row]] = {}
    for row in rows:
        if row["parent_clock"] is not None:
            measured.setdefault(row["clock"], []).append(row)
    off = {clock: found for clock, found in measured.items() if any(map(_matters, found))}
    for clock, found in list(off.items())[:_TOLD]:
        yield _described(clock, found)
    if len(off) > _TOLD:
        yield f"… and {plural(len(off) - _TOLD, 'more clock')}"
    if off:
        yield "NTP or PTP keeps clocks together; `chronyc tracking` on a host says how well"
        yield "`reconstruct show --align` draws spans where they belong"
    elif measured:
        yield "no clock is off by a millisecond, as far as the calls tell"
    alone = [row["clock"] for row in rows if row["method"] == "alone"]
    if len(rows) == len(alone) == 1:
        yield "one clock: there is nothing to compare"
    elif alone:
        named = ", ".join(alone[:_TOLD])
        more = f" and {count(len(alone) - _TOLD)} more" if len(alone) > _TOLD else ""
        yield f"no call tells anything of {named}{more}"


def _matters(row: Row) -> bool:
    """The clock is surely off, or its calls make no sense, by more than anybody can ignore."""
    if _is_contradicted(row):
        return bool(row["uncertainty_ns"] >= _MATTERS_NS)
    return bool(abs(row["offset_ns"]) - row["uncertainty_ns"] >= _MATTERS_NS)


def _is_contradicted(row: Row) -> bool:
    return bool(row["contradicting_calls"] * 4 > row["calls"])


def _described(clock: str, rows: Sequence[Row]) -> str:
    worst = max(rows, key=lambda row: abs(row["offset_ns"]))
    side = "ahead of" if worst["offset_ns"] > 0 else "behind"
    words = (
        f"{clock} was {duration(abs(worst['offset_ns']))} {side} {worst['reference_clock']} "
        f"(± {duration(worst['uncertainty_ns'])})"
    )
    if len(rows) > 1:
        least, most = (pick(row["offset_ns"] for row in rows) for pick in (min, max))
        words += (
            f" at its worst; its offset changed, between {duration(least)} and {duration(most)}: "
            "a clock was set, or drifts"
        )
    if _is_contradicted(worst):
        words += (
            f"; {count(worst['contradicting_calls'])} of {plural(worst['calls'], 'call')} "
            "contradict that: servers that work on after their answer, or several machines under "
            "one name"
        )
    return words
