"""OTLP's spans as rows."""

from typing import Final

from gymlog.record import SPAN_KINDS, STATUS_CODES
from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError
from reconstruct.intake.formats.otlp.spelling import (
    camel,
    count,
    enum_names,
    identity,
    items,
    named,
    nanoseconds,
)
from reconstruct.intake.formats.otlp.values import attributes
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row

__all__ = ["span_rows"]

_KINDS: Final = enum_names("SPAN_KIND_", enumerate(SPAN_KINDS, 1))
_STATUS_CODES: Final = enum_names("STATUS_CODE_", enumerate(STATUS_CODES))


def span_rows(
    span: dict[str, Json], scope: tuple[str | None, str | None], owner: Owner
) -> list[tuple[LineClass, str, Row]]:
    """Return the row of a span in camelCase; one without an end has only begun."""
    get = span.get
    trace_id = identity(get("traceId"), 16, "traceId")
    span_id = identity(get("spanId"), 8, "spanId")
    start = nanoseconds(get("startTimeUnixNano"), "startTimeUnixNano")
    if trace_id is None or span_id is None or start is None:
        raise InvalidRecordError("traceId, spanId or startTimeUnixNano is missing or zero")
    end = nanoseconds(get("endTimeUnixNano"), "endTimeUnixNano")
    status = camel(get("status"), "status")
    found = attributes(get("attributes"))
    row = (
        "span_start" if end is None else "span",
        None,
        trace_id,
        span_id,
        identity(get("parentSpanId"), 8, "parentSpanId"),
        fields.required_text(get("name", ""), "name"),
        _word(_KINDS, get("kind"), "INTERNAL"),
        start,
        end,
        fields.int64(get("flags")),
        named(get("traceState")),
        None if end is None else _word(_STATUS_CODES, status.get("code"), "UNSET"),
        named(status.get("message")),
        fields.json_object(found),
        fields.json_list([_event(event) for event in items(span, "events")]),
        fields.json_list([_link(link) for link in items(span, "links")]),
        count(get("droppedAttributesCount")),
        count(get("droppedEventsCount")),
        count(get("droppedLinksCount")),
        *scope,
        fields.rollout_id(found),
        owner,
    )
    line_class = LineClass.SPAN_START if end is None else LineClass.SPAN
    return [(line_class, tables.SPAN_LINES, row)]


def _word(words: dict[Json, str], value: Json, unknown: str) -> str:
    return words.get(value, unknown) if isinstance(value, int | str) else unknown


def _event(value: Json) -> dict[str, Json]:
    event = camel(value, "an event")
    result = {
        "time_unix_nano": nanoseconds(event.get("timeUnixNano"), "timeUnixNano of an event"),
        "name": fields.text(event.get("name", "")),
        "attributes": attributes(event.get("attributes")),
    }
    return _with_dropped(result, event)


def _link(value: Json) -> dict[str, Json]:
    link = camel(value, "a link")
    trace_state, flags = named(link.get("traceState")), count(link.get("flags"))
    result: dict[str, Json] = {
        "trace_id": identity(link.get("traceId"), 16, "traceId of a link") or fields.ZERO_TRACE,
        "span_id": identity(link.get("spanId"), 8, "spanId of a link") or fields.ZERO_SPAN,
        "attributes": attributes(link.get("attributes")),
    }
    if trace_state is not None:
        result["trace_state"] = trace_state
    if flags is not None:
        result["flags"] = flags
    return _with_dropped(result, link)


def _with_dropped(result: dict[str, Json], message: dict[str, Json]) -> dict[str, Json]:
    dropped = count(message.get("droppedAttributesCount"))
    if dropped is not None:
        result["dropped_attributes_count"] = dropped
    return result
