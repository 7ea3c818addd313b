"""A decorated generator: its span lasts until it is exhausted or closed, and is its own."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest

from gymlog import span_cm, span_groups, trace_fn
from gymlog.generators import current_span
from gymlog.testing import Captured

OpenNames = Callable[[Captured], list[str]]
Parents = Callable[[Captured], dict[str, str | None]]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # Any: functions of every kind


def test_a_generator_lasts_until_it_is_exhausted(
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    parents: Parents,
    open_names: OpenNames,
) -> None:
    """
    caller
    ├─ stream
    │  └─ step 0, step 1
    └─ use 0, use 1
    """

    @traced("stream")
    def stream() -> Iterator[int]:
        for n in range(2):
            with span_cm(f"step {n}"):
                pass
            yield n

    with span_cm("caller") as caller:
        iterator = stream()
        assert open_names(telemetry) == ["caller"], "nothing has begun"
        for n in iterator:
            assert "stream" in open_names(telemetry)
            assert current_span() is caller
            with span_cm(f"use {n}"):
                pass
        assert "stream" not in open_names(telemetry)
    assert parents(telemetry) == {
        "caller": None, "stream": "caller",
        "step 0": "stream", "step 1": "stream", "use 0": "caller", "use 1": "caller",
    }  # fmt: skip
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}


def test_an_async_generator_lasts_until_it_is_exhausted(
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    parents: Parents,
    open_names: OpenNames,
) -> None:
    """As above; the consumer may be another task at every step, and may start tasks."""

    async def use(n: int) -> None:
        with span_cm(f"use {n}"):
            await asyncio.sleep(0)

    @traced("stream")
    async def stream() -> AsyncIterator[int]:
        for n in range(2):
            await asyncio.sleep(0)
            with span_cm(f"step {n}"):
                await asyncio.sleep(0)
            yield n

    async def main() -> None:
        with span_cm("caller") as caller:
            iterator = stream()
            for n in range(2):
                assert await asyncio.create_task(anext(iterator)) == n
                assert current_span() is caller
                await asyncio.gather(use(n))
            with pytest.raises(StopAsyncIteration):
                await anext(iterator)
            assert "stream" not in open_names(telemetry)

    asyncio.run(main())
    assert parents(telemetry) == {
        "caller": None, "stream": "caller",
        "step 0": "stream", "step 1": "stream", "use 0": "caller", "use 1": "caller",
    }  # fmt: skip
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}


def test_a_generator_that_is_left_early(
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    parents: Parents,
    open_names: OpenNames,
) -> None:
    """Its cleanup runs within its span; leaving is no error."""

    @traced("stream")
    def stream() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            with span_cm("cleanup"):
                pass

    with span_cm("caller"):
        for _ in stream():
            break
        assert open_names(telemetry) == ["caller"]
    assert parents(telemetry) == {"caller": None, "stream": "caller", "cleanup": "stream"}
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}
    assert telemetry.span("stream")["attributes"] == {"error.type": "GeneratorExit"}


def test_an_async_generator_that_is_left_early(
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    caplog: pytest.LogCaptureFixture,
    parents: Parents,
) -> None:
    """Closed in another task: one record, no noise, and what comes after is the caller's."""

    @traced("stream")
    async def stream() -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
        finally:
            with span_cm("cleanup"):
                await asyncio.sleep(0)

    async def main() -> None:
        with span_cm("caller"):
            iterator = stream()
            async for _ in iterator:
                break
            await asyncio.create_task(iterator.aclose())
            with span_cm("after"):
                pass

    asyncio.run(main())
    assert parents(telemetry) == {
        "caller": None, "stream": "caller", "cleanup": "stream", "after": "caller",
    }  # fmt: skip
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}
    assert caplog.records == []


def test_async_generators_that_the_loop_closes(
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    parents: Parents,
    open_names: OpenNames,
) -> None:
    """Dropped or still held at the end: each has its one record, and no task is a child of it."""
    held = []

    @traced("stream")
    async def stream() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def work() -> None:
        with span_cm("task"):
            pass

    async def main() -> None:
        with span_cm("caller"):
            async for _ in stream():
                break
            held.append(stream())
            await anext(held[0])
            await asyncio.gather(work())

    asyncio.run(main())
    assert sorted(line["name"] for line in telemetry.spans) == [
        "caller",
        "stream",
        "stream",
        "task",
    ]
    assert parents(telemetry) == {"caller": None, "stream": "caller", "task": "caller"}
    assert {line["status"]["code"] for line in telemetry.spans} == {"UNSET"}
    assert open_names(telemetry) == []


def test_an_async_generator_that_is_left_early_at_the_very_end(
    telemetry: Captured, traced: Callable[[str], Decorator]
) -> None:
    """The loop cancels the task that was to close it: that is no cancelled work."""

    @traced("stream")
    async def stream() -> AsyncIterator[int]:
        yield 1
        yield 2

    async def main() -> None:
        async for _ in stream():
            break

    asyncio.run(main())
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}
    assert telemetry.span("stream")["attributes"] == {"error.type": "GeneratorExit"}


def test_an_async_generator_that_is_cancelled_at_work(
    telemetry: Captured, traced: Callable[[str], Decorator]
) -> None:
    """Its consumer's task is cancelled while the generator awaits: that is cancelled work."""

    @traced("stream")
    async def stream() -> AsyncIterator[int]:
        yield 1
        await asyncio.get_running_loop().create_future()

    async def consume() -> None:
        async for _ in stream():
            pass

    async def main() -> None:
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert telemetry.span("stream")["status"] == {"code": "ERROR", "message": "cancelled"}


@pytest.mark.parametrize("where", ["before the first item", "between", "after the last"])
def test_a_generator_that_fails(
    telemetry: Captured, traced: Callable[[str], Decorator], where: str
) -> None:
    """Sync and async alike: the exception goes on and is on the span, once."""
    steps = ["before the first item", "between", "after the last"]

    @traced("sync")
    def stream() -> Iterator[str]:
        for step in steps:
            if step == where:
                raise ValueError(step)
            yield step

    @traced("async")
    async def async_stream() -> AsyncIterator[str]:
        for step in steps:
            if step == where:
                raise ValueError(step)
            yield step

    async def drain() -> list[str]:
        return [step async for step in async_stream()]

    with pytest.raises(ValueError, match=where):
        list(stream())
    with pytest.raises(ValueError, match=where):
        asyncio.run(drain())
    for name in ("sync", "async"):
        line = telemetry.span(name)
        assert line["status"] == {"code": "ERROR", "message": f"ValueError: {where}"}
        assert len(line["events"]) == 1


def test_a_generators_result_and_yield_from(telemetry: Captured, parents: Parents) -> None:
    """`return` in a generator reaches who delegates to it."""

    @trace_fn("rollout", "inner")
    def inner() -> Generator[int, int, str]:
        got = yield 1
        return f"got {got}"

    @trace_fn("rollout", "outer")
    def outer() -> Generator[int, int, str]:
        result = yield from inner()
        return f"inner {result}"

    iterator = outer()
    assert next(iterator) == 1
    with pytest.raises(StopIteration) as stop:
        iterator.send(5)
    assert stop.value.value == "inner got 5"
    assert parents(telemetry) == {"outer": None, "inner": "outer"}


def test_a_generator_keeps_the_span_it_began_with(telemetry: Captured) -> None:
    """A gate that closes midway does not cut it, one that opens midway does not begin it."""

    @trace_fn("verify", "work")
    def work() -> Iterator[int]:
        yield 1
        yield 2

    begun_open = work()
    next(begun_open)
    span_groups.close_all()
    begun_closed = work()
    next(begun_closed)
    span_groups.open_groups("verify")
    assert [*begun_open, *begun_closed] == [2, 2]
    assert [line["name"] for line in telemetry.spans] == ["work"]


def test_a_generator_advanced_under_another_span_stays_in_place(
    telemetry: Captured, parents: Parents
) -> None:
    """
    first            the generator began here,
    └─ stream        its second step is run below "second"
       └─ inside 1, inside 2
    """

    @trace_fn("rollout", "stream")
    def stream() -> Iterator[int]:
        for n in (1, 2):
            with span_cm(f"inside {n}"):
                pass
            yield n

    iterator = stream()
    with span_cm("first"):
        next(iterator)
    with span_cm("second"):
        assert list(iterator) == [2]
    assert parents(telemetry) == {
        "first": None, "second": None, "stream": "first",
        "inside 1": "stream", "inside 2": "stream",
    }  # fmt: skip


def test_a_decorated_async_contextmanager_is_current_only_in_its_own_steps(
    telemetry: Captured, parents: Parents
) -> None:
    """The decorator is around the generator, not around its consumer's block."""

    @contextlib.asynccontextmanager
    @trace_fn("rollout", "manager")
    async def manager() -> AsyncIterator[None]:
        with span_cm("enter"):
            await asyncio.sleep(0)
        yield

    async def main() -> None:
        async with manager():
            with span_cm("body"):
                await asyncio.sleep(0)

    asyncio.run(main())
    assert parents(telemetry) == {"manager": None, "enter": "manager", "body": None}
