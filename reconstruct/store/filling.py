"""Log files into the base tables of a database.

DuckDB is fed by a thread of its own: lines are looked for while others are read.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from reconstruct.intake import files, reader, tables
from reconstruct.intake.ours import BATCH_BYTES
from reconstruct.intake.owners import Owner, Owners
from reconstruct.store.vouching import Voucher

__all__ = ["fill"]


def fill(
    connection: duckdb.DuckDBPyConnection,
    found: Sequence[files.LogFile],
    *,
    progress: Callable[[int, int], None] | None = None,
    wrapper: str | None = None,
    batch_bytes: int = BATCH_BYTES,
) -> None:
    """Read files into the base tables: lines of ours many at a time, all others one by one.

    `progress` is told bytes done and bytes in all; of lines of ours `batch_bytes` are read at a
    time. `connection` must have no transaction open.
    Raises `UsageError` when there is no such wrapper.
    """
    owners = Owners(_known(connection))
    voucher = Voucher(connection, owners)
    with _no_garbage_collection(), _feeding(connection) as feeder:
        insertion = feeder.submit(voucher.open)
        for table, batch in reader.read(
            found,
            progress=progress,
            wrapper=wrapper,
            vouch=lambda lines: feeder.submit(voucher.read, lines).result,
            batch_bytes=batch_bytes,
            owners=owners,
        ):
            insertion.result()  # raises what went wrong, and lets no more than one batch wait
            insertion = feeder.submit(_insert, connection, table, batch)
        insertion.result()
    voucher.close()


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    connection.register("_rows", rows)
    connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")
    connection.unregister("_rows")


@contextmanager
def _feeding(connection: duckdb.DuckDBPyConnection) -> Iterator[ThreadPoolExecutor]:
    """Run a thread that does one thing after the other with `connection`.

    When the block raises, what is being done is broken off, and what waits is dropped.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="duckdb") as executor:
        try:
            yield executor
        except BaseException:
            executor.shutdown(wait=False, cancel_futures=True)
            connection.interrupt()
            raise


def _known(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, Owner]]:
    """Yield the owners that are in the base tables, by number."""
    columns = ", ".join(("owner", *Owner._fields))
    for number, *owner in connection.execute(f"SELECT {columns} FROM {tables.OWNERS}").fetchall():
        yield number, Owner(*owner)


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
