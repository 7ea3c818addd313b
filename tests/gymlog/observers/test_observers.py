"""Observers as a whole: what starts them, which loops they see, and that they are gone after."""

import asyncio
import gc
import json
import os
import subprocess
import sys
import threading
import time

import pytest
import uvloop

import gymlog
from gymlog import observers, testing
from gymlog.client_session import close_sessions, current_session
from gymlog.config import TelemetryConfig
from gymlog.observers import start_observers, stop_observers, watch_event_loop
from gymlog.server import ServerMiddleware

QUICK = TelemetryConfig(event_loop_sample_interval_seconds=0.005, event_loop_task_count=True)


@pytest.fixture
def telemetry():
    """Telemetry into memory; afterwards nothing observes."""
    callbacks, threads = list(gc.callbacks), set(threading.enumerate())
    with testing.captured() as captured:
        yield captured
        stop_observers()
    assert gc.callbacks == callbacks
    assert {thread.name for thread in set(threading.enumerate()) - threads} & {
        "gymlog-stalls",
        "gymlog-memory",
    } == set()


def observed_loops():
    """Return how many loops the lag is measured of."""
    return len(observers._observers._loop_observers[0]._samplers)


async def until_sampled(metrics):
    """Let the running loop go on until there is a sample of it."""
    async with asyncio.timeout(20):
        while metrics.one("gym.event_loop.lag_ms") is None:
            await asyncio.sleep(0.001)


def test_everything_is_observed_in_a_loop(telemetry, metrics):
    """Started inside of one, that one needs no further call."""

    async def main():
        start_observers(metrics.meter, QUICK, telemetry.service)
        await until_sampled(metrics)
        gc.collect()
        return set(metrics.collect())

    assert asyncio.run(main()) == {
        "gym.event_loop.lag_ms",
        "gym.event_loop.tasks",
        "gym.gc.pause_duration_ms",
        "gym.gc.collections_total",
        "gym.gc.collected_total",
        "gym.gc.uncollectable_total",
        "gym.gc.count",
        "process.cpu.time",
        "process.memory.usage",
        "process.thread.count",
        "process.open_file_descriptor.count",
    }


def test_without_metrics_stalls_are_watched_and_nothing_else(telemetry, monkeypatch):
    """They are log records."""
    monkeypatch.setenv("GYMLOG_EVENT_LOOP_STALL_SECONDS", "0.05")
    callbacks = list(gc.callbacks)

    def has_records():
        return any(one["record_type"] == "log" for one in telemetry.records)

    async def main():
        assert watch_event_loop()
        deadline = time.monotonic() + 20
        while not has_records() and time.monotonic() < deadline:
            time.sleep(0.005)

    start_observers(None, QUICK, telemetry.service)
    assert gc.callbacks == callbacks
    asyncio.run(main())
    assert has_records()


@pytest.mark.parametrize("text", ["0", "-1"])
def test_stalls_are_not_watched_when_the_setting_says_so(telemetry, metrics, monkeypatch, text):
    """Then there is no thread either."""
    monkeypatch.setenv("GYMLOG_EVENT_LOOP_STALL_SECONDS", text)

    async def main():
        start_observers(metrics.meter, QUICK, telemetry.service)
        await until_sampled(metrics)
        return {thread.name for thread in threading.enumerate()}

    assert "gymlog-stalls" not in asyncio.run(main())


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_served_loop_is_seen_by_itself(telemetry, metrics, asgi, make_loop):
    """At the first request of a loop, or at its lifespan; an application calls nothing."""
    start_observers(metrics.meter, QUICK, telemetry.service)

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        served = ServerMiddleware(app)
        for _ in range(3):
            assert (await asgi(served)).status == 200
        assert observed_loops() == 1
        await until_sampled(metrics)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())


def test_the_lifespan_of_a_server_is_enough(telemetry, metrics):
    """So an idle server is sampled before anybody has asked it anything."""
    start_observers(metrics.meter, QUICK, telemetry.service)

    async def app(scope, receive, send):
        await receive()

    async def receive():
        return {"type": "lifespan.startup"}

    async def main():
        await ServerMiddleware(app)({"type": "lifespan"}, receive, None)
        assert observed_loops() == 1

    asyncio.run(main())


def test_a_stall_is_charged_to_the_request_that_blocks(telemetry, metrics, asgi, monkeypatch):
    """
    r-blocker  POST /verify ├─ block ─────────┤
    r-victim   POST /verify ├╌ waits ╌╌╌╌╌╌╌╌╌├┤     nothing is said of it
    """
    monkeypatch.setenv("GYMLOG_EVENT_LOOP_STALL_SECONDS", "0.1")
    start_observers(metrics.meter, QUICK, telemetry.service)

    def stalls():
        return [one for one in telemetry.records if one["record_type"] == "log"]

    async def app(scope, receive, send):
        if gymlog.current_rollout_id() == "r-blocker":
            deadline = time.monotonic() + 20
            while not stalls() and time.monotonic() < deadline:
                time.sleep(0.005)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def main():
        served = ServerMiddleware(app)
        paths = ("/ng-rollout/r-blocker/verify", "/ng-rollout/r-victim/verify")
        await asyncio.gather(*(asgi(served, "POST", path) for path in paths))
        async with asyncio.timeout(20):
            while len(stalls()) < 2:
                await asyncio.sleep(0.005)

    asyncio.run(main())
    (blocker,) = [
        span for span in telemetry.spans if span["attributes"]["nemo.gym.rollout.id"] == "r-blocker"
    ]
    for record in stalls():
        assert record["attributes"]["nemo.gym.rollout.id"] == "r-blocker"
        assert (record["trace_id"], record["span_id"]) == (blocker["trace_id"], blocker["span_id"])
        assert record["attributes"]["code.function.name"].endswith("<locals>.app")
        assert record["attributes"]["code.file.path"] == __file__


def test_a_loop_that_sends_requests_is_seen_by_itself(telemetry, metrics):
    """A driver has no ingress."""
    start_observers(metrics.meter, QUICK, telemetry.service)

    async def main():
        await current_session()
        assert observed_loops() == 1
        await close_sessions()

    asyncio.run(main())


def test_each_loop_is_observed_once_and_closed_ones_are_forgotten(telemetry, metrics):
    """A program may run one loop after the other."""
    start_observers(metrics.meter, QUICK, telemetry.service)

    async def main():
        assert all(watch_event_loop() for _ in range(3))
        assert observed_loops() == 1
        assert len(observers._observers.seen) == 1

    for _ in range(3):
        asyncio.run(main())
        gc.collect()


def test_outside_of_a_loop_nothing_is_watched(telemetry, metrics):
    """Nor with telemetry off; the answer says so."""
    assert watch_event_loop() is False
    start_observers(metrics.meter, QUICK, telemetry.service)
    assert watch_event_loop() is False

    async def main():
        assert watch_event_loop() is True
        stop_observers()
        assert watch_event_loop() is False

    asyncio.run(main())


def test_after_stop_a_running_loop_has_no_samples_any_more(telemetry, metrics):
    """Its timer runs out."""

    async def main():
        start_observers(metrics.meter, QUICK, telemetry.service)
        await until_sampled(metrics)
        stop_observers()
        before = metrics.one("gym.event_loop.lag_ms").count
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, later.set)
        await later.wait()
        assert metrics.one("gym.event_loop.lag_ms").count == before

    asyncio.run(main())


def test_a_loop_that_is_known_costs_next_to_nothing(telemetry, metrics):
    """0.3 µs on the test machine; here: less than 10, in the least disturbed of 20."""
    start_observers(metrics.meter, QUICK, telemetry.service)

    def seconds():
        started = time.perf_counter()
        for _ in range(100):
            watch_event_loop()
        return (time.perf_counter() - started) / 100

    async def main():
        return min(seconds() for _ in range(20))

    assert asyncio.run(main()) < 10e-6


FORKED = """
import asyncio, json, os, sys, threading, time
from opentelemetry.metrics import NoOpMeter
from gymlog import observers, testing
from gymlog.config import TelemetryConfig

def names():
    return sorted(thread.name for thread in threading.enumerate())

def stalls(telemetry):
    return [one for one in telemetry.records if one["record_type"] == "log"]

async def blocked(telemetry):
    observers.watch_event_loop()
    ends = time.monotonic() + 20
    while not stalls(telemetry) and time.monotonic() < ends:
        time.sleep(0.005)

async def parent(telemetry):
    observers.start_observers(NoOpMeter("test"), TelemetryConfig(), telemetry.service)
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        await asyncio.sleep(0)
        assert "gymlog-stalls" in names()
        return
    asyncio.events._set_running_loop(None)  # as multiprocessing's children have none
    result = {"before": names()}
    asyncio.run(blocked(telemetry))
    result |= {"after": names(), "stalls": len(stalls(telemetry))}
    observers.stop_observers()
    result |= {"stopped": names()}
    print(json.dumps(result), flush=True)
    os._exit(0)

with testing.captured() as telemetry:
    asyncio.run(parent(telemetry))
"""


def test_a_forked_child_watches_its_own_loop_and_not_its_parents():
    """
    parent ── loop A ──┬── loop A goes on
                       └── child: nothing, then its loop B
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED],
        env=os.environ | {"GYMLOG_EVENT_LOOP_STALL_SECONDS": "0.05"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["before"] == ["MainThread"]
    assert result["after"] == ["MainThread", "gymlog-stalls"]
    assert result["stalls"] >= 1
    assert result["stopped"] == ["MainThread"]


def test_the_public_name_is_the_packages(telemetry):
    """`gymlog.watch_event_loop` for loops in which gymlog neither serves nor sends requests."""
    assert gymlog.watch_event_loop is watch_event_loop
