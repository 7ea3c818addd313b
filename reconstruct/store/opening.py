"""The database for a set of log files: the one in a store when there may be one, else its own.

Small logs stay in memory; large ones go to a file among what is spilled, which takes a tenth of the
memory. Whatever it is, nothing outside it can be reached from SQL.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import duckdb

from reconstruct.errors import InputError
from reconstruct.intake.files import LogFile
from reconstruct.safe_sql import connect_read_only
from reconstruct.store import aligning, building, filling, keeping, location, relations
from reconstruct.store.inputs import Changes
from reconstruct.store.on_demand import OnDemand

__all__ = ["Opening"]

_IN_MEMORY_BYTES: Final = 64 << 20
"""Logs up to this size are quicker in memory."""


class Opening:
    """How a database is come by: what is asked for, and what it may take."""

    def __init__(
        self,
        paths: Sequence[str],
        found: Sequence[LogFile],
        *,
        spill: str,
        memory_limit: str | None,
        progress: Callable[[int, int], None] | None,
        wrapper: str | None,
    ) -> None:
        self._paths = paths
        self._found = found
        self._spill = spill
        self._memory_limit = memory_limit
        self._progress = progress
        self._wrapper = wrapper
        self._path: Path | None = None
        self._made: OnDemand | None = None
        self.notices: list[str] = []
        """What did not go as asked."""
        self.moved_clocks: list[aligning.MovedClock] = []
        """Whose lines are not at the times that the logs have."""

    def open(self, store: Path | bool) -> duckdb.DuckDBPyConnection:  # noqa: FBT001  # a place, any, none
        """Return a connection; the relations are there, or made when `make_for` is told of a query.

        `store` is its folder; True is beside the logs where that is worth it, False is none.
        """
        folder = location.beside(self._found) if store is True else store or None
        if isinstance(store, Path) and not location.are_lasting(self._found):
            self.notices.append("no store: standard input and pipes cannot be read again")
            folder = None
        if folder is not None:
            try:
                return self._stored(folder)
            except (OSError, duckdb.IOException) as error:
                words = str(error).strip().splitlines()[0]
                self.notices.append(f"no store in {folder}: {words}")
        if sum(file.size for file in self._found) > _IN_MEMORY_BYTES:
            path = Path(self._spill, "logs.duckdb")
            self._build(path, None)
            return self._connect(path)
        return self._in_memory()

    def _stored(self, folder: Path) -> duckdb.DuckDBPyConnection:
        path = location.database(folder, self._paths, self._wrapper)
        change = building.lacking(path, self._found)
        if change is None or not change.is_none:
            if change is None and path.exists():
                self.notices.append(f"the store in {folder} is of another version; made anew")
            location.prepare(folder)
            self._build(path, change)
        return self._connect(path)

    def _connect(self, path: Path) -> duckdb.DuckDBPyConnection:
        self._path = path
        limit = self._memory_limit or building.memory_for_answers(path)
        try:
            return connect_read_only(str(path), spill=self._spill, memory_limit=limit)
        except InputError:  # this process has it open with other limits
            own = Path(self._spill, path.name)
            shutil.copyfile(path, own)
            return connect_read_only(str(own), spill=self._spill, memory_limit=limit)

    def make_for(self, sql: str, values: Iterable[object] = ()) -> None:
        """Make the relations that a query names, and `values` of its parameters."""
        if self._made is not None:
            self._made.make_for(sql, values)

    def close(self) -> None:
        """Let go of a database in memory."""
        if self._made is not None:
            self._made.close()

    def kept(
        self, connection: duckdb.DuckDBPyConnection, names: Sequence[str]
    ) -> duckdb.DuckDBPyConnection:
        """Compute and keep what many questions begin with, where that is worth it; return the
        connection to go on with, maybe another one: `connection` is closed then."""
        if self._path is None or not keeping.is_worth_it(connection, names):
            return connection
        try:
            limit = self._memory_limit or building.memory_for_answers(self._path)
            keeping.keep(self._path, names, spill=self._spill, memory_limit=limit)
        except (OSError, duckdb.Error) as error:
            words = str(error).strip().splitlines()[0]
            self.notices.append(f"answers are not kept: {words}")
            return connection
        connection.close()
        return self._connect(self._path)

    def aligned(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """Return a connection to a copy in which one clock has written all lines, to go on with
        instead of `connection`, which is closed; or that one, where all clocks agree."""
        connection = self.kept(connection, aligning.KEPT)
        self.make_for("FROM _owner_clocks JOIN clock_offsets")
        self.moved_clocks = aligning.moved_clocks(connection)
        if not self.moved_clocks:
            return connection
        moves = aligning.moves(connection)
        if self._path is None:
            moved = aligning.copied(
                connection, moves, spill=self._spill, memory_limit=self._memory_limit
            )
            self.close()
            connection.close()
            return self._guarded(moved)
        own = Path(self._spill, "aligned.duckdb")
        shutil.copyfile(self._path, own)
        connection.close()
        with building.connect(self._spill, self._memory_limit) as writing:
            building.attach(writing, own)
            aligning.move_store(writing, moves)
            building.detach(writing)
        return self._connect(own)

    def _in_memory(self) -> duckdb.DuckDBPyConnection:
        connection = building.connect(self._spill, self._memory_limit)
        try:
            relations.create_base_tables(connection)
            filling.fill(connection, self._found, progress=self._progress, wrapper=self._wrapper)
        except BaseException:
            connection.close()
            raise
        return self._guarded(connection)

    def _guarded(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """Have the relations over filled base tables made on demand, and nothing else reached."""
        self._made = OnDemand(connection)
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        return connection

    def _build(self, path: Path, change: Changes | None) -> None:
        building.build(
            path,
            self._found,
            change=change,
            spill=self._spill,
            memory_limit=self._memory_limit,
            progress=self._progress,
            wrapper=self._wrapper,
        )
