"""`reconstruct traces`: the traces in the logs, one row each."""

from typing import Final

import click

from reconstruct.commands.answers import Question, answer, explained
from reconstruct.commands.logs import SORTS, Logs, limit_option, on_logs, sort_option
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Column

__all__ = ["command"]

_COLUMNS: Final = [
    Column("trace_id", "TRACE"),
    Column("root_name", "ROOT"),
    Column("rollout_id", "ROLLOUT"),
    Column("run_id", "RUN"),
    Column("start_time_unix_nano", "START", "instant"),
    Column("duration_ns", "DURATION", "duration"),
    Column("span_count", "SPANS", "count"),
    Column("service_count", "SERVICES", "count"),
    Column("error_count", "ERRORS", "count"),
    Column("open_count", "UNFINISHED", "count"),
]


@click.command("traces", short_help="List traces, the longest first.")
@on_logs
@sort_option
@explained(*_COLUMNS, relation="traces")
@selection_options
@limit_option(20, "trace")
def command(logs: Logs, sort: str, selection: Selection, limit: int) -> None:
    """List traces, the longest first.

    \b
    Example: the ten traces with the most errors
      reconstruct traces logs/ --sort errors --limit 10
    """
    with logs.read() as engine:
        chosen = selection.of(engine)
        question = Question(
            f"""
            SELECT trace_id, root_name, rollout_id, run_id, start_time_unix_nano, duration_ns,
                span_count, service_count, error_count, open_count
            FROM traces AS trace
            WHERE {chosen.traces}
            ORDER BY {SORTS[sort]}, trace_id
            """,
            chosen.parameters,
        )
        answer(logs, engine, question, _COLUMNS, limit=limit, noun="trace")
