"""gymlog.testing: what tests of instrumented code rely on."""

import time

import pytest

from gymlog import clock, managed_span, testing
from gymlog.sites import installed_tracer
from gymlog.span_groups import open_now


def test_captured_gives_back_what_was_before():
    """Nested blocks, also after an exception: tracer and groups are the outer ones again."""
    assert installed_tracer() is None
    before = open_now()
    with testing.captured("verify") as outer:
        with pytest.raises(KeyError), testing.captured("agent") as inner:
            with managed_span("verify", "closed here"), managed_span("agent", "inner"):
                raise KeyError
        assert installed_tracer() is outer.tracer
        with managed_span("verify", "outer"):
            pass
    assert installed_tracer() is None
    assert open_now() == before
    assert [span["name"] for span in inner.spans] == ["inner"]
    assert [span["name"] for span in outer.spans] == ["outer"]


def test_records_are_what_is_written_in_order(telemetry):
    """The first line of an instance introduces it; each write is one line."""
    with managed_span("verify", "a"), managed_span("verify", "b"):
        pass
    assert [record["record_type"] for record in telemetry.records] == ["process", "span", "span"]
    assert [record["seq"] for record in telemetry.records] == [0, 1, 2]
    assert [span["name"] for span in telemetry.spans] == ["b", "a"]
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in telemetry.file.writes)


def test_span_finds_the_only_one_of_a_name(telemetry):
    """And says what there is when there is not just one."""
    for name in ("once", "twice", "twice"):
        with managed_span("verify", name):
            pass
    assert telemetry.span("once")["name"] == "once"
    with pytest.raises(AssertionError, match="2 spans are named 'twice'"):
        telemetry.span("twice")
    with pytest.raises(AssertionError, match="0 spans are named 'never'"):
        telemetry.span("never")


def test_counted_ids_are_the_same_in_every_run(telemetry):
    """Traces and spans count separately from 1; afterwards ids are random again."""
    with testing.counted_ids(), managed_span("verify", "a"), managed_span("verify", "b"):
        pass
    with managed_span("verify", "c"):
        pass
    a, b, c = (telemetry.span(name) for name in "abc")
    assert (a["trace_id"], a["span_id"]) == (f"{1:032x}", f"{1:016x}")
    assert (b["trace_id"], b["span_id"]) == (f"{1:032x}", f"{2:016x}")
    assert int(c["span_id"], 16) > 2


def test_a_stepped_clock_moves_only_when_told(telemetry):
    """Seconds and ns add; afterwards time is real again."""
    with testing.stepped_clock() as stepped:
        span = telemetry.tracer.open_span("a")
        stepped.advance(seconds=1.5)
        stepped.advance(ns=3)
        span.end()
    record = telemetry.span("a")
    assert record["start_time_unix_nano"] == 1_750_000_000_000_000_000
    assert record["end_time_unix_nano"] - record["start_time_unix_nano"] == 1_500_000_003
    assert abs(clock.now() - time.time_ns()) < 50_000_000
