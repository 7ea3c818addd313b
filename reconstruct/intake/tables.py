"""The tables that intake fills: their columns, and the rows that wait to become a batch.

Each column is named and typed once here; `reconstruct/sql/_*_lines.sql` declares the same ones
(a test compares them). A row is a tuple in column order, so that a batch is one transposition.
JSON columns hold JSON text. Times are int64 ns since 1970.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from reconstruct.intake.owners import Owners

__all__ = [
    "BATCH_ROWS",
    "BOOL",
    "CAPTURE_LINES",
    "CLASS_COUNTS",
    "FILES",
    "FLOAT",
    "INT",
    "LOG_LINES",
    "METRIC_LINES",
    "OWNERS",
    "PROCESS_LINES",
    "REJECTED_LINES",
    "SHARED_SPAN_LINES",
    "SPAN_LINES",
    "TABLES",
    "TEXT",
    "Batches",
    "Columns",
    "Row",
    "arrow",
    "with_process",
]

TEXT: Final = pa.string()
INT: Final = pa.int64()
BOOL: Final = pa.bool_()
FLOAT: Final = pa.float64()

Row = tuple[Any, ...]  # Any: a row's values are of as many types as its table's columns
Columns = tuple[tuple[str, pa.DataType], ...]

_PLACE: Final[Columns] = (
    ("file", TEXT),
    ("line", INT),
    ("byte_offset", INT),
    ("recovered", BOOL),
)
"""Where the record lies; `recovered`: it shared a physical line with something else."""

_OWNER: Final = ("owner", INT)
"""Number of an owner in `OWNERS`; in a row that waits, the `Owner` itself. A line's last column."""

SPAN_LINES: Final = "_span_lines"
LOG_LINES: Final = "_log_lines"
METRIC_LINES: Final = "_metric_lines"
PROCESS_LINES: Final = "_process_lines"
SHARED_SPAN_LINES: Final = "_shared_span_lines"
CAPTURE_LINES: Final = "_capture_lines"
OWNERS: Final = "_owners"
REJECTED_LINES: Final = "_rejected_lines"
CLASS_COUNTS: Final = "_class_counts"
FILES: Final = "_files"

TABLES: Final[dict[str, Columns]] = {
    SPAN_LINES: (
        *_PLACE,
        ("record_type", TEXT),
        ("seq", INT),
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("parent_span_id", TEXT),
        ("name", TEXT),
        ("kind", TEXT),
        ("start_time_unix_nano", INT),
        ("end_time_unix_nano", INT),
        ("flags", INT),
        ("trace_state", TEXT),
        ("status_code", TEXT),
        ("status_message", TEXT),
        ("attributes", TEXT),
        ("events", TEXT),
        ("links", TEXT),
        ("dropped_attributes_count", INT),
        ("dropped_events_count", INT),
        ("dropped_links_count", INT),
        ("scope_name", TEXT),
        ("scope_version", TEXT),
        ("rollout_id", TEXT),
        _OWNER,
    ),
    LOG_LINES: (
        *_PLACE,
        ("seq", INT),
        ("time_unix_nano", INT),
        ("severity_number", INT),
        ("severity_text", TEXT),
        ("body", TEXT),
        ("attributes", TEXT),
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("flags", INT),
        ("dropped_attributes_count", INT),
        ("scope_name", TEXT),
        ("scope_version", TEXT),
        ("rollout_id", TEXT),
        _OWNER,
    ),
    METRIC_LINES: (
        *_PLACE,
        ("seq", INT),
        ("name", TEXT),
        ("description", TEXT),
        ("unit", TEXT),
        ("type", TEXT),
        ("is_monotonic", BOOL),
        ("aggregation_temporality", TEXT),
        ("start_time_unix_nano", INT),
        ("time_unix_nano", INT),
        ("attributes", TEXT),
        ("value", FLOAT),
        ("count", INT),
        ("sum", FLOAT),
        ("min", FLOAT),
        ("max", FLOAT),
        ("bucket_counts", TEXT),
        ("explicit_bounds", TEXT),
        ("exemplars", TEXT),
        ("scope_name", TEXT),
        ("scope_version", TEXT),
        _OWNER,
    ),
    PROCESS_LINES: (
        *_PLACE,
        ("seq", INT),
        ("state", TEXT),
        ("schema", INT),
        ("time_unix_nano", INT),
        ("spans_written", INT),
        ("records_dropped", INT),
        ("open_spans", INT),
        ("export_dropped", INT),
        ("export_failed", INT),
        _OWNER,
    ),
    SHARED_SPAN_LINES: (
        *_PLACE,
        ("trace_id", TEXT),
        ("span_id", TEXT),
        ("shared_span_id", TEXT),
        ("parent_span_id", TEXT),
        ("service_name", TEXT),
    ),
    CAPTURE_LINES: (
        *_PLACE,
        ("model_call_id", TEXT),
        ("rollout_id", TEXT),
        ("dialect", TEXT),
        ("server_name", TEXT),
        ("server_type", TEXT),
        ("model", TEXT),
        ("response_id", TEXT),
        ("start_time_unix_nano", INT),
        ("end_time_unix_nano", INT),
        ("duration_ns", INT),
        ("time_to_first_token_ns", INT),
        ("status_code", INT),
        ("error_category", TEXT),
        ("input_tokens", INT),
        ("cached_input_tokens", INT),
        ("output_tokens", INT),
        ("reasoning_tokens", INT),
        ("record", TEXT),
    ),
    OWNERS: (
        _OWNER,
        ("resource", TEXT),
        ("instance", TEXT),
        ("service_name", TEXT),
        ("service_instance_id", TEXT),
        ("server_name", TEXT),
        ("server_type", TEXT),
        ("run_id", TEXT),
        ("host_name", TEXT),
        ("process_pid", INT),
        ("boot_id", TEXT),
    ),
    REJECTED_LINES: (
        ("file", TEXT),
        ("line", INT),
        ("byte_offset", INT),
        ("class", TEXT),
        ("reason", TEXT),
        ("sample", TEXT),
        ("lost_lines", INT),
    ),
    CLASS_COUNTS: (("file", TEXT), ("class", TEXT), ("lines", INT)),
    FILES: (
        ("file", TEXT),
        ("bytes", INT),
        ("lines", INT),
        ("problem", TEXT),
        ("wrapper", TEXT),
        ("pending_bytes", INT),
        ("can_go_on", BOOL),
        ("begins_within", BOOL),
        ("ends_within", BOOL),
    ),
}

_OWNED: Final = frozenset(table for table, columns in TABLES.items() if columns[-1] == _OWNER)


def with_process(table: str, row: Row, host_name: str | None, process_pid: int | None) -> Row:
    """Return a row whose owner is told by what stood before it on the line."""
    if table not in _OWNED:
        return row
    return (*row[:-1], row[-1].of_process(host_name, process_pid))


BATCH_ROWS: Final = 32_768


class Batches:
    """Rows per table until there are enough of them for a batch; their owners become numbers."""

    __slots__ = ("_owners", "_rows")

    def __init__(self, owners: Owners | None = None) -> None:
        self._owners = owners or Owners()
        self._rows: dict[str, list[Row]] = {name: [] for name in TABLES}

    def add(self, table: str, row: Row) -> None:
        """Keep one row of `table`, in its column order."""
        self._rows[table].append(row)

    def full(self) -> Iterator[tuple[str, pa.Table]]:
        """Take out the tables that have reached `BATCH_ROWS`."""
        for name, rows in self._rows.items():
            if len(rows) >= BATCH_ROWS:
                yield name, self._take(name)

    def rest(self) -> Iterator[tuple[str, pa.Table]]:
        """Take out whatever is left, and who the owners are."""
        for name, rows in self._rows.items():
            if rows:
                yield name, self._take(name)
        owners = [(number, *owner) for number, owner in self._owners.take_new()]
        if owners:
            yield OWNERS, arrow(TABLES[OWNERS], owners)

    def rows(self) -> Iterator[tuple[str, list[Row]]]:
        """Take out whatever is there, as it is: the last value of an owned row is its `Owner`."""
        for name, rows in self._rows.items():
            if rows:
                self._rows[name] = []
                yield name, rows

    def _take(self, name: str) -> pa.Table:
        rows = self._rows[name]
        self._rows[name] = []
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))  # Any: a type each
        if name in _OWNED:
            columns[-1] = list(map(self._owners.number, columns[-1]))
        return _from_columns(TABLES[name], columns)


def arrow(columns: Columns, rows: Sequence[Row]) -> pa.Table:
    """Return rows, of which there is at least one, as an Arrow table."""
    return _from_columns(columns, list(zip(*rows, strict=True)))


def _from_columns(columns: Columns, values: Sequence[Sequence[Any]]) -> pa.Table:
    arrays = [
        pa.array(column, type=type_) for column, (_, type_) in zip(values, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])
