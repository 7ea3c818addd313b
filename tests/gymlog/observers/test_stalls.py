"""Stalls: a really blocked loop is named in the log while it is blocked."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import uvloop

from gymlog import rollout_context, testing
from gymlog.observers import stalls
from gymlog.observers.stalls import MAX_FRAMES, StallWatch

each_loop = pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])

THRESHOLD = 0.1


def run(make_loop, main):
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(main)


@pytest.fixture
def telemetry():
    """Telemetry into memory."""
    with testing.captured() as captured:
        yield captured


@pytest.fixture
def watch(telemetry):
    """A watch that writes there; no thread of it is left."""
    watch = StallWatch(telemetry.service, THRESHOLD)
    yield watch
    watch.stop()
    assert "gymlog-stalls" not in {thread.name for thread in threading.enumerate()}


def logs(telemetry, is_stalled=None):
    """Return the log records about stalls, those of its beginning or of its end."""
    records = [one for one in telemetry.records if one["record_type"] == "log"]
    assert {one["scope"]["name"] for one in records} <= {"gymlog.event_loop"}
    if is_stalled is None:
        return records
    return [
        one for one in records if one["attributes"]["gymlog.event_loop.is_stalled"] is is_stalled
    ]


def block_until(is_true, seconds=20.0):
    """Hold up this thread until another one has done something."""
    deadline = time.monotonic() + seconds
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.005)


async def end_of_stall(telemetry):
    """Let the loop run until the end of a stall is in the log."""
    async with asyncio.timeout(20):
        while not logs(telemetry, is_stalled=False):
            await asyncio.sleep(0.005)


@each_loop
def test_a_stall_names_its_code_while_it_lasts(make_loop, telemetry, watch):
    """
    loop   ─tick─┤ block_until ├─tick─
    thread           look: WARN    look: INFO, the same place and the whole length
    """

    async def handler():
        watch.watch(asyncio.get_running_loop())
        with rollout_context("7-1"), telemetry.tracer.start_as_current_span("gym.verify") as span:
            block_until(lambda: logs(telemetry))
            assert len(logs(telemetry)) == 1, "is written while the loop is stuck"
        await end_of_stall(telemetry)
        return span.get_span_context()

    context = run(make_loop, handler())
    begin, end = logs(telemetry)
    facts = begin["attributes"]
    assert (begin["severity_text"], begin["severity_number"]) == ("warning", 13)
    assert facts["code.function.name"] == "block_until"
    assert facts["code.file.path"] == __file__
    assert facts["gymlog.event_loop.is_stalled"] is True
    assert THRESHOLD * 1000 <= facts["gymlog.event_loop.stall_ms"] < 20_000
    frames = facts["code.stacktrace"].splitlines()
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+ in block_until", frames[-1])
    assert frames[-2].endswith(".<locals>.handler")
    place = f"{facts['code.file.path']}:{facts['code.line.number']} in block_until"
    assert re.fullmatch(
        rf"the event loop has not run for \d+\.\d s, it is at {re.escape(place)}", begin["body"]
    )
    assert (end["severity_text"], end["severity_number"]) == ("info", 9)
    assert end["attributes"]["gymlog.event_loop.stall_ms"] >= facts["gymlog.event_loop.stall_ms"]
    assert end["attributes"]["gymlog.event_loop.cpu_ms"] < 100, "it slept"
    assert re.fullmatch(
        rf"the event loop did not run for \d+\.\d s, it was at {re.escape(place)}", end["body"]
    )
    for record in (begin, end):
        assert record["attributes"]["nemo.gym.rollout.id"] == "7-1"
        assert record["attributes"]["gymlog.event_loop.task_name"].startswith("Task-")
        assert record["trace_id"] == f"{context.trace_id:032x}"
        assert record["span_id"] == f"{context.span_id:016x}"


def test_a_loop_itself_is_not_in_the_stack(telemetry, watch):
    """What called the loop is the same for all that it runs."""

    async def main():
        watch.watch(asyncio.get_running_loop())
        block_until(lambda: logs(telemetry))

    asyncio.run(main())
    (begin, *_) = logs(telemetry)
    stack = begin["attributes"]["code.stacktrace"]
    assert "asyncio" not in stack.replace(__file__, "")
    assert stack.count("\n") == 1


def test_a_deep_stack_is_cut_at_its_outer_end(telemetry, watch):
    """The innermost frames say where it is."""

    def deeper(levels):
        return deeper(levels - 1) if levels else block_until(lambda: logs(telemetry))

    async def main():
        watch.watch(asyncio.get_running_loop())
        deeper(3 * MAX_FRAMES)

    asyncio.run(main())
    frames = logs(telemetry)[0]["attributes"]["code.stacktrace"].splitlines()
    assert len(frames) == MAX_FRAMES
    assert frames[-1].endswith("in block_until")


def test_a_callback_outside_of_any_task_is_named_too(telemetry, watch):
    """It has a place, and no trace."""

    async def main():
        loop = asyncio.get_running_loop()
        watch.watch(loop)
        loop.call_soon(block_until, lambda: logs(telemetry))
        await end_of_stall(telemetry)

    asyncio.run(main())
    begin, end = logs(telemetry)
    assert begin["attributes"]["code.function.name"] == "block_until"
    assert "trace_id" not in begin
    assert "gymlog.event_loop.task_name" not in begin["attributes"]
    assert end["attributes"]["code.function.name"] == "block_until"


def test_a_long_stall_is_written_again_when_it_is_ten_times_as_long(telemetry):
    """A hang of an hour has five lines, not thousands."""
    watch = StallWatch(telemetry.service, 0.02)

    async def main():
        watch.watch(asyncio.get_running_loop())
        block_until(lambda: len(logs(telemetry)) >= 2)

    asyncio.run(main())
    watch.stop()
    first, second = (
        one["attributes"]["gymlog.event_loop.stall_ms"]
        for one in logs(telemetry, is_stalled=True)[:2]
    )
    assert second >= 10 * first - 5


def test_computing_is_told_from_waiting(telemetry, watch):
    """The end of a stall says how much CPU it took."""

    async def main():
        watch.watch(asyncio.get_running_loop())
        ends = time.thread_time() + 0.2
        while time.thread_time() < ends:
            pass
        await end_of_stall(telemetry)

    asyncio.run(main())
    (end,) = logs(telemetry, is_stalled=False)
    facts = end["attributes"]
    assert 150 <= facts["gymlog.event_loop.cpu_ms"] <= facts["gymlog.event_loop.stall_ms"] + 60


def test_c_code_that_lets_no_thread_run_is_named_as_well(telemetry, watch):
    """A regular expression holds the GIL: the watch runs when it is done, just before the loop."""

    def names():
        return {one["attributes"].get("code.function.name") for one in logs(telemetry)}

    async def main():
        watch.watch(asyncio.get_running_loop())
        length = 20
        while "match" not in names() and length < 26:
            length += 1
            re.match("(a+)+$", "a" * length + "b")
            await asyncio.sleep(2 * THRESHOLD)

    asyncio.run(main())
    assert "match" in names()


@each_loop
def test_an_idle_loop_is_not_stalled(make_loop, telemetry):
    """Nor is one that is stopped, or between two runs."""
    watch = StallWatch(telemetry.service, 0.2)

    async def watch_and_idle():
        watch.watch(asyncio.get_running_loop())
        await asyncio.sleep(0.3)

    loop = make_loop()
    try:
        loop.run_until_complete(watch_and_idle())
        time.sleep(0.3)
        loop.run_until_complete(asyncio.sleep(0.3))
    finally:
        loop.close()
        watch.stop()
    assert logs(telemetry) == []


def test_many_stalls_are_not_many_lines(telemetry, monkeypatch):
    """Five in a row are written; the next that is written counts those that were not."""
    watch = StallWatch(telemetry.service, 0.02)

    async def stall(pulse):
        block_until(lambda: pulse.stall is not None)
        while pulse.stall is not None:
            await asyncio.sleep(0.001)

    async def main():
        watch.watch(asyncio.get_running_loop())
        (pulse,) = watch._pulses
        for _ in range(8):
            await stall(pulse)
        assert len(logs(telemetry, is_stalled=True)) == 5
        monkeypatch.setattr(stalls, "_REFILL_SECONDS", 1e-3)
        await stall(pulse)

    asyncio.run(main())
    watch.stop()
    begins = logs(telemetry, is_stalled=True)
    omitted = [one["attributes"].get("gymlog.event_loop.stalls_omitted") for one in begins]
    assert omitted == [None] * 5 + [3]


def test_a_stall_that_is_just_over_is_told_at_the_end(telemetry):
    """Though the thread has not looked again."""
    watch = StallWatch(telemetry.service, THRESHOLD)

    async def main():
        watch.watch(asyncio.get_running_loop())
        watch._stopped.set()  # from here on it does not look
        time.sleep(2 * THRESHOLD)
        await asyncio.sleep(THRESHOLD / 2)

    asyncio.run(main())
    watch.stop()
    (end,) = logs(telemetry)
    assert end["attributes"]["gymlog.event_loop.is_stalled"] is False
    assert end["attributes"]["gymlog.event_loop.stall_ms"] >= THRESHOLD * 1000


STOPPED = """
import asyncio, os, signal, sys, threading
from gymlog import testing
from gymlog.observers.stalls import StallWatch

async def main(telemetry):
    StallWatch(telemetry.service, 0.2).watch(asyncio.get_running_loop())
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.sleep(0.5)
    for record in telemetry.records:
        if record["record_type"] == "log":
            print(record["body"], record["attributes"]["gymlog.event_loop.cpu_ms"], sep="|")

with testing.captured() as telemetry:
    asyncio.run(main(telemetry))
"""


def test_code_is_not_blamed_for_a_process_that_was_stopped():
    """SIGSTOP for a second: the stall is told with its length, and no place."""
    child = subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        time.sleep(1.0)  # the thing under test is a second that passes
        os.kill(child.pid, signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.close()
        (line,) = child.stdout.read().splitlines()
    body, cpu_ms = line.split("|")
    assert re.fullmatch(
        r"the event loop did not run for [1-9]\.\d s, it was in a place that no thread could see",
        body,
    )
    assert int(cpu_ms) < 100
