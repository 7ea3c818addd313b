"""Log lines of other loggers find their trace and span."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import recognise

Rows = list[dict[str, Any]]

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
SPAN_ID = "00f1e2d3c4b5a697"
TIME = 1_750_000_000_050_000_000

ECS = {
    "@timestamp": "2025-06-15T15:06:40.050Z",
    "log.level": "WARN",
    "message": "slow",
    "trace.id": TRACE_ID,
    "span.id": SPAN_ID,
    "transaction.id": "1122334455667788",
    "service.name": "env",
    "log.logger": "gym.env",
}
GOOGLE = {
    "severity": "WARNING",
    "message": "slow",
    "time": "2025-06-15T15:06:40.05Z",
    "logging.googleapis.com/trace": f"projects/gym/traces/{TRACE_ID}",
    "logging.googleapis.com/spanId": SPAN_ID,
    "service.name": "env",
}
AWS = {
    "level": "WARNING",
    "message": "slow",
    "timestamp": "2025-06-15 17:06:40,050+0200",
    "service": "env",
    "xray_trace_id": "1-a1b2c3d4-e5f60718293a4b5c6d7e8f90",
    "span_id": SPAN_ID,
}
DATADOG = {
    "level": "warning",
    "message": "slow",
    "timestamp": "2025-06-15T15:06:40.050000Z",
    "dd": {
        "trace_id": TRACE_ID,
        "span_id": str(int(SPAN_ID, 16)),
        "service": "env",
    },
}
OTEL = {
    "levelname": "WARNING",
    "message": "slow",
    "asctime": "2025-06-15 15:06:40,050",
    "otelTraceID": TRACE_ID,
    "otelSpanID": SPAN_ID,
    "otelServiceName": "env",
}
STRUCTLOG = {
    "event": "slow",
    "level": "warning",
    "timestamp": "2025-06-15T15:06:40.05Z",
    "trace_id": TRACE_ID,
    "span_id": SPAN_ID,
    "service": "env",
}
PINO = {
    "level": 40,
    "time": 1_750_000_000_050,
    "pid": 7,
    "msg": "slow",
    "trace_id": TRACE_ID,
    "span_id": SPAN_ID,
    "service": {"name": "env"},
}


@pytest.mark.parametrize("line", [ECS, GOOGLE, AWS, DATADOG, OTEL, STRUCTLOG, PINO])
def test_every_logger_gives_the_same_row(
    rows_of: Callable[..., Rows], line: dict[str, Any]
) -> None:
    """Time, severity, message, service and both ids, whatever they are called."""
    (row,) = rows_of(json.dumps(line))
    assert row["time_unix_nano"] == TIME
    assert (row["severity_number"], json.loads(row["body"])) == (13, "slow")
    assert (row["trace_id"], row["span_id"]) == (TRACE_ID, SPAN_ID)
    assert row["service_name"] == "env"


def test_what_is_left_is_attributes(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """Also of nested objects of which a part was taken."""
    line = {
        "@timestamp": "2025-06-15T15:06:40Z",
        "message": "m",
        "log": {"level": "info", "logger": "x", "origin": {"function": "f"}},
        "trace": {"id": TRACE_ID},
        "nemo.gym.rollout.id": "17-0",
    }
    (row,) = facts_of(rows_of(json.dumps(line)))
    assert row["attributes"] == {
        "log": {"origin": {"function": "f"}},
        "nemo.gym.rollout.id": "17-0",
    }
    assert (row["scope_name"], row["rollout_id"], row["span_id"]) == ("x", "17-0", None)


def test_a_transaction_stands_for_a_span(rows_of: Callable[..., Rows]) -> None:
    """Where there is no other."""
    line = {key: value for key, value in ECS.items() if key != "span.id"}
    (row,) = rows_of(json.dumps(line))
    assert row["span_id"] == "1122334455667788"


def test_the_header_of_xray(rows_of: Callable[..., Rows]) -> None:
    """Trace and parent in one text."""
    header = f"Root=1-a1b2c3d4-e5f60718293a4b5c6d7e8f90;Parent={SPAN_ID};Sampled=1"
    (row,) = rows_of(json.dumps({"message": "m", "AWS-XRAY-TRACE-ID": header}))
    assert (row["trace_id"], row["span_id"]) == (TRACE_ID, SPAN_ID)
    assert row["time_unix_nano"] is None


def test_the_decimal_ids_of_datadog(rows_of: Callable[..., Rows]) -> None:
    """Sixteen digits are a number too, and only the lower half of the trace id."""
    line = {"message": "m", "dd.trace_id": "2970769764550348688", "dd.span_id": "1234567890123456"}
    (row,) = rows_of(json.dumps(line))
    assert row["trace_id"] == "0" * 16 + TRACE_ID[16:]
    assert row["span_id"] == format(1234567890123456, "016x")


@pytest.mark.parametrize("written", ["", "0" * 32, "job-7", 7, None, {"id": "x"}])
def test_an_id_that_is_none_stays_an_attribute(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows], written: Any
) -> None:
    """The line is a log record all the same; a span id without a trace id is of no use."""
    line = STRUCTLOG | {"trace_id": written}
    (row,) = facts_of(rows_of(json.dumps(line)))
    assert (row["trace_id"], row["span_id"]) == (None, None)
    assert row["attributes"].get("trace_id") == written
    assert row["attributes"]["span_id"] == SPAN_ID


def test_a_time_that_is_none_stays_an_attribute(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """The ids are worth the line."""
    (row,) = facts_of(rows_of(json.dumps(STRUCTLOG | {"timestamp": "noon"})))
    assert row["time_unix_nano"] is None
    assert row["attributes"] == {"time": "noon"}


@pytest.mark.parametrize(
    "value",
    [
        {"message": "m"},
        {"message": "m", "level": "info"},
        {"message": "m", "timestamp": "2025-06-15T15:06:40Z"},
        {"message": "m", "level": "info", "timestamp": "noon"},
        {"message": "m", "level": {"a": 1}, "timestamp": "2025-06-15T15:06:40Z"},
        {"trace_id": TRACE_ID, "level": "info", "timestamp": "2025-06-15T15:06:40Z"},
    ],
)
def test_other_objects_are_not_claimed(value: dict[str, Any]) -> None:
    """A message, and either an id, or a level and a time."""
    assert recognise(value, None) is None
