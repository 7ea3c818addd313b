"""OTLP's spans: one by hand, changed a little each time."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import Record
from reconstruct.intake.ledger import LineClass

Json = Any
Rows = list[dict[str, Any]]
Span = dict[str, Json]
Batch = Callable[..., str]

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
SPAN_ID = "00f1e2d3c4b5a697"


def test_what_is_absent(rows_of: Callable[..., Rows], batch: Batch, small_span: Span) -> None:
    """A span with the least that OTLP asks for: a root, INTERNAL, UNSET, flags not known."""
    (row,) = rows_of(batch(small_span))
    assert (row["parent_span_id"], row["kind"], row["status_code"]) == (None, "INTERNAL", "UNSET")
    assert (row["flags"], row["trace_state"], row["status_message"]) == (None, None, None)
    assert (row["attributes"], row["events"], row["links"]) == ("{}", None, None)
    assert (row["resource"], row["service_name"]) == ('{"attributes":{}}', None)


@pytest.mark.parametrize("parent", ["", "0000000000000000", "AAAAAAAAAAA=", None])
def test_no_parent(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span, parent: str | None
) -> None:
    """Empty, absent and zero in hex or base64 are a root."""
    assert rows_of(batch(small_span | {"parentSpanId": parent}))[0]["parent_span_id"] is None


@pytest.mark.parametrize(
    ("trace_id", "span_id"),
    [
        ("A1B2C3D4E5F60718293A4B5C6D7E8F90", "00F1E2D3C4B5A697"),
        ("obLD1OX2BxgpOktcbX6PkA==", "APHi08S1ppc="),
        ("0xa1b2c3d4e5f60718293a4b5c6d7e8f90", "0x00f1e2d3c4b5a697"),
        (list(bytes.fromhex(TRACE_ID)), list(bytes.fromhex(SPAN_ID))),
    ],
)
def test_ids(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span, trace_id: Json, span_id: Json
) -> None:
    """Hex in any case, base64, and the lists of bytes of some writers are the same ids."""
    (row,) = rows_of(batch(small_span | {"traceId": trace_id, "spanId": span_id}))
    assert (row["trace_id"], row["span_id"]) == (TRACE_ID, SPAN_ID)


def test_url_safe_base64(rows_of: Callable[..., Rows], batch: Batch, small_span: Span) -> None:
    """Both alphabets of base64 are read."""
    trace_id = bytes([0xFB, 0xFF] * 8)
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        (row,) = rows_of(batch(small_span | {"traceId": encode(trace_id).decode()}))
        assert row["trace_id"] == trace_id.hex()


def test_short_trace_ids_get_zeros_in_front(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span
) -> None:
    """64-bit ids of older systems."""
    (row,) = rows_of(batch(small_span | {"traceId": "0123456789abcdef"}))
    assert row["trace_id"] == "0000000000000000" + "0123456789abcdef"


@pytest.mark.parametrize("kind", [5, "5", "SPAN_KIND_CONSUMER", "CONSUMER"])
@pytest.mark.parametrize("code", [2, "2", "STATUS_CODE_ERROR", "ERROR"])
def test_enums(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span, kind: Json, code: Json
) -> None:
    """Numbers, their text and names."""
    (row,) = rows_of(batch(small_span | {"kind": kind, "status": {"code": code, "message": "m"}}))
    assert (row["kind"], row["status_code"], row["status_message"]) == ("CONSUMER", "ERROR", "m")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"stringValue": "3"}, '"3"'),
        ({"intValue": "9223372036854775807"}, "9223372036854775807"),
        ({"intValue": -9223372036854775808}, "-9223372036854775808"),
        ({"intValue": "9223372036854775808"}, '"9223372036854775808"'),
        ({"intValue": 3.0}, "3"),
        ({"intValue": 1e21}, '"1000000000000000000000"'),
        ({"doubleValue": 3}, "3.0"),
        ({"doubleValue": "2.5e-3"}, "0.0025"),
        ({"doubleValue": 1e300}, "1e+300"),
        ({"doubleValue": 10**30}, "1e+30"),
        ({"doubleValue": "NaN"}, '"NaN"'),
        ({"doubleValue": "-Infinity"}, '"-Infinity"'),
        ({"boolValue": False}, "false"),
        ({"bytesValue": "AAEC"}, '"AAEC"'),
        ({"arrayValue": {}}, "[]"),
        ({"arrayValue": {"values": [{"intValue": "1"}, {}, {"boolValue": True}]}}, "[1,null,true]"),
        (
            {"kvlistValue": {"values": [{"key": "k", "value": {"doubleValue": 1}}, {"key": "n"}]}},
            '{"k":1.0,"n":null}',
        ),
        ({"stringValue": None, "intValue": "7", "boolValue": None}, "7"),
        ({"stringValue": None}, "null"),
        ({}, "null"),
        (None, "null"),
    ],
)
def test_values(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span, value: Json, expected: str
) -> None:
    """Each type of value is the JSON that our own line has for it."""
    (row,) = rows_of(batch(small_span | {"attributes": [{"key": "a", "value": value}]}))
    assert row["attributes"] == f'{{"a":{expected}}}'


def test_rounded_integers_are_read_again(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span
) -> None:
    """A number that the fast decoder rounds keeps its digits."""
    text = batch(small_span | {"attributes": [{"key": "a", "value": {"intValue": 0}}]})
    digits = "123456789012345678901234567890"
    (row,) = rows_of(text.replace('"intValue": 0', f'"intValue": {digits}'))
    assert row["attributes"] == f'{{"a":"{digits}"}}'


def test_a_span_without_an_end_has_only_begun(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span, record_of: Callable[..., Record]
) -> None:
    """Zero is OTLP's word for no time."""
    text = batch(small_span | {"endTimeUnixNano": "0"})
    (row,) = rows_of(text)
    assert (row["record_type"], row["end_time_unix_nano"], row["status_code"]) == (
        "span_start",
        None,
        None,
    )
    assert record_of(text).line_class == LineClass.SPAN_START


def test_a_link_to_nowhere_stays(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span
) -> None:
    """OpenTelemetry allows links without ids, for what their attributes say."""
    (row,) = rows_of(
        batch(small_span | {"links": [{"attributes": [{"key": "why"}], "flags": 256}]})
    )
    assert json.loads(row["links"]) == [
        {"trace_id": "0" * 32, "span_id": "0" * 16, "attributes": {"why": None}, "flags": 256}
    ]


def test_the_resource(rows_of: Callable[..., Rows], small_span: Span) -> None:
    """Its attributes name the process; its schema stays with them."""
    attributes = {"service.name": "env", "process.pid": 77, "nemo.run.id": "r1"}
    listed = [
        {
            "key": key,
            "value": {"intValue": value} if key == "process.pid" else {"stringValue": value},
        }
        for key, value in attributes.items()
    ]
    scope = {"scope": {"name": "gym", "version": ""}, "spans": [small_span]}
    whole = {"resource": {"attributes": listed}, "schemaUrl": "u", "scopeSpans": [scope]}
    (row,) = rows_of(json.dumps(whole))
    assert json.loads(row["resource"]) == {"attributes": attributes, "schema_url": "u"}
    assert (row["service_name"], row["process_pid"], row["run_id"]) == ("env", 77, "r1")
    assert row["instance"] == "env##77"
    assert (row["scope_name"], row["scope_version"]) == ("gym", None)


def test_our_own_processes_are_told_by_their_instance_id(
    rows_of: Callable[..., Rows], batch: Batch, small_span: Span
) -> None:
    """What gymlog sent over OTLP belongs to the same instance as its lines."""
    listed = [
        {"key": "service.name", "value": {"stringValue": "env"}},
        {"key": "service.instance.id", "value": {"stringValue": "i"}},
        {"key": "process.pid", "value": {"intValue": 7}},
        {"key": "gymlog.boot.id", "value": {"stringValue": "b"}},
    ]
    (row,) = rows_of(batch(small_span, resource={"attributes": listed}))
    assert row["instance"] == "env#i"
