"""Columns as JSON has them: JSON text parsed, inside lists and structs too, decimals as numbers."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final

import duckdb
from duckdb.sqltypes import DuckDBPyType

from reconstruct.intake.json_text import decode_encoded

__all__ = ["reader_of"]

Read = Callable[[Any], Any]  # Any: a value of whatever type the column has
_JSON: Final = "JSON"


def reader_of(types: Sequence[str]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return what turns a row with columns of these DuckDB types into JSON's values.

    A decimal becomes a float where that has all its digits, else it stays. Other types are left as
    they are.
    """
    reads = [_reader(duckdb.sqltype(kind)) if _may_differ(kind) else None for kind in types]
    if not any(reads):
        return tuple

    def read_row(row: Sequence[Any]) -> tuple[Any, ...]:  # Any: as the columns
        return tuple(
            value if read is None or value is None else read(value)
            for read, value in zip(reads, row, strict=True)
        )

    return read_row


def _may_differ(kind: str) -> bool:
    return _JSON in kind or "DECIMAL" in kind


def _reader(kind: DuckDBPyType) -> Read | None:
    if str(kind) == _JSON:
        return decode_encoded
    if kind.id == "decimal":
        return _number
    parts = _parts(kind)
    if kind.id in {"list", "array"}:
        read = _reader(parts["child"])
        return read and (lambda values: [_read(read, value) for value in values])
    if kind.id == "struct":
        fields = {name: _reader(part) for name, part in parts.items()}
        return lambda values: {name: _read(fields[name], values[name]) for name in values}
    if kind.id == "map" and not _parts(parts["key"]):  # keys with parts come as two lists
        key, item = _reader(parts["key"]), _reader(parts["value"])
        return lambda values: {_read(key, k): _read(item, v) for k, v in values.items()}
    return None


def _parts(kind: DuckDBPyType) -> dict[str, DuckDBPyType]:
    if kind.id not in {"list", "array", "struct", "map"}:
        return {}
    return {name: part for name, part in kind.children if isinstance(part, DuckDBPyType)}


def _read(read: Read | None, value: Any) -> Any:  # Any: as the column
    return value if read is None or value is None else read(value)


def _number(value: Decimal) -> float | Decimal:
    number = float(value)
    return number if Decimal(repr(number)) == value else value
