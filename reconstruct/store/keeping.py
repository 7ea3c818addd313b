"""What many questions begin with: computed once, by the first who asks, and kept in the database.

These relations are views, each of which reads every span. In a database that is a file they become
tables of the same name and columns; when lines are added they are views again. The file is written
under a name of its own and takes its place in one step, as when it is built.
"""

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import duckdb

from reconstruct.store import building, relations

__all__ = ["KEPT", "is_worth_it", "keep"]

KEPT: Final = (
    "_self_times",
    "_blames",
    "_rollout_sections",
    "_span_paths",
    "call_paths",
    "service_edges",
    "findings",
    "_clock_stretches",
    "clock_offsets",
    "_span_works",
    "_rollout_work",
    "rollout_shares",
    "straggler_causes",
    "stragglers",
)
"""In this order: later ones read earlier ones."""
_FINDINGS: Final = "findings"
_WORTH_SPANS: Final = 50_000
"""Of fewer spans they are computed in no time."""


def is_worth_it(connection: duckdb.DuckDBPyConnection, names: Sequence[str]) -> bool:
    """Say whether some of `names` are not kept yet, and whether there are many spans."""
    views, spans = connection.execute(
        """
        SELECT
            (
                SELECT count(*)
                FROM duckdb_views()
                WHERE list_contains($kept, view_name) AND database_name = current_database()
            ),
            (SELECT count(*) FROM _span_lines)
        """,
        {"kept": list(names)},
    ).fetchall()[0]
    return bool(views) and spans >= _WORTH_SPANS


def keep(path: Path, names: Sequence[str], *, spill: str, memory_limit: str | None) -> None:
    """Compute and keep those of `names` in the database at `path`.

    Raises `OSError` or `duckdb.Error` when there is no room, and leaves the database as it was.
    """
    new = building.new_path(path)
    try:
        shutil.copyfile(path, new)
        with building.connect(spill, memory_limit) as connection:
            building.attach(connection, new)
            for name in sorted(names, key=KEPT.index):
                _keep(connection, name)
            building.detach(connection)
        building.put_in_place(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def _keep(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make a table of a view, with its comments."""
    table = f"{name}_kept"
    comments = connection.execute(
        """
        SELECT 'TABLE ' || view_name, comment
        FROM duckdb_views()
        WHERE view_name = $name AND database_name = current_database()
        UNION ALL
        SELECT 'COLUMN ' || table_name || '.' || column_name, comment
        FROM duckdb_columns()
        WHERE table_name = $name AND database_name = current_database() AND comment IS NOT NULL
        """,
        {"name": name},
    ).fetchall()
    if not any(what == f"TABLE {name}" for what, _ in comments):  # someone else was first
        return
    if name == _FINDINGS:  # code by code: together they would take the memory of all at once
        connection.execute(f"CREATE TABLE {table} AS FROM {name} LIMIT 0").fetchall()
        for code in relations.finding_codes():
            connection.execute(f"INSERT INTO {table} BY NAME FROM _finding_{code}").fetchall()
    else:
        connection.execute(f"CREATE TABLE {table} AS FROM {name}").fetchall()
    connection.execute(f"DROP VIEW {name}")
    connection.execute(f"ALTER TABLE {table} RENAME TO {name}")
    for what, comment in comments:
        connection.execute(f"COMMENT ON {what} IS '{comment.replace(chr(39), 2 * chr(39))}'")
