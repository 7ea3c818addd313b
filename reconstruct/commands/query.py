"""`reconstruct query`: one SQL query over the relations, its rows as a table or as data."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NoReturn

import click

from reconstruct.commands.logs import Logs, align_option, on_logs, spare_logs
from reconstruct.console import Console
from reconstruct.errors import InputError, SqlError
from reconstruct.render.records import FORMATS as TEXT_FORMATS
from reconstruct.render.records import texts
from reconstruct.render.text import Part, clean, count

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.safe_sql import Answer

__all__ = ["command"]

_TABLE_ROWS: Final = 1_000
"""Rows of a table unless `--max-rows` is given; data formats have no such default."""
_BINARY_FORMATS: Final = ("parquet", "arrow")
_FORMATS: Final = ("table", *TEXT_FORMATS, *_BINARY_FORMATS)


@click.command("query", short_help="Answer a SQL query.")
@click.argument("sql", required=False)
@on_logs
@align_option
@click.option("-f", "--file", "sql_file", metavar="FILE", help="Read the SQL from a file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="How to write the rows; else as the name after -o ends, else a table.",
)
@click.option("-o", "--output", metavar="FILE", help="Write into a file, whole or not at all.")
@click.option(
    "--max-rows",
    "--limit",
    "max_rows",
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
def command(
    logs: Logs,
    sql: str | None,
    sql_file: str | None,
    form: str | None,
    output: str | None,
    max_rows: int | None,
    timeout: float,
) -> None:
    """Answer one SQL query (DuckDB's) over the relations: spans, traces, rollouts, self_time,
    findings … `DESCRIBE spans` lists a relation's columns, `SHOW TABLES` the relations. SQL is the
    first word, '-' for stdin, or a file after -f.

    Queries only read, and only what the logs gave: no files, no network, no settings. JSON is
    written as JSON, int64 exactly. In CSV a text that a spreadsheet would run as a formula gets a '
    before it. arrow is the IPC stream.

    \b
    Example: how long each kind of span took, for a spreadsheet
      reconstruct query "SELECT name, avg(duration_ns) FROM spans GROUP BY name" logs/ --format csv
    """
    from reconstruct.process_memory import memory_at_most
    from reconstruct.safe_sql import Limits

    form = _form(form, output, as_json=logs.as_json)
    if form in _BINARY_FORMATS and output is None and logs.console.is_terminal:
        raise click.UsageError(f"{form} is nothing to look at; name a file with -o")
    if max_rows is None and form == "table":
        max_rows = _TABLE_ROWS
    text, paths = _sql(logs, sql, sql_file)
    with logs.read(paths) as engine:
        if output is not None:
            spare_logs(engine, output)

        def end(words: str) -> NoReturn:
            logs.console.say(f"error: {words}")
            engine.abandon()
            os._exit(SqlError.exit_code)

        limits = Limits(max_rows=max_rows or None, timeout_seconds=timeout, on_stuck=end)
        with memory_at_most(_memory_limit(engine)), ExitStack() as stack:
            try:
                answer = stack.enter_context(engine.answer(text, limits=limits))
                _write(logs.console, answer, form, output)
            except SqlError as error:
                for line in error.excerpt:
                    logs.console.say(f"  {line}")
                raise
            if answer.is_cut:
                logs.console.say(f"… more than {count(max_rows or 0)} rows; --max-rows 0 shows all")


def _form(form: str | None, output: str | None, *, as_json: bool) -> str:
    if form is not None and as_json and form != "json":
        raise click.UsageError(f"--json and --format {form} contradict each other")
    ending = Path(output).suffix[1:].lower() if output else ""
    return form or ("json" if as_json else ending if ending in _FORMATS else "table")


def _sql(logs: Logs, sql: str | None, sql_file: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the query and the paths of the logs."""
    if sql_file is not None:  # what stands in the query's place is a path
        paths = logs.paths if sql is None else (sql, *logs.paths)
        try:
            return Path(sql_file).read_text("utf-8-sig"), paths
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise InputError(f"cannot read the SQL in {sql_file}: {reason}") from None
    if sql is None:
        raise click.UsageError("which query? give SQL, '-' for stdin, or -f FILE")
    if sql == "-":
        if "-" in logs.paths:
            raise click.UsageError("SQL and logs cannot both come from stdin; use -f FILE")
        return sys.stdin.read(), logs.paths
    if os.path.exists(sql):  # noqa: PTH110  # pathlib's raises for a long query
        raise click.UsageError(f"'{sql}' is a path; put the query before it, or -f in front")
    return sql, logs.paths


def _memory_limit(engine: "Engine") -> int:
    sql = "SELECT parse_formatted_bytes(current_setting('memory_limit'))::BIGINT AS bytes"
    return int(engine.rows(sql)[0]["bytes"])


def _write(console: Console, answer: "Answer", form: str, output: str | None) -> None:
    from reconstruct.export.whole_file import whole_file

    if output is not None:
        with whole_file(output) as out:
            _write_into(out, answer, form)
    elif form in _BINARY_FORMATS:
        with console.binary() as out:
            _write_into(out, answer, form)
    elif answer.is_plan and form == "table":
        for row in answer.rows():
            console.lines([(Part(clean(line)),) for line in row[1].splitlines()])
    else:
        console.records(answer.names, _rows(answer, form), form)


def _write_into(out: IO[bytes], answer: "Answer", form: str) -> None:
    from reconstruct.export import columnar

    if form in _BINARY_FORMATS:
        columnar.write(answer.arrow(), out, form)
        return
    text = TextIOWrapper(out, "utf-8", newline="")
    if form == "table":
        Console(text, color="never").records(answer.names, answer.rows(), form)
    else:
        text.writelines(texts(answer.names, _rows(answer, form), form))
    text.detach()  # it is closed by whoever opened it


def _rows(answer: "Answer", form: str) -> Iterator[Sequence[object]]:
    """Yield the rows; JSON columns are JSON where the format has a word for it."""
    from reconstruct.json_columns import reader_of

    has_json = form in {"json", "jsonl"}
    return map(reader_of(answer.types), answer.rows()) if has_json else answer.rows()
