"""Datadog's spans: the agent's JSON of version 0.4, alone, in a trace's list, in a list of those.

Ids are unsigned 64-bit numbers. The upper half of the trace id stands on one span of a list only,
so that its neighbours need it.
"""

from contextlib import suppress
from typing import Final

from reconstruct.intake.formats import fields, ids, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json, NotJson
from reconstruct.intake.ledger import LineClass

__all__ = ["UpperHalves", "recognise", "recognise_list"]

_UPPER_HALF: Final = "_dd.p.tid"
_RESOURCE: Final = {
    "runtime-id": "service.instance.id",
    "version": "service.version",
    "env": "deployment.environment.name",
    "_dd.hostname": "host.name",
    "language": "telemetry.sdk.language",
    "process_id": "process.pid",
}
"""What Datadog's tags call the facts of a process."""


class UpperHalves:
    """The upper halves of trace ids, by their lower halves, as they have been met."""

    __slots__ = ("_halves",)

    def __init__(self) -> None:
        self._halves: dict[str, str] = {}

    def learn(self, span: dict[str, Json]) -> None:
        """Remember the upper half that `span` brings along, if any."""
        half = fields.members(span.get("meta")).get(_UPPER_HALF)
        if isinstance(half, str):
            self._halves[_lower_half(span)] = half.zfill(16)

    def trace_id(self, span: dict[str, Json]) -> str:
        """Return the 32 digits of the trace id of `span`."""
        lower = _lower_half(span)
        return fields.trace_id(self._halves.get(lower, "0" * 16) + lower)


def recognise(
    value: dict[str, Json], server_hint: str | None, *, halves: UpperHalves | None = None
) -> Record | None:
    """Turn one span into a record; `halves` are those of the spans beside it."""
    if not _is_span(value):
        return None
    halves = halves or UpperHalves()
    halves.learn(value)
    return Record(LineClass.SPAN, (_row(value, halves, server_hint),))


def recognise_list(values: list[Json], server_hint: str | None) -> Record | None:
    """Turn the spans of a trace, or the lists of several traces, into one record."""
    chunks = values if all(isinstance(value, list) for value in values) else [values]
    spans = [span for chunk in chunks for span in chunk]
    if not spans or not all(_is_span(span) for span in spans):
        return None
    halves = UpperHalves()
    for span in spans:
        with suppress(InvalidRecordError):  # it is named below
            halves.learn(span)
    found: list[rows.TableRow] = []
    problems: list[str] = []
    for number, span in enumerate(spans, 1):
        try:
            found.append(_row(span, halves, server_hint))
        except (InvalidRecordError, NotJson) as error:
            problems.append(f"span {number}: {error}")
    if not found:
        raise InvalidRecordError(fields.listed(problems))
    return Record(LineClass.SPAN, tuple(found), tuple(problems))


def _is_span(value: Json) -> bool:
    return (
        isinstance(value, dict)
        and all(key in value for key in ("trace_id", "span_id", "start", "duration", "name"))
        and any(key in value for key in ("meta", "metrics", "service", "resource"))
    )


def _lower_half(span: dict[str, Json]) -> str:
    half = ids.from_decimal(span.get("trace_id"), "trace_id")
    if half is None:
        raise InvalidRecordError("trace_id is 0")
    return half


def _row(span: dict[str, Json], halves: UpperHalves, server_hint: str | None) -> rows.TableRow:
    get = span.get
    span_id = ids.from_decimal(get("span_id"), "span_id")
    if span_id is None:
        raise InvalidRecordError("span_id is 0")
    start, duration = fields.int64(get("start")), fields.int64(get("duration"))
    if start is None or duration is None or not 0 <= duration <= 2**63 - 1 - start:
        raise InvalidRecordError("start or duration is missing or not ns")
    attributes = fields.members(get("meta")) | fields.members(get("metrics"))
    attributes.pop(_UPPER_HALF, None)
    resource = {"service.name": get("service")} if get("service") else {}
    for tag, key in _RESOURCE.items():
        if tag in attributes:
            resource[key] = attributes.pop(tag)
    for key, name in (("resource", "resource.name"), ("type", "span.type")):
        if get(key) and get(key) != get("name"):
            attributes[name] = get(key)
    kind = str(attributes.pop("span.kind", "")).upper()
    has_failed = bool(fields.int64(get("error")))
    return rows.span(
        trace_id=halves.trace_id(span),
        span_id=span_id,
        parent_span_id=ids.from_decimal(get("parent_id") or 0, "parent_id"),
        name=fields.required_text(get("name"), "name"),
        kind=fields.kind(kind),
        start=start,
        end=start + duration,
        status="ERROR" if has_failed else "UNSET",
        status_message=fields.text(attributes.pop("error.message", None)) if has_failed else None,
        attributes=attributes,
        events=[_event(fields.members(event)) for event in fields.items(get("span_events"))],
        links=[_link(fields.members(link)) for link in fields.items(get("span_links"))],
        owner=rows.owner(resource, server_hint),
    )


def _event(event: dict[str, Json]) -> Json:
    return {
        "time_unix_nano": fields.int64(event.get("time_unix_nano")),
        "name": fields.text(event.get("name")),
        "attributes": fields.members(event.get("attributes")),
    }


def _link(link: dict[str, Json]) -> Json:
    upper = ids.from_decimal(link.get("trace_id_high") or 0, "trace_id_high") or "0" * 16
    lower = ids.from_decimal(link.get("trace_id"), "trace_id") or "0" * 16
    return {
        "trace_id": fields.trace_id(upper + lower),
        "span_id": fields.span_id(ids.from_decimal(link.get("span_id"), "span_id")),
        "attributes": fields.members(link.get("attributes")),
    }
