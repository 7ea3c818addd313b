"""Log files into the base tables of a database."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import duckdb

from reconstruct.intake import files, reader
from reconstruct.intake.ours import BATCH_BYTES
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
    voucher = Voucher(connection)
    with _no_garbage_collection():
        for table, batch in reader.read(
            found,
            progress=progress,
            wrapper=wrapper,
            vouch=voucher.read,
            batch_bytes=batch_bytes,
        ):
            connection.register("_rows", batch)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")
            connection.unregister("_rows")
    voucher.close()


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
