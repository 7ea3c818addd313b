"""Span events that NVIDIA Dynamo's servers log as JSON lines (`DYN_LOGGING_SPAN_EVENTS`).

`SPAN_FIRST_ENTRY` (`SPAN_CREATED` in older versions) is a span that has begun, `SPAN_CLOSED` is the
whole span: it ended when the line was written and began `time.duration_us` before. That duration
has three digits that count (of 12,345,678 µs the line says 12,300,000), so the start is up to half
a percent of it away from the first entry. Kind, status and service are not written. Other lines of
Dynamo's are log records, see `json_logs`. Source: lib/runtime/src/logging.rs of ai-dynamo/dynamo.
"""

from typing import Final

from reconstruct.intake.formats import fields, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass

__all__ = ["recognise"]

_BEGUN: Final = frozenset({"SPAN_FIRST_ENTRY", "SPAN_CREATED"})
_CLOSED: Final = "SPAN_CLOSED"
_COLUMNS: Final = frozenset(
    {"time", "message", "span_name", "span_id", "parent_id", "trace_id", "tracestate", "target"}
)
"""What has a column of its own; all the rest are attributes."""
_PLACE: Final = {"file": "code.file.path", "line": "code.line.number"}


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a span event into the span, or into its start."""
    message = value.get("message")
    is_closed = message == _CLOSED
    if not is_closed and not (isinstance(message, str) and message in _BEGUN):
        return None
    if "span_name" not in value or "trace_id" not in value:
        return None
    get = value.get
    time = fields.time(get("time"), "time")
    row = rows.span(
        trace_id=fields.trace_id(get("trace_id")),
        span_id=fields.span_id(get("span_id")),
        parent_span_id=fields.parent_span_id(get("parent_id")),
        name=fields.required_text(get("span_name"), "span_name"),
        start=time - _duration(value) if is_closed else time,
        end=time if is_closed else None,
        trace_state=fields.text(get("tracestate")),
        scope_name=fields.text(get("target")),
        attributes={
            _PLACE.get(key, key): item for key, item in value.items() if key not in _COLUMNS
        },
        owner=rows.owner({}, server_hint),
    )
    return Record(LineClass.SPAN if is_closed else LineClass.SPAN_START, (row,))


def _duration(value: dict[str, Json]) -> int:
    """Nanoseconds that the span was open, busy and idle."""
    microseconds = fields.int64(value.get("time.duration_us"))
    if microseconds is None or microseconds < 0:
        raise InvalidRecordError("time.duration_us is missing or no number of µs")
    return microseconds * 1000
