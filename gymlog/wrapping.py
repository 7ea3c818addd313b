"""Wrapping a function so that a span lasts as long as its work.

A coroutine's work ends when it returns, a generator's when it is exhausted or closed. While a
generator is suspended its span is open but not current: the consumer's work is not its child.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from gymlog.spans import Span

__all__ = ["wrap"]

P = ParamSpec("P")
R = TypeVar("R")

_Open: TypeAlias = "Callable[[], Span | None]"


def wrap(function: Callable[P, R], open_span: _Open) -> Callable[P, R]:
    """Return `function` with a span around the work of each call; None from `open_span`: none."""
    if inspect.isasyncgenfunction(function):
        wrapper: Any = _wrap_async_generator(function, open_span)  # Any: one of four kinds
    elif inspect.isgeneratorfunction(function):
        wrapper = _wrap_generator(function, open_span)
    elif inspect.iscoroutinefunction(function):
        wrapper = _wrap_coroutine(function, open_span)
    else:
        wrapper = _wrap_function(function, open_span)
    return cast("Callable[P, R]", functools.wraps(function)(wrapper))


def _wrap_function(function: Callable[P, R], open_span: _Open) -> Callable[P, R]:
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        span = open_span()
        if span is None:
            return function(*args, **kwargs)
        token = span.attach()
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            span.fail(error)
            raise
        finally:
            span.detach(token)
            span.end()

    return call


def _wrap_coroutine(
    function: Callable[P, Awaitable[R]], open_span: _Open
) -> Callable[P, Awaitable[R]]:
    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        span = open_span()
        if span is None:
            return await function(*args, **kwargs)
        token = span.attach()
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            span.fail(error)
            raise
        finally:
            span.detach(token)
            span.end()

    return call


class _Current:
    """Makes a span current for one step of a generator; with None all stays as it is."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: "Span | None") -> None:
        self._span = span

    def __enter__(self) -> None:
        if self._span is not None:
            self._token = self._span.attach()

    def __exit__(self, *exception: object) -> None:
        if self._span is not None:
            self._span.detach(self._token)


def _wrap_generator(
    function: Callable[P, Generator[Any, Any, R]], open_span: _Open
) -> Callable[P, Generator[Any, Any, R]]:  # Any: what it yields and is sent
    def call(*args: P.args, **kwargs: P.kwargs) -> Generator[Any, Any, R]:  # Any: as above
        generator = function(*args, **kwargs)
        span = open_span()
        if span is None:
            return (yield from generator)
        try:
            return (yield from _steps(generator, span))
        except BaseException as error:
            span.fail(error)
            raise
        finally:
            span.end()

    return call


def _steps(
    generator: Generator[Any, Any, R], span: "Span"
) -> Generator[Any, Any, R]:  # Any: what it yields and is sent
    """Run `generator` with `span` current in each of its steps."""
    step: Callable[[Any], Any] = generator.send  # Any: as above
    argument: Any = None  # Any: as above
    while True:
        try:
            with _Current(span):
                item = step(argument)
        except StopIteration as stop:
            return cast("R", stop.value)
        try:
            argument = yield item
            step = generator.send
        except GeneratorExit:
            with _Current(span):
                generator.close()
            raise
        except BaseException as error:  # noqa: BLE001 - handed on to the generator
            argument, step = error, generator.throw


def _wrap_async_generator(
    function: Callable[P, AsyncGenerator[Any, Any]], open_span: _Open
) -> Callable[P, AsyncGenerator[Any, Any]]:  # Any: what it yields and is sent
    async def call(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[Any, Any]:  # Any: as above
        generator = function(*args, **kwargs)
        span = open_span()
        step: Callable[[Any], Awaitable[Any]] = generator.asend  # Any: as above
        argument: Any = None  # Any: as above
        try:
            while True:
                with _Current(span):
                    item = await step(argument)
                try:
                    argument = yield item
                    step = generator.asend
                except GeneratorExit:
                    with _Current(span):
                        await generator.aclose()
                    raise
                except BaseException as error:  # noqa: BLE001 - handed on to the generator
                    argument, step = error, generator.athrow
        except StopAsyncIteration:
            return
        except BaseException as error:
            if span is not None:
                span.fail(GeneratorExit() if _closes(error, argument) else error)
            raise
        finally:
            if span is not None:
                span.end()

    return call


def _closes(error: BaseException, thrown: object) -> bool:
    """Say whether a cancellation only closes a generator that its consumer has left.

    A suspended generator awaits nothing, so one that is thrown in there was meant for the task
    that was to close it: the loop came to its end before.
    """
    return error is thrown and type(error).__name__ == "CancelledError"
