"""The line: every record type, its fields in order, their types and units.

One physical line is one JSON object is one record. This module is the contract between
`gymlog`, which writes lines, and `reconstruct`, which reads them; nothing else defines a field.
Field names are OTLP's protobuf names in snake_case and mean what OTLP says. A field that is
absent is absent: writers leave out empty lists, empty text and zero counters unless the field is
`required`. Readers ignore fields they do not know. Standard library only.

Source: OpenTelemetry protocol 1.x (trace, logs, metrics), W3C Trace Context level 2.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SCHEMA_VERSION: Final = 1
"""Raised when a field changes its meaning; written in every `process` record."""

PIPE_BUF: Final = 4096
"""Bytes that one write puts into a pipe whole, whoever else writes to it (POSIX, Linux value)."""

DEFAULT_LINE_MAX_BYTES: Final = 65_536
DEFAULT_VALUE_MAX_CHARACTERS: Final = 8_192


class RecordType(StrEnum):
    """Values of `record_type`, the first field of every line."""

    SPAN = "span"
    SPAN_START = "span_start"
    LOG = "log"
    METRIC = "metric"
    PROCESS = "process"


class FieldType(StrEnum):
    """JSON shape of a field; `reconstruct` maps each to one DuckDB type."""

    TEXT = "text"
    INT64 = "int64"
    FLOAT64 = "float64"
    BOOL = "bool"
    NUMBER = "number"
    """int64 or float64, as the metric has it."""
    OBJECT = "object"
    LIST = "list"
    ANY = "any"
    """Any JSON value (a log record's body)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record: its name on the line, its JSON shape, what it means."""

    name: str
    type: FieldType
    meaning: str
    required: bool = False


_TEXT, _INT, _BOOL = FieldType.TEXT, FieldType.INT64, FieldType.BOOL
_OBJECT, _LIST = FieldType.OBJECT, FieldType.LIST

_COMMON = (
    Field("record_type", _TEXT, "span, span_start, log, metric or process", required=True),
    Field("seq", _INT, "0, 1, 2 … per service instance over all record types", required=True),
)
_RESOURCE = Field(
    "resource", _OBJECT, "attributes: service.name and service.instance.id", required=True
)
_SCOPE = Field("scope", _OBJECT, "name and version of the instrumenting library")

_SPAN_IDENTITY = (
    Field("trace_id", _TEXT, "32 lower-case hex digits", required=True),
    Field("span_id", _TEXT, "16 lower-case hex digits", required=True),
    Field("parent_span_id", _TEXT, "16 lower-case hex digits; null is a root", required=True),
    Field("name", _TEXT, "what the span does; few distinct values", required=True),
    Field("kind", _TEXT, "INTERNAL, SERVER, CLIENT, PRODUCER or CONSUMER", required=True),
    Field("start_time_unix_nano", _INT, "wall clock at start, ns since 1970", required=True),
)
_SPAN_END = Field(
    "end_time_unix_nano", _INT, "start plus the monotonic duration, ns since 1970", required=True
)
_SPAN_CONTEXT = (
    Field("flags", _INT, "W3C flags in bits 0-7, 8: remote known, 9: remote", required=True),
    Field("trace_state", _TEXT, "W3C tracestate header, when not empty"),
)
_SPAN_STATUS = Field("status", _OBJECT, "code: UNSET, OK or ERROR; message", required=True)
_SPAN_DETAIL = (
    Field("attributes", _OBJECT, "facts of this span, flat", required=True),
    Field("events", _LIST, "time_unix_nano, name, attributes"),
    Field("links", _LIST, "trace_id, span_id, attributes"),
    Field("dropped_attributes_count", _INT, "attributes cut away by a limit"),
    Field("dropped_events_count", _INT, "events cut away by a limit"),
    Field("dropped_links_count", _INT, "links cut away by a limit"),
    _SCOPE,
    _RESOURCE,
)

SPAN: Final = (
    *_COMMON, *_SPAN_IDENTITY, _SPAN_END, *_SPAN_CONTEXT, _SPAN_STATUS, *_SPAN_DETAIL,
)  # fmt: skip
"""A finished span, written when it ends."""

SPAN_START: Final = (*_COMMON, *_SPAN_IDENTITY, *_SPAN_CONTEXT, *_SPAN_DETAIL)
"""The same span while it is open, written at most once; joined by (trace_id, span_id)."""

PROCESS: Final = (
    *_COMMON,
    Field("state", _TEXT, "started, alive or stopped", required=True),
    Field("schema", _INT, "version of this contract", required=True),
    Field("time_unix_nano", _INT, "when this was written, ns since 1970", required=True),
    Field("spans_written", _INT, "span records written so far", required=True),
    Field("records_dropped", _INT, "records that could not be written so far", required=True),
    Field("open_spans", _INT, "spans open now", required=True),
    Field("export_dropped", _INT, "records without room, or time at the end, for OTLP so far"),
    Field("export_failed", _INT, "records and points that no OTLP receiver took so far"),
    Field("resource", _OBJECT, "attributes: the whole resource", required=True),
)
"""Who writes here: at start, every interval, after a fork, at a clean stop."""

LOG: Final = (
    *_COMMON,
    Field("time_unix_nano", _INT, "when it was logged, ns since 1970", required=True),
    Field("severity_number", _INT, "1 to 24, OpenTelemetry's scale", required=True),
    Field("severity_text", _TEXT, "the source's own level name", required=True),
    Field("body", FieldType.ANY, "text or object", required=True),
    Field("attributes", _OBJECT, "facts of this log record", required=True),
    Field("trace_id", _TEXT, "32 lower-case hex digits; absent outside a span"),
    Field("span_id", _TEXT, "16 lower-case hex digits; absent outside a span"),
    Field("flags", _INT, "W3C trace flags; absent outside a span"),
    Field("dropped_attributes_count", _INT, "attributes cut away by a limit"),
    _SCOPE,
    _RESOURCE,
)
"""An ordinary log record with its place in the trace."""

METRIC: Final = (
    *_COMMON,
    Field("name", _TEXT, "the instrument's name", required=True),
    Field("description", _TEXT, "only in the first line of a series per process"),
    Field("unit", _TEXT, "UCUM unit of value", required=True),
    Field("type", _TEXT, "sum, gauge, histogram or exponential_histogram", required=True),
    Field("is_monotonic", _BOOL, "a sum that only grows"),
    Field("aggregation_temporality", _TEXT, "DELTA or CUMULATIVE"),
    Field("start_time_unix_nano", _INT, "start of the interval, ns since 1970"),
    Field("time_unix_nano", _INT, "end of the interval, ns since 1970", required=True),
    Field("attributes", _OBJECT, "the series", required=True),
    Field("value", FieldType.NUMBER, "of a sum or gauge"),
    Field("count", _INT, "of a histogram"),
    Field("sum", FieldType.FLOAT64, "of a histogram"),
    Field("min", FieldType.FLOAT64, "of a histogram"),
    Field("max", FieldType.FLOAT64, "of a histogram"),
    Field("bucket_counts", _LIST, "of a histogram: one more than explicit_bounds"),
    Field("explicit_bounds", _LIST, "of a histogram, in unit"),
    Field("exemplars", _LIST, "value, time_unix_nano, trace_id, span_id"),
    _RESOURCE,
)
"""One point of one series."""

RECORDS: Final[dict[RecordType, tuple[Field, ...]]] = {
    RecordType.SPAN: SPAN,
    RecordType.SPAN_START: SPAN_START,
    RecordType.LOG: LOG,
    RecordType.METRIC: METRIC,
    RecordType.PROCESS: PROCESS,
}

SPAN_KINDS: Final = ("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
"""In the order of OpenTelemetry's Python enum (INTERNAL is 0); OTLP's numbers are one higher."""

STATUS_CODES: Final = ("UNSET", "OK", "ERROR")
"""In OTLP's order, which is also the Python enum's."""

FLAG_SAMPLED: Final = 0x01
FLAG_RANDOM_TRACE_ID: Final = 0x02
FLAG_HAS_IS_REMOTE: Final = 0x100
FLAG_IS_REMOTE: Final = 0x200
