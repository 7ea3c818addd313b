"""The engine: log files in DuckDB, the relations of `reconstruct/sql` over them, answers.

The database is in memory and spills into a private folder. Once the files are read, nothing
outside it can be reached from SQL any more, whatever the SQL says. Times are int64 ns since 1970.
"""

import gc
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files as package_files
from types import TracebackType
from typing import Any, Final, Self

import duckdb
import pyarrow as pa

from reconstruct.errors import InputError, UsageError
from reconstruct.intake import files, reader, tables

__all__ = ["Engine", "relation_sql"]

Parameters = Sequence[object] | Mapping[str, object]

_READ: Final = ".read "
_SHELL_INTAKE: Final = "_shell_intake"
"""How the plain duckdb shell fills the base tables; the engine's own intake takes its place."""


class Engine:
    """The relations over a set of log files. Close it, or use it as a context manager."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, spill: tempfile.TemporaryDirectory[str]
    ) -> None:
        self._connection = connection
        self._spill = spill

    @classmethod
    def read(
        cls,
        paths: Sequence[str],
        *,
        memory_limit: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Read files, folders, globs or `-` and load every relation.

        `memory_limit` is DuckDB's, e.g. `1GB`; `progress` is told bytes done and bytes in all.
        Raises `InputError` when there is nothing to read.
        """
        found = files.find(paths)
        spill = tempfile.TemporaryDirectory(prefix="reconstruct-")
        try:
            connection = _connect(spill.name, memory_limit)
            engine = cls(connection, spill)
        except BaseException:
            spill.cleanup()
            raise
        try:
            engine._load(found, progress)
        except duckdb.OutOfMemoryException as error:
            engine.close()
            raise InputError(
                f"the logs do not fit the memory limit: {_first_line(error)}"
            ) from None
        except BaseException:
            engine.close()
            raise
        return engine

    def _load(
        self, found: Sequence[files.LogFile], progress: Callable[[int, int], None] | None
    ) -> None:
        connection = self._connection
        names = _load_order()
        for name in names:
            if name in tables.TABLES:
                connection.execute(_sql(name))
        with _no_garbage_collection():
            for table, batch in reader.read(found, progress=progress):
                connection.register("_batch", batch)
                connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _batch")
                connection.unregister("_batch")
        for name in names:
            if name not in tables.TABLES and name != _SHELL_INTAKE:
                connection.execute(_sql(name))
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")

    def rows(self, sql: str, parameters: Parameters | None = None) -> list[dict[str, Any]]:
        """Answer a query of our own as one dict per row; JSON columns are text.

        Any: a row's values are of as many types as its columns.
        """
        with self._connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def arrow(self, sql: str, parameters: Parameters | None = None) -> pa.Table:
        """Answer a query of our own as an Arrow table."""
        with self._connection.cursor() as cursor:
            table: pa.Table | None = cursor.sql(sql, params=parameters).to_arrow_table()
            assert table is not None, "a query has a result"
            return table

    def user_sql(
        self, sql: str, *, max_rows: int, timeout_seconds: float
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Answer one query that someone else wrote: its column names and at most `max_rows` rows.

        Ask for one row more than is shown to learn whether rows were left out. Whatever the query
        changes is rolled back, and it reaches no file and no network. Raises `UsageError` when it
        is no single query, is wrong, or takes longer than `timeout_seconds`.

        Any: a row's values are of as many types as its columns.
        """
        with self._connection.cursor() as cursor:
            try:
                statements = cursor.extract_statements(sql)
            except duckdb.Error as error:
                raise UsageError(f"SQL: {_first_line(error)}") from None
            if len(statements) != 1 or statements[0].type not in _QUERIES:
                raise UsageError("SQL: pass one query (SELECT, FROM, WITH, DESCRIBE, EXPLAIN …)")
            expired = threading.Event()

            def expire() -> None:
                expired.set()
                cursor.interrupt()

            timer = threading.Timer(timeout_seconds, expire)
            cursor.execute("BEGIN")
            timer.start()
            try:
                cursor.execute(statements[0])
                names = [column[0] for column in cursor.description or ()]
                return names, cursor.fetchmany(max_rows)
            except duckdb.Error as error:
                if expired.is_set():
                    raise UsageError(
                        f"SQL: stopped after {timeout_seconds:g} s; ask for less or allow more time"
                    ) from None
                raise UsageError(f"SQL: {_first_line(error)}") from None
            finally:
                timer.cancel()
                timer.join()
                cursor.execute("ROLLBACK")

    def close(self) -> None:
        """Free the memory and the spilled files."""
        self._connection.close()
        self._spill.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def relation_sql() -> str:
    """Return the relations for the plain duckdb shell, which read `*.log` there directly."""
    parts = [_sql(name) for name in _load_order()]
    return "\n".join(parts)


_QUERIES: Final = frozenset(
    {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN, duckdb.StatementType.RELATION}
)


def _connect(spill: str, memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    try:
        return duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        raise UsageError(f"memory limit {memory_limit!r}: {_first_line(error)}") from None


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Rows form no cycles, yet looking for some takes a fifth of the intake's time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load_order() -> list[str]:
    lines = _sql("load").splitlines()
    return [
        line.removeprefix(_READ).removesuffix(".sql") for line in lines if line.startswith(_READ)
    ]


def _sql(name: str) -> str:
    return package_files("reconstruct").joinpath("sql", f"{name}.sql").read_text("utf-8")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]
