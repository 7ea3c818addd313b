"""Zipkin's spans, version 2: one object each.

Times are µs. All tags are text. A server that took over the id of its caller's span says
`shared`: as in Jaeger it gets an id of its own, made from the shared one, so that the same span
has the same id wherever it is read. `sql/_shared_parents.sql` moves the children along.
"""

import re
from contextlib import suppress
from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.formats import fields, ids, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json, NotJson, decode_text
from reconstruct.intake.ledger import LineClass

__all__ = ["own_id", "recognise", "shared_span"]

_TELLTALE: Final = ("timestamp", "duration", "localEndpoint", "annotations")
_SCOPE_NAME: Final = ("otel.scope.name", "otel.library.name")
_SCOPE_VERSION: Final = ("otel.scope.version", "otel.library.version")
_STATUS: Final = "otel.status_code"
_ERROR: Final = "error"
_RESOURCE: Final = re.compile(
    r"service\..*|telemetry\.sdk\..*|host\.name|process\.pid|nemo\.run\.id|gymlog\.boot\.id"
)
"""Tags that OpenTelemetry's exporter takes from the resource, and that are never a span's own."""


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a Zipkin span into a record; without a duration it has only begun."""
    if "traceId" not in value or "id" not in value or "spanId" in value:
        return None
    if not any(key in value for key in _TELLTALE):
        return None
    get = value.get
    trace_id = ids.padded_trace_id(get("traceId"))
    span_id = ids.padded_span_id(get("id"))
    parent_span_id = ids.padded_parent(get("parentId"))
    annotations = [fields.members(item) for item in fields.items(get("annotations"))]
    start = _start(value, annotations)
    duration = get("duration")
    end = None if duration is None else start + fields.microseconds(duration, "duration")
    tags = dict(fields.members(get("tags")))
    scope_name, scope_version = _take(tags, _SCOPE_NAME), _take(tags, _SCOPE_VERSION)
    status, message = _status(tags)
    local = fields.members(get("localEndpoint"))
    resource = {key: tags.pop(key) for key in list(tags) if _RESOURCE.fullmatch(key)}
    if local.get("serviceName"):
        resource.setdefault("service.name", local["serviceName"])
    service = fields.text(resource.get("service.name"))
    owner = rows.owner(resource, server_hint)
    found = []
    if get("shared") is True:
        shared_id, span_id = span_id, own_id(trace_id, span_id, service)
        found.append(shared_span(trace_id, span_id, shared_id, parent_span_id, service))
        parent_span_id = shared_id
    row = rows.span(
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id=parent_span_id,
        name=fields.text(get("name")) or "unknown",
        kind=fields.kind(get("kind")),
        start=start,
        end=end,
        status=status,
        status_message=message,
        attributes=tags
        | _address(local, "network.local")
        | _peer(fields.members(get("remoteEndpoint"))),
        events=[_event(annotation) for annotation in annotations],
        scope_name=scope_name,
        scope_version=scope_version,
        owner=owner,
    )
    line_class = LineClass.SPAN if end is not None else LineClass.SPAN_START
    return Record(line_class, (row, *found))


def own_id(trace_id: str, shared_id: str, service: str | None) -> str:
    """Return the id of the server's half of a span, `shared_id` being its client's too."""
    return ids.derived(16, "shared span", trace_id, shared_id, service or "")


def shared_span(
    trace_id: str, span_id: str, shared_id: str, parent_span_id: str | None, service: str | None
) -> rows.TableRow:
    """Return the row that says: this span was given an id of its own.

    `parent_span_id` is its parent where the client's half of the span was never written.
    """
    return tables.SHARED_SPAN_LINES, (trace_id, span_id, shared_id, parent_span_id, service)


def _start(value: dict[str, Json], annotations: list[dict[str, Json]]) -> int:
    if value.get("timestamp") is not None:
        return fields.microseconds(value["timestamp"], "timestamp")
    times = [fields.microseconds(item.get("timestamp"), "timestamp") for item in annotations]
    if not times:
        raise InvalidRecordError("timestamp is missing, and there are no annotations")
    return min(times)


def _status(tags: dict[str, Json]) -> tuple[str, str | None]:
    """Return code and message, and take the tags that say it; `error` fails with any text."""
    code = tags.pop(_STATUS, None)
    error = fields.text(tags.get(_ERROR))
    if error is not None and error != "false" and code != "OK":
        del tags[_ERROR]
        return "ERROR", None if error in ("", "true") else error
    return fields.status_code(code), None


def _take(tags: dict[str, Json], names: tuple[str, ...]) -> str | None:
    found = [fields.text(tags.pop(name)) for name in names if name in tags]
    return found[0] if found else None


def _event(annotation: dict[str, Json]) -> Json:
    """OpenTelemetry writes an event that has attributes as JSON, in braces or without them."""
    name: str = fields.text(annotation.get("value")) or ""
    attributes: dict[str, Json] = {}
    if '":' in name:
        with suppress(NotJson):
            written = decode_text(name if name.startswith("{") else f"{{{name}}}")
            if len(written) == 1 and all(isinstance(each, dict) for each in written.values()):
                ((name, attributes),) = written.items()
    time = fields.microseconds(annotation.get("timestamp"), "timestamp")
    return {"time_unix_nano": time, "name": name, "attributes": attributes}


def _peer(endpoint: dict[str, Json]) -> dict[str, Json]:
    service = endpoint.get("serviceName")
    return ({"peer.service": service} if service else {}) | _address(endpoint, "network.peer")


def _address(endpoint: dict[str, Json], prefix: str) -> dict[str, Json]:
    address = endpoint.get("ipv4") or endpoint.get("ipv6")
    port = endpoint.get("port")
    found = {}
    if address:
        found[f"{prefix}.address"] = address
    if port:
        found[f"{prefix}.port"] = port
    return found
