"""`reconstruct rollouts`: the rollouts in the logs, one row each."""

from typing import Final

import click

from reconstruct.commands.logs import SORTS, Logs, limit_option, on_logs, sort_option
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Column

__all__ = ["command"]

_COLUMNS: Final = [
    Column("rollout_id", "ROLLOUT"),
    Column("run_id", "RUN"),
    Column("start_time_unix_nano", "START", "instant"),
    Column("duration_ns", "DURATION", "duration"),
    Column("trace_count", "TRACES", "count"),
    Column("span_count", "SPANS", "count"),
    Column("error_count", "ERRORS", "count"),
    Column("open_count", "UNFINISHED", "count"),
]


@click.command("rollouts", short_help="List rollouts, the longest first.")
@on_logs
@sort_option
@selection_options
@limit_option(20, "rollout")
def command(logs: Logs, sort: str, selection: Selection, limit: int) -> None:
    """List rollouts, the longest first.

    \b
    Example: all rollouts in order of their start, as JSON
      reconstruct rollouts logs/ --sort start --limit 0 --json
    """
    with logs.read() as engine:
        chosen = selection.of(engine)
        rows = engine.rows(
            f"""
            SELECT rollout_id, run_id, start_time_unix_nano, duration_ns, trace_count, span_count,
                error_count, open_count
            FROM rollouts AS rollout
            WHERE {chosen.rollouts}
            ORDER BY {SORTS[sort]}, run_id, rollout_id
            """,
            chosen.parameters,
        )
        logs.show(_COLUMNS, rows, limit=limit, noun="rollout")
