"""A span of another library's tracer, driven as a decorated function drives gymlog's own."""

from contextvars import Token

import opentelemetry.context as otel_context
from opentelemetry import trace
from opentelemetry.context.context import Context

from gymlog.spans import Span

__all__ = ["ForeignSpan", "as_ours"]


class ForeignSpan:
    """What `wrapping` needs of a span, done with OpenTelemetry's interface alone."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def attach(self) -> Token[Context]:
        """Make this the current span; give the token to `detach`."""
        return otel_context.attach(trace.set_span_in_context(self._span))

    @staticmethod
    def detach(token: Token[Context]) -> None:
        """Undo `attach`."""
        otel_context.detach(token)

    def fail(self, exception: BaseException) -> None:
        """Mark an exception as OpenTelemetry's own blocks do."""
        if isinstance(exception, Exception) and self._span.is_recording():
            self._span.record_exception(exception)
            description = f"{type(exception).__name__}: {exception}"
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, description))

    def end(self) -> None:
        """End the span."""
        self._span.end()


def as_ours(span: trace.Span) -> Span | ForeignSpan:
    """Return `span` in a form that `wrapping` can drive."""
    return span if isinstance(span, Span) else ForeignSpan(span)
