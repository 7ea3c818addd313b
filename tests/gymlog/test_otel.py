"""A process that runs OpenTelemetry's SDK and writes our lines: exact, and read back whole."""

import json
import os
import subprocess
import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from gymlog import otel
from gymlog.otel import LineLogExporter, LineMetricExporter, LineSpanExporter
from gymlog.testing import MemoryFile
from reconstruct.engine import Engine

RESOURCE = Resource({"service.name": "app", "service.instance.id": "of-the-sdk", "team": "rl"})
REMOTE = trace.SpanContext(
    0xABC, 0xDEF, True, trace.TraceFlags(3), trace.TraceState([("a", "1"), ("b", "2")])
)


@pytest.fixture
def file(monkeypatch):
    """What is written instead of stdout."""
    memory = MemoryFile()
    monkeypatch.setattr(otel, "Channel", lambda fd, wait_seconds: memory)
    return memory


def records(file):
    return [orjson.loads(line) for line in file.writes]


def traced(work, *, limits=None):
    """Run `work(tracer)` under a provider that writes lines, and end it."""
    provider = TracerProvider(resource=RESOURCE, span_limits=limits)
    provider.add_span_processor(SimpleSpanProcessor(LineSpanExporter()))
    work(provider.get_tracer("lib", "1.2"))
    provider.shutdown()


def only_span(file):
    (span,) = [one for one in records(file) if one["record_type"] == "span"]
    return span


def test_a_span_is_exact(file):
    """Every field, as gymlog's own tracer would have written it."""
    remote = trace.set_span_in_context(trace.NonRecordingSpan(REMOTE))

    def work(tracer):
        span = tracer.start_span(
            "work", remote, trace.SpanKind.CLIENT, {"i": 1, "f": 1.0, "b": True, "l": ("x", "y")},
            [trace.Link(REMOTE, {"why": "retry"})], start_time=1_000,
        )  # fmt: skip
        span.add_event("mark", {"n": 1}, 1_500)
        span.set_status(trace.StatusCode.ERROR, "boom")
        span.end(2_001)

    traced(work)
    span = only_span(file)
    span_id = span.pop("span_id")
    assert len(span_id) == 16
    assert list(span.items()) == [
        ("record_type", "span"),
        ("seq", 1),
        ("trace_id", f"{0xABC:032x}"),
        ("parent_span_id", f"{0xDEF:016x}"),
        ("name", "work"),
        ("kind", "CLIENT"),
        ("start_time_unix_nano", 1_000),
        ("end_time_unix_nano", 2_001),
        ("flags", 0x303),
        ("trace_state", "a=1,b=2"),
        ("status", {"code": "ERROR", "message": "boom"}),
        ("attributes", {"i": 1, "f": 1.0, "b": True, "l": ["x", "y"]}),
        ("events", [{"time_unix_nano": 1_500, "name": "mark", "attributes": {"n": 1}}]),
        (
            "links",
            [
                {
                    "trace_id": f"{0xABC:032x}",
                    "span_id": f"{0xDEF:016x}",
                    "attributes": {"why": "retry"},
                    "trace_state": "a=1,b=2",
                }
            ],
        ),
        ("scope", {"name": "lib", "version": "1.2"}),
        (
            "resource",
            {"attributes": {"service.name": "app", "service.instance.id": "of-the-sdk"}},
        ),
    ]


def test_a_root_of_this_process_has_nothing_that_it_lacks(file):
    """No parent, no empty lists, no zeroes."""
    traced(lambda tracer: tracer.start_span("root").end())
    span = only_span(file)
    assert span["parent_span_id"] is None
    assert span["flags"] & 0x300 == 0x100
    assert span["status"] == {"code": "UNSET"}
    assert not {"trace_state", "events", "links"} & span.keys()
    assert not [field for field in span if field.startswith("dropped")]


def test_what_the_sdk_dropped_is_told(file):
    """By the counts that it keeps."""
    limits = SpanLimits(
        max_span_attributes=1, max_events=1, max_links=1, max_event_attributes=1
    )  # fmt: skip

    def work(tracer):
        link = trace.Link(REMOTE)
        span = tracer.start_span("work", attributes={"a": 1, "b": 2}, links=[link, link])
        span.add_event("first")
        span.add_event("last", {"a": 1, "b": 2, "c": 3})
        span.end()

    traced(work, limits=limits)
    span = only_span(file)
    counts = [span[f"dropped_{what}_count"] for what in ("attributes", "events", "links")]
    assert counts == [1, 1, 1]
    (event,) = span["events"]
    assert (event["name"], event["dropped_attributes_count"]) == ("last", 2)


def test_what_was_dropped_of_a_link_is_told(file):
    """By its own count."""
    provider = TracerProvider(resource=RESOURCE)
    span = provider.get_tracer("lib").start_span("work")
    span.end()
    span._links = [trace.Link(REMOTE, BoundedAttributes(1, {"a": 1, "b": 2}))]
    exporter = LineSpanExporter()
    exporter.export([span])
    exporter.shutdown()
    (link,) = only_span(file)["links"]
    assert (link["attributes"], link["dropped_attributes_count"]) == ({"b": 2}, 1)


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=50)
        | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
        max_size=5,
    )
)
def test_any_attributes_come_through(attributes):
    """Of any type that the SDK takes."""
    memory = MemoryFile()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(otel, "Channel", lambda fd, wait_seconds: memory)
        traced(lambda tracer: tracer.start_span("work", attributes=attributes).end())
    assert only_span(memory)["attributes"] == attributes


def test_process_records_are_of_the_whole_resource(file):
    """Started, stopped, and how many spans were written."""
    traced(lambda tracer: [tracer.start_span("work").end() for _ in range(3)])
    started, *_, stopped = records(file)
    assert (started["state"], stopped["state"]) == ("started", "stopped")
    assert (stopped["spans_written"], stopped["open_spans"]) == (3, 0)
    facts = started["resource"]["attributes"]
    assert facts.items() >= RESOURCE.attributes.items()
    assert facts["process.pid"] == os.getpid()
    assert "nemo.gym.service_group" not in facts
    assert [record["seq"] for record in records(file)] == list(range(5))


def test_traces_metrics_and_logs_are_one_process(file):
    """One instance, one numbering; the last exporter to leave writes `stopped`."""
    tracers = TracerProvider(resource=RESOURCE)
    tracers.add_span_processor(SimpleSpanProcessor(LineSpanExporter()))
    meters = MeterProvider(
        [PeriodicExportingMetricReader(LineMetricExporter(), 3_600_000)], RESOURCE
    )
    loggers = LoggerProvider(RESOURCE)
    loggers.add_log_record_processor(SimpleLogRecordProcessor(LineLogExporter()))
    with tracers.get_tracer("lib").start_as_current_span("work"):
        loggers.get_logger("app.db", "2").emit(
            LogRecord(
                timestamp=7, severity_number=SeverityNumber.WARN, severity_text="WARNING",
                body={"a": [1]}, attributes={"k": 1}, event_name="slow",
            )
        )  # fmt: skip
        meters.get_meter("app").create_counter("done").add(2, {"a": 1})
    tracers.shutdown()
    meters.shutdown()
    loggers.get_logger("app").emit(LogRecord(observed_timestamp=8, body=None))
    loggers.shutdown()
    lines = records(file)
    kinds = [line["record_type"] for line in lines]
    assert kinds == ["process", "log", "span", "metric", "log", "process"]
    assert [line["seq"] for line in lines] == list(range(6))
    _, log, span, metric, bare, _ = lines
    assert (log["trace_id"], log["span_id"]) == (span["trace_id"], span["span_id"])
    assert (log["time_unix_nano"], log["severity_number"], log["body"]) == (7, 13, {"a": [1]})
    assert log["attributes"] == {"k": 1, "event.name": "slow"}
    assert log["scope"] == {"name": "app.db", "version": "2"}
    assert (metric["name"], metric["value"], metric["attributes"]) == ("done", 2, {"a": 1})
    assert (bare["time_unix_nano"], bare["severity_number"]) == (8, 0)
    assert "trace_id" not in bare


def test_after_its_shutdown_an_exporter_takes_nothing(file):
    """And says so; a second shutdown is nothing."""
    provider = TracerProvider(resource=RESOURCE)
    span = provider.get_tracer("lib").start_span("late")
    span.end()
    exporter = LineSpanExporter()
    exporter.shutdown()
    exporter.shutdown()
    assert exporter.export([span]).name == "FAILURE"
    assert file.writes == []


def test_a_span_that_cannot_be_read_is_one_notice(file, capfd):
    """Its neighbours are written."""
    provider = TracerProvider(resource=RESOURCE)
    good = provider.get_tracer("lib").start_span("good")
    good.end()
    exporter = LineSpanExporter()
    assert exporter.export([object(), good]).name == "FAILURE"
    exporter.shutdown()
    assert only_span(file)["name"] == "good"
    assert "a span of OpenTelemetry's SDK has no line" in capfd.readouterr().err


FORKS = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
"""Python 3.12 and later warn of a fork beside threads."""

PROGRAM = """
import logging, os, sys
from opentelemetry import metrics, trace
from opentelemetry.sdk._configuration import _initialize_components

_initialize_components()
tracer = trace.get_tracer("lib", "1.0")
with tracer.start_as_current_span("outer", attributes={"n": 1}) as outer:
    outer.add_event("mark")
    for number in range(100):
        with tracer.start_as_current_span("inner", kind=trace.SpanKind.CLIENT):
            pass
metrics.get_meter("app").create_counter("done").add(3)
if len(sys.argv) > 1:
    trace.get_tracer_provider().force_flush()
    pid = os.fork()
    with tracer.start_as_current_span("of child" if not pid else "of parent"):
        pass
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
"""


def run(*arguments):
    """Run a program with OpenTelemetry's own configurator, whose exporter is `gymlog`."""
    environ = {key: value for key, value in os.environ.items() if "OTEL" not in key}
    signals = {f"OTEL_{signal}_EXPORTER": "gymlog" for signal in ("TRACES", "METRICS", "LOGS")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environ | signals | {"OTEL_SERVICE_NAME": "app", **FORKS},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    return done.stdout


def test_a_program_with_the_sdk_is_read_back_whole(tmp_path):
    """By the entry points' names alone."""
    (tmp_path / "app.log").write_bytes(run())
    with Engine.read([str(tmp_path)]) as engine:
        rows = engine.rows("SELECT span_count, root_name, open_count FROM traces")
        assert [tuple(row.values()) for row in rows] == [(101, "outer", 0)]
        assert engine.rows("SELECT code, message FROM findings") == []
        (metric,) = engine.rows("SELECT name, value FROM metric_points")
        assert (metric["name"], metric["value"]) == ("done", 3)
        states = engine.rows("SELECT state, spans_written FROM processes ORDER BY seq")
        assert [tuple(row.values()) for row in states] == [("started", 0), ("stopped", 101)]


def test_a_forked_child_is_a_process_of_its_own():
    """With an instance id of its own, and none of its parent's spans."""
    lines = [json.loads(line) for line in run("fork").splitlines()]
    spans = [line for line in lines if line["record_type"] == "span"]
    instances = {
        span["name"]: span["resource"]["attributes"]["service.instance.id"] for span in spans
    }
    assert len(spans) == 103
    assert instances["of parent"] == instances["outer"] != instances["of child"]
    mine = {}
    for line in lines:
        mine.setdefault(line["resource"]["attributes"]["service.instance.id"], []).append(line)
    assert len(mine) == 2
    for numbered in mine.values():
        assert sorted(line["seq"] for line in numbered) == list(range(len(numbered)))
        assert numbered[-1]["state"] == "stopped"
