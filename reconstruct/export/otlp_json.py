"""Rows as OTLP/JSON lines: an export request on each line, as the collector's file exporter has it.

Ids are lower-case hex, 64-bit integers text, enums numbers, and what is empty is left out. Rows
that follow each other share a line, each under its scope under its resource. An exponential
histogram goes as a histogram with the bounds of its buckets. A value nested deeper than
`_MAX_DEPTH` goes as JSON text, since protobuf reads no more than 100 messages in each other.
Sources: opentelemetry-proto 1.x; OTLP/JSON and JSON lines file in OpenTelemetry's specification.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple

from gymlog.record import SPAN_KINDS, STATUS_CODES
from reconstruct.intake.json_text import Json, decode_encoded, double, encode

__all__ = ["SIGNALS", "documents", "span_json"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
Object = dict[str, Json]

_KINDS: Final = {kind: number for number, kind in enumerate(SPAN_KINDS, 1)}
_STATUS_CODES: Final = {code: number for number, code in enumerate(STATUS_CODES)}
_TEMPORALITIES: Final = {"DELTA": 1, "CUMULATIVE": 2}
_INT64: Final = range(-(2**63), 2**63)
_MAX_DEPTH: Final = 16
_ROWS_A_LINE: Final = 500
_RESOURCES: Final = 10_000


class _Signal(NamedTuple):
    """The fields that records of a kind lie in, and how a row becomes one."""

    relation: str
    resources: str
    scopes: str
    records: str
    record: Callable[[Row], Object]


def documents(rows: Iterable[Row], signal: str) -> Iterator[bytes]:
    """Yield lines of one of `SIGNALS`, from rows of its relation; each ends in a line feed."""
    waiting = iter(rows)
    while some := list(islice(waiting, _ROWS_A_LINE)):
        yield _dumped(_document(some, SIGNALS[signal])) + b"\n"


def _document(rows: list[Row], signal: _Signal) -> Object:
    resources: dict[str | None, list[Json]] = {}
    records: dict[object, list[Json]] = {}
    message: list[Json] = []
    for row in rows:
        resource = row["resource"]
        if resource not in resources:
            resources[resource] = []
            message.append({"resource": _resource(resource), signal.scopes: resources[resource]})
        scope = (row["scope_name"], row["scope_version"])
        if (resource, scope) not in records:
            records[resource, scope] = []
            resources[resource].append(
                {"scope": _scope(*scope), signal.records: records[resource, scope]}
            )
        records[resource, scope].append(signal.record(row))
    return {signal.resources: message}


def span_json(row: Row) -> Object:
    """Return OTLP's span of a finished row of `spans`."""
    status = _filled(
        code=_STATUS_CODES.get(row["status_code"], 0), message=row["status_message"] or ""
    )
    return {
        "traceId": row["trace_id"],
        "spanId": row["span_id"],
        "name": row["name"],
        "kind": _KINDS.get(row["kind"], 0),
        "startTimeUnixNano": str(row["start_time_unix_nano"]),
        "endTimeUnixNano": str(row["end_time_unix_nano"]),
    } | _filled(
        parentSpanId=row["parent_span_id"],
        traceState=row["trace_state"],
        flags=row["flags"],
        attributes=_attributes(_parsed(row["attributes"])),
        events=[_event(event) for event in _parsed(row["events"]) or ()],
        links=[_link(link) for link in _parsed(row["links"]) or ()],
        status=status,
        droppedAttributesCount=row["dropped_attributes_count"],
        droppedEventsCount=row["dropped_events_count"],
        droppedLinksCount=row["dropped_links_count"],
    )


def _log(row: Row) -> Object:
    body = row["body"]
    return {"timeUnixNano": str(row["time_unix_nano"])} | _filled(
        severityNumber=row["severity_number"],
        severityText=row["severity_text"],
        body=None if body is None else _any(_parsed(body)),
        attributes=_attributes(_parsed(row["attributes"])),
        droppedAttributesCount=row["dropped_attributes_count"],
        flags=row["flags"],
        traceId=row["trace_id"],
        spanId=row["span_id"],
    )


def _metric(row: Row) -> Object:
    kind = row["type"]
    point: Object = {"timeUnixNano": str(row["time_unix_nano"])} | _filled(
        startTimeUnixNano=_text(row["start_time_unix_nano"]),
        attributes=_attributes(_parsed(row["attributes"])),
        exemplars=[_exemplar(each) for each in _parsed(row["exemplars"]) or ()],
    )
    data: Object = {"dataPoints": [point]}
    if kind in {"gauge", "sum"} or row["count"] is None:
        point["asDouble"] = _double(row["value"])
    else:
        point["count"] = str(row["count"])
        for name in ("sum", "min", "max"):
            if row[name] is not None and (kind != "summary" or name == "sum"):
                point[name] = _double(row[name])
        if kind != "summary":
            point["bucketCounts"] = [str(number) for number in _parsed(row["bucket_counts"]) or ()]
            point["explicitBounds"] = _parsed(row["explicit_bounds"]) or []
    temporality = _TEMPORALITIES.get(row["aggregation_temporality"], 0)
    if kind == "sum":
        data |= _filled(aggregationTemporality=temporality, isMonotonic=row["is_monotonic"])
    elif "histogram" in kind:
        data |= _filled(aggregationTemporality=temporality)
    field = {"sum": "sum", "gauge": "gauge", "summary": "summary"}.get(kind, "histogram")
    if "asDouble" in point and field not in {"sum", "gauge"}:
        field = "gauge"  # a quantile of a summary
    return {
        "name": row["name"],
        **_filled(description=row["description"], unit=row["unit"]),
        field: data,
    }


SIGNALS: Final = {
    "traces": _Signal("spans", "resourceSpans", "scopeSpans", "spans", span_json),
    "logs": _Signal("log_records", "resourceLogs", "scopeLogs", "logRecords", _log),
    "metrics": _Signal("metric_points", "resourceMetrics", "scopeMetrics", "metrics", _metric),
}
"""What can be written: its relation, and where its records lie."""


@lru_cache(maxsize=_RESOURCES)
def _resource(text: str | None) -> Object:
    return _filled(attributes=_attributes((_parsed(text) or {}).get("attributes")))


def _scope(name: str | None, version: str | None) -> Object:
    return _filled(name=name, version=version)


def _event(event: Mapping[str, Json]) -> Object:
    return _filled(
        timeUnixNano=_text(event.get("time_unix_nano")),
        name=event.get("name"),
        attributes=_attributes(event.get("attributes")),
        droppedAttributesCount=event.get("dropped_attributes_count"),
    )


def _link(link: Mapping[str, Json]) -> Object:
    return _filled(
        traceId=link.get("trace_id"),
        spanId=link.get("span_id"),
        traceState=link.get("trace_state"),
        attributes=_attributes(link.get("attributes")),
        flags=link.get("flags"),
        droppedAttributesCount=link.get("dropped_attributes_count"),
    )


def _exemplar(exemplar: Mapping[str, Json]) -> Object:
    value = exemplar.get("value")
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return ({"asInt": str(value)} if is_whole else {"asDouble": value}) | _filled(
        timeUnixNano=_text(exemplar.get("time_unix_nano")),
        traceId=exemplar.get("trace_id"),
        spanId=exemplar.get("span_id"),
        filteredAttributes=_attributes(exemplar.get("filtered_attributes")),
    )


def _attributes(attributes: Mapping[str, Json] | None, depth: int = 0) -> list[Json]:
    return [{"key": key, "value": _any(value, depth)} for key, value in (attributes or {}).items()]


def _any(value: Json, depth: int = 0) -> Object:
    # bool before int: True is an int in Python. JSON 1.0 is a float and stays a double.
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue" if value in _INT64 else "stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if value is None:
        return {}
    if depth >= _MAX_DEPTH:
        return {"stringValue": _dumped(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any(item, depth + 1) for item in value]}}
    return {"kvlistValue": {"values": _attributes(value, depth + 1)}}


def _filled(**fields: Json) -> Object:
    """Leave out what is empty, zero or false: protobuf's default."""
    return {name: value for name, value in fields.items() if value}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _double(number: float) -> float | str:
    """Return a number, or protobuf's text for what JSON has none for."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return double(number)


def _parsed(text: str | None) -> Json:
    return decode_encoded(text) if text else None


def _dumped(value: Json) -> bytes:
    return encode(value).encode()
