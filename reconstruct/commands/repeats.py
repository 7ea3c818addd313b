"""`reconstruct repeats`: calls that spans made many times, one after the other."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from reconstruct.commands.answers import Question, answer, explained, with_details
from reconstruct.commands.logs import Logs, limit_option, on_logs
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Column, Row
from reconstruct.render.text import short_names

__all__ = ["command"]

_COLUMNS: Final = [
    Column("call", "CALL"),
    Column("parent_count", "SPANS", "count", "How many spans made such calls."),
    Column("call_count", "CALLS", "count", "How many they made, all together."),
    Column("duration_p50_ns", "P50", "duration", "Median of the spans' median durations, ns."),
    Column("duration_total_ns", "TOTAL", "duration"),
    Column("parent_share", "SHARE", "share", "Mean of the parts of their time, 0 to 1."),
    Column("overlap_share", "OVERLAP", "share", "Largest overlap in one of the spans, 0 to 1."),
]
_FACTS: Final = [
    Column("parent_service_name", "SERVICE"),
    Column("parent_name", "SPAN"),
    Column("service_name", "SERVICE OF THE CALLS"),
    Column("name", "CALL"),
    Column("route", "ROUTE"),
    *_COLUMNS[1:],
    Column("trace_id", "LONGEST IN", meaning="The trace in which they took longest."),
]


@click.command("repeats", short_help="List what spans did many times in turn (N+1).")
@on_logs
@explained(*_FACTS, relation="repeated_calls")
@selection_options
@limit_option(20, "repetition")
def command(logs: Logs, selection: Selection, limit: int) -> None:
    """List what spans did many times, one after the other (N+1): more than ten children of one
    name, service and route that took about as long as each other and hardly overlap. They might
    run at once, or be one call. Selections are of the spans that made the calls.

    \b
    Example: what is called over and over, as data
      reconstruct repeats logs/ --json
    """
    with logs.read() as engine:
        chosen = selection.of(engine)
        question = Question(
            f"""
            SELECT
                series.parent_service_name,
                series.parent_name,
                series.service_name,
                series.name,
                series.route,
                count(*) AS parent_count,
                sum(series.call_count)::BIGINT AS call_count,
                round(quantile_cont(series.duration_p50_ns, 0.5))::BIGINT AS duration_p50_ns,
                sum(series.duration_total_ns)::BIGINT AS duration_total_ns,
                avg(series.parent_share) AS parent_share,
                max(series.overlap_share) AS overlap_share,
                arg_max(
                    series.trace_id,
                    (series.duration_total_ns, series.trace_id)
                ) AS trace_id
            FROM repeated_calls AS series
            JOIN spans AS span
                ON span.trace_id = series.trace_id
                AND span.span_id = series.parent_span_id
                AND span.occurrence = series.parent_occurrence
            WHERE {chosen.spans}
            GROUP BY series.parent_service_name, series.parent_name, series.service_name,
                series.name, series.route
            ORDER BY duration_total_ns DESC, series.parent_service_name, series.parent_name,
                series.service_name, series.name, series.route
            """,
            chosen.parameters,
        )
        answer(
            logs,
            engine,
            question,
            _COLUMNS,
            limit=limit,
            noun="repetition",
            draw=lambda rows: _draw(logs, rows),
        )


def _draw(logs: Logs, rows: Sequence[Row]) -> None:
    """Write a table with who made the calls under each row."""
    names = short_names(row[key] for row in rows for key in ("service_name", "parent_service_name"))
    shown = [{**row, "call": " ".join(filter(None, (row["name"], row["route"])))} for row in rows]

    def details(row: Row) -> Iterator[str]:
        by, at = names[row["parent_service_name"]], names[row["service_name"]]
        yield f"by {row['parent_name']} in {by}" + (f", calls in {at}" if at != by else "")
        yield f"longest: reconstruct show {row['trace_id']}"

    logs.console.lines(with_details(logs.console, _COLUMNS, shown, details))
