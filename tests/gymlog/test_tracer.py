"""The tracer: whose child a span is, which flags it has, and which library's scope.

That programs written for OpenTelemetry get what its SDK gives them is
`tests/contract/test_opentelemetry.py`.
"""

import threading
from dataclasses import dataclass
from types import MappingProxyType

import pytest
from opentelemetry import trace
from opentelemetry.context import Context

from gymlog import rollout_context, testing
from gymlog.record import FLAG_HAS_IS_REMOTE, FLAG_IS_REMOTE, FLAG_RANDOM_TRACE_ID, FLAG_SAMPLED
from gymlog.testing import Captured
from gymlog.values import Limits

LOCAL = FLAG_HAS_IS_REMOTE
REMOTE = FLAG_HAS_IS_REMOTE | FLAG_IS_REMOTE
ROOT = FLAG_SAMPLED | FLAG_RANDOM_TRACE_ID


@dataclass(frozen=True)
class Caller:
    """A span of another process, as it comes with a request."""

    trace_id: str = "a" * 32
    span_id: str = "b" * 16
    flags: int = FLAG_SAMPLED
    trace_state: str = "v=1,w=2"


# Parents.


def test_the_current_span_is_the_parent(telemetry: Captured) -> None:
    """
    root
    └─ child
       └─ grandchild
    """
    with telemetry.tracer.start_as_current_span("root"):
        with telemetry.tracer.start_as_current_span("child"):
            telemetry.tracer.open_span("grandchild").end()
    root, child, grandchild = (telemetry.span(name) for name in ("root", "child", "grandchild"))
    assert root["parent_span_id"] is None
    assert child["parent_span_id"] == root["span_id"]
    assert grandchild["parent_span_id"] == child["span_id"]
    assert len({line["trace_id"] for line in telemetry.spans}) == 1
    assert [line["flags"] for line in telemetry.spans] == [LOCAL | ROOT] * 3


def test_a_root_is_asked_for(telemetry: Captured) -> None:
    """`is_root` starts a new trace below a current span; so does the empty context."""
    with telemetry.tracer.start_as_current_span("current"):
        telemetry.tracer.open_span("root", is_root=True).end()
        telemetry.tracer.open_span("also root", context=Context()).end()
    assert telemetry.span("root")["parent_span_id"] is None
    assert telemetry.span("also root")["parent_span_id"] is None
    assert len({line["trace_id"] for line in telemetry.spans}) == 3


def test_a_caller_counts_before_the_current_span(telemetry: Captured) -> None:
    """A request's span is the caller's child, and says that its parent is remote."""
    with telemetry.tracer.start_as_current_span("current"):
        span = telemetry.tracer.open_span("server", "SERVER", parent=Caller())
        span.end()
    line = telemetry.span("server")
    assert (line["trace_id"], line["parent_span_id"]) == ("a" * 32, "b" * 16)
    assert line["kind"] == "SERVER"
    assert line["flags"] == REMOTE | FLAG_SAMPLED
    assert line["trace_state"] == "v=1,w=2"
    assert not span.get_span_context().is_remote


def test_only_the_first_span_of_a_process_has_a_remote_parent(telemetry: Captured) -> None:
    """Its children have a local one, and keep trace id, trace state and flags."""
    span = telemetry.tracer.open_span("server", parent=Caller(flags=0xFF))
    telemetry.tracer.open_span("child", context=trace.set_span_in_context(span)).end()
    span.end()
    assert telemetry.span("server")["flags"] == REMOTE | ROOT, "flags of level 2 only"
    child = telemetry.span("child")
    assert child["flags"] == LOCAL | ROOT
    assert child["trace_state"] == "v=1,w=2"
    assert child["trace_id"] == "a" * 32


def test_the_random_flag_is_the_callers(telemetry: Captured) -> None:
    """Who did not make the trace id does not say that it is random."""
    for flags in (FLAG_SAMPLED, FLAG_SAMPLED | FLAG_RANDOM_TRACE_ID):
        telemetry.tracer.open_span(f"{flags}", parent=Caller(flags=flags)).end()
    assert telemetry.span("1")["flags"] == REMOTE | FLAG_SAMPLED
    assert telemetry.span("3")["flags"] == REMOTE | ROOT


def test_a_caller_that_does_not_sample_is_followed(telemetry: Captured) -> None:
    """Nothing of its trace is written here, but the ids travel on."""
    span = telemetry.tracer.open_span("server", parent=Caller(flags=0))
    with trace.use_span(span):
        child = telemetry.tracer.start_span("child")
    context = child.get_span_context()
    child.end()
    span.end()
    assert telemetry.spans == []
    assert f"{context.trace_id:032x}" == "a" * 32
    assert context.trace_flags == 0
    assert context.trace_state.to_header() == "v=1,w=2"


def test_a_span_of_another_library_can_be_the_parent(telemetry: Captured) -> None:
    """Whatever implements OpenTelemetry's Span and has a valid context."""
    ids = trace.SpanContext(5, 7, is_remote=False, trace_flags=trace.TraceFlags(1))
    with trace.use_span(trace.NonRecordingSpan(ids)):
        telemetry.tracer.open_span("a").end()
    line = telemetry.span("a")
    assert (line["trace_id"], line["parent_span_id"]) == (f"{5:032x}", f"{7:016x}")
    assert line["flags"] == LOCAL | FLAG_SAMPLED


def test_ids_are_new(telemetry: Captured) -> None:
    """Lower-case hex of 32 and 16 digits, never twice, also from several threads."""

    def open_many() -> None:
        for _ in range(500):
            telemetry.tracer.open_span("a", is_root=True).end()

    threads = [threading.Thread(target=open_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = telemetry.spans
    for key, digits in (("trace_id", 32), ("span_id", 16)):
        ids = {line[key] for line in lines}
        assert len(ids) == len(lines) == 2000
        assert all(len(one) == digits and int(one, 16) and one == one.lower() for one in ids)
    assert sorted(line["seq"] for line in telemetry.records) == list(range(len(lines) + 1))


# What a span starts with.


def test_the_callers_attributes_stay_the_callers(telemetry: Captured) -> None:
    """A mapping of any kind is read, never changed."""
    shared = {"a": 1}
    telemetry.tracer.open_span("one", attributes=MappingProxyType(shared)).set_attribute("b", 2)
    span = telemetry.tracer.open_span("two", attributes=shared)
    span.set_attribute("a", 3)
    span.end()
    assert shared == {"a": 1}
    assert telemetry.span("two")["attributes"] == {"a": 3}


def test_the_rollout_is_on_every_span(telemetry: Captured) -> None:
    """Of every tracer, whatever the limit of attributes is."""
    library = telemetry.provider.get_tracer("library")
    with rollout_context("12-0"):
        telemetry.tracer.open_span("own").end()
        library.start_span("theirs", attributes={"a": 1}).end()
    telemetry.tracer.open_span("outside").end()
    assert telemetry.span("own")["attributes"] == {"nemo.gym.rollout.id": "12-0"}
    assert telemetry.span("theirs")["attributes"] == {"a": 1, "nemo.gym.rollout.id": "12-0"}
    assert telemetry.span("outside")["attributes"] == {}


def test_the_limit_of_attributes_holds_from_the_start() -> None:
    """What does not fit is counted, whether given at the start or later."""
    with testing.captured(limits=Limits(attributes=2)) as telemetry:
        span = telemetry.tracer.open_span("a", attributes={"a": 1, "b": 2, "c": 3})
        span.set_attribute("d", 4)
        span.end()
    line = telemetry.span("a")
    assert line["attributes"] == {"a": 1, "b": 2}
    assert line["dropped_attributes_count"] == 2


@pytest.mark.parametrize("name", ["", "x", 5, None, b"bytes", "caf\ud83d"])
def test_any_name_is_text(telemetry: Captured, name: object) -> None:
    """A name of another type becomes text."""
    telemetry.tracer.start_span(name).end()  # type: ignore[arg-type]  # the point
    (line,) = telemetry.spans
    assert isinstance(line["name"], str)


# Scopes of libraries.


def test_a_librarys_spans_name_it(telemetry: Captured) -> None:
    """gymlog's own have no scope, a library's have its name and its version when it has one."""
    with telemetry.tracer.start_as_current_span("own"):
        telemetry.provider.get_tracer("plain").start_span("one").end()
        telemetry.provider.get_tracer("versioned", "1.2").start_span("two").end()
        telemetry.provider.get_tracer("full", "3", "https://schema", {"a": 1}).start_span("3").end()
    assert "scope" not in telemetry.span("own")
    assert telemetry.span("one")["scope"] == {"name": "plain"}
    assert telemetry.span("two")["scope"] == {"name": "versioned", "version": "1.2"}
    assert telemetry.span("3")["scope"] == {"name": "full", "version": "3"}
    assert {line["parent_span_id"] for line in telemetry.spans} == {
        None,
        telemetry.span("own")["span_id"],
    }


def test_a_silent_library_writes_nothing_and_breaks_no_tree() -> None:
    """Spans opened below its span are children of the span above it."""
    with testing.captured(silent_scopes=frozenset({"noisy"})) as telemetry:
        noisy = telemetry.provider.get_tracer("noisy")
        with telemetry.tracer.start_as_current_span("outer"):
            with noisy.start_as_current_span("noise") as noise:
                noise.set_attribute("a", 1)
                telemetry.tracer.start_span("inner").end()
    assert [line["name"] for line in telemetry.spans] == ["inner", "outer"]
    assert telemetry.span("inner")["parent_span_id"] == telemetry.span("outer")["span_id"]


def test_a_provider_has_nothing_to_flush_and_stops_with_what_is_open(telemetry: Captured) -> None:
    """`force_flush` is done at once; `shutdown` names open spans and says `stopped`."""
    telemetry.tracer.start_span("ended").end()
    telemetry.tracer.start_span("open")
    assert telemetry.provider.force_flush(1)
    telemetry.provider.shutdown()
    *_, announced, stopped = telemetry.records
    assert (announced["record_type"], announced["name"]) == ("span_start", "open")
    assert (stopped["record_type"], stopped["state"]) == ("process", "stopped")
    assert (stopped["spans_written"], stopped["open_spans"]) == (1, 1)
