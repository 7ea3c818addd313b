"""A folder of Parquet files: the relations, typed, with what each column means.

`DIR/<relation>/data.parquet`, or `DIR/<relation>/run_id=<run>/data.parquet`, where Hive's rules
hold: the run is in the folder's name alone, percent-encoded, and none is
`__HIVE_DEFAULT_PARTITION__`. Every file has in its metadata `gymlog.schema`, `reconstruct.relation`
and `reconstruct.comment`, and each column's `comment` in its Arrow field. `_dataset.json` says the
same of all, and is how a folder is known to be such a dataset. Times are int64 ns; there are no
unsigned, huge or nanosecond types, so that Spark reads it too. JSON is text of that logical type.
The folder appears whole or not at all; memory is that of one row group.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

from gymlog.record import SCHEMA_VERSION
from reconstruct.errors import DestinationError
from reconstruct.export import columnar

__all__ = ["MARK", "NO_RUN", "Table", "Written", "new_dataset", "redacted", "write_table"]

MARK: Final = "_dataset.json"
NO_RUN: Final = "__HIVE_DEFAULT_PARTITION__"
_FILE: Final = "data.parquet"
_PRODUCER: Final = "reconstruct"
_VERSION: Final = 1
"""Of the layout of the folder."""


@dataclass(frozen=True, slots=True)
class Table:
    """A relation as it is written: what it and its columns mean, in words."""

    name: str
    comment: str
    columns: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Written:
    """A table that was written, and so many rows of it."""

    table: Table
    rows: int
    schema: pa.Schema


def write_table(
    folder: Path,
    table: Table,
    parts: Iterable[tuple[str | None, pa.RecordBatchReader]],
    *,
    by_run: bool,
) -> Written:
    """Write the parts of a table, one a run where it is partitioned; return what that came to."""
    rows = 0
    schema = pa.schema([])
    for run_id, reader in parts:
        place = folder / table.name
        if by_run:
            place /= f"run_id={quote(run_id, safe='') if run_id else NO_RUN}"
        place.mkdir(parents=True, exist_ok=True)
        schema = _described(reader.schema, table)
        counted = _Counted(reader, schema)
        with (place / _FILE).open("wb") as out:
            columnar.write(pa.RecordBatchReader.from_batches(schema, counted), out, "parquet")
        rows += counted.rows
    return Written(table, rows, schema)


class _Counted:
    """Batches under another schema's metadata, their rows counted as they pass."""

    def __init__(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> None:
        self._reader = reader
        self._schema = schema
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            self.rows += batch.num_rows
            yield pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)


def _described(schema: pa.Schema, table: Table) -> pa.Schema:
    fields = [
        field.with_metadata({"comment": table.columns.get(field.name, "")}) for field in schema
    ]
    return pa.schema(
        fields,
        metadata={
            "gymlog.schema": str(SCHEMA_VERSION),
            "reconstruct.relation": table.name,
            "reconstruct.comment": table.comment,
        },
    )


@contextmanager
def new_dataset(path: Path, facts: Mapping[str, Any]) -> Iterator[tuple[Path, list[Written]]]:
    """Yield a folder to write tables into, and a list for what was written, for the block.

    At its end the folder takes the place of `path`; when it fails, what was there stays. `facts`
    are noted in `_dataset.json`. Raises `DestinationError` when `path` holds something else than
    such a dataset, or cannot be written. Any: what JSON holds.
    """
    target = path.resolve()
    _refuse_other(target, path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as holder:
            folder = Path(holder, "new")
            folder.mkdir()
            written: list[Written] = []
            yield folder, written
            text = json.dumps(_notes(written, facts), indent=2, ensure_ascii=False)
            (folder / MARK).write_text(text + "\n", "utf-8")
            _take_place(folder, target, Path(holder, "old"))
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {error.strerror or error}") from None


def _take_place(folder: Path, target: Path, old: Path) -> None:
    had_one = target.exists()
    if had_one:
        target.rename(old)
    try:
        folder.rename(target)
    except OSError:
        if had_one:
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _refuse_other(target: Path, path: Path) -> None:
    try:
        if not target.exists():
            return
        if not target.is_dir():
            raise DestinationError(f"{path} is a file; name a folder that is new or a dataset")
        found = {item.name for item in target.iterdir()}
        if not found:
            return
        notes = json.loads((target / MARK).read_text("utf-8")) if MARK in found else {}
        is_ours = isinstance(notes, dict) and notes.get("producer") == _PRODUCER
        others = sorted(found - {MARK, *(notes.get("relations", {}) if is_ours else ())})
    except (OSError, ValueError) as error:
        raise DestinationError(f"cannot read what is in {path}: {error}") from None
    if others:
        raise DestinationError(
            f"{path} holds something else ('{others[0]}'); name a folder that is new or a dataset"
        )


def _notes(written: Iterable[Written], facts: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "producer": _PRODUCER,
        "version": _VERSION,
        "schema": SCHEMA_VERSION,
        **facts,
        "relations": {
            one.table.name: {
                "comment": one.table.comment,
                "rows": one.rows,
                "columns": {
                    name: {"type": _type_name(one.schema, name), "comment": comment}
                    for name, comment in one.table.columns.items()
                },
            }
            for one in written
        },
    }


def _type_name(schema: pa.Schema, name: str) -> str:
    if name not in schema.names:
        return "string"  # what Hive keeps in the folder's name
    kind = schema.field(name).type
    return "json" if kind == pa.json_() else str(kind)


def redacted(
    reader: pa.RecordBatchReader, redact: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> pa.RecordBatchReader:
    """Return the batches as they may leave."""
    return pa.RecordBatchReader.from_batches(reader.schema, map(redact, reader))
