"""Times as one clock would have had them: a database whose lines are moved by what `clock_offsets`
says, for questions that compare times of several hosts.

The lines keep their places, and the logs and the store their times: what is moved is a copy, which
lasts as long as the engine. A line moves by the offset of its clock when it begins, so durations
stay. Times within a span's events stay as they were written.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import duckdb
import pyarrow as pa

from reconstruct.intake import tables
from reconstruct.store import building, making, relations

__all__ = ["KEPT", "Move", "MovedClock", "copied", "move_store", "moved_clocks", "moves"]

KEPT: Final = ("_clock_stretches", "clock_offsets")
"""What both questions begin with (`store.keeping`)."""

_MOVES: Final = """
    SELECT
        reader.owner,
        coalesce(moved.from_unix_nano, -9223372036854775807) AS from_time,
        moved.offset_ns
    FROM _owner_clocks AS reader
    JOIN clock_offsets AS moved USING (clock)
    WHERE moved.clock IN (SELECT clock FROM clock_offsets WHERE offset_ns <> 0)
    ORDER BY owner, from_time
"""
_MOVED_CLOCKS: Final = """
    SELECT DISTINCT clock, reference_clock, offset_ns, uncertainty_ns
    FROM clock_offsets
    WHERE offset_ns <> 0
    ORDER BY abs(offset_ns) DESC, offset_ns, clock, uncertainty_ns
"""
_OWNER: Final = "owner"
_TIME: Final = "_unix_nano"


class Move(NamedTuple):
    """The lines of an owner from a time on, and how far its clock was ahead then; both in ns."""

    owner: int
    from_time: int
    offset_ns: int


class MovedClock(NamedTuple):
    """A clock whose lines are moved, as `clock_offsets` has it; both lengths in ns."""

    clock: str
    reference_clock: str
    offset_ns: int
    uncertainty_ns: int


def moves(connection: duckdb.DuckDBPyConnection) -> list[Move]:
    """Return what has to be moved; the relations that say so are there."""
    return [Move(*row) for row in connection.execute(_MOVES).fetchall()]


def moved_clocks(connection: duckdb.DuckDBPyConnection) -> list[MovedClock]:
    """Return whose lines have to be moved, by how much; several rows where that changed."""
    return [MovedClock(*row) for row in connection.execute(_MOVED_CLOCKS).fetchall()]


def _move_lines(connection: duckdb.DuckDBPyConnection, moves: Sequence[Move]) -> None:
    """Move the times of all base tables of the current database."""
    connection.execute(
        "CREATE TEMPORARY TABLE _moves (owner BIGINT, from_time BIGINT, offset_ns BIGINT)"
    )
    connection.executemany("INSERT INTO _moves VALUES ($1, $2, $3)", [list(one) for one in moves])
    for table, times in _timed():
        moved = ", ".join(f"{time} = {time} - move.offset_ns" for time in times)
        connection.execute(
            f"""
            UPDATE {table} AS line
            SET {moved}
            FROM (
                SELECT
                    read.row_id,
                    reader.offset_ns
                FROM (
                    SELECT
                        rowid AS row_id,
                        {_OWNER} AS owner,
                        coalesce({", ".join(times)}) AS time
                    FROM {table}
                ) AS read
                ASOF JOIN _moves AS reader
                    ON reader.owner = read.owner
                    AND reader.from_time <= read.time
                WHERE reader.offset_ns <> 0
            ) AS move
            WHERE line.rowid = move.row_id
            """
        ).fetchall()
    connection.execute("DROP TABLE _moves")


def _timed() -> Iterator[tuple[str, list[str]]]:
    """Yield each base table whose lines have an owner, with its columns of times."""
    for table, columns in tables.TABLES.items():
        names = [name for name, _ in columns]
        times = [name for name in names if name.endswith(_TIME)]
        if _OWNER in names and times:
            yield table, times


def copied(
    source: duckdb.DuckDBPyConnection,
    moves: Sequence[Move],
    *,
    spill: str,
    memory_limit: str | None,
) -> duckdb.DuckDBPyConnection:
    """Return a database in memory with the base tables of another one, their lines moved."""
    connection = building.connect(spill, memory_limit)
    try:
        relations.create_base_tables(connection)
        for table in tables.TABLES:
            rows: pa.RecordBatchReader | None = source.sql(f"FROM {table}").to_arrow_reader()
            connection.register("_source", rows)
            connection.execute(f"INSERT INTO {table} BY NAME FROM _source")
            connection.unregister("_source")
        _move_lines(connection, moves)
    except BaseException:
        connection.close()
        raise
    return connection


def move_store(connection: duckdb.DuckDBPyConnection, moves: Sequence[Move]) -> None:
    """Move the lines of a whole database, and make anew what is made of them."""
    made = making.drop_tables(connection)
    _move_lines(connection, moves)
    making.make_again(connection, made)
