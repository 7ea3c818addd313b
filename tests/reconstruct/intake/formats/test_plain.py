"""Spans as plain objects, in mixed words."""

import json

import pytest

from reconstruct.intake.formats import InvalidRecordError, recognise
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.tables import SPAN_LINES, TABLES

SPAN = {
    "trace_id": "a" * 32,
    "span_id": "b" * 16,
    "parent_span_id": None,
    "name": "work",
    "kind": "SERVER",
    "start_time": "2025-06-01T12:00:00.000000001Z",
    "end_time": "2025-06-01T12:00:00.050000000Z",
    "status": {"status_code": "ERROR", "description": "boom"},
    "attributes": {"n": 1},
}


def row(value: dict[str, object]) -> dict[str, object]:
    record = recognise(value, None)
    assert record is not None
    ((_, values),) = record.rows
    names = [name for name, _ in TABLES[SPAN_LINES]][4:]  # the place columns come from the reader
    return dict(zip(names, values, strict=True))


def test_words_of_both_kinds() -> None:
    """Times as text or numbers, status in OTLP's or the SDK's words."""
    got = row(SPAN)
    assert got["start_time_unix_nano"] == 1_748_779_200_000_000_001
    assert (got["status_code"], got["status_message"], got["kind"]) == ("ERROR", "boom", "SERVER")
    other = {key: value for key, value in SPAN.items() if not key.startswith(("start", "end"))} | {
        "start_time_unix_nano": "1748779200000000001",
        "end_time_unix_nano": 1_748_779_200_050_000_000,
        "status": {"code": "ERROR", "message": "boom"},
    }
    assert row(other) == got


def test_a_null_end_is_a_span_that_is_open() -> None:
    """It counts as a start record."""
    record = recognise(SPAN | {"end_time": None}, None)
    assert record is not None
    assert record.line_class == LineClass.SPAN_START
    assert row(SPAN | {"end_time": None})["record_type"] == "span_start"


@pytest.mark.parametrize("missing", ["trace_id", "span_id", "name", "start_time"])
def test_less_is_no_span(missing: str) -> None:
    """Without ids, a name and a start an object is just JSON."""
    assert recognise({key: value for key, value in SPAN.items() if key != missing}, None) is None


def test_a_time_that_is_none() -> None:
    """An object that claims to be a span, yet has no readable time, is invalid."""
    with pytest.raises(InvalidRecordError, match="start_time"):
        recognise(json.loads(json.dumps(SPAN | {"start_time": "soon"})), None)
