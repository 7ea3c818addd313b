"""Arrow batches as a Parquet or an Arrow file, written as they come.

Parquet: zstd, JSON columns marked as such. Arrow: the IPC stream format, which a pipe can carry;
`polars.read_ipc_stream` and `pyarrow.ipc.open_stream` read it.
"""

from collections.abc import Iterator
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["FORMATS", "write"]

FORMATS: Final = ("parquet", "arrow")

_GROUP_ROWS: Final = 122_880
_GROUP_BYTES: Final = 64 * 1024 * 1024
"""A row group of a Parquet file ends at either."""


def write(batches: pa.RecordBatchReader, out: IO[bytes], form: str) -> None:
    """Write all batches as one of `FORMATS`; memory is that of one row group."""
    if form == "arrow":
        sink = pa.PythonFile(out, mode="w")  # type: ignore[arg-type]  # the stubs want IOBase
        with pa.ipc.new_stream(sink, batches.schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        return
    with pq.ParquetWriter(out, batches.schema, compression="zstd") as file:
        for group in _groups(batches):
            file.write_table(group)


def _groups(batches: pa.RecordBatchReader) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)
