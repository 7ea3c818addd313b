"""Which span is current now, also where generators are involved.

A context variable set inside a generator stays set while the generator is suspended, so a span
opened in one would become the parent of its consumer's work. Such a span therefore remembers the
generator it was entered in, and `current_span` passes over it while that generator is not running.
Generators that are context managers (contextlib) do mean their consumer's block and are exempt.
"""

import asyncio
import contextlib
import inspect
import sys
import threading
import weakref
from contextvars import Token
from types import FrameType
from typing import Any, Final, cast

from opentelemetry import trace
from opentelemetry.context.context import Context

from gymlog.spans import SPAN_KEY, Span, get_context

__all__ = [
    "IN_GENERATOR",
    "EnclosingGenerator",
    "current_span",
    "enclosing_generator",
    "is_closed_by_task",
]

IN_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
"""Flags of a generator's code."""


class EnclosingGenerator:
    """The generator that a span's block lies in, or the part of it that has been left."""

    __slots__ = ("_execution_unit", "_frame", "_is_left_behind", "outer")

    def __init__(self, frame: FrameType) -> None:
        self._frame: FrameType | None = frame
        self.outer = current_span()
        """The span that was current before."""
        self._execution_unit = weakref.ref(_execution_unit())
        self._is_left_behind = False

    def is_suspended(self) -> bool:
        """Say whether the current code runs outside of the generator."""
        if self._is_left_behind:
            return True
        if self._execution_unit() is not _execution_unit():
            return False  # another task or thread: it was given a copy of the context
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame is self._frame:
                return False
            frame = frame.f_back
        return True

    def leave(self, span: Span, token: Token[Context]) -> bool:
        """Detach `span` where it is current; say whether it had to be left behind in a context.

        A generator may be closed in another task, or when its consumer's block is long over:
        to detach there would fail, or bring back what was current when it was entered.
        """
        self._frame = None
        if self._execution_unit() is _execution_unit() and get_context().get(SPAN_KEY) is span:
            span.detach(token)
        else:
            self._is_left_behind = True
        return self._is_left_behind


def enclosing_generator(frame: FrameType) -> EnclosingGenerator | None:
    """Return what to remember of the generator whose frame this is; None for an exempt one."""
    driver = frame.f_back
    if driver is not None and driver.f_code.co_filename == contextlib.__file__:
        return None
    return EnclosingGenerator(frame)


def current_span(context: Context | None = None) -> trace.Span | None:
    """Return the current span (of `context` when given), or None; about 100 ns."""
    span: Any = (get_context() if context is None else context).get(SPAN_KEY)  # Any: a Span
    while isinstance(span, Span) and span.generator is not None and span.generator.is_suspended():
        span = span.generator.outer
    return cast("trace.Span | None", span)


def is_closed_by_task(error: BaseException) -> bool:
    """Say whether a generator is left because the task that was to close it was cancelled."""
    unit = _execution_unit()
    return (
        isinstance(error, asyncio.CancelledError)
        and isinstance(unit, asyncio.Task)
        and type(unit.get_coro()).__name__ == "async_generator_athrow"
    )


def _execution_unit() -> "asyncio.Task[Any] | threading.Thread":  # Any: a task of anything
    """Return the running asyncio task, or the thread."""
    with contextlib.suppress(RuntimeError):
        task = asyncio.current_task()
        if task is not None:
            return task
    return threading.current_thread()
