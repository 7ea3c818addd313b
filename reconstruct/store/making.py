"""How relations are made: tables of what the base tables hold, and views, each alone.

DuckDB plans a view when it makes it, with all the views below it, and those below these: together
that takes a second. So a view is made over empty stand-ins for the views that it reads: temporary
tables of the same columns, which names mean for one connection and for no other.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Final

import duckdb

from reconstruct.intake import tables
from reconstruct.store import relations

__all__ = ["Maker", "all_beside", "drop_tables", "make_again", "make_all"]

_columns: Final[dict[str, str]] = {}
"""What each view is made of, as SQL: the same in every database."""


class Maker:
    """Makes relations in the current database of a connection. Close it before the database."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._over_stand_ins = connection.cursor()
        self._over_stand_ins.execute(f"USE {_current(connection)}")

    def make(self, name: str) -> None:
        """Run the definitions of a file; those that it needs have been run before."""
        connection = self._connection if relations.is_table(name) else self._over_stand_ins
        connection.execute(relations.definition_of(name)).fetchall()
        for view in relations.views_of(name) if name in _needed() else ():
            if view not in _columns:
                _columns[view] = self._columns_of(view)
            connection.execute(f"CREATE TEMPORARY TABLE {view} ({_columns[view]})")

    def _columns_of(self, view: str) -> str:
        (columns,) = self._connection.execute(
            """
            SELECT string_agg(printf('"%s" %s', column_name, data_type), ', ' ORDER BY column_index)
            FROM duckdb_columns()
            WHERE table_name = $view AND database_name = current_database()
            """,
            {"view": view},
        ).fetchone() or ("",)
        return str(columns)

    def close(self) -> None:
        """Drop the stand-ins."""
        self._over_stand_ins.close()


def make_all(connection: duckdb.DuckDBPyConnection) -> None:
    """Make everything that is made from the base tables, with its comments."""
    maker = Maker(connection)
    try:
        for name in relations.needs():
            maker.make(name)
    finally:
        maker.close()
    for name in relations.needs():
        connection.execute(relations.comments_of(name)).fetchall()


@contextmanager
def all_beside(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Make everything in another thread while the block fills the base tables, empty until then;
    the tables that are made of these are to be made again."""
    with (
        connection.cursor() as own,
        ThreadPoolExecutor(max_workers=1, thread_name_prefix="relations") as executor,
    ):
        own.execute(f"USE {_current(connection)}")
        making = executor.submit(make_all, own)
        try:
            yield
        except BaseException:
            own.interrupt()
            raise
        making.result()


def drop_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Drop the tables that were made from the base tables, whose rows are to change, and those
    that views were kept as; return the files to `make_again`."""
    rows = connection.execute(
        """
        SELECT table_name
        FROM duckdb_tables()
        WHERE database_name = current_database() AND comment IS NOT NULL
        """
    ).fetchall()
    made = {name for (name,) in rows} - set(tables.TABLES)
    for name in made:
        connection.execute(f"DROP TABLE {name}").fetchall()
    return [file for file in relations.needs() if made.intersection(relations.objects_of(file))]


def make_again(connection: duckdb.DuckDBPyConnection, files: Iterable[str]) -> None:
    """Make the relations of some files, the others being there."""
    for name in files:
        connection.execute(relations.sql_of(name)).fetchall()


@cache
def _needed() -> frozenset[str]:
    """The files of which others need something."""
    return frozenset(needed for needs in relations.needs().values() for needed in needs)


def _current(connection: duckdb.DuckDBPyConnection) -> str:
    (database,) = connection.execute("SELECT current_database()").fetchone() or ("",)
    return str(database)
