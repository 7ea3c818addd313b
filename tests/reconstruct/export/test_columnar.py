"""Parquet and Arrow files: the rows and types that went in."""

import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reconstruct.export import columnar


def batches(count, size):
    schema = pa.schema([("i", pa.int64()), ("j", pa.json_()), ("t", pa.timestamp("ns"))])
    table = pa.table(
        {"i": range(count * size), "j": ['{"a":1}'] * count * size, "t": [1] * count * size}
    ).cast(schema)
    return pa.RecordBatchReader.from_batches(schema, table.to_batches(max_chunksize=size)), table


def values(table):
    """Rows by column, times as ns: as such they need pandas, which no command lets pyarrow find."""
    return {
        name: (
            column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        ).to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


@pytest.mark.parametrize("form", columnar.FORMATS)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_goes_in_comes_out(form, count):
    """Without a row there is still a schema."""
    reader, table = batches(count, 10)
    out = io.BytesIO()
    columnar.write(reader, out, form)
    data = out.getvalue()
    read = pq.read_table(io.BytesIO(data)) if form == "parquet" else (
        pa.ipc.open_stream(data).read_all()
    )  # fmt: skip
    assert values(read) == values(table)
    assert read.schema.field("t").type == pa.timestamp("ns")
    assert read.schema.field("j").type == pa.json_()


def test_parquet_says_what_is_json(tmp_path):
    """So DuckDB reads it as such."""
    with (tmp_path / "x.parquet").open("wb") as out:
        columnar.write(batches(1, 10)[0], out, "parquet")
    described = duckdb.connect().execute(f"DESCRIBE FROM '{tmp_path}/x.parquet'").fetchall()
    assert [row[1] for row in described] == ["BIGINT", "JSON", "TIMESTAMP_NS"]


def test_small_batches_make_few_row_groups():
    """A file of many tiny groups is slow to read."""
    out = io.BytesIO()
    columnar.write(batches(70, 2_048)[0], out, "parquet")
    file = pq.ParquetFile(io.BytesIO(out.getvalue()))
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sizes == [122_880, 70 * 2_048 - 122_880]


@pytest.mark.parametrize("form", columnar.FORMATS)
def test_a_broken_pipe_stays_one(form):
    """Whoever writes decides what it means."""

    class Gone(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        columnar.write(batches(3, 1_000)[0], Gone(), form)
