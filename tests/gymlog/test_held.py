"""Errors of work that is not sampled are written, and nothing else of it."""

import asyncio

import pytest

from gymlog import rollout_context, testing
from gymlog.samplers import sampler_from
from gymlog.server import instrument_fastapi
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider
from gymlog.values import Limits


@pytest.fixture
def held():
    """Telemetry that samples nothing and keeps errors."""
    sampler = sampler_from("parentbased_always_off", "")
    with testing.captured(sampler=sampler, keeps_errors=True) as captured:
        yield captured


def test_only_what_failed_is_written(held):
    """
    root             not written: the error was handled below it
    ├─ fine          not written
    └─ failing       written, with what it had before and after it failed
       └─ deeper     written
    """
    start = held.tracer.start_as_current_span

    def fail():
        with start("failing", attributes={"a": 1}) as failing:
            failing.set_attribute("b", 2)
            with start("deeper"):
                raise ValueError("bad")

    with rollout_context("1-0"), start("root"):
        with start("fine", attributes={"a": 1}):
            pass
        with pytest.raises(ValueError, match="bad"):
            fail()
    assert [span["name"] for span in held.spans] == ["deeper", "failing"]
    deeper, failing = held.spans
    assert deeper["parent_span_id"] == failing["span_id"]
    assert failing["attributes"] == {
        "nemo.gym.rollout.id": "1-0", "a": 1, "b": 2, "error.type": "ValueError",
    }  # fmt: skip
    assert [span["flags"] & 1 for span in held.spans] == [0, 0]
    assert held.service.open_spans == {}
    assert held.service.spans_ended == 2


def test_a_generator_that_is_left_early_is_no_error(held):
    """Nor is a status that was set and taken back."""

    def stream():
        with held.tracer.start_as_current_span("stream"):
            yield 1
            yield 2

    next(stream())
    span = held.tracer.start_span("fine in the end")
    span.set_status("ERROR")
    span.set_status("OK")
    span.end()
    assert held.spans == []


def test_a_failing_request_is_kept_and_its_caller_is_told_not_sampled(held, asgi):
    """A 500 of the server, of a caller that was not sampled either."""
    from fastapi import FastAPI

    app = FastAPI()

    @app.get("/fails")
    def fails():
        raise ValueError("bad")

    @app.get("/works")
    def works():
        return {}

    unsampled = (b"traceparent", b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-00")
    for path in ("/fails", "/works"):
        asyncio.run(asgi(instrument_fastapi(app), "GET", path, [unsampled]))
    (span,) = held.spans
    assert (span["name"], span["trace_id"], span["flags"] & 1) == ("GET /fails", "1" * 32, 0)
    assert span["attributes"]["http.response.status_code"] == 500


def test_sampled_spans_are_what_they_always_were():
    """Of a sampler that keeps some."""
    file = testing.MemoryFile()
    provider = TracerProvider(
        ServiceInstance({"service.name": "s"}, lambda: Sink(file)),
        sampler=sampler_from("parentbased_traceidratio", "0.5"),
        keeps_errors=True,
    )
    for _ in range(50):
        span = provider.get_tracer("library").start_span("a")
        span.end()
    written = testing.Captured(provider, file).spans
    assert 0 < len(written) < 50
    assert all(span["flags"] & 1 for span in written)


def test_what_is_held_is_limited_and_never_announced():
    """An open span that is not sampled leaves no `span_start`, also at a clean stop."""
    file = testing.MemoryFile()
    provider = TracerProvider(
        ServiceInstance({"service.name": "s"}, lambda: Sink(file), span_start_after_seconds=0),
        sampler=sampler_from("always_off", ""),
        keeps_errors=True,
        limits=Limits(attributes=2),
    )
    span = provider.tracer.open_span("a", attributes={"a": 1, "b": 2, "c": 3})
    provider.service.sweep()
    provider.shutdown()
    span.fail(ValueError())
    span.end()
    records = testing.Captured(provider, file).records
    assert [record["record_type"] for record in records] == ["process", "process", "span"]
    assert records[-1]["dropped_attributes_count"] == 2
    assert provider.tracer.open_span("b").is_recording()
    assert not provider.service.held


def test_the_environment_switches_it_on(program):
    """In a process of its own."""
    code = """
        spans(3)
        try:
            with managed_span("verify", "fails"): raise ValueError("bad")
        except ValueError: pass
    """
    variables = {"OTEL_TRACES_SAMPLER": "always_off"}
    for keeps, names in (("0", []), ("1", ["fails"])):
        records, _ = program.output(code, GYMLOG_KEEP_ERRORS=keeps, **variables)
        assert [span["name"] for span in records.of("span")] == names
