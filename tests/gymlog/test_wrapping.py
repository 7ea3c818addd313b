"""A decorated function of any kind: its span lasts as long as its work, and changes nothing."""

import asyncio
import contextlib
import functools
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gymlog import span_cm, span_groups, testing, trace_fn
from gymlog.scope import current_span
from gymlog.testing import Captured

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # Any: functions of every kind

DECORATORS: dict[str, Callable[[Captured, str], Decorator]] = {
    "trace_fn": lambda _, name: trace_fn("rollout", name),
    "start_as_current_span": lambda telemetry, name: telemetry.tracer.start_as_current_span(name),
}


@pytest.fixture(params=list(DECORATORS.values()), ids=list(DECORATORS))
def traced(request: pytest.FixtureRequest, telemetry: Captured) -> Callable[[str], Decorator]:
    """Both ways to decorate."""
    return functools.partial(request.param, telemetry)


@pytest.fixture(autouse=True)
def nothing_is_left_current() -> Iterator[None]:
    """Whatever a test does with a generator, no span stays current."""
    assert current_span() is None
    yield
    assert current_span() is None


def parents(telemetry: Captured) -> dict[str, str | None]:
    """Return span name -> name of the parent, of all spans."""
    names = {line["span_id"]: line["name"] for line in telemetry.spans}
    return {line["name"]: names.get(line["parent_span_id"]) for line in telemetry.spans}


def open_names(telemetry: Captured) -> list[str]:
    return [span.name for span in telemetry.service.open_spans.values()]


# Functions and coroutines.


def test_a_function(telemetry: Captured, traced: Callable[[str], Decorator]) -> None:
    """Arguments, result and nested calls; one span each."""

    @traced("work")
    def work(n: int, *more: int, key: str = "") -> object:
        assert open_names(telemetry)[-1] == "work"
        return work(n - 1, *more, key=key) if n else (more, key)

    assert work(2, 7, 8, key="k") == ((7, 8), "k")
    lines = telemetry.spans
    assert [line["name"] for line in lines] == ["work"] * 3
    assert [line["parent_span_id"] for line in lines] == [
        lines[1]["span_id"],
        lines[2]["span_id"],
        None,
    ]


def test_a_function_that_fails(telemetry: Captured, traced: Callable[[str], Decorator]) -> None:
    """Its own exception goes on and is on the span."""
    error = ValueError("bad")

    @traced("work")
    def work() -> None:
        raise error

    with pytest.raises(ValueError, match="bad") as caught:
        work()
    assert caught.value is error
    assert telemetry.span("work")["status"] == {"code": "ERROR", "message": "ValueError: bad"}
    assert len(telemetry.span("work")["events"]) == 1


def test_a_coroutine_lasts_until_it_returns(
    telemetry: Captured, traced: Callable[[str], Decorator]
) -> None:
    """Not only until it is made; one that is never awaited has no span."""

    @traced("work")
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        with span_cm("inside"):
            await asyncio.sleep(0)
        return n

    async def main() -> None:
        coroutine = work(5)
        assert open_names(telemetry) == []
        assert await coroutine == 5
        work(6).close()

    asyncio.run(main())
    assert parents(telemetry) == {"work": None, "inside": "work"}


def test_a_cancelled_coroutine(telemetry: Captured, traced: Callable[[str], Decorator]) -> None:
    """The cancellation goes on and is marked."""

    @traced("work")
    async def work() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert telemetry.span("work")["attributes"] == {
        "error.type": "CancelledError",
        "gymlog.cancelled": True,
    }


@pytest.mark.parametrize("kind", ["function", "coroutine", "generator", "async generator"])
def test_wrong_arguments_leave_no_open_span(
    telemetry: Captured, traced: Callable[[str], Decorator], kind: str
) -> None:
    """A call that cannot be made is the caller's TypeError."""

    def function(a: int) -> int:
        return a

    async def coroutine(a: int) -> int:
        return a

    def generator(a: int) -> Iterator[int]:
        yield a

    async def async_generator(a: int) -> AsyncIterator[int]:
        yield a

    functions = {
        "function": function, "coroutine": coroutine,
        "generator": generator, "async generator": async_generator,
    }  # fmt: skip
    work = traced("work")(functions[kind])

    async def call() -> None:
        if kind == "function":
            work()
        elif kind == "coroutine":
            await work()
        elif kind == "generator":
            list(work())
        else:
            await anext(work())

    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        asyncio.run(call())
    assert open_names(telemetry) == []


def test_a_decorated_function_keeps_its_kind(
    telemetry: Captured, traced: Callable[[str], Decorator]
) -> None:
    """Frameworks ask before they call."""

    async def coroutine() -> None: ...

    def generator() -> Iterator[int]:
        yield 1

    async def async_generator() -> AsyncIterator[int]:
        yield 1

    assert inspect.iscoroutinefunction(traced("a")(coroutine))
    assert inspect.isgeneratorfunction(traced("b")(generator))
    assert inspect.isasyncgenfunction(traced("c")(async_generator))
    for function in (coroutine, generator, async_generator):
        assert inspect.unwrap(traced("d")(function)) is function


# Generators.


def test_a_generator_lasts_until_it_is_exhausted(
    telemetry: Captured, traced: Callable[[str], Decorator]
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
    telemetry: Captured, traced: Callable[[str], Decorator]
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
    telemetry: Captured, traced: Callable[[str], Decorator]
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
    telemetry: Captured, traced: Callable[[str], Decorator], caplog: pytest.LogCaptureFixture
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
    telemetry: Captured, traced: Callable[[str], Decorator]
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


class Log:
    """A generator that tells everything that happens to it, and what a driver saw of it."""

    def __init__(self) -> None:
        self.entries: list[object] = []

    def work(self, items: int) -> Generator[int, object, str]:
        try:
            for n in range(items):
                try:
                    self.entries.append(("sent", (yield n)))
                except KeyError as error:
                    self.entries.append(("caught", error.args))
                    yield -1
        except BaseException as error:
            self.entries.append(("leaves", type(error), error.args))
            raise
        finally:
            self.entries.append("finally")
        return "result"

    async def async_work(self, items: int) -> AsyncGenerator[int, object]:
        generator = self.work(items)
        step: Callable[[], int] = lambda: next(generator)  # noqa: E731 - replaced below
        while True:
            try:
                item = step()
            except StopIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)


ACTIONS = st.lists(st.sampled_from(["next", "send", "KeyError", "ValueError", "close"]), max_size=6)


def drive(log: Log, generator: Any, actions: list[str]) -> list[object]:  # Any: a generator
    """Do `actions` to a generator as any consumer may."""
    for action in actions:
        with contextlib.suppress(Exception):
            try:
                if action == "next":
                    log.entries.append(("got", next(generator)))
                elif action == "send":
                    log.entries.append(("got", generator.send("x")))
                elif action == "close":
                    generator.close()
                else:
                    error = {"KeyError": KeyError, "ValueError": ValueError}[action](action)
                    log.entries.append(("got", generator.throw(error)))
            except BaseException as error:
                log.entries.append(("raised", type(error), error.args))
                raise
    generator.close()
    return log.entries


async def drive_async(log: Log, generator: Any, actions: list[str]) -> list[object]:
    # Any: an async generator
    for action in actions:
        with contextlib.suppress(Exception):
            try:
                if action == "next":
                    log.entries.append(("got", await anext(generator)))
                elif action == "send":
                    log.entries.append(("got", await generator.asend("x")))
                elif action == "close":
                    await generator.aclose()
                else:
                    error = {"KeyError": KeyError, "ValueError": ValueError}[action](action)
                    log.entries.append(("got", await generator.athrow(error)))
            except BaseException as error:
                log.entries.append(("raised", type(error), error.args))
                raise
    await generator.aclose()
    return log.entries


@given(actions=ACTIONS, items=st.integers(0, 3), is_open=st.booleans())
def test_a_decorated_generator_behaves_as_the_plain_one(
    actions: list[str], items: int, is_open: bool
) -> None:
    """next, send, throw and close in any order, gate open or closed: nobody sees a difference.

    And no span stays open or current.
    """
    plain, decorated = Log(), Log()
    with testing.captured("all" if is_open else "default") as telemetry:
        work = trace_fn("verify", "work")(decorated.work)
        assert drive(decorated, work(items), actions) == drive(plain, plain.work(items), actions)
        assert open_names(telemetry) == []
        assert len(telemetry.spans) <= is_open
    assert current_span() is None


@settings(max_examples=50)  # each starts an event loop
@given(actions=ACTIONS, items=st.integers(0, 3), is_open=st.booleans())
def test_a_decorated_async_generator_behaves_as_the_plain_one(
    actions: list[str], items: int, is_open: bool
) -> None:
    """As above."""
    plain, decorated = Log(), Log()

    async def main() -> None:
        work = trace_fn("verify", "work")(decorated.async_work)
        seen = await drive_async(decorated, work(items), actions)
        assert seen == await drive_async(plain, plain.async_work(items), actions)

    with testing.captured("all" if is_open else "default") as telemetry:
        asyncio.run(main())
        assert open_names(telemetry) == []
        assert len(telemetry.spans) <= is_open
    assert current_span() is None


def test_a_generators_result_and_yield_from(telemetry: Captured) -> None:
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


def test_a_generator_advanced_under_another_span_stays_in_place(telemetry: Captured) -> None:
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
    telemetry: Captured,
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
