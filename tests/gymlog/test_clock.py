"""The clock: wall time that never runs backwards within a process."""

import time

import pytest

from gymlog import clock, testing


@pytest.fixture
def wall(monkeypatch):
    """A wall clock that the test steps, by ns, and the offset as it was before."""
    step = [0]
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + step[0])
    monkeypatch.setattr(clock, "offset", clock.offset)
    return step


def test_now_is_the_wall_clock():
    """The time of a span can be compared with any other machine's clock."""
    clock.reanchor()
    assert abs(clock.now() - time.time_ns()) < 50_000_000


def test_times_do_not_follow_a_step_by_themselves(wall):
    """A wall clock set back an hour makes no time of the process smaller."""
    before = clock.now()
    wall[0] = -3_600_000_000_000
    assert clock.now() >= before


def test_reanchor_follows_a_step(wall):
    """After the sweep new spans have the corrected time."""
    clock.reanchor()
    wall[0] = -3_600_000_000_000
    assert clock.reanchor()
    assert abs(clock.now() - time.time_ns()) < 50_000_000
    assert not clock.reanchor(), "there is nothing more to follow"


def test_a_span_open_during_a_step_has_its_true_duration(wall, telemetry):
    """Start plus the monotonic duration: neither negative nor an hour long.

    span      |--------- 10 ms at most ---------|
    wall clock          ^ set back an hour
    """
    clock.reanchor()
    span = telemetry.tracer.open_span("stepped")
    wall[0] = -3_600_000_000_000
    clock.reanchor()
    span.add_event("inside")
    span.end()
    record = telemetry.span("stepped")
    start, end = record["start_time_unix_nano"], record["end_time_unix_nano"]
    assert 0 <= end - start < 5_000_000_000
    assert start <= record["events"][0]["time_unix_nano"] <= end


def test_a_stepped_clock_of_a_test_survives_a_sweep(telemetry):
    """`sweep` follows the real wall clock only where that is in use."""
    with testing.stepped_clock(start=1_000) as stepped:
        telemetry.service.sweep()
        stepped.advance(ns=5)
        span = telemetry.tracer.open_span("after")
        stepped.advance(seconds=2)
        span.end()
    record = telemetry.span("after")
    assert record["start_time_unix_nano"] == 1_005
    assert record["end_time_unix_nano"] == 2_000_001_005
