"""Event-loop lag and tasks, on real loops of asyncio and uvloop."""

import asyncio
import gc
import time
import weakref

import pytest
import uvloop

from gymlog.observers.event_loop import LAG_BOUNDS_MS, EventLoops, LoopTicks

each_loop = pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])


async def until(is_true):
    """Let the loop run until a condition holds."""
    async with asyncio.timeout(20):
        while not is_true():
            await asyncio.sleep(0.001)


def run(make_loop, main):
    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(main)


@each_loop
def test_an_idle_loop_is_sampled_at_the_interval(make_loop, metrics):
    """Lag of a few ms at most on an idle machine; here: less than a minute, and not negative."""
    loops = EventLoops(metrics.meter, interval_seconds=0.005)

    def count():
        point = metrics.one("gym.event_loop.lag_ms")
        return point.count if point else 0

    async def main():
        started = time.monotonic()
        loops.watch(asyncio.get_running_loop())
        await until(lambda: count() >= 5)
        return time.monotonic() - started

    assert run(make_loop, main()) >= 5 * 0.004  # uvloop's timers go in ms
    point = metrics.one("gym.event_loop.lag_ms")
    assert point.explicit_bounds == LAG_BOUNDS_MS
    assert 0 <= point.min <= point.max < 60_000
    assert LAG_BOUNDS_MS[0] <= 1
    assert LAG_BOUNDS_MS[-1] == 3_600_000


@each_loop
def test_a_blocked_loop_is_as_late_as_it_was_blocked(make_loop, metrics):
    """A call that blocks for 0.1 s makes a lag of 0.1 s, less what was left of the interval."""
    loops = EventLoops(metrics.meter, interval_seconds=0.01)

    async def main():
        loops.watch(asyncio.get_running_loop())
        time.sleep(0.1)
        await until(lambda: metrics.one("gym.event_loop.lag_ms") is not None)

    run(make_loop, main())
    assert 85 <= metrics.one("gym.event_loop.lag_ms").max < 10_000


@each_loop
def test_a_loop_that_was_stopped_was_not_late(make_loop, metrics):
    """
    run ──┤ stopped 0.1 s ├── run: the tick that was due in between is passed over.
    """
    loops = EventLoops(metrics.meter, interval_seconds=0.01)
    loop = make_loop()

    async def watch():
        loops.watch(loop)

    try:
        loop.run_until_complete(watch())
        time.sleep(0.1)
        loop.run_until_complete(until(lambda: metrics.one("gym.event_loop.lag_ms") is not None))
    finally:
        loop.close()
    assert metrics.one("gym.event_loop.lag_ms").max < 90


@each_loop
def test_a_loop_is_not_kept(make_loop, metrics):
    """Its program ends as if nobody watched, nothing is pending, and closed it can be collected."""
    loops = EventLoops(metrics.meter, interval_seconds=3600, counts_tasks=True)

    async def main():
        before = asyncio.all_tasks()
        loops.watch(asyncio.get_running_loop())
        assert asyncio.all_tasks() == before
        return weakref.ref(asyncio.get_running_loop())

    loop = run(make_loop, main())
    gc.collect()
    assert loop() is None


@each_loop
def test_tasks_are_counted_where_that_is_asked_for(make_loop, metrics):
    """Over all loops that are open; of a closed one nothing is said."""
    loops = EventLoops(metrics.meter, interval_seconds=0.005, counts_tasks=True)

    async def main():
        loops.watch(asyncio.get_running_loop())
        waiting = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
        await until(lambda: (point := metrics.one("gym.event_loop.tasks")) and point.value == 4)
        for task in waiting:
            task.cancel()

    run(make_loop, main())
    assert metrics.one("gym.event_loop.tasks") is None


def test_tasks_are_not_counted_by_default(metrics):
    """Counting walks all of them."""
    EventLoops(metrics.meter)
    assert metrics.collect() == {}


@each_loop
def test_nothing_is_sampled_after_forget(make_loop, metrics):
    """A timer that is set already runs out."""
    loops = EventLoops(metrics.meter, interval_seconds=0.005)

    async def main():
        loops.watch(asyncio.get_running_loop())
        loops.forget()
        later = asyncio.Event()
        asyncio.get_running_loop().call_later(0.03, later.set)
        await later.wait()

    run(make_loop, main())
    assert metrics.collect() == {}


@each_loop
def test_ticks_hold_no_request_in_memory(make_loop):
    """What was current when the loop was first seen is not current in a tick."""
    from gymlog.rollout import current_rollout_id, rollout_context

    seen = []

    async def main():
        ticks = LoopTicks(0.001, lambda late_ns: seen.append(current_rollout_id()))
        with rollout_context("1-0"):
            ticks.schedule(asyncio.get_running_loop())
        await until(lambda: len(seen) >= 2)
        ticks.is_over = True

    run(make_loop, main())
    assert set(seen) == {None}


def test_a_tick_that_fails_is_told_and_the_next_one_comes(capfd):
    """The host's loop gets no exception."""
    from gymlog import notices

    ticked = []

    def fail(late_ns):
        ticked.append(late_ns)
        raise LookupError("no series")

    async def main():
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: pytest.fail(str(context))
        )
        ticks = LoopTicks(0.001, fail)
        ticks.schedule(asyncio.get_running_loop())
        await until(lambda: len(ticked) >= 2)
        ticks.is_over = True

    notices.reset()
    asyncio.run(main())
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1
    assert "LookupError('no series')" in told[0]
