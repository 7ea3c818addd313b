"""OTLP's log records as rows; an event's name is the attribute `event.name`, as it once was."""

from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError
from reconstruct.intake.formats.otlp.spelling import count, identity, named, nanoseconds
from reconstruct.intake.formats.otlp.values import any_value, attributes
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row

__all__ = ["log_rows"]

_EVENT_NAME: Final = "event.name"
_SEVERITIES: Final = {
    f"SEVERITY_NUMBER_{level}{step if step > 1 else ''}": 4 * place + step
    for place, level in enumerate(("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"))
    for step in (1, 2, 3, 4)
}


def log_rows(
    log: dict[str, Json], scope: tuple[str | None, str | None], owner: Owner
) -> list[tuple[LineClass, str, Row]]:
    """Return the row of a log record in camelCase."""
    get = log.get
    time = nanoseconds(get("timeUnixNano"), "timeUnixNano")
    if time is None:
        time = nanoseconds(get("observedTimeUnixNano"), "observedTimeUnixNano")
    if time is None:
        raise InvalidRecordError("timeUnixNano and observedTimeUnixNano are missing or zero")
    trace_id = identity(get("traceId"), 16, "traceId")
    found = attributes(get("attributes"))
    event_name = named(get("eventName"))
    if event_name is not None:
        found = {_EVENT_NAME: event_name} | found
    row = (
        None,
        time,
        _severity(get("severityNumber")),
        named(get("severityText")),
        fields.json_value(any_value(get("body"))),
        fields.json_object(found),
        trace_id,
        identity(get("spanId"), 8, "spanId"),
        None if trace_id is None else fields.int64(get("flags")),
        count(get("droppedAttributesCount")),
        *scope,
        fields.rollout_id(found),
        owner,
    )
    return [(LineClass.LOG, tables.LOG_LINES, row)]


def _severity(value: Json) -> int | None:
    number = _SEVERITIES.get(value) if isinstance(value, str) else None
    return count(value) if number is None else number
