"""What Go's `stdouttrace` prints gives the rows of our own lines."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from reconstruct.intake import files, reader, tables
from reconstruct.intake.formats import InvalidRecordError, Record
from reconstruct.intake.ledger import LineClass

Rows = list[dict[str, Any]]
Span = dict[str, Any]

TYPES = {bool: "BOOL", int: "INT64", float: "FLOAT64", str: "STRING"}
KINDS = ["", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
NO_SPAN = "0" * 16
BERLIN = timezone(timedelta(hours=2))


def go_time(nano: int, zone: timezone = UTC) -> str:
    """RFC 3339 as Go has it: the zeros of the fraction cut, Z or an offset."""
    seconds, rest = divmod(nano, 10**9)
    moment = datetime.fromtimestamp(seconds, zone)
    offset = "Z" if zone is UTC else f"{moment:%z}"[:3] + ":" + f"{moment:%z}"[3:]
    return f"{moment:%Y-%m-%dT%H:%M:%S}" + (f".{rest:09d}".rstrip("0") if rest else "") + offset


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"Type": TYPES[type(value[0])] + "SLICE", "Value": [go_number(one) for one in value]}
    return {"Type": TYPES[type(value)], "Value": go_number(value)}


def go_number(value: Any) -> Any:
    """Go's JSON has no point in a whole float."""
    return int(value) if isinstance(value, float) and value < 1e21 and value.is_integer() else value


def listed(attributes: dict[str, Any]) -> list[dict[str, Any]] | None:
    return [{"Key": key, "Value": typed(value)} for key, value in attributes.items()] or None


def context(trace_id: str, span_id: str, flags: int, **more: Any) -> dict[str, Any]:
    ids = {"TraceID": trace_id, "SpanID": span_id, "TraceFlags": f"{flags & 0xFF:02x}"}
    return ids | {"TraceState": "", "Remote": False} | more


def go_span(span: Span, zone: timezone = UTC) -> dict[str, Any]:
    """Print one of our records as Go does."""
    parent = span["parent_span_id"]
    trace_id, flags = span["trace_id"], span["flags"]
    root = context("0" * 32, NO_SPAN, 0)
    scope = span.get("scope", {})
    status = span["status"]
    return {
        "Name": span["name"],
        "SpanContext": context(
            trace_id, span["span_id"], flags, TraceState=span.get("trace_state", "")
        ),
        "Parent": context(trace_id, parent, flags, Remote=bool(flags & 0x200)) if parent else root,
        "SpanKind": KINDS.index(span["kind"]),
        "StartTime": go_time(span["start_time_unix_nano"], zone),
        "EndTime": go_time(span["end_time_unix_nano"], zone),
        "Attributes": listed(span["attributes"]),
        "Events": [
            {
                "Name": event["name"],
                "Attributes": listed(event["attributes"]),
                "DroppedAttributeCount": 0,
                "Time": go_time(event["time_unix_nano"], zone),
            }
            for event in span.get("events", ())
        ]
        or None,
        "Links": [
            {
                "SpanContext": context(link["trace_id"], link["span_id"], 1),
                "Attributes": listed(link["attributes"]),
                "DroppedAttributeCount": 0,
            }
            for link in span.get("links", ())
        ]
        or None,
        "Status": {
            "Code": status["code"].capitalize(),
            "Description": status.get("message", ""),
        },
        "DroppedAttributes": span.get("dropped_attributes_count", 0),
        "DroppedEvents": span.get("dropped_events_count", 0),
        "DroppedLinks": 0,
        "ChildSpanCount": 1,
        "Resource": listed(span["resource"]["attributes"]),
        "InstrumentationScope": {
            "Name": scope.get("name", ""),
            "Version": scope.get("version", ""),
            "SchemaURL": "",
            "Attributes": None,
        },
    }


@pytest.mark.parametrize("zone", [UTC, BERLIN])
def test_the_same_trace_gives_the_same_rows(
    small_trace: list[Span], own_rows: Rows, rows_of: Callable[..., Rows], zone: timezone
) -> None:
    """Column by column, in any zone; only `seq` is not there."""
    found = rows_of(*(json.dumps(go_span(span, zone)) for span in small_trace))
    assert found == [own | {"seq": None} for own in own_rows]


def test_pretty_print_and_older_words(small_trace: list[Span], tmp_path: Path) -> None:
    """A span over many lines, its scope still called a library, is one record."""
    spans = [go_span(span) for span in small_trace]
    spans[3]["InstrumentationLibrary"] = spans[3].pop("InstrumentationScope")
    text = "".join(json.dumps(span, indent="\t") + "\n" for span in spans)
    (tmp_path / "go.log").write_text(f"starting\n{text}")
    rows: dict[str, Rows] = {name: [] for name in tables.TABLES}
    for name, batch in reader.read(files.find([str(tmp_path)])):
        rows[name].extend(batch.to_pylist())
    assert [row["name"] for row in rows[tables.SPAN_LINES]] == [span["Name"] for span in spans]
    assert rows[tables.SPAN_LINES][3]["scope_name"] == "gym"
    classes = {row["class"]: row["lines"] for row in rows[tables.CLASS_COUNTS]}
    assert classes == {"text": 1, "span": 4, "joined": text.count("\n") - 4}


def test_a_span_that_is_open(
    small_trace: list[Span], rows_of: Callable[..., Rows], record_of: Callable[..., Record]
) -> None:
    """Go's zero time is no end."""
    text = json.dumps(go_span(small_trace[1]) | {"EndTime": "0001-01-01T00:00:00Z"})
    (row,) = rows_of(text)
    assert (row["record_type"], row["end_time_unix_nano"], row["status_code"]) == (
        "span_start",
        None,
        None,
    )
    assert record_of(text).line_class == LineClass.SPAN_START


def test_without_timestamps(small_trace: list[Span], record_of: Callable[..., Record]) -> None:
    """The reason names the option of Go's exporter."""
    zero = "0001-01-01T00:00:00Z"
    with pytest.raises(InvalidRecordError, match="WithoutTimestamps"):
        record_of(json.dumps(go_span(small_trace[0]) | {"StartTime": zero, "EndTime": zero}))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"StartTime": "soon"}, "StartTime is neither ISO text nor an epoch number"),
        ({"EndTime": "soon"}, "EndTime is neither"),
        ({"SpanContext": {"TraceID": "x"}}, "trace_id is not 32 hex digits"),
        ({"SpanContext": context("a" * 32, "b" * 16, 0, TraceFlags="zz")}, "TraceFlags"),
        ({"Attributes": [{"Value": {}}]}, "an attribute's Key is missing"),
        ({"Events": [{"Name": "e"}]}, "Time of an event is missing"),
        ({"Links": [{}]}, "trace_id is not"),
        ({"Name": None}, "Name is missing"),
    ],
)
def test_what_is_wrong_is_named(
    small_trace: list[Span], record_of: Callable[..., Record], change: Span, reason: str
) -> None:
    """One clear reason."""
    with pytest.raises(InvalidRecordError, match=reason):
        record_of(json.dumps(go_span(small_trace[0]) | change))
