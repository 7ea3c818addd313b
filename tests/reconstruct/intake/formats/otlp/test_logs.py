"""OTLP's log records."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, Record
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.tables import LOG_LINES

Json = Any
Rows = list[dict[str, Any]]

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
SPAN_ID = "00f1e2d3c4b5a697"


def test_log_records(rows_of: Callable[..., Rows], record_of: Callable[..., Record]) -> None:
    """Body of any type, severity as number or name, the place in the trace or none."""
    inside = {
        "timeUnixNano": "1750000000000000001",
        "severityNumber": "SEVERITY_NUMBER_WARN2",
        "severityText": "WARN",
        "body": {"kvlistValue": {"values": [{"key": "n", "value": {"intValue": "3"}}]}},
        "attributes": [{"key": "nemo.gym.rollout.id", "value": {"stringValue": "17-0"}}],
        "droppedAttributesCount": 1,
        "flags": 1,
        "traceId": TRACE_ID,
        "spanId": SPAN_ID,
        "eventName": "gen_ai.choice",
    }
    outside = {
        "observedTimeUnixNano": 1750000000000000002,
        "severityNumber": 9,
        "body": {"stringValue": "hello"},
        "traceId": "",
        "spanId": "",
        "flags": 0,
    }
    scope = {"scope": {"name": "judge"}, "logRecords": [inside, outside]}
    text = json.dumps({"resourceLogs": [{"resource": {}, "scopeLogs": [scope]}]})
    first, second = rows_of(text)
    assert (first["time_unix_nano"], first["severity_number"]) == (1750000000000000001, 14)
    assert (first["body"], first["scope_name"]) == ('{"n":3}', "judge")
    assert (first["trace_id"], first["span_id"], first["flags"]) == (
        TRACE_ID,
        SPAN_ID,
        1,
    )
    assert (first["rollout_id"], first["dropped_attributes_count"]) == ("17-0", 1)
    assert json.loads(first["attributes"])["event.name"] == "gen_ai.choice"
    assert (second["time_unix_nano"], second["severity_number"]) == (1750000000000000002, 9)
    assert (second["body"], second["severity_text"]) == ('"hello"', None)
    assert (second["trace_id"], second["span_id"], second["flags"]) == (None, None, None)
    record = record_of(text)
    assert record.line_class == LineClass.LOG
    assert {table for table, _ in record.rows} == {LOG_LINES}
    with pytest.raises(InvalidRecordError, match="timeUnixNano and observedTimeUnixNano"):
        record_of(json.dumps({"scopeLogs": [{"logRecords": [{"body": {}}]}]}))
