"""The block during which a span is current, and which span is current now.

A context variable set inside a generator stays set while the generator is suspended, so a span
opened in one would become the parent of its consumer's work. A scope therefore remembers the
generator it was entered in, and `current_span` passes over a span whose generator is not running.
Generators that are context managers (contextlib) do mean their consumer's block and are exempt.
"""

import asyncio
import contextlib
import inspect
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

from opentelemetry import trace
from opentelemetry.context.context import Context

from gymlog.spans import SPAN_KEY, Span, get_context, reset_context
from gymlog.wrapping import wrap

if TYPE_CHECKING:
    from gymlog.tracer import Tracer

__all__ = ["SpanScope", "current_span"]

P = ParamSpec("P")
R = TypeVar("R")

_IN_GENERATOR: Final = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


class SpanScope:
    """A context manager that opens a span, makes it current and ends it; also a decorator."""

    __slots__ = (
        "_attributes",
        "_execution_unit",
        "_frame",
        "_is_left_behind",
        "_name",
        "_outer",
        "_token",
        "_tracer",
        "span",
    )

    def __init__(self, tracer: "Tracer", name: str, attributes: Mapping[str, object]) -> None:
        self._tracer = tracer
        self._name = name
        self._attributes = attributes

    def open(self) -> Span:
        """Open the span, not yet current."""
        return self._tracer.open_span(self._name, "INTERNAL", self._attributes)

    def __enter__(self) -> Span:
        # The hot path: what `open` and `_make_current` do, without the calls.
        span = self.span = self._tracer.open_span(self._name, "INTERNAL", self._attributes)
        frame = sys._getframe(1)
        if frame.f_code.co_flags & _IN_GENERATOR:
            self._watch(span, frame)
        self._token = span.attach()
        return span

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        span = self.span
        if exc_val is None and span.scope is None:
            try:  # noqa: SIM105 - suppress() costs more than all of this
                reset_context(self._token)
            except (ValueError, RuntimeError):
                pass  # another context than it was entered in
        else:
            self._leave(exc_val)
        span.end()

    def _make_current(self, span: Span, frame: FrameType) -> Span:
        self.span = span
        if frame.f_code.co_flags & _IN_GENERATOR:
            self._watch(span, frame)
        self._token = span.attach()
        return span

    def _leave(self, error: BaseException | None) -> None:
        """Make the span current no more; mark the exception that leaves its block."""
        span = self.span
        if span.scope is None:
            span.detach(self._token)
        elif self._leave_generator() and error is not None and _is_closed_by_task(error):
            error = GeneratorExit()
        if error is not None:
            span.fail(error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function of any kind: each call has its own span, as long as its work."""
        return wrap(function, self.open)

    def is_suspended(self) -> bool:
        """Say whether the current code runs outside of the generator that this was entered in."""
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

    @property
    def outer(self) -> trace.Span | None:
        """The span that was current before."""
        return self._outer

    def _watch(self, span: Span, frame: FrameType) -> None:
        driver = frame.f_back
        if driver is not None and driver.f_code.co_filename == contextlib.__file__:
            return
        self._frame: FrameType | None = frame
        self._outer = current_span()
        self._execution_unit = weakref.ref(_execution_unit())
        self._is_left_behind = False
        span.scope = self

    def _leave_generator(self) -> bool:
        """Detach where the span is current; say whether it had to be left behind in a context.

        A generator may be closed in another task, or when its consumer's block is long over:
        to detach there would fail, or bring back what was current when it was entered.
        """
        self._frame = None
        if self._execution_unit() is _execution_unit() and get_context().get(SPAN_KEY) is self.span:
            self.span.detach(self._token)
        else:
            self._is_left_behind = True
        return self._is_left_behind


def current_span(context: Context | None = None) -> trace.Span | None:
    """Return the current span (of `context` when given), or None; about 100 ns."""
    span: Any = (get_context() if context is None else context).get(SPAN_KEY)  # Any: a Span
    while type(span) is Span and span.scope is not None and span.scope.is_suspended():
        span = span.scope.outer
    return cast("trace.Span | None", span)


def _execution_unit() -> "asyncio.Task[Any] | threading.Thread":  # Any: a task of anything
    """Return the running asyncio task, or the thread."""
    with contextlib.suppress(RuntimeError):
        task = asyncio.current_task()
        if task is not None:
            return task
    return threading.current_thread()


def _is_closed_by_task(error: BaseException) -> bool:
    """Say whether a generator is left because the task that was to close it was cancelled."""
    unit = _execution_unit()
    return (
        isinstance(error, asyncio.CancelledError)
        and isinstance(unit, asyncio.Task)
        and type(unit.get_coro()).__name__ == "async_generator_athrow"
    )
