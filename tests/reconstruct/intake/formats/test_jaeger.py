"""Jaeger's JSON gives the rows of our own lines, as far as it can say them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, recognise

Rows = list[dict[str, Any]]
Span = dict[str, Any]

TYPES = {bool: "bool", int: "int64", float: "float64", str: "string"}


def tags(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    """Lists become JSON text."""
    found = []
    for key, value in attributes.items():
        if isinstance(value, list):
            value = json.dumps(value)
        found.append({"key": key, "type": TYPES[type(value)], "value": value})
    return found


def reference(kind: str, trace_id: str, span_id: str) -> dict[str, str]:
    return {"refType": kind, "traceID": trace_id.lstrip("0"), "spanID": span_id.lstrip("0")}


def jaeger(span: Span, process_id: str) -> Span:
    """Write one of our records as Jaeger's query API does, zeros of ids cut."""
    extra = {} if span["kind"] == "INTERNAL" else {"span.kind": span["kind"].lower()}
    if span["status"]["code"] == "ERROR":
        extra |= {"otel.status_code": "ERROR", "error": True}
        extra |= {"otel.status_description": span["status"]["message"]}
    if "scope" in span:
        extra |= {"otel.scope.name": span["scope"]["name"]}
        extra |= {"otel.scope.version": span["scope"]["version"]}
    if "trace_state" in span:
        extra |= {"w3c.tracestate": span["trace_state"]}
    extra |= {"internal.span.format": "otlp"}
    start, end = span["start_time_unix_nano"] // 1000, span["end_time_unix_nano"] // 1000
    trace_id, parent = span["trace_id"], span["parent_span_id"]
    return {
        "traceID": trace_id,
        "spanID": span["span_id"].lstrip("0"),
        "flags": span["flags"] & 1,
        "operationName": span["name"],
        "references": ([reference("CHILD_OF", trace_id, parent)] if parent else [])
        + [
            reference("FOLLOWS_FROM", link["trace_id"], link["span_id"])
            for link in span.get("links", ())
        ],
        "startTime": start,
        "duration": end - start,
        "tags": tags(span["attributes"] | extra),
        "logs": [
            {
                "timestamp": event["time_unix_nano"] // 1000,
                "fields": tags({"event": event["name"]} | event["attributes"]),
            }
            for event in span.get("events", ())
        ],
        "processID": process_id,
        "warnings": None,
    }


def document(spans: list[Span]) -> dict[str, Any]:
    processes = {}
    for span in spans:
        attributes = span["resource"]["attributes"]
        service = attributes["service.name"]
        others = {key: value for key, value in attributes.items() if key != "service.name"}
        processes[service] = {"serviceName": service, "tags": tags(others)}
    trace = {
        "traceID": spans[0]["trace_id"],
        "spans": [jaeger(span, span["resource"]["attributes"]["service.name"]) for span in spans],
        "processes": processes,
        "warnings": None,
    }
    return {"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None}


def test_the_rows_of_our_own_lines(
    rows_of: Callable[..., Rows],
    facts_of: Callable[..., Rows],
    own_rows: Rows,
    small_trace: list[Span],
) -> None:
    """All but what a link says; times are µs, lists JSON text, of flags only `sampled`."""
    expected = facts_of(own_rows)
    for row in expected:
        for name in ("start_time_unix_nano", "end_time_unix_nano"):
            row[name] -= 1
        row["flags"] &= 1
        for key, value in row["attributes"].items():
            if isinstance(value, list):
                row["attributes"][key] = json.dumps(value)
        for event in row["events"] or ():
            event["time_unix_nano"] -= 1
        for link in row["links"] or ():
            link["attributes"] = {}
    answer = document(small_trace)
    assert facts_of(rows_of(json.dumps(answer))) == expected
    assert facts_of(rows_of(json.dumps(answer["data"][0]))) == expected
    trace = answer["data"][0]
    alone = [span | {"process": trace["processes"][span["processID"]]} for span in trace["spans"]]
    assert facts_of(rows_of(*map(json.dumps, alone))) == expected


MINIMAL = {"traceID": "1", "spanID": "2", "operationName": "x", "startTime": 5, "duration": 1}


def test_references(rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]) -> None:
    """CHILD_OF in the trace is the parent, wherever it stands; whatever else is a link."""
    references = [
        reference("FOLLOWS_FROM", "1", "3"),
        reference("CHILD_OF", "f", "4"),
        reference("CHILD_OF", "1", "5"),
    ]
    (row,) = facts_of(rows_of(json.dumps(MINIMAL | {"references": references})))
    assert row["parent_span_id"] == "5".zfill(16)
    assert row["links"] == [
        {"trace_id": "1".zfill(32), "span_id": "3".zfill(16), "attributes": {}},
        {
            "trace_id": "f".zfill(32),
            "span_id": "4".zfill(16),
            "attributes": {"opentracing.ref_type": "child_of"},
        },
    ]
    (row,) = facts_of(rows_of(json.dumps(MINIMAL | {"references": references[:2]})))
    assert row["parent_span_id"] == "3".zfill(16)
    (row,) = facts_of(rows_of(json.dumps(MINIMAL | {"parentSpanID": "6"})))
    assert (row["parent_span_id"], row["links"]) == ("6".zfill(16), None)


def test_tags_in_the_types_of_older_stores(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """Numbers and booleans as text; what is none stays text."""
    values = [
        ("int64", "9223372036854775807", 2**63 - 1),
        ("int64", "x", "x"),
        ("float64", "0.5", 0.5),
        ("float64", "-1e3", -1000.0),
        ("float64", "NaN", "NaN"),
        ("bool", "true", True),
        ("bool", "maybe", "maybe"),
        ("binary", "AAE=", "AAE="),
        (None, 3, 3),
    ]
    written = [
        {"key": str(number), "type": kind, "value": value}
        for number, (kind, value, _) in enumerate(values)
    ]
    (row,) = facts_of(rows_of(json.dumps(MINIMAL | {"tags": written})))
    assert list(row["attributes"].values()) == [value for _, _, value in values]


def test_warnings_stay(rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]) -> None:
    """Of a span, such as that its clock was adjusted, and of the whole trace."""
    spans = [MINIMAL | {"warnings": ["clock skew adjustment"]}, MINIMAL | {"spanID": "3"}]
    trace = {"traceID": "1", "spans": spans, "processes": {}, "warnings": ["too large"]}
    first, second = facts_of(rows_of(json.dumps(trace)))
    assert first["attributes"] == {
        "jaeger.warnings": ["clock skew adjustment"],
        "jaeger.trace_warnings": ["too large"],
    }
    assert second["attributes"] == {}


def test_events_have_names(rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]) -> None:
    """The field `event`, else the message."""
    written = [tags({"event": "e", "n": 1}), tags({"message": "m"}), tags({"n": 1})]
    logs = [{"timestamp": 6, "fields": fields} for fields in written]
    (row,) = facts_of(rows_of(json.dumps(MINIMAL | {"logs": logs})))
    assert [event["name"] for event in row["events"]] == ["e", "m", "log"]
    assert row["events"][0]["attributes"] == {"n": 1}


def test_a_bad_span_leaves_the_others() -> None:
    """It is named with its place; when there are no others the line is invalid."""
    bad = MINIMAL | {"startTime": "soon"}
    trace = {"traceID": "1", "spans": [bad, MINIMAL], "processes": {}}
    record = recognise({"data": [trace]}, None)
    assert record is not None
    assert len(record.rows) == 1
    assert record.problems == ('span 1 of trace "1": startTime is missing or not µs: "soon"',)
    with pytest.raises(InvalidRecordError, match="span 1 of trace"):
        recognise({"data": [trace | {"spans": [bad]}]}, None)


def test_a_shared_span_gets_an_id_of_its_own(rows_of: Callable[..., Rows]) -> None:
    """Raw traces of Zipkin's clients: client and server with one id."""
    client = MINIMAL | {"tags": tags({"span.kind": "client"})}
    server = MINIMAL | {"tags": tags({"span.kind": "server"})}
    trace = {"traceID": "1", "spans": [client, server], "processes": {}}
    one, two, note = rows_of(json.dumps(trace))
    assert one["span_id"] == two["parent_span_id"] == note["shared_span_id"] == "2".zfill(16)
    assert two["span_id"] == note["span_id"] != one["span_id"]


@pytest.mark.parametrize("value", [{"data": []}, {"data": [1]}, {"data": [{"traceID": "1"}]}])
def test_other_answers_are_not_claimed(value: dict[str, Any]) -> None:
    """`data` is a common word."""
    assert recognise(value, None) is None
