"""The block during which a span is current: `with managed_span(…)` and the API's like of it.

The span is its own block, one object: it starts when the block is entered and ends with it.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from opentelemetry.context.context import Context

from gymlog.generators import IN_GENERATOR, enclosing_generator, is_closed_by_task
from gymlog.spans import SPAN_KEY, Span, get_context, reset_context, set_context
from gymlog.wrapping import wrap

if TYPE_CHECKING:
    from contextvars import Token

__all__ = ["SpanScope"]

P = ParamSpec("P")
R = TypeVar("R")


class SpanScope(Span):
    """A span that starts when its block is entered; also a decorator, of a span for each call.

    Who makes one sets `tracer`, `name` and `given_attributes`: that costs half of what an
    `__init__` would. One that is entered again, after it was left, is another span.
    """

    __slots__ = ("_token", "given_attributes")

    given_attributes: dict[str, Any]  # Any: whatever the caller gave
    _token: "Token[Context]"

    def open(self) -> Span:
        """Open another span of the same kind, not yet current."""
        return self.tracer.open_span(self.name, "INTERNAL", self.given_attributes)

    def __enter__(self) -> Self:
        # The hot path: what `Tracer.begin` and `_make_current` do, without the calls.
        tracer = self.tracer
        context = get_context()
        parent: Any = context.get(SPAN_KEY)  # Any: ours or another's
        if parent is None or (type(parent) in _OURS and parent.generator is None):
            self.begin(tracer, self.name, "INTERNAL", self.given_attributes.copy(), parent)
        else:
            tracer.begin(self, self.name, "INTERNAL", self.given_attributes.copy())
        frame = sys._getframe(1)
        if frame.f_code.co_flags & IN_GENERATOR:
            self.generator = enclosing_generator(frame)
        if len(context) > (parent is not None):
            context = Context({**context, SPAN_KEY: self})
        else:
            context = Context({SPAN_KEY: self})
        self._token = set_context(context)
        return self

    def __exit__(
        self,
        exc_type: object,
        exc_val: BaseException | None,
        exc_tb: object,
    ) -> None:
        if exc_val is None and self.generator is None:
            try:  # noqa: SIM105 - suppress() costs more than all of this
                reset_context(self._token)
            except (ValueError, RuntimeError):
                pass  # another context than it was entered in
        else:
            self._leave(exc_val)
        self.end()

    def _make_current(self, frame: FrameType) -> None:
        if frame.f_code.co_flags & IN_GENERATOR:
            self.generator = enclosing_generator(frame)
        self._token = self.attach()

    def _leave(self, error: BaseException | None) -> None:
        """Make the span current no more; mark the exception that leaves its block."""
        if self.generator is None:
            self.detach(self._token)
        elif (
            self.generator.leave(self, self._token)
            and error is not None
            and is_closed_by_task(error)
        ):
            error = GeneratorExit()
        if error is not None:
            self.fail(error)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function of any kind: each call has its own span, as long as its work."""
        return wrap(function, self.open)


_OURS: Final = frozenset({Span, SpanScope})
