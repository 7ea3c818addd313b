"""Datadog's spans give the rows of our own lines, as far as they can say them."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, recognise

Rows = list[dict[str, Any]]
Span = dict[str, Any]


def datadog(span: Span, *, is_first: bool) -> Span:
    """Write one of our records as the agent does: text in meta, numbers in metrics."""
    trace_id, parent = span["trace_id"], span["parent_span_id"]
    resource = span["resource"]["attributes"]
    meta = {"runtime-id": resource["service.instance.id"]}
    if is_first:
        meta["_dd.p.tid"] = trace_id[:16]
    if span["kind"] != "INTERNAL":
        meta["span.kind"] = span["kind"].lower()
    if span["status"]["code"] == "ERROR":
        meta["error.message"] = span["status"]["message"]
    metrics = {}
    for key, value in span["attributes"].items():
        if type(value) in (int, float):
            metrics[key] = value
        else:
            meta[key] = value if isinstance(value, str) else json.dumps(value)
    return {
        "trace_id": int(trace_id[16:], 16),
        "span_id": int(span["span_id"], 16),
        "parent_id": int(parent, 16) if parent else 0,
        "service": resource["service.name"],
        "name": span["name"],
        "resource": span["name"],
        "start": span["start_time_unix_nano"],
        "duration": span["end_time_unix_nano"] - span["start_time_unix_nano"],
        "error": int(span["status"]["code"] == "ERROR"),
        "meta": meta,
        "metrics": metrics,
        "span_events": span.get("events", []),
        "span_links": [
            {
                "trace_id": int(link["trace_id"][16:], 16),
                "trace_id_high": int(link["trace_id"][:16], 16),
                "span_id": int(link["span_id"], 16),
                "attributes": link["attributes"],
            }
            for link in span.get("links", ())
        ],
    }


def test_the_rows_of_our_own_lines(
    rows_of: Callable[..., Rows],
    facts_of: Callable[..., Rows],
    own_rows: Rows,
    small_trace: list[Span],
) -> None:
    """All but flags, tracestate and scope, to the nanosecond; booleans and lists are text.

    Ids beyond 2^63 and the upper half of the trace id, which only the first span has.
    """
    lost = ("flags", "trace_state", "scope_name", "scope_version")
    expected = facts_of(own_rows, *lost)
    for row in expected:
        for key, value in row["attributes"].items():
            if isinstance(value, bool | list):
                row["attributes"][key] = json.dumps(value)
    spans = [datadog(span, is_first=number == 1) for number, span in enumerate(small_trace)]
    assert spans[0]["span_id"] != spans[1]["span_id"]
    assert facts_of(rows_of(json.dumps(spans)), *lost) == expected
    assert facts_of(rows_of(json.dumps([spans, []])), *lost) == expected
    assert facts_of(rows_of(json.dumps([spans[:2], spans[2:]])), *lost) == expected


MINIMAL = {
    "trace_id": 2970769764550348688,
    "span_id": 18446744073709551615,
    "parent_id": 0,
    "name": "env.step",
    "resource": "POST /step",
    "type": "web",
    "service": "env",
    "start": 1750000000000000001,
    "duration": 5,
}


def test_a_span_alone(rows_of: Callable[..., Rows], facts_of: Callable[..., Rows]) -> None:
    """What it was called for, and the facts of its process."""
    meta = {"env": "prod", "version": "1.2", "_dd.hostname": "n1", "language": "python"}
    span = MINIMAL | {"meta": meta, "metrics": {"process_id": 77, "_sampling_priority_v1": 1}}
    (row,) = facts_of(rows_of(json.dumps(span)))
    assert row["trace_id"] == "0" * 16 + "293a4b5c6d7e8f90"
    assert (row["span_id"], row["parent_span_id"]) == ("f" * 16, None)
    assert row["attributes"] == {
        "_sampling_priority_v1": 1,
        "resource.name": "POST /step",
        "span.type": "web",
    }
    assert row["resource"]["attributes"] == {
        "service.name": "env",
        "service.version": "1.2",
        "deployment.environment.name": "prod",
        "host.name": "n1",
        "telemetry.sdk.language": "python",
        "process.pid": 77,
    }
    assert (row["host_name"], row["process_pid"]) == ("n1", 77)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trace_id": 2.97e18}, "trace_id is no unsigned 64-bit number"),
        ({"trace_id": 0}, "trace_id"),
        ({"span_id": 0}, "span_id is 0"),
        ({"start": "now"}, "start or duration"),
        ({"duration": -1}, "start or duration"),
        ({"start": 2**63 - 1}, "start or duration"),
        ({"name": None}, "name"),
    ],
)
def test_a_bad_span_leaves_the_others(change: dict[str, Any], message: str) -> None:
    """Alone it is invalid, in a list its place is named."""
    with pytest.raises(InvalidRecordError, match=message):
        recognise(MINIMAL | change, None)
    bad = MINIMAL | change | {"meta": {"_dd.p.tid": "1"}}
    record = recognise([MINIMAL, bad], None)
    assert record is not None
    assert len(record.rows) == 1
    assert record.problems[0].startswith("span 2: ")


@pytest.mark.parametrize("value", [[[]], [[1]], [[MINIMAL], 1], []])
def test_other_lists_are_not_claimed(value: list[Any]) -> None:
    """Lists of something else."""
    assert recognise(value, None) is None
