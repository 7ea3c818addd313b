"""Chrome's trace events give the rows of our own lines, as far as they can say them."""

import json
import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.formats import InvalidRecordError, Record, recognise
from reconstruct.intake.formats.trace_events import TraceEvents
from reconstruct.intake.ledger import LineClass

Rows = list[dict[str, Any]]
Span = dict[str, Any]
Event = dict[str, Any]

PIDS = {"agent": 11, "env": 12}


def complete(name: str, ts: float, dur: float, **more: Any) -> Event:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur} | more


def event(phase: str, name: str | None, ts: float, **more: Any) -> Event:
    return {"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts} | more


def process_name(pid: int, name: str) -> Event:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def trace_events(span: Span) -> list[Event]:
    """Write one of our records: a complete event, and an instant for each of its events."""
    pid = PIDS[span["resource"]["attributes"]["service.name"]]
    ids = {name: span[name] for name in ("trace_id", "span_id")}
    if span["parent_span_id"] is not None:
        ids["parent_span_id"] = span["parent_span_id"]
    start, end = span["start_time_unix_nano"] // 1000, span["end_time_unix_nano"] // 1000
    found = [
        complete(span["name"], start, end - start, pid=pid, tid=None, args=ids | span["attributes"])
    ]
    for each in span.get("events", ()):
        at = each["time_unix_nano"] // 1000
        found.append(event("i", each["name"], at, pid=pid, tid=None, args=each["attributes"]))
    return found


def test_the_rows_of_our_own_lines(
    rows_of: Callable[..., Rows],
    facts_of: Callable[..., Rows],
    own_rows: Rows,
    small_trace: list[Span],
) -> None:
    """Ids, names, times in µs, attributes, events, and the service; nothing else fits in there.

    Whatever the order of the events is.
    """
    lost = [
        *("kind", "flags", "trace_state", "status_code", "status_message", "links"),
        *("scope_name", "scope_version", "service_instance_id", "instance"),
        *("resource", "process_pid"),  # a pid that our lines have not
    ]
    expected = facts_of(own_rows, *lost)
    for row in expected:
        row["start_time_unix_nano"] -= 1
        row["end_time_unix_nano"] -= 1
        for each in row["events"] or ():
            each["time_unix_nano"] -= 1
    events = [each for span in small_trace for each in trace_events(span)]
    events += [process_name(pid, name) for name, pid in PIDS.items()]
    for seed in range(3):
        random.Random(seed).shuffle(events)
        for written in (events, {"traceEvents": events, "displayTimeUnit": "ns"}):
            rows = facts_of(rows_of(json.dumps(written)), *lost)
            assert sorted(rows, key=lambda row: row["span_id"]) == expected


def spans(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows if "record_type" in row}


def parents(rows: Rows) -> dict[str, str | None]:
    """Each span's name and that of its parent."""
    names = {row["span_id"]: row["name"] for row in spans(rows).values()}
    return {
        name: row["parent_span_id"] and names[row["parent_span_id"]]
        for name, row in spans(rows).items()
    }


def test_complete_events_nest_by_time(rows_of: Callable[..., Rows]) -> None:
    """Per process and thread; an end at a beginning is no nesting, an empty event is inside.

    a ##########        e (thread 2)
      b ####  d ####    g (process 2)
        c        f (empty)
    """
    events = [
        complete("a", 0, 100),
        complete("b", 10, 40),
        complete("c", 10, 20),
        complete("d", 50, 50),
        complete("f", 60, 0),
        complete("e", 10, 10, tid=2),
        complete("g", 10, 10, pid=2),
    ]
    rows = rows_of(json.dumps(events[::-1]))
    assert parents(rows) == {
        "a": None,
        "b": "a",
        "c": "b",
        "d": "a",
        "f": "d",
        "e": None,
        "g": None,
    }
    traces = {name: row["trace_id"] for name, row in spans(rows).items()}
    assert traces["a"] == traces["c"] == traces["e"] != traces["g"]


def test_begin_and_end(rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]) -> None:
    """Pairs nest by thread; what never ended has only begun; what never began is left out."""
    events = [
        event("E", None, 1),
        event("B", "a", 10, args={"x": 1}),
        event("B", "b", 20),
        event("E", None, 30),
        event("B", "open", 35),
        complete("c", 36, 2),
        event("B", "other", 5, tid=2),
        event("E", None, 90, tid=2, args={"y": 2}),
    ]
    rows = facts_of(rows_of(json.dumps(events)))
    assert parents(rows) == {"a": None, "b": "a", "open": "a", "c": "open", "other": None}
    found = spans(rows)
    assert [found[name]["end_time_unix_nano"] for name in ("b", "a", "open", "other")] == [
        30_000,
        None,
        None,
        90_000,
    ]
    assert found["open"]["record_type"] == "span_start"
    assert found["a"]["attributes"] == {"x": 1, "thread.id": 1}
    assert found["other"]["attributes"] == {"y": 2, "thread.id": 2}


def test_asynchronous_events_nest_by_id(rows_of: Callable[..., Rows]) -> None:
    """Whatever thread they ran on; events of the span in between."""
    events = [
        event("b", "a", 10, id="0x1", cat="net"),
        event("b", "b", 20, id="0x1", cat="net", tid=2),
        event("n", "note", 25, id="0x1", cat="net", tid=3),
        event("e", "b", 30, id="0x1", cat="net", tid=3),
        event("e", "a", 40, id="0x1", cat="net"),
        event("b", "c", 15, id="0x2", cat="net"),
        event("e", "c", 35, id="0x2", cat="net"),
        event("S", "d", 1, id2={"local": "7"}),
        event("F", "d", 2, id2={"local": "7"}),
    ]
    rows = rows_of(json.dumps(events))
    assert parents(rows) == {"a": None, "b": "a", "c": None, "d": None}
    (note,) = json.loads(spans(rows)["b"]["events"])
    assert (note["name"], note["time_unix_nano"]) == ("note", 25_000)
    assert spans(rows)["d"]["end_time_unix_nano"] == 2_000


def test_instants(rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]) -> None:
    """Inside a span its events, outside log records of the process's trace."""
    events = [
        complete("a", 10, 10),
        event("i", "inside", 15, args={"n": 1}),
        event("I", "outside", 25, args={"n": 2}, cat="gym"),
    ]
    span, log = facts_of(rows_of(json.dumps(events)))
    assert span["events"] == [{"time_unix_nano": 15_000, "name": "inside", "attributes": {"n": 1}}]
    assert (log["time_unix_nano"], json.loads(log["body"])) == (25_000, "outside")
    assert log["attributes"] == {"n": 2, "trace_event.category": "gym", "thread.id": 1}
    assert (log["trace_id"], log["span_id"]) == (span["trace_id"], None)


def test_names_and_base_time_behind_the_events(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """As PyTorch has them."""
    events = [
        complete("a", 1.5, 0.25, cat="cpu_op"),
        process_name(1, "trainer"),
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
    ]
    document = {"traceEvents": events, "baseTimeNanoseconds": 1_750_000_000_000_000_000}
    (row,) = facts_of(rows_of(json.dumps(document)))
    assert row["start_time_unix_nano"] == 1_750_000_000_000_001_500
    assert row["end_time_unix_nano"] == 1_750_000_000_000_001_750
    assert (row["service_name"], row["process_pid"]) == ("trainer", 1)
    assert row["attributes"] == {
        "trace_event.category": "cpu_op",
        "thread.id": 1,
        "thread.name": "main",
    }
    del document["baseTimeNanoseconds"]
    document["viztracer_metadata"] = {"baseTimeNanoseconds": 7}
    (row,) = rows_of(json.dumps(document))
    assert row["start_time_unix_nano"] == 1_507


@given(nano=st.integers(-(10**15), 2 * 10**18), duration=st.integers(0, 10**18))
def test_every_digit_of_a_time_counts(nano: int, duration: int) -> None:
    """µs with three places, as numbers that a float would cut."""
    raw = f'{{"ph":"X","pid":1,"ts":{Decimal(nano) / 1000:f},"dur":{Decimal(duration) / 1000:f}}}'
    with TraceEvents() as events:
        events.add(json.loads(raw), raw.encode())
        ((_, _, (_, row)),) = events.rows()
    assert (row[7], row[8]) == (nano, nano + duration)


def test_equal_events_have_ids_of_their_own(rows_of: Callable[..., Rows]) -> None:
    """And the same ones each time the file is read."""
    events = [complete("a", 1, 0), complete("b", 1, 0), complete("a", 1, 0)]
    rows = rows_of(json.dumps(events))
    assert len({row["span_id"] for row in rows}) == 3
    assert rows_of(json.dumps(events)) == rows


def test_an_id_that_is_none_stays_an_argument(
    rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]
) -> None:
    """And the span gets one of its own."""
    events = [complete("a", 1, 1, args={"trace_id": "job 7", "span_id": ""})]
    (row,) = facts_of(rows_of(json.dumps(events)))
    assert row["attributes"] == {"trace_id": "job 7", "span_id": "", "thread.id": 1}
    assert len(row["span_id"]) == 16


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"ph": "X"}, "no trace event"),
        (7, "no trace event"),
        (complete("a", 1, -1), "dur is negative"),
        ({"ph": "X", "pid": 1, "ts": 1}, "dur is missing"),
        (complete("a", "x", 1), "ts is missing or no number: x"),  # type: ignore[arg-type]  # wrong on purpose
        (complete("a", 1e300, 1), "ts is out of range"),
    ],
)
def test_a_bad_event_leaves_the_others(
    record_of: Callable[..., Record | None], bad: Any, message: str
) -> None:
    """Its place is named."""
    record = record_of(json.dumps([complete("a", 1, 1), bad]))
    assert record is not None
    assert len(record.rows) == 1
    assert record.problems[0].startswith(f"event 2: {message}")


def test_a_spool_beyond_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events that wait in a file are the same."""
    monkeypatch.setattr("reconstruct.intake.formats.trace_events._SPOOL_BYTES", 100)
    with TraceEvents() as events:
        for number in range(50):
            raw = json.dumps(complete(f"n{number}", 100 - number, 2 * number)).encode()
            events.add(json.loads(raw), raw, line=number, offset=10 * number)
        found = list(events.rows())
    assert {(line, offset, row[5]) for line, offset, (_, row) in found} == {
        (number, 10 * number, f"n{number}") for number in range(50)
    }
    assert sum(row[4] is None for _, _, (_, row) in found) == 1


def test_the_class_of_the_line() -> None:
    """What most of its rows are; without any it is only JSON."""
    instants = [event("i", "a", 1), event("i", "b", 2)]
    assert line_class(instants) is LineClass.LOG
    assert line_class([event("B", "a", 1)]) is LineClass.SPAN_START
    assert line_class([complete("a", 5, 1), instants[0]]) is LineClass.SPAN
    assert line_class([process_name(1, "a")]) is None


def line_class(events: list[Event]) -> LineClass | None:
    record = recognise(events, None)
    return None if record is None else record.line_class


def test_other_objects_are_not_claimed() -> None:
    """`ph` is a short word."""
    assert recognise([{"ph": 7.4, "pid": 1, "ts": 1}], None) is None
    assert recognise({"traceEvents": None}, None) is None


def test_times_that_are_no_times_are_refused() -> None:
    """NaN comes as text."""
    with TraceEvents() as events, pytest.raises(InvalidRecordError, match="ts is missing"):
        events.add(event("i", "a", True), b"{}")
