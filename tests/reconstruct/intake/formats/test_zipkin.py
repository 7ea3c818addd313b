"""Zipkin's spans give the rows of our own lines, as far as they can say them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.formats import InvalidRecordError, recognise
from reconstruct.intake.ledger import LineClass

Rows = list[dict[str, Any]]
Span = dict[str, Any]


def zipkin(span: Span) -> Span:
    """Write one of our records as OpenTelemetry's exporter for Zipkin does: tags are text."""
    start, end = span["start_time_unix_nano"] // 1000, span["end_time_unix_nano"] // 1000
    tags = {key: as_text(value) for key, value in span["attributes"].items()}
    if span["status"]["code"] == "ERROR":
        tags |= {"otel.status_code": "ERROR", "error": span["status"]["message"]}
    if "scope" in span:
        tags |= {"otel.scope.name": span["scope"]["name"]}
        tags |= {"otel.scope.version": span["scope"]["version"]}
    found = {
        "traceId": span["trace_id"],
        "id": span["span_id"],
        "name": span["name"],
        "timestamp": start,
        "duration": end - start,
        "localEndpoint": {"serviceName": span["resource"]["attributes"]["service.name"]},
        "tags": tags,
        "annotations": [
            {
                "timestamp": event["time_unix_nano"] // 1000,
                "value": f"{json.dumps(event['name'])}: {json.dumps(event['attributes'])}",
            }
            for event in span.get("events", ())
        ],
    }
    if span["parent_span_id"] is not None:
        found["parentId"] = span["parent_span_id"]
    if span["kind"] != "INTERNAL":
        found["kind"] = span["kind"]
    return found


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def test_the_rows_of_our_own_lines(
    rows_of: Callable[..., Rows],
    facts_of: Callable[..., Rows],
    own_rows: Rows,
    small_trace: list[Span],
) -> None:
    """All but links, flags, tracestate and the instance; times are µs, attributes text."""
    lost = ("links", "flags", "trace_state", "service_instance_id", "instance", "resource")
    expected = facts_of(own_rows, *lost)
    for row in expected:
        for name in ("start_time_unix_nano", "end_time_unix_nano"):
            row[name] -= 1
        row["attributes"] = {key: as_text(value) for key, value in row["attributes"].items()}
        for event in row["events"] or ():
            event["time_unix_nano"] -= 1
    array = json.dumps([zipkin(span) for span in small_trace])
    lines = [json.dumps(zipkin(span)) for span in small_trace]
    assert facts_of(rows_of(array), *lost) == expected
    assert facts_of(rows_of(*lines), *lost) == expected


MINIMAL = {"traceId": "1", "id": "2", "timestamp": 5, "duration": 1}


def test_ids_are_filled_up(rows_of: Callable[..., Rows]) -> None:
    """64-bit trace ids and cut zeros."""
    (row,) = rows_of(json.dumps(MINIMAL | {"parentId": "a"}))
    assert row["trace_id"] == "1".zfill(32)
    assert (row["span_id"], row["parent_span_id"]) == ("2".zfill(16), "a".zfill(16))
    assert (row["start_time_unix_nano"], row["end_time_unix_nano"]) == (5_000, 6_000)
    assert (row["name"], row["kind"], row["service_name"]) == ("unknown", "INTERNAL", None)


def test_endpoints_are_attributes(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """Where it ran and whom it called."""
    span = MINIMAL | {
        "localEndpoint": {"serviceName": "env", "ipv4": "10.0.0.1", "port": 80},
        "remoteEndpoint": {"serviceName": "db", "ipv6": "::1"},
    }
    (row,) = facts_of(rows_of(json.dumps(span)))
    assert row["attributes"] == {
        "network.local.address": "10.0.0.1",
        "network.local.port": 80,
        "peer.service": "db",
        "network.peer.address": "::1",
    }
    assert row["resource"] == {"attributes": {"service.name": "env"}}


def test_the_resource_among_the_tags(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """OpenTelemetry's exporter for Python puts it there, and knows no service name elsewhere."""
    tags = {"service.name": "env", "service.instance.id": "env-1", "process.pid": "77", "n": "1"}
    endpoint = {"serviceName": "unknown_service:python"}
    (row,) = facts_of(rows_of(json.dumps(MINIMAL | {"tags": tags, "localEndpoint": endpoint})))
    assert (row["service_name"], row["service_instance_id"]) == ("env", "env-1")
    assert row["process_pid"] == 77
    assert row["attributes"] == {"n": "1"}


@pytest.mark.parametrize(
    ("tags", "status", "message"),
    [
        ({"error": "boom"}, "ERROR", "boom"),
        ({"error": ""}, "ERROR", None),
        ({"error": "true"}, "ERROR", None),
        ({"error": "false"}, "UNSET", None),
        ({"otel.status_code": "OK"}, "OK", None),
        ({"otel.status_code": "ERROR"}, "ERROR", None),
        ({}, "UNSET", None),
    ],
)
def test_the_error_tag_is_the_status(
    rows_of: Callable[..., Rows], tags: dict[str, str], status: str, message: str | None
) -> None:
    """It fails with any text but `false`."""
    (row,) = rows_of(json.dumps(MINIMAL | {"tags": tags}))
    assert (row["status_code"], row["status_message"]) == (status, message)


def test_annotations_that_are_no_json_are_names(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """Plain ones, and those that only look like OpenTelemetry's."""
    values = ["wire send", '"a": {"b"}', '"a": {"b":1}', '{"a": {"b": 1}}', '{"a": 1, "c": {}}']
    span = MINIMAL | {"annotations": [{"timestamp": 6, "value": value} for value in values]}
    (row,) = facts_of(rows_of(json.dumps(span)))
    assert [(event["name"], event["attributes"]) for event in row["events"]] == [
        ("wire send", {}),
        ('"a": {"b"}', {}),
        ("a", {"b": 1}),
        ("a", {"b": 1}),
        ('{"a": 1, "c": {}}', {}),
    ]


def test_without_a_duration_it_has_only_begun() -> None:
    """The server has it in flight, or never said."""
    record = recognise({"traceId": "1", "id": "2", "timestamp": 5}, None)
    assert record is not None
    assert record.line_class is LineClass.SPAN_START


def test_without_a_time_the_annotations_tell(rows_of: Callable[..., Rows]) -> None:
    """The earliest; without any the line is invalid."""
    annotations = [{"timestamp": 9, "value": "b"}, {"timestamp": 7, "value": "a"}]
    (row,) = rows_of(json.dumps({"traceId": "1", "id": "2", "annotations": annotations}))
    assert row["start_time_unix_nano"] == 7_000
    with pytest.raises(InvalidRecordError, match="timestamp is missing"):
        recognise({"traceId": "1", "id": "2", "localEndpoint": {}}, None)


@given(bad=st.one_of(st.integers(max_value=-1), st.integers(2**63 // 1000 + 1), st.text("x")))
def test_times_that_are_none(bad: object) -> None:
    """Negative, too large, no number: the field is named."""
    with pytest.raises(InvalidRecordError, match="timestamp"):
        recognise(MINIMAL | {"timestamp": bad}, None)


def test_a_shared_span_gets_an_id_of_its_own(rows_of: Callable[..., Rows]) -> None:
    """The server's half: below the client's, the same id wherever it is read, noted in a table."""
    half = {"kind": "SERVER", "parentId": "a", "shared": True}
    half |= {"localEndpoint": {"serviceName": "env"}}
    server, note = rows_of(json.dumps(MINIMAL | half))
    again, _ = rows_of(json.dumps(MINIMAL | half | {"tags": {"n": "1"}}))
    other, _ = rows_of(json.dumps(MINIMAL | half | {"localEndpoint": {"serviceName": "b"}}))
    assert server["parent_span_id"] == "2".zfill(16)
    assert server["span_id"] == again["span_id"] != other["span_id"]
    assert note == {
        "trace_id": "1".zfill(32),
        "span_id": server["span_id"],
        "shared_span_id": "2".zfill(16),
        "parent_span_id": "a".zfill(16),
        "service_name": "env",
    }
