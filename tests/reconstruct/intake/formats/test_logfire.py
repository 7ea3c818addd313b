"""Logfire's pending spans and logs become what they mean, in any format that carries them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, Record, recognise
from reconstruct.intake.ledger import LineClass

Rows = list[dict[str, Any]]

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


def console(span_id: str, parent: str | None, **attributes: Any) -> dict[str, Any]:
    """As OpenTelemetry's console exporter prints what Logfire makes."""
    return {
        "name": "env.step",
        "context": {"trace_id": f"0x{TRACE_ID}", "span_id": f"0x{span_id}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": None if parent is None else f"0x{parent}",
        "start_time": "2025-06-15T15:06:40.000000Z",
        "end_time": "2025-06-15T15:06:40.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {f"logfire.{key}": value for key, value in attributes.items()},
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "env"}},
    }


PENDING = console(
    "9900aabbccddeeff",
    "00f1e2d3c4b5a697",
    span_type="pending_span",
    pending_parent_id="1122334455667788",
)


def test_a_pending_span_is_the_beginning_of_its_parent(
    rows_of: Callable[..., Rows], record_of: Callable[..., Record | None]
) -> None:
    """With the parent that its attribute names, not ended, without a status."""
    (row,) = rows_of(json.dumps(PENDING))
    assert row["record_type"] == "span_start"
    assert row["span_id"] == "00f1e2d3c4b5a697"
    assert row["parent_span_id"] == "1122334455667788"
    assert (row["end_time_unix_nano"], row["status_code"]) == (None, None)
    assert row["start_time_unix_nano"] == 1_750_000_000_000_000_000
    record = record_of(json.dumps(PENDING))
    assert record is not None
    assert record.line_class is LineClass.SPAN_START


def test_of_a_root(rows_of: Callable[..., Rows]) -> None:
    """All zeros are no parent."""
    attributes = PENDING["attributes"] | {"logfire.pending_parent_id": "0" * 16}
    (row,) = rows_of(json.dumps(PENDING | {"attributes": attributes}))
    assert row["parent_span_id"] is None


def test_a_pending_span_without_a_parent_is_invalid() -> None:
    """There is nothing that it could be the beginning of."""
    with pytest.raises(InvalidRecordError, match="pending span names no span"):
        recognise(PENDING | {"parent_id": None}, None)


def test_a_log_is_a_log_record(
    rows_of: Callable[..., Rows], record_of: Callable[..., Record | None]
) -> None:
    """Of the span that it was written in, with what its exception says."""
    span = console(
        "9900aabbccddeeff", "00f1e2d3c4b5a697", span_type="log", level_num=17, msg="it broke"
    )
    exception = {"exception.type": "ValueError", "exception.message": "boom"}
    span["events"] = [
        {"name": "exception", "timestamp": "2025-06-15T15:06:40Z", "attributes": exception}
    ]
    (row,) = rows_of(json.dumps(span))
    assert json.loads(row["body"]) == "it broke"
    assert (row["trace_id"], row["span_id"]) == (TRACE_ID, "00f1e2d3c4b5a697")
    assert (row["severity_number"], row["severity_text"]) == (17, "ERROR")
    assert json.loads(row["attributes"]) == span["attributes"] | exception
    assert row["service_name"] == "env"
    record = record_of(json.dumps(span))
    assert record is not None
    assert record.line_class is LineClass.LOG


def test_real_spans_stay(rows_of: Callable[..., Rows]) -> None:
    """`span_type` is `span` there."""
    (row,) = rows_of(json.dumps(console("00f1e2d3c4b5a697", None, span_type="span")))
    assert (row["record_type"], row["span_id"]) == ("span", "00f1e2d3c4b5a697")


def test_in_otlp(rows_of: Callable[..., Rows], record_of: Callable[..., Record | None]) -> None:
    """A line of several spans: the pending one and the log among them."""

    def span(span_id: str, kind: str, **more: str) -> dict[str, Any]:
        attributes = {"logfire.span_type": kind} | more
        return {
            "traceId": TRACE_ID,
            "spanId": span_id,
            "parentSpanId": "00f1e2d3c4b5a697",
            "name": "x",
            "startTimeUnixNano": "5",
            "endTimeUnixNano": "5",
            "attributes": [
                {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
            ],
        }

    spans = [
        span("1" * 16, "pending_span", **{"logfire.pending_parent_id": "2" * 16}),
        span("3" * 16, "log", **{"logfire.msg": "hello"}),
        span("4" * 16, "span"),
    ]
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
    start, log, real = rows_of(line)
    assert (start["span_id"], start["parent_span_id"]) == ("00f1e2d3c4b5a697", "2" * 16)
    assert json.loads(log["body"]) == "hello"
    assert real["span_id"] == "4" * 16
    record = record_of(line)
    assert record is not None
    assert record.line_class is LineClass.SPAN


def test_a_bad_pending_span_among_good_ones_is_named(
    record_of: Callable[..., Record | None],
) -> None:
    """Of a line of several spans the others are kept, and the line is no clean one."""
    record = record_of(json.dumps([PENDING | {"parent_id": None}, console("1" * 16, None)]))
    assert record is not None
    assert len(record.rows) == 1
    (problem,) = record.problems
    assert "pending span names no span" in problem
    spans = [
        {
            "traceId": TRACE_ID,
            "spanId": str(number) * 16,
            "name": "x",
            "startTimeUnixNano": "5",
            "endTimeUnixNano": "5",
            "attributes": [{"key": "logfire.span_type", "value": {"stringValue": kind}}],
        }
        for number, kind in ((1, "pending_span"), (2, "span"))
    ]
    record = record_of(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    assert record is not None
    assert len(record.rows) == 1
    (problem,) = record.problems
    assert "pending span names no span" in problem
