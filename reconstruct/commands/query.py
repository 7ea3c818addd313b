"""`reconstruct query`: one SQL query over the relations."""

import sys
from typing import Final

import click

from reconstruct.commands.logs import Logs, on_logs
from reconstruct.render.text import count

__all__ = ["command"]

_TABLE_ROWS: Final = 1_000
"""Rows of a table unless `--limit` is given; data formats have no such default."""


@click.command("query", short_help="Answer a SQL query.")
@click.argument("sql")
@on_logs
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "jsonl", "csv"]),
    help="How to write the rows; table unless --json is given.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Write so many rows, 0 all; {_TABLE_ROWS:,} in a table, else all.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300,
    show_default=True,
    help="Stop the query after so many seconds.",
)
def command(logs: Logs, sql: str, form: str | None, limit: int | None, timeout: float) -> None:
    """Answer one SQL query (DuckDB's) over the relations: spans, traces, rollouts, self_time,
    findings … `DESCRIBE spans` lists a relation's columns, `SHOW TABLES` the relations.

    \b
    Example: how long each kind of span took, for a spreadsheet
      reconstruct query "SELECT name, avg(duration_ns) FROM spans GROUP BY name" logs/ --format csv
    """
    if form is not None and logs.as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} contradict each other")
    form = form or ("json" if logs.as_json else "table")
    if limit is None:
        limit = _TABLE_ROWS if form == "table" else 0
    with logs.read() as engine:
        # One row more than is shown tells whether there are more.
        most = limit + 1 if limit else sys.maxsize
        names, rows = engine.user_sql(sql, max_rows=most, timeout_seconds=timeout)
        shown = rows[:limit] if limit else rows
        logs.console.records(names, shown, form)
        if len(rows) > len(shown):
            logs.console.say(f"… more than {count(limit)} rows; --limit 0 shows all")
