"""A decorated function of any kind: its span lasts as long as its work, and changes nothing."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from gymlog import span_cm
from gymlog.testing import Captured

OpenNames = Callable[[Captured], list[str]]
Parents = Callable[[Captured], dict[str, str | None]]
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # Any: functions of every kind


def test_a_function(
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    open_names: OpenNames,
) -> None:
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
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    parents: Parents,
    open_names: OpenNames,
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
    telemetry: Captured,
    traced: Callable[[str], Decorator],
    kind: str,
    open_names: OpenNames,
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
