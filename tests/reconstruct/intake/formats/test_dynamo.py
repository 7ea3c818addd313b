"""Dynamo's span events are spans and their starts."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, Record
from reconstruct.intake.ledger import LineClass

Rows = list[dict[str, Any]]

ENTRY = {
    "time": "2025-09-02T16:38:06.656001Z",
    "level": "INFO",
    "file": "/workspace/lib/runtime/src/push_endpoint.rs",
    "line": 108,
    "target": "dynamo_runtime::push_endpoint",
    "message": "SPAN_FIRST_ENTRY",
    "component": "backend",
    "parent_id": "6959a1b2d1ee41a5",
    "span_id": "b035f33bdd5c4b50",
    "span_name": "handle_payload",
    "trace_id": "425ef761ca5b44c795b4c912f1d84b39",
}
CLOSED = ENTRY | {
    "time": "2025-09-02T16:38:08.787232Z",
    "message": "SPAN_CLOSED",
    "time.busy_us": 1090,
    "time.duration_us": 2121090,
    "time.idle_us": 2120000,
}
END = 1_756_831_088_787_232_000


def test_a_closed_span(rows_of: Callable[..., Rows], record_of: Callable[..., Record]) -> None:
    """It ended when it was written and began its duration before."""
    (row,) = rows_of(json.dumps(CLOSED | {"tracestate": "a=b"}))
    assert (row["trace_id"], row["span_id"], row["parent_span_id"]) == (
        "425ef761ca5b44c795b4c912f1d84b39",
        "b035f33bdd5c4b50",
        "6959a1b2d1ee41a5",
    )
    assert (row["name"], row["kind"], row["status_code"]) == ("handle_payload", "INTERNAL", "UNSET")
    assert row["end_time_unix_nano"] == END
    assert row["start_time_unix_nano"] == END - 2_121_090_000
    assert (row["trace_state"], row["scope_name"]) == ("a=b", "dynamo_runtime::push_endpoint")
    assert json.loads(row["attributes"]) == {
        "level": "INFO",
        "code.file.path": "/workspace/lib/runtime/src/push_endpoint.rs",
        "code.line.number": 108,
        "component": "backend",
        "time.busy_us": 1090,
        "time.duration_us": 2121090,
        "time.idle_us": 2120000,
    }
    assert record_of(json.dumps(CLOSED)).line_class == LineClass.SPAN


@pytest.mark.parametrize("message", ["SPAN_FIRST_ENTRY", "SPAN_CREATED"])
def test_a_span_that_has_begun(
    rows_of: Callable[..., Rows], record_of: Callable[..., Record], message: str
) -> None:
    """Its first entry is a start; a root has no parent."""
    event = {key: value for key, value in ENTRY.items() if key != "parent_id"}
    text = json.dumps(event | {"message": message})
    (row,) = rows_of(text)
    assert (row["record_type"], row["parent_span_id"]) == ("span_start", None)
    assert row["start_time_unix_nano"] == 1_756_831_086_656_001_000
    assert row["end_time_unix_nano"] is None
    assert record_of(text).line_class == LineClass.SPAN_START


def test_the_name_before_the_line_is_the_server(record_of: Callable[..., Record]) -> None:
    """Dynamo writes no service."""
    record = record_of(json.dumps(CLOSED), "worker")
    assert record.rows[0][1][-1].server_name == "worker"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": "now"}, "time is neither"),
        ({"time": 5.0}, "time is neither"),
        ({"time.duration_us": None}, "time.duration_us is missing"),
        ({"time.duration_us": -1}, "time.duration_us is missing"),
        ({"span_id": "7"}, "span_id is not 16 hex digits"),
        ({"span_name": 7}, "span_name is missing or not text"),
    ],
)
def test_what_is_wrong_is_named(
    record_of: Callable[..., Record], change: dict[str, Any], reason: str
) -> None:
    """One clear reason; ids of its own making, as without tracing, are no ids."""
    with pytest.raises(InvalidRecordError, match=reason):
        record_of(json.dumps(CLOSED | change))
