"""`reconstruct stats`: how many spans, how many failed, how long they took, by what one likes."""

import difflib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.answers import Question, answer, explained
from reconstruct.commands.logs import Logs, align_option, limit_option, on_logs
from reconstruct.commands.selection import Chosen, Selection, selection_options
from reconstruct.console import Column, Row
from reconstruct.errors import UsageError
from reconstruct.render.text import clean, duration, short_names, width

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["command"]

_KEYS: Final = {
    "service": Column("service_name", "SERVICE"),
    "name": Column("name", "NAME"),
    "route": Column("route", "ROUTE", meaning="http.route of the spans."),
    "host": Column("host_name", "HOST", meaning="host.name of their process."),
    "outcome": Column(
        "outcome",
        "OUTCOME",
        meaning="How they ended: open or lost (unfinished); cancelled; error, with error.type, "
        "else the HTTP status; ok, with the class of the HTTP status.",
    ),
    "kind": Column("kind", "KIND", meaning="INTERNAL, SERVER, CLIENT, PRODUCER or CONSUMER."),
    "server": Column("server_name", "SERVER", meaning="nemo.gym.server.name of their process."),
    "instance": Column("instance", "INSTANCE", meaning="Their process: key of instances."),
    "rollout": Column(
        "rollout_id", "ROLLOUT", meaning="nemo.gym.rollout.id in their own attributes."
    ),
    "run": Column("run_id", "RUN", meaning="nemo.run.id of their process."),
}
"""What to group by, besides attributes."""
_FIGURES: Final = {
    "spans": Column("span_count", "SPANS", "count"),
    "rate": Column("spans_per_second", "RATE", "rate"),
    "errors": Column("error_count", "ERRORS", "count"),
    "failed": Column("error_share", "FAILED", "share"),
    "unfinished": Column("open_count", "UNFINISHED", "count"),
    "p50": Column("duration_p50_ns", "P50", "duration"),
    "p90": Column("duration_p90_ns", "P90", "duration"),
    "p95": Column("duration_p95_ns", "P95", "duration"),
    "p99": Column("duration_p99_ns", "P99", "duration"),
    "max": Column("duration_max_ns", "MAX", "duration"),
    "total": Column("duration_total_ns", "TOTAL", "duration"),
    "self": Column("self_time_ns", "SELF", "duration"),
    "blame": Column("blame_ns", "BLAME", "duration"),
}
"""Figures, by what `--sort` calls them."""
_RANGE: Final = Column("range_ns", "RANGE", "duration")
_LEFT_OUT_FIRST: Final = ("p90", "failed", "p95", "max", "rate", "unfinished", "total", "blame")
"""What a terminal that is too narrow does without."""
_ROOM_FOR_NAMES: Final = 32
_SAMPLE: Final = 100_000
"""So many spans are looked through for what an unknown key may have meant."""


@click.command("stats", short_help="Count and time spans by name, service or any key.")
@on_logs
@align_option
@click.option(
    "--by",
    metavar="KEY,…",
    default="service,name",
    show_default=True,
    help=f"What to group by, one or several: {', '.join(_KEYS)}, or the key of an attribute.",
)
@click.option(
    "--sort",
    type=click.Choice(list(_FIGURES)),
    default="self",
    show_default=True,
    help="Most or longest of this first.",
)
@explained(*_KEYS.values(), *_FIGURES.values(), _RANGE, relation="stats")
@selection_options
@limit_option(20, "group")
def command(logs: Logs, by: str, sort: str, selection: Selection, limit: int) -> None:
    """Count and time spans: how many, how many failed, how long they took, their self time and
    how much of the roots' time they are to blame for. Unfinished spans are counted, but have no
    duration. A terminal that is too narrow shows fewer figures, and says which are left out.

    \b
    Example: which routes of which service are slowest?
      reconstruct stats logs/ --by service,route --sort p99
    """
    keys = _keys(by)
    with logs.read(keep=("_self_times", "_blames")) as engine:
        chosen = selection.of(engine)
        _refuse_unknown(engine, keys, chosen)
        answer(
            logs,
            engine,
            _question(keys, sort, chosen),
            [*keys.values(), *_FIGURES.values()],
            limit=limit,
            noun="group",
            draw=lambda shown: _draw(logs, list(keys.values()), sort, shown),
        )


def _keys(by: str) -> dict[str, Column]:
    """Return the keys of `stats_by`, and their columns."""
    known = {column.key: column for column in _KEYS.values()}
    taken = {column.key for column in (*_FIGURES.values(), _RANGE)}
    keys: dict[str, Column] = {}
    for word in filter(None, map(str.strip, by.split(","))):
        if column := _KEYS.get(word) or known.get(word):
            keys[column.key] = column
        else:
            is_odd = word in taken or "$" in word
            keys[word] = Column(f"key_{len(keys) + 1}" if is_odd else word, clean(word))
    if not keys:
        raise UsageError(f"--by takes {', '.join(_KEYS)} or the key of an attribute")
    return keys


def _question(keys: Mapping[str, Column], sort: str, chosen: Chosen) -> Question:
    names = [column.key.replace('"', '""') for column in keys.values()]
    columns = ",\n            ".join(
        [
            *(f'key_values[{number}] AS "{name}"' for number, name in enumerate(names, 1)),
            *(column.key for column in (*_FIGURES.values(), _RANGE)),
        ]
    )
    return Question(
        f"""
        WITH chosen AS (
            SELECT *
            FROM spans AS span
            WHERE {chosen.spans}
        )
        SELECT
            {columns}
        FROM stats_by($keys, relation := 'chosen', since := $since, until := $until)
        ORDER BY {_FIGURES[sort].key} DESC NULLS LAST, key_values
        """,
        {"since": None, "until": None, **chosen.parameters, "keys": list(keys)},
    )


def _draw(logs: Logs, keys: Sequence[Column], sort: str, rows: Sequence[Row]) -> None:
    """Write the table, with as many figures as there is room for."""
    names = short_names(row.get("service_name") for row in rows)
    shown = [
        {**row, "service_name": names[row["service_name"]]} if "service_name" in row else row
        for row in rows
    ]
    figures = dict(_FIGURES)
    left_out = []
    for word in _LEFT_OUT_FIRST:
        if not logs.console.is_terminal or _width([*keys, *figures.values()], shown) <= (
            logs.console.columns
        ):
            break
        if word != sort:
            left_out.append(figures.pop(word).heading.lower())
    logs.console.table([*keys, *figures.values()], shown)
    if "rate" in figures and rows[0][_RANGE.key]:
        logs.console.say(f"rate: spans per second of {duration(rows[0][_RANGE.key])}")
    if left_out:
        words = ", ".join(left_out)
        logs.console.say(f"… no room for {words}; a pipe or --json has them")


def _width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    """Return how wide the table is, names cut as far as they may be."""
    widths = [
        max(width(text) for text in (column.heading, *map(column.text, rows))) for column in columns
    ]
    return sum(min(each, _ROOM_FOR_NAMES) for each in widths) + 2 * (len(columns) - 1)


def _refuse_unknown(engine: "Engine", keys: Mapping[str, Column], chosen: Chosen) -> None:
    """Raise `UsageError` for the key of an attribute that no chosen span has."""
    for key, column in keys.items():
        if column in _KEYS.values() or engine.rows(
            f"""
            SELECT 1
            FROM spans AS span
            WHERE {chosen.spans} AND list_contains(json_keys(span.attributes), $key)
            LIMIT 1
            """,
            {**chosen.parameters, "key": key},
        ):
            continue
        found = engine.rows(
            f"""
            SELECT DISTINCT unnest(json_keys(attributes)) AS key
            FROM (SELECT attributes FROM spans LIMIT {_SAMPLE})
            ORDER BY key
            """
        )
        words = [*_KEYS, *(row["key"] for row in found)]
        near = difflib.get_close_matches(key, words, n=3) or list(_KEYS)
        raise UsageError(f"no span here has the attribute '{key}'; there is {', '.join(near)}")
