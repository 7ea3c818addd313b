"""The engine: log files in DuckDB, the relations of `reconstruct/sql` over them, answers.

The database is in memory, in a file among what it spills, or in a store that the next engine over
the same files finds again. Once the files are read, nothing outside it can be reached from SQL any
more, whatever the SQL says. Times are int64 ns since 1970.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb
import pyarrow as pa

from reconstruct import safe_sql
from reconstruct.errors import InputError
from reconstruct.intake import files
from reconstruct.store.aligning import MovedClock
from reconstruct.store.opening import Opening
from reconstruct.store.relations import relation_sql

__all__ = ["Engine", "relation_sql"]

Parameters = Sequence[object] | Mapping[str, object]


class Engine:
    """The relations over a set of log files. Close it, or use it as a context manager."""

    def __init__(
        self,
        opening: Opening,
        connection: duckdb.DuckDBPyConnection,
        spill: tempfile.TemporaryDirectory[str],
    ) -> None:
        self._opening = opening
        self._connection = connection
        self._spill = spill
        self.skipped: Sequence[files.Skipped] = ()
        """What was left out of folders, by reason."""
        self.notices: Sequence[str] = ()
        """What did not go as asked, a sentence each."""
        self.moved_clocks: Sequence[MovedClock] = ()
        """Whose lines are not at the times that the logs have; only where that was asked for."""

    @classmethod
    def read(
        cls,
        paths: Sequence[str],
        *,
        memory_limit: str | None = None,
        progress: Callable[[int, int], None] | None = None,
        wrapper: str | None = None,
        store: Path | bool = False,
        align: bool = False,
    ) -> Self:
        """Read files, folders, globs or `-`; every relation is there for a query to name.

        `memory_limit` is DuckDB's, e.g. `1GB`, less what Python takes while a store is made;
        `progress` is told bytes done and bytes in all. `wrapper` names the only wrapper to look for
        around lines (`intake.wrappers.NAMES`). `store` is a folder to keep what was read in, so
        that only what is new is read the next time; True is `.reconstruct` beside the logs, where
        that is worth it. `align` moves all times to what one clock would have had, an estimate
        (`clock_offsets`), in a copy that ends with the engine. Raises `InputError` when there is
        nothing to read.
        """
        found = files.search(paths)
        spill = tempfile.TemporaryDirectory(prefix="reconstruct-")
        try:
            opening = Opening(
                paths,
                found.files,
                spill=spill.name,
                memory_limit=memory_limit,
                progress=progress,
                wrapper=wrapper,
            )
            with _within_memory("the logs do"):
                connection = opening.open(store)
                engine = cls(opening, opening.aligned(connection) if align else connection, spill)
        except BaseException:
            spill.cleanup()
            raise
        engine.skipped = found.skipped
        engine.notices = opening.notices
        engine.moved_clocks = opening.moved_clocks
        return engine

    def rows(self, sql: str, parameters: Parameters | None = None) -> list[dict[str, Any]]:
        """Answer a query of our own as one dict per row; JSON columns are text.

        Raises `InputError` when it takes more memory than there may be. Any: a row's values are of
        as many types as its columns.
        """
        self._make_for(sql, parameters)
        with self._connection.cursor() as cursor, _within_memory("the answer does"):
            cursor.execute(sql, parameters)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def arrow(self, sql: str, parameters: Parameters | None = None) -> pa.Table:
        """Answer a query of our own as an Arrow table. Raises as `rows` does."""
        self._make_for(sql, parameters)
        with self._connection.cursor() as cursor, _within_memory("the answer does"):
            table: pa.Table | None = cursor.sql(sql, params=parameters).to_arrow_table()
            assert table is not None, "a query has a result"
            return table

    @contextmanager
    def batches(
        self, sql: str, parameters: Parameters | None = None, *, rows: int = 2_048
    ) -> Iterator[pa.RecordBatchReader]:
        """Answer a query of our own, `rows` at a time as they are asked for, within a block.

        Raises as `rows` does.
        """
        self._make_for(sql, parameters)
        with self._connection.cursor() as cursor, _within_memory("the answer does"):
            yield cursor.sql(sql, params=parameters).to_arrow_reader(rows)

    def answer(
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        limits: safe_sql.Limits | None = None,
    ) -> AbstractContextManager[safe_sql.Answer]:
        """Answer one query that someone else wrote, for a block: `with engine.answer(…) as it`.

        It only reads, and reaches no file and no network. Raises `SqlError`.
        """
        self._make_for(sql, parameters)
        return safe_sql.answer(self._connection.cursor, sql, parameters, limits=limits)

    def _make_for(self, sql: str, parameters: Parameters | None) -> None:
        values = parameters.values() if isinstance(parameters, Mapping) else parameters or ()
        with _within_memory("the answer does"):
            self._opening.make_for(sql, values)

    def keep(self, *names: str) -> None:
        """Compute once what a question about all spans begins with, and keep it in the database
        where that is a file: the relations `names` of `store.keeping.KEPT`."""
        self._connection = self._opening.kept(self._connection, names)

    def abandon(self) -> None:
        """Remove the spilled files while a query still runs; only for a process about to end."""
        self._spill.cleanup()

    def close(self) -> None:
        """Free the memory and the spilled files."""
        self._opening.close()
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


@contextmanager
def _within_memory(subject: str) -> Iterator[None]:
    """Say in a line that something does not fit the memory limit."""
    try:
        yield
    except duckdb.OutOfMemoryException as error:
        words = str(error).strip().splitlines()[0]
        raise InputError(f"{subject} not fit the memory limit: {words}") from None
