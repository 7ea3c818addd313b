"""Memory: what spans leave behind, and what each costs while it is open.

Sizes are what Python allocates (tracemalloc), which depends on no other process; resident memory
is `tests/bench/bench_memory.py`'s.
"""

import asyncio
import gc
import os
import tracemalloc
import weakref

import pytest

from gymlog import managed_span, sites, span_groups, trace_fn
from gymlog.channel import Channel
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider

FEW_BYTES = 64 * 1024
"""Ids drawn ahead, caches, tables of dictionaries: what does not grow with the number of spans.

Of `MANY` spans one that left a mere reference behind would take more; of `SOME`, an object.
"""
MANY, SOME = 20_000, 3_000


@pytest.fixture
def provider():
    """Telemetry whose lines nobody keeps; `service.sweep()` announces every open span."""
    before = sites.installed_tracer(), span_groups.open_now()
    fd = os.open(os.devnull, os.O_WRONLY)
    service = ServiceInstance(
        {"service.name": "test"}, lambda: Sink(Channel(fd)), span_start_after_seconds=1e-9
    )
    provider = TracerProvider(service)
    sites.install(provider.tracer)
    span_groups.open_groups("all")
    yield provider
    sites.install(before[0])
    span_groups.restore(before[1])
    os.close(fd)


@pytest.fixture
def allocated():
    """`allocated()` returns the bytes that Python has allocated since the test began to ask."""

    def allocated():
        if not tracemalloc.is_tracing():
            tracemalloc.start()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    assert not tracemalloc.is_tracing()
    yield allocated
    tracemalloc.stop()


def a_span(number, tracer):
    with managed_span(
        "rollout", "gym.rollout", turn=number, tool=f"tool {number}", ok=True
    ) as span:
        span.set_attribute("gym.answered", True)


def a_failing_span(number, tracer):
    try:
        with managed_span("agent", "gym.agent", turn=number), managed_span("verify", "gym.verify"):
            raise ValueError(f"rollout {number}")
    except ValueError:
        pass


def a_span_with_detail(number, tracer):
    with tracer.start_as_current_span("outer") as outer:
        span = tracer.start_span("inner")
        span.add_event("began", {"number": number})
        span.add_link(outer.get_span_context(), {"number": number})
        span.end()


def a_generators_span(number, tracer):
    def numbers():
        with managed_span("agent", "gym.agent", turn=number):
            yield number
            yield number

    next(numbers())  # and is closed when it is collected


@pytest.mark.parametrize(
    ("piece_of_work", "count"),
    [
        pytest.param(a_span, MANY, id="of a common kind"),
        pytest.param(a_failing_span, SOME, id="that fail"),
        pytest.param(a_span_with_detail, SOME, id="with events and links"),
        pytest.param(a_generators_span, SOME, id="of generators left half way"),
    ],
)
def test_spans_that_have_ended_leave_nothing(provider, allocated, piece_of_work, count):
    """Neither among the open ones nor anywhere else in memory."""
    for number in range(1_000):
        piece_of_work(number, provider.tracer)
    before = allocated()
    for number in range(count):
        piece_of_work(number, provider.tracer)
    assert allocated() - before < FEW_BYTES
    assert not provider.service.open_spans
    assert not provider.service.held
    assert provider.service.spans_ended >= count
    assert provider.service.sink.records_dropped == 0


def test_spans_held_for_their_errors_leave_nothing(provider, allocated):
    """Where a tracer keeps the errors of traces that are not sampled."""
    service = provider.service
    kept = TracerProvider(service, sampler=lambda trace_id, flags: False, keeps_errors=True)
    sites.install(kept.tracer)
    for number in range(1_000):
        a_span(number, kept.tracer)
    before = allocated()
    for number in range(SOME):
        a_span(number, kept.tracer)
        a_failing_span(number, kept.tracer)
    assert allocated() - before < FEW_BYTES
    assert not service.held
    assert service.spans_ended == 2 * SOME


def test_a_span_does_not_keep_its_children(provider, allocated):
    """A job of days is the parent of millions of rollouts."""
    with managed_span("job", "gym.job"):
        for number in range(1_000):
            a_span(number, provider.tracer)
        before = allocated()
        for number in range(MANY):
            a_span(number, provider.tracer)
        assert allocated() - before < FEW_BYTES
        assert [span.name for span in provider.service.open_spans.values()] == ["gym.job"]


def test_a_span_is_gone_when_it_has_ended_and_nobody_holds_it(provider):
    """At once, without the garbage collector: it is in no cycle, announced or not."""
    gc.disable()
    try:
        for is_announced in (False, True):
            with managed_span("rollout", "gym.rollout") as span:
                gone = weakref.ref(span)
                if is_announced:
                    provider.service.sweep()
                    assert gone() in provider.service.announced.values()
            del span
            assert gone() is None
    finally:
        gc.enable()


def test_the_span_of_a_cancelled_task_leaves_nothing(provider):
    """Nor does that of a coroutine that is dropped while it waits."""

    @trace_fn("agent", "gym.agent")
    async def wait():
        await asyncio.get_running_loop().create_future()

    async def cancel():
        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        assert len(provider.service.open_spans) == 1
        task.cancel()
        await asyncio.wait([task])

    async def drop():
        coroutine = wait()
        coroutine.send(None)
        assert len(provider.service.open_spans) == 1
        del coroutine
        gc.collect()

    for leave in (cancel, drop):
        asyncio.run(leave())
        assert not provider.service.open_spans


@pytest.mark.parametrize("is_announced", [False, True], ids=["open", "announced"])
def test_an_open_span_costs_at_most_2048_bytes(provider, allocated, is_announced):
    """All it takes: itself, record, attributes, context, token, its place among the open ones.

    Compared are tasks that wait inside a span with the same tasks when the span's group is closed.
    """
    count = 2_000

    async def wait(number, is_over):
        with managed_span(
            "rollout", "gym.rollout", turn=number, tool=f"tool {number}", ok=number % 3 == 0
        ):
            await is_over.wait()

    async def hold(tasks):
        is_over = asyncio.Event()
        before = allocated()
        waiting = [asyncio.create_task(wait(number, is_over)) for number in range(tasks)]
        await asyncio.sleep(0)
        if is_announced:
            provider.service.sweep()
        taken = allocated() - before
        assert len(
            provider.service.announced if is_announced else provider.service.unannounced
        ) in (
            0,
            tasks,
        )
        is_over.set()
        await asyncio.gather(*waiting)
        return taken

    asyncio.run(hold(10))
    with_spans = asyncio.run(hold(count))
    span_groups.open_groups("")
    without = asyncio.run(hold(count))
    cost = (with_spans - without) / count
    assert 500 < cost <= 2_048, f"an open span costs {cost:.0f} bytes"
