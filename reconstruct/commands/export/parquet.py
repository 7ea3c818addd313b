"""`reconstruct export parquet`: the relations as a folder of Parquet files."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.export.chosen import (
    Choice,
    choice_options,
    condition_on,
    relation_types,
    unknown_relation,
)
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.selection import Chosen
from reconstruct.errors import UsageError
from reconstruct.render.text import count, plural

if TYPE_CHECKING:
    import pyarrow as pa

    from reconstruct.engine import Engine
    from reconstruct.export.dataset import Table

__all__ = ["command"]

_RELATIONS: Final = """
    SELECT table_name AS name, comment FROM duckdb_tables() WHERE NOT starts_with(table_name, '_')
    UNION ALL
    SELECT view_name, comment FROM duckdb_views()
    WHERE NOT internal AND NOT starts_with(view_name, '_')
    ORDER BY name
"""
_WIDE: Final = ("HUGEINT", "UHUGEINT", "UBIGINT", "UINTEGER", "USMALLINT", "UTINYINT")
"""Types that Spark has not; ours are sums that fit."""


@click.command("parquet", short_help="Write the relations as a Parquet dataset.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@on_logs
@choice_options
@click.option("--relations", metavar="NAME,…", help="Only these relations; else all.")
@click.option(
    "--partition-by",
    type=click.Choice(["run"]),
    help="A folder run_id=… for each run, where a relation has that column.",
)
def command(
    logs: Logs, folder: Path, choice: Choice, relations: str | None, partition_by: str | None
) -> None:
    """Write the relations into the folder DIR, each as DIR/RELATION/*.parquet (zstd), for DuckDB,
    polars, pandas or Spark. Times are int64 nanoseconds, JSON is text, and _dataset.json says what
    every column means. The folder appears whole or not at all; an older dataset in its place is
    replaced, and nothing else is.

    \b
    Example: all relations of a run, for a notebook
      reconstruct export parquet dataset logs/
    """
    from reconstruct.export.dataset import new_dataset, write_table

    with logs.read() as engine:
        chosen = choice.of(engine)
        types = relation_types(engine)
        wanted = _wanted(relations, list(types))
        conditions = {name: condition_on(name, types[name], chosen) for name in wanted}
        facts = {
            "partitioned_by": partition_by,
            "redacted": choice.redaction is not None,
            "chosen": {
                name: value for name, value in chosen.parameters.items() if value is not None
            },
        }
        with new_dataset(folder, facts) as (place, written):
            for table in _tables(engine, types, wanted):
                condition = conditions[table.name]
                if condition is None:
                    continue
                by_run = partition_by == "run" and "run_id" in types[table.name]
                with ExitStack() as stack:
                    parts = _parts(
                        engine, stack, types[table.name], table.name, condition, chosen, choice,
                        by_run=by_run,
                    )  # fmt: skip
                    written.append(write_table(place, table, parts, by_run=by_run))
    if left_out := [name for name, condition in conditions.items() if condition is None]:
        logs.console.say(f"left out, not told by trace or rollout: {', '.join(left_out)}")
    if logs.as_json:
        logs.console.json([{"relation": one.table.name, "rows": one.rows} for one in written])
    rows = sum(one.rows for one in written)
    logs.console.say(
        f"exported {plural(len(written), 'relation')} with {count(rows)} rows to {folder}"
    )


def _wanted(relations: str | None, known: list[str]) -> list[str]:
    if relations is None:
        return known
    wanted = list(dict.fromkeys(name.strip() for name in relations.split(",") if name.strip()))
    for name in wanted:
        if name not in known:
            raise unknown_relation(name, known)
    if not wanted:
        raise UsageError("--relations names none; write NAME,NAME")
    return wanted


def _tables(
    engine: "Engine", types: Mapping[str, Mapping[str, str]], wanted: list[str]
) -> "Iterator[Table]":
    from reconstruct.export.dataset import Table
    from reconstruct.store.relations import column_comments

    meanings = column_comments()
    comments = {row["name"]: row["comment"] or "" for row in engine.rows(_RELATIONS)}
    for name in wanted:
        columns = {column: meanings.get(f"{name}.{column}", "") for column in types[name]}
        yield Table(name, comments[name], columns)


def _parts(
    engine: "Engine",
    stack: ExitStack,
    types: Mapping[str, str],
    relation: str,
    condition: str,
    chosen: Chosen,
    choice: Choice,
    *,
    by_run: bool,
) -> "Iterator[tuple[str | None, pa.RecordBatchReader]]":
    """Yield a relation's rows, for each run apart where asked; one part where there is no row."""
    from reconstruct.export.dataset import redacted
    from reconstruct.export.rows import ALIASES, NO_LIMITS

    alias = ALIASES.get(relation, "row")
    source = f'FROM "{relation}" AS {alias} WHERE ({condition})'
    runs: list[str | None] = [None]
    if by_run:
        asked = f"SELECT DISTINCT nullif({alias}.run_id, '') AS run_id {source} ORDER BY run_id"
        runs = [row["run_id"] for row in engine.rows(asked, chosen.parameters or None)] or runs
        source += f" AND nullif({alias}.run_id, '') IS NOT DISTINCT FROM $part::VARCHAR"
    columns = ", ".join(
        f'{alias}."{name}"::BIGINT AS "{name}"' if kind in _WIDE else f'{alias}."{name}"'
        for name, kind in types.items()
        if not (by_run and name == "run_id")
    )
    for run_id in runs:
        bound = dict(chosen.parameters) | ({"part": run_id} if by_run else {})
        answer = stack.enter_context(
            engine.answer(
                f"SELECT {columns} {source} ORDER BY ALL", bound or None, limits=NO_LIMITS
            )
        )
        reader = answer.arrow()
        yield run_id, redacted(reader, choice.redaction.batch) if choice.redaction else reader
