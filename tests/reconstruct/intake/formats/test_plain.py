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


@pytest.mark.parametrize(
    ("start", "nano"),
    [
        ("2025-06-01T12:00:00.312Z", 312_000_000),
        ("2025-06-01T12:00:00.312000001Z", 312_000_001),
        ("2025-06-01T14:00:00.5+02:00", 500_000_000),
        ("2025-06-01 12:00:00.312345678", 312_345_678),
        (1_748_779_200_312_000_001, 312_000_001),
        ("1748779200312000001", 312_000_001),
        (1748779200.312, 312_000_000),
    ],
)
def test_times_in_every_form(start: object, nano: int) -> None:
    """Each span has its own form, and all of them are instants to the nanosecond."""
    assert row(SPAN | {"start_time": start})["start_time_unix_nano"] == (
        1_748_779_200_000_000_000 + nano
    )


@pytest.mark.parametrize("start", [5, 0.25, 86_400_000, 10**12 // 2])
def test_a_number_that_may_be_anything_is_no_time(start: object) -> None:
    """It is rejected with the ranges that are told, and never shown in 1970."""
    with pytest.raises(InvalidRecordError, match="start_time is neither ISO text nor an epoch"):
        recognise(SPAN | {"start_time": start}, None)


@pytest.mark.parametrize("value", [True, 1.5, "n/a", None, {"k": 1}, [1], 2**53 + 1])
def test_an_attribute_of_any_type(value: object) -> None:
    """A value keeps its own type, whatever the spans before it had."""
    got = row(SPAN | {"attributes": {"turn": value}})["attributes"]
    assert json.loads(str(got)) == {"turn": value}
