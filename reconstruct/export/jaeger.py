"""Rows as Jaeger's JSON, which its page opens: what its query API answers, in one document.

Times are whole µs, so up to 999 ns of each are lost. A list or an object as a value is JSON text,
and an integer that JavaScript would round is text of type int64. The attributes, flags and
tracestate of links have no place. Sources: model/json of Jaeger; OpenTelemetry to Jaeger
transformation in OpenTelemetry's specification.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from gymlog import semconv
from reconstruct.intake.json_text import Json, decode_encoded, encode

__all__ = ["Losses", "document"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
Object = dict[str, Json]

_SAFE: Final = range(-(2**53) + 1, 2**53)
_INT64: Final = range(-(2**63), 2**63)
_SAMPLED: Final = 1
_EMPTY: Final = '{"data":['


@dataclass(slots=True)
class Losses:
    """What the format could not say, counted while the document is written."""

    spans: int = 0
    traces: int = 0
    cut_times: int = 0
    """Spans whose start or end was no whole µs."""
    bare_links: int = 0
    """Links whose attributes were left out."""


def document(rows: Iterable[Row], losses: Losses) -> Iterator[str]:
    """Yield the document in pieces, from finished rows of `spans` ordered by trace."""
    before = _EMPTY
    for trace_id, spans in groupby(rows, lambda row: row["trace_id"]):
        losses.traces += 1
        yield f'{before}\n{{"traceID":"{trace_id}","spans":['
        before = ","
        processes: dict[str, str] = {}
        between = "\n"
        for row in spans:
            process_id = processes.setdefault(row["resource"] or "{}", f"p{len(processes) + 1}")
            yield between + encode(_span(row, process_id, losses))
            between = ",\n"
        named = {process_id: _process(text) for text, process_id in processes.items()}
        yield f'],"processes":{encode(named)},"warnings":null}}'
    end = '],"total":0,"limit":0,"offset":0,"errors":null}\n'
    yield _EMPTY + end if before == _EMPTY else "\n" + end


def _span(row: Row, process_id: str, losses: Losses) -> Object:
    losses.spans += 1
    start, end = row["start_time_unix_nano"], row["end_time_unix_nano"]
    losses.cut_times += bool(start % 1_000 or end % 1_000)
    parent, links = row["parent_span_id"], decode_encoded(row["links"] or "[]")
    losses.bare_links += sum(
        not link.keys().isdisjoint(("trace_state", "flags")) or bool(link.get("attributes"))
        for link in links
    )
    references = [_reference("CHILD_OF", row["trace_id"], parent)] if parent else []
    references += [_reference("FOLLOWS_FROM", link["trace_id"], link["span_id"]) for link in links]
    return {
        "traceID": row["trace_id"],
        "spanID": row["span_id"],
        "operationName": row["name"],
        "references": references,
        "startTime": start // 1_000,
        "duration": end // 1_000 - start // 1_000,
        "tags": [*_tags(decode_encoded(row["attributes"] or "{}")), *_own_tags(row)],
        "logs": [_log(event) for event in decode_encoded(row["events"] or "[]")],
        "processID": process_id,
        "flags": None if row["flags"] is None else row["flags"] & _SAMPLED,
        "warnings": None,
    }


def _reference(kind: str, trace_id: str, span_id: str) -> Object:
    return {"refType": kind, "traceID": trace_id, "spanID": span_id}


def _own_tags(row: Row) -> Iterator[Object]:
    """Yield what OpenTelemetry has fields for and Jaeger has not."""
    yield _tag("span.kind", row["kind"].lower())
    if row["status_code"] in {"OK", "ERROR"}:
        yield _tag("otel.status_code", row["status_code"])
    if row["status_code"] == "ERROR":
        yield _tag("error", value=True)
    for key, column in (
        ("otel.status_description", "status_message"),
        ("w3c.tracestate", "trace_state"),
        ("otel.scope.name", "scope_name"),
        ("otel.scope.version", "scope_version"),
    ):
        if row[column]:
            yield _tag(key, row[column])


def _log(event: Mapping[str, Json]) -> Object:
    fields = [_tag("event", event.get("name") or ""), *_tags(event.get("attributes") or {})]
    return {"timestamp": (event.get("time_unix_nano") or 0) // 1_000, "fields": fields}


def _process(resource: str) -> Object:
    attributes = dict(decode_encoded(resource).get("attributes") or {})
    service = attributes.pop(semconv.SERVICE_NAME, None)
    return {"serviceName": str(service or "unknown"), "tags": _tags(attributes)}


def _tags(attributes: Mapping[str, Json]) -> list[Object]:
    return [_tag(key, value) for key, value in attributes.items()]


def _tag(key: str, value: Json) -> Object:
    if isinstance(value, bool):
        kind = "bool"
    elif isinstance(value, int) and value in _INT64:
        kind, value = "int64", value if value in _SAFE else str(value)
    elif isinstance(value, float):
        kind = "float64"
    else:
        kind, value = "string", value if isinstance(value, str) else encode(value)
    return {"key": key, "type": kind, "value": value}
