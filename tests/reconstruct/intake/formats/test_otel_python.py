"""Console output of the OpenTelemetry SDK: written by the SDK itself, read back exactly."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk import util
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from reconstruct.intake import files, tables

RESOURCE = Resource(
    {
        "service.name": "env",
        "service.instance.id": "run-rank0",
        "process.pid": 77,
        "nemo.run.id": "r1",
        "nemo.gym.server.name": "env-a",
    }
)
Read = Callable[[str], dict[str, list[dict[str, Any]]]]

START = 1_800_000_000_123_456_000


def compact(span: ReadableSpan) -> str:
    return span.to_json(indent=None) + "\n"


def pretty(span: ReadableSpan) -> str:
    return span.to_json() + "\n"


def prefixed(span: ReadableSpan) -> str:
    return "".join(f"(env-a) {line}\n" for line in span.to_json().splitlines())


@pytest.fixture
def read(tmp_path: Path, read_rows: Callable[..., Any]) -> Read:
    def read_text(text: str) -> dict[str, list[dict[str, Any]]]:
        (tmp_path / "console.log").write_text(text)
        rows: dict[str, list[dict[str, Any]]] = read_rows(files.find([str(tmp_path)]))
        return rows

    return read_text


@pytest.mark.parametrize("formatter", [compact, pretty, prefixed])
def test_spans(read: Read, formatter: Callable[[ReadableSpan], str]) -> None:
    """Names, ids, times, status, attributes with their types, events and links, in every layout."""
    out = io.StringIO()
    provider = TracerProvider(resource=RESOURCE, shutdown_on_exit=False)
    provider.add_span_processor(
        SimpleSpanProcessor(ConsoleSpanExporter(out=out, formatter=formatter))
    )
    tracer = provider.get_tracer("test")
    linked = SpanContext(0xABC, 0xDEF, is_remote=True, trace_flags=TraceFlags(1))
    root = tracer.start_span("POST /run", kind=SpanKind.SERVER, start_time=START)
    child = tracer.start_span(
        "model call",
        context=set_span_in_context(root),
        kind=SpanKind.CLIENT,
        links=[Link(linked, {"why": "retry"})],
        start_time=START + 1_000,
        attributes={"n": 3, "x": 1.0, "ok": True, "list": ["a", "b"], "nemo.gym.rollout.id": "0-1"},
    )
    child.add_event("first token", {"i": 1}, timestamp=START + 2_000)
    child.set_status(Status(StatusCode.ERROR, "boom"))
    child.end(START + 9_000)
    root.end(START + 10_000)
    provider.shutdown()
    rows = read("hello\n" + out.getvalue())[tables.SPAN_LINES]
    by_name = {row["name"]: row for row in rows}
    got = by_name["model call"]
    assert got["trace_id"] == format(root.get_span_context().trace_id, "032x")
    assert got["span_id"] == format(child.get_span_context().span_id, "016x")
    assert got["parent_span_id"] == format(root.get_span_context().span_id, "016x")
    assert (got["kind"], got["status_code"], got["status_message"]) == ("CLIENT", "ERROR", "boom")
    assert got["start_time_unix_nano"] == START + 1_000
    assert got["end_time_unix_nano"] == START + 9_000
    assert got["attributes"] == (
        '{"n":3,"x":1.0,"ok":true,"list":["a","b"],"nemo.gym.rollout.id":"0-1"}'
    )
    assert json.loads(got["events"]) == [
        {"time_unix_nano": START + 2_000, "name": "first token", "attributes": {"i": 1}}
    ]
    assert json.loads(got["links"]) == [
        {
            "trace_id": format(0xABC, "032x"),
            "span_id": format(0xDEF, "016x"),
            "attributes": {"why": "retry"},
        }
    ]
    assert (got["rollout_id"], got["run_id"], got["server_name"]) == ("0-1", "r1", "env-a")
    assert (got["service_name"], got["service_instance_id"], got["process_pid"]) == (
        "env",
        "run-rank0",
        77,
    )
    assert by_name["POST /run"]["parent_span_id"] is None
    assert by_name["POST /run"]["trace_state"] is None


def test_processes_that_share_an_instance_id_are_told_apart_by_pid(read: Read) -> None:
    """NeMo Gym's workers have one service.instance.id; only the pid differs."""
    span = {
        "name": "x",
        "context": {
            "trace_id": "0x" + "1" * 32,
            "span_id": "0x" + "2" * 16,
            "trace_state": "['a=b', 'c=d']",
        },
        "kind": "SpanKind.INTERNAL",
        "parent_id": None,
        "start_time": "2026-11-30T02:40:55.480353Z",
        "end_time": "2026-11-30T02:40:55.480354Z",
    }
    lines = [
        json.dumps(
            span
            | {
                "resource": {
                    "attributes": {
                        "service.name": "s",
                        "service.instance.id": "i",
                        "process.pid": pid,
                    }
                }
            }
        )
        for pid in (1, 2)
    ]
    rows = read("\n".join(lines))[tables.SPAN_LINES]
    assert [row["instance"] for row in rows] == ["s#i#1", "s#i#2"]
    assert rows[0]["trace_state"] == "a=b,c=d"


def test_metrics(read: Read) -> None:
    """Every point of every series on the line is a row."""
    out = io.StringIO()
    exporter = ConsoleMetricExporter(
        out=out, formatter=lambda data: data.to_json(indent=None) + "\n"
    )
    provider = MeterProvider(
        [PeriodicExportingMetricReader(exporter, export_interval_millis=float("inf"))],
        resource=RESOURCE,
        shutdown_on_exit=False,
    )
    meter = provider.get_meter("gym", "1.0")
    requests = meter.create_counter("requests", unit="{request}", description="how many")
    requests.add(2, {"route": "/run"})
    requests.add(3, {"route": "/verify"})
    meter.create_histogram("latency", unit="s").record(0.25)
    meter.create_gauge("open").set(7)
    provider.force_flush()
    provider.shutdown()
    rows = read("(env-a) " + out.getvalue())[tables.METRIC_LINES]
    assert {(row["name"], row["type"], row["value"], row["count"], row["sum"]) for row in rows} == {
        ("requests", "sum", 2.0, None, None),
        ("requests", "sum", 3.0, None, None),
        ("latency", "histogram", None, 1, 0.25),
        ("open", "gauge", 7.0, None, None),
    }
    requests_row = next(row for row in rows if row["value"] == 2.0)
    assert json.loads(requests_row["attributes"]) == {"route": "/run"}
    assert requests_row["aggregation_temporality"] == "CUMULATIVE"
    assert (requests_row["unit"], requests_row["scope_name"]) == ("{request}", "gym")
    assert sum(json.loads(next(r for r in rows if r["count"])["bucket_counts"])) == 1


def test_exemplar_ids_are_hex(read: Read) -> None:
    """The SDK writes them as integers of up to 39 digits; all of them count."""
    trace_id = 128894451018965754301791266966499852013
    point = {
        "attributes": {},
        "time_unix_nano": 5,
        "value": 1,
        "exemplars": [{"value": 1, "trace_id": trace_id, "span_id": 4330451664823904741}],
    }
    metric = {"name": "m", "unit": "", "data": {"data_points": [point]}}
    text = json.dumps(
        {"resource_metrics": [{"resource": {}, "scope_metrics": [{"metrics": [metric]}]}]}
    )
    (row,) = read(text)[tables.METRIC_LINES]
    (exemplar,) = json.loads(row["exemplars"])
    assert exemplar["trace_id"] == format(trace_id, "032x")
    assert exemplar["span_id"] == format(4330451664823904741, "016x")


def test_log_records(read: Read) -> None:
    """Ids of all zeros mean that there was no span."""
    record = {
        "body": "careful",
        "severity_number": 13,
        "severity_text": "WARN",
        "attributes": {"code.line.number": 4},
        "dropped_attributes": 0,
        "timestamp": "2026-11-30T02:43:22.876312Z",
        "observed_timestamp": "2026-11-30T02:43:22.876768Z",
        "trace_id": "0x" + "0" * 32,
        "span_id": "0x" + "0" * 16,
        "trace_flags": 0,
        "resource": {"attributes": {"service.name": "s"}},
        "event_name": "",
    }
    inside = record | {"trace_id": "0x" + "a" * 32, "span_id": "0x" + "b" * 16, "trace_flags": 3}
    inside |= {"event_name": "gym.answer"}
    rows = read(f"{json.dumps(record)}\n{json.dumps(inside)}\n")[tables.LOG_LINES]
    assert [(row["trace_id"], row["span_id"], row["flags"]) for row in rows] == [
        (None, None, None),
        ("a" * 32, "b" * 16, 3),
    ]
    assert [json.loads(row["attributes"]) for row in rows] == [
        {"code.line.number": 4},
        {"code.line.number": 4, "event.name": "gym.answer"},
    ]
    assert rows[0]["body"] == '"careful"'
    assert rows[0]["time_unix_nano"] % 10**9 == 876_312_000


def test_the_same_trace_gives_the_same_rows(
    small_trace: list[dict[str, Any]],
    own_rows: list[dict[str, Any]],
    rows_of: Callable[..., list[dict[str, Any]]],
) -> None:
    """Column by column, but for what is not written: scope, flags, what was dropped, and ns."""

    def printed(span: dict[str, Any]) -> str:
        state = [item for item in span.get("trace_state", "").split(",") if item]
        parent, message = span["parent_span_id"], span["status"].get("message")
        context = {
            "trace_id": "0x" + span["trace_id"],
            "span_id": "0x" + span["span_id"],
            "trace_state": repr(state),
        }
        whole = {
            "name": span["name"],
            "context": context,
            "kind": "SpanKind." + span["kind"],
            "parent_id": None if parent is None else "0x" + parent,
            "start_time": util.ns_to_iso_str(span["start_time_unix_nano"]),
            "end_time": util.ns_to_iso_str(span["end_time_unix_nano"]),
            "status": {"status_code": span["status"]["code"]}
            | ({} if message is None else {"description": message}),
            "attributes": span["attributes"],
            "events": [
                {
                    "name": event["name"],
                    "timestamp": util.ns_to_iso_str(event["time_unix_nano"]),
                    "attributes": event["attributes"],
                }
                for event in span.get("events", ())
            ],
            "links": [
                {
                    "context": {
                        "trace_id": "0x" + link["trace_id"],
                        "span_id": "0x" + link["span_id"],
                        "trace_state": "[]",
                    },
                    "attributes": link["attributes"],
                }
                for link in span.get("links", ())
            ],
            "resource": span["resource"],
        }
        return json.dumps(whole)

    not_written = dict.fromkeys(
        (
            *("seq", "flags", "scope_name", "scope_version"),
            *("dropped_attributes_count", "dropped_events_count", "dropped_links_count"),
        )
    )
    for own, found in zip(own_rows, rows_of(*map(printed, small_trace)), strict=True):
        cut = {name: own[name] // 1000 * 1000 for name in own if name.endswith("_time_unix_nano")}
        if own["events"] is not None:
            events = json.loads(own["events"])
            events[0]["time_unix_nano"] = events[0]["time_unix_nano"] // 1000 * 1000
            cut["events"] = json.dumps(events, separators=(",", ":"))
        assert found == own | not_written | cut
