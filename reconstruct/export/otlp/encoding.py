"""A row of `spans` as OTLP says it: ids, times, flags and the type of every attribute exact.

Rows go straight into protobuf messages, since OpenTelemetry's own encoder takes SDK spans and keeps
neither the W3C bits of `flags` nor lists of mixed types. Source: opentelemetry-proto 1.x.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    InstrumentationScope,
    KeyValue,
    KeyValueList,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from gymlog.record import SPAN_KINDS, STATUS_CODES

__all__ = [
    "CACHED",
    "Unsendable",
    "any_value",
    "attribute_pairs",
    "frequent_pair",
    "identity",
    "parsed",
    "resource_message",
    "scope_message",
    "span_message",
]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
Json = Any  # Any: whatever JSON can hold

_KINDS: Final = {kind: Span.SpanKind.Value(f"SPAN_KIND_{kind}") for kind in SPAN_KINDS}
_STATUS_CODES: Final = {
    code: Status.StatusCode.Value(f"STATUS_CODE_{code}") for code in STATUS_CODES
}
_INT64: Final = range(-(2**63), 2**63)
CACHED: Final = frozenset({str, int, bool})
"""Types whose equal values are the same to the bit, unlike 0.0 and -0.0."""
_LONG_NUMBER: Final = re.compile(r"(?:^|[:,\[])\s*-?[0-9]{19}")


class Unsendable(ValueError):  # noqa: N818  # says what the span is, not what went wrong
    """OTLP has no form for this span; the message says why."""


def span_message(row: Row) -> Span:
    """Build OTLP's span of a finished row; raise `Unsendable` where OTLP cannot say it."""
    try:
        return Span(
            trace_id=identity(row["trace_id"], 16),
            span_id=identity(row["span_id"], 8),
            parent_span_id=identity(row["parent_span_id"], 8) if row["parent_span_id"] else b"",
            trace_state=row["trace_state"],
            flags=row["flags"],
            name=row["name"],
            kind=_KINDS.get(row["kind"], Span.SPAN_KIND_UNSPECIFIED),
            start_time_unix_nano=row["start_time_unix_nano"],
            end_time_unix_nano=row["end_time_unix_nano"],
            attributes=attribute_pairs(parsed(row["attributes"])),
            events=[_event(event) for event in parsed(row["events"]) or ()],
            links=[_link(link) for link in parsed(row["links"]) or ()],
            status=Status(
                code=_STATUS_CODES.get(row["status_code"], Status.STATUS_CODE_UNSET),
                message=row["status_message"],
            ),
            dropped_attributes_count=row["dropped_attributes_count"],
            dropped_events_count=row["dropped_events_count"],
            dropped_links_count=row["dropped_links_count"],
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unsendable(str(error)) from error


def resource_message(resource: str | None) -> Resource:
    """Build OTLP's resource of a row's `resource`: JSON text of an object with `attributes`."""
    return Resource(attributes=attribute_pairs((parsed(resource) or {}).get("attributes")))


def scope_message(name: str | None, version: str | None) -> InstrumentationScope:
    """Build OTLP's instrumentation scope; empty for gymlog's own spans."""
    return InstrumentationScope(name=name or "", version=version or "")


def _event(event: Mapping[str, Json]) -> Span.Event:
    return Span.Event(
        time_unix_nano=event.get("time_unix_nano", 0),
        name=event.get("name", ""),
        attributes=attribute_pairs(event.get("attributes")),
        dropped_attributes_count=event.get("dropped_attributes_count", 0),
    )


def _link(link: Mapping[str, Json]) -> Span.Link:
    return Span.Link(
        trace_id=identity(link["trace_id"], 16),
        span_id=identity(link["span_id"], 8),
        trace_state=link.get("trace_state", ""),
        attributes=attribute_pairs(link.get("attributes")),
        flags=link.get("flags", 0),
        dropped_attributes_count=link.get("dropped_attributes_count", 0),
    )


def identity(digits: str, length: int) -> bytes:
    """Turn hex digits into an id of `length` bytes; raises `ValueError` where they are none."""
    identity = bytes.fromhex(digits)
    if len(identity) != length or not any(identity):
        raise ValueError(f"{digits!r} is not {length * 2} hex digits, some of them not 0")
    return identity


def parsed(text: str | None) -> Json:
    """Read a column of JSON text; every digit of an integer counts."""
    if not text:
        return None
    if _LONG_NUMBER.search(text):  # orjson would round what is beyond 64 bits
        return json.loads(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # NaN, and halves of surrogates
        return json.loads(text)


def attribute_pairs(attributes: Mapping[str, Json] | None) -> list[KeyValue]:
    """Build OTLP's list of attributes."""
    return [
        frequent_pair(key, value, type(value).__name__)
        if type(value) in CACHED
        else KeyValue(key=_whole(key), value=any_value(value))
        for key, value in (attributes or {}).items()
    ]


@lru_cache(8_192)
def frequent_pair(key: str, value: Json, kind: str) -> KeyValue:
    """Build an attribute once; `kind` keeps 1 and True apart."""
    del kind
    return KeyValue(key=_whole(key), value=any_value(value))


def any_value(value: Json) -> AnyValue:
    """Build OTLP's value of what JSON holds; an integer beyond int64 becomes text."""
    # bool before int: True is an int in Python. JSON 1.0 is a float and stays a double.
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        if value in _INT64:
            return AnyValue(int_value=value)
        return AnyValue(string_value=str(value))
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, str):
        return AnyValue(string_value=_whole(value))
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=map(any_value, value)))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=attribute_pairs(value)))
    return AnyValue()


def _whole(text: str) -> str:
    """Replace halves of surrogates, which UTF-8 has no form for."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
