"""Spans as OpenTelemetry's Go exporter `stdouttrace` prints them, on one line or over many.

Root spans have a parent of zeros there, times are local with the zeros of their fraction cut, and
whether the parent is remote is said, so that `flags` are whole. Without timestamps
(`stdouttrace.WithoutTimestamps`) a span cannot be placed in time and is invalid.
"""

from typing import Final

from gymlog.record import FLAG_HAS_IS_REMOTE, FLAG_IS_REMOTE, SPAN_KINDS
from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json, double
from reconstruct.intake.ledger import LineClass

__all__ = ["recognise"]

_KINDS: Final = dict(enumerate(SPAN_KINDS, 1))
_STATUS_CODES: Final = {"Unset": "UNSET", "Ok": "OK", "Error": "ERROR"}
_NO_TIME: Final = "0001-01-01T00:00:00Z"
"""Go's zero time."""


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a span of `stdouttrace` into a record."""
    context = value.get("SpanContext")
    if not isinstance(context, dict) or "StartTime" not in value or "Name" not in value:
        return None
    get = value.get
    if get("StartTime") == _NO_TIME:
        raise InvalidRecordError("StartTime is zero: written with stdouttrace.WithoutTimestamps")
    end = None
    if get("EndTime") not in (None, _NO_TIME):
        end = fields.time(get("EndTime"), "EndTime")
    parent = fields.members(get("Parent"))
    status = fields.members(get("Status"))
    scope = fields.members(get("InstrumentationScope", get("InstrumentationLibrary")))
    attributes = _attributes(get("Attributes"))
    resource = {"attributes": _attributes(get("Resource"))}
    row = (
        "span_start" if end is None else "span",
        None,
        fields.trace_id(context.get("TraceID")),
        fields.span_id(context.get("SpanID")),
        fields.parent_span_id(parent.get("SpanID")),
        fields.required_text(get("Name"), "Name"),
        _KINDS.get(fields.int64(get("SpanKind")) or 1, "INTERNAL"),
        fields.time(get("StartTime"), "StartTime"),
        end,
        _flags(context, is_remote=parent.get("Remote") is True),
        fields.text(context.get("TraceState")) or None,
        None if end is None else _STATUS_CODES.get(str(status.get("Code")), "UNSET"),
        fields.text(status.get("Description")) or None,
        fields.json_object(attributes),
        fields.json_list([_event(event) for event in fields.items(get("Events"))]),
        fields.json_list([_link(link) for link in fields.items(get("Links"))]),
        fields.int64(get("DroppedAttributes")) or None,
        fields.int64(get("DroppedEvents")) or None,
        fields.int64(get("DroppedLinks")) or None,
        fields.text(scope.get("Name")) or None,
        fields.text(scope.get("Version")) or None,
        fields.rollout_id(attributes),
        fields.owner(resource, server_hint, by_pid=True),
    )
    line_class = LineClass.SPAN_START if end is None else LineClass.SPAN
    return Record(line_class, ((tables.SPAN_LINES, row),))


def _flags(context: dict[str, Json], *, is_remote: bool) -> int:
    try:
        w3c = int(context.get("TraceFlags", "0"), 16) & 0xFF
    except (TypeError, ValueError):
        raise InvalidRecordError(
            f"TraceFlags are not two hex digits: {fields.shown(context.get('TraceFlags'))}"
        ) from None
    return w3c | FLAG_HAS_IS_REMOTE | (FLAG_IS_REMOTE if is_remote else 0)


def _event(value: Json) -> dict[str, Json]:
    event = fields.members(value)
    result = {
        "time_unix_nano": fields.time(event.get("Time"), "Time of an event"),
        "name": fields.text(event.get("Name")),
        "attributes": _attributes(event.get("Attributes")),
    }
    return _with_dropped(result, event)


def _link(value: Json) -> dict[str, Json]:
    link = fields.members(value)
    context = fields.members(link.get("SpanContext"))
    result = {
        "trace_id": fields.trace_id(context.get("TraceID")),
        "span_id": fields.span_id(context.get("SpanID")),
        "attributes": _attributes(link.get("Attributes")),
    }
    trace_state = fields.text(context.get("TraceState"))
    if trace_state:
        result["trace_state"] = trace_state
    return _with_dropped(result, link)


def _with_dropped(result: dict[str, Json], message: dict[str, Json]) -> dict[str, Json]:
    dropped = fields.int64(message.get("DroppedAttributeCount"))
    if dropped:
        result["dropped_attributes_count"] = dropped
    return result


def _attributes(value: Json) -> dict[str, Json]:
    """Keys with values and their types; a whole double is an integer in Go's JSON."""
    found: dict[str, Json] = {}
    for item in fields.items(value):
        pair = fields.members(item)
        typed = fields.members(pair.get("Value"))
        key = fields.required_text(pair.get("Key"), "an attribute's Key")
        found[key] = _value(typed.get("Type"), typed.get("Value"))
    return found


def _value(kind: Json, value: Json) -> Json:
    if kind == "FLOAT64" and type(value) is int:
        return double(float(value))
    if kind == "FLOAT64SLICE":
        return [_value("FLOAT64", item) for item in fields.items(value)]
    return value
