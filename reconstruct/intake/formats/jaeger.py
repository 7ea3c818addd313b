"""Jaeger's JSON: what its query API answers and its page downloads, and single spans in its words.

Times are µs, ids hex with their leading zeros cut. What OpenTelemetry hides in tags (kind, status,
scope, tracestate) goes back to where it came from. Warnings, such as those of Jaeger's own
correction of clocks, stay as attributes.
"""

import re
from typing import Final

from reconstruct.intake.formats import fields, ids, rows, zipkin
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json, NotJson
from reconstruct.intake.ledger import LineClass

__all__ = ["recognise"]

_SAMPLED: Final = 1
_FLOAT: Final = re.compile(r"-?\d{1,300}(?:\.\d*)?(?:[eE][-+]?\d{1,2})?")
_CHILD_OF: Final = "CHILD_OF"
_WARNINGS: Final = "jaeger.warnings"
_TRACE_WARNINGS: Final = "jaeger.trace_warnings"


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn an answer of the query API, one of its traces, or a single span into a record."""
    if "traceID" not in value:
        traces = fields.items(value.get("data"))
        if not traces or not all(_is_trace(trace) for trace in traces):
            return None
        return _traces(traces, server_hint)
    if _is_trace(value):
        return _traces([value], server_hint)
    if "spanID" in value and "operationName" in value:
        return Record(LineClass.SPAN, tuple(_Span(value, value.get("process")).rows(server_hint)))
    return None


def _is_trace(value: Json) -> bool:
    return isinstance(value, dict) and "traceID" in value and isinstance(value.get("spans"), list)


def _traces(traces: list[Json], server_hint: str | None) -> Record:
    found: list[rows.TableRow] = []
    problems: list[str] = []
    for trace in traces:
        processes = fields.members(trace.get("processes"))
        spans = []
        for value in map(fields.members, trace["spans"]):
            process = value.get("process") or processes.get(str(value.get("processID")))
            spans.append(_Span(value, process))
        client_ids = {span.written_id for span in spans if span.kind == "CLIENT"}
        warnings = fields.items(trace.get("warnings"))
        for number, span in enumerate(spans, 1):
            if warnings and number == 1:
                span.attributes[_TRACE_WARNINGS] = warnings
            is_shared = span.kind == "SERVER" and span.written_id in client_ids
            try:
                found += span.rows(server_hint, is_shared=is_shared)
            except (InvalidRecordError, NotJson) as error:
                problems.append(f"span {number} of trace {fields.shown(trace['traceID'])}: {error}")
    if problems and not found:
        raise InvalidRecordError(fields.listed(problems))
    return Record(LineClass.SPAN, tuple(found), tuple(problems))


class _Span:
    """One span; its attributes are what is left of its tags."""

    def __init__(self, value: dict[str, Json], process: Json) -> None:
        self._value = value
        self._process = fields.members(process)
        self.written_id = value.get("spanID")
        self.attributes = tags = _tags(value.get("tags"))
        self.kind = fields.kind(str(tags.pop("span.kind", "")).upper())
        tags.pop("internal.span.format", None)
        self._trace_state = fields.text(tags.pop("w3c.tracestate", None))
        self._scope_name = _first(tags, "otel.scope.name", "otel.library.name")
        self._scope_version = _first(tags, "otel.scope.version", "otel.library.version")
        self._status, self._message = _status(tags)
        if value.get("warnings"):
            tags[_WARNINGS] = value["warnings"]

    def rows(self, server_hint: str | None, *, is_shared: bool = False) -> list[rows.TableRow]:
        """Return its row, and if its id is its client's too, the row that says so."""
        get = self._value.get
        trace_id = ids.padded_trace_id(get("traceID"))
        span_id = ids.padded_span_id(get("spanID"))
        start = fields.microseconds(get("startTime"), "startTime")
        parent_span_id, links = self._references(trace_id)
        service = fields.text(self._process.get("serviceName"))
        resource = ({"service.name": service} if service else {}) | _tags(self._process.get("tags"))
        flags = fields.int64(get("flags"))
        also = []
        if is_shared:
            shared_id, span_id = span_id, zipkin.own_id(trace_id, span_id, service)
            also.append(zipkin.shared_span(trace_id, span_id, shared_id, parent_span_id, service))
            parent_span_id = shared_id
        row = rows.span(
            trace_id=trace_id,
            span_id=span_id,
            parent_span_id=parent_span_id,
            name=fields.required_text(get("operationName"), "operationName"),
            kind=self.kind,
            start=start,
            end=start + fields.microseconds(get("duration"), "duration"),
            flags=None if flags is None else flags & _SAMPLED,
            trace_state=self._trace_state,
            status=self._status,
            status_message=self._message,
            attributes=self.attributes,
            events=[_event(fields.members(log)) for log in fields.items(get("logs"))],
            links=links,
            scope_name=self._scope_name,
            scope_version=self._scope_version,
            owner=rows.owner(resource, server_hint),
        )
        return [row, *also]

    def _references(self, trace_id: str) -> tuple[str | None, list[Json]]:
        """Return the parent: CHILD_OF in the same trace, else FOLLOWS_FROM; others are links."""
        references = [fields.members(item) for item in fields.items(self._value.get("references"))]
        targets = [
            (
                ids.padded_trace_id(reference.get("traceID")),
                ids.padded_span_id(reference.get("spanID")),
                reference.get("refType") == _CHILD_OF,
            )
            for reference in references
        ]
        inside = [target for target in targets if target[0] == trace_id]
        parent = next((target for target in inside if target[2]), inside[0] if inside else None)
        if parent is None:
            return ids.padded_parent(self._value.get("parentSpanID")), _links(targets)
        targets.remove(parent)
        return parent[1], _links(targets)


def _links(targets: list[tuple[str, str, bool]]) -> list[Json]:
    return [
        {
            "trace_id": trace_id,
            "span_id": span_id,
            "attributes": {"opentracing.ref_type": "child_of"} if is_child_of else {},
        }
        for trace_id, span_id, is_child_of in targets
    ]


def _tags(value: Json) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for tag in map(fields.members, fields.items(value)):
        key = fields.text(tag.get("key"))
        if key is not None:
            found[key] = _typed(tag.get("type"), tag.get("value"))
    return found


def _typed(kind: Json, value: Json) -> Json:
    """Numbers come as text where JavaScript would have cut their digits."""
    if kind == "int64":
        number = fields.int64(value)
        return value if number is None else number
    if kind == "float64" and isinstance(value, str) and _FLOAT.fullmatch(value) is not None:
        return float(value)
    if kind == "bool" and isinstance(value, str):
        return {"true": True, "false": False}.get(value, value)
    return value


def _status(tags: dict[str, Json]) -> tuple[str, str | None]:
    code = tags.pop("otel.status_code", None)
    message = fields.text(tags.pop("otel.status_description", None))
    if tags.get("error") in (True, "true"):
        del tags["error"]
        code = code or "ERROR"
    return fields.status_code(code), message


def _first(tags: dict[str, Json], *names: str) -> str | None:
    found = [fields.text(tags.pop(name)) for name in names if name in tags]
    return found[0] if found else None


def _event(log: dict[str, Json]) -> Json:
    attributes = _tags(log.get("fields"))
    name = _first(attributes, "event") or fields.text(attributes.get("message")) or "log"
    time = fields.microseconds(log.get("timestamp"), "timestamp")
    return {"time_unix_nano": time, "name": name, "attributes": attributes}
