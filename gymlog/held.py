"""Errors of work that is not sampled: a span is held until it ends, and written if it failed.

For GYMLOG_KEEP_ERRORS=1. Such a span is recorded as any other (OpenTelemetry calls it recording but
not sampled), so it saves the line and not the recording. Its `flags` say that it is not sampled;
so do those that go on to other processes, which hold theirs. What did not fail is not there: a
line's parent may be missing, unless the error went through it too.
"""

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context.context import Context

from gymlog.record import FLAG_SAMPLED
from gymlog.rollout import current_rollout_id
from gymlog.semconv import ROLLOUT_ID
from gymlog.spans import Span
from gymlog.tracer import RemoteParent, Tracer, TracerProvider
from gymlog.values import take

__all__ = ["HeldSpan", "HoldingTracer", "HoldingTracerProvider"]


class HeldSpan(Span):
    """A span that is not sampled: its line is written only when its status is ERROR."""

    __slots__ = ()

    announced = True  # a `span_start` would look like work that never ended

    def end(self, end_time: int | None = None) -> None:
        """Write the span's line if it failed; only the first call does anything."""
        if self.status_code == "ERROR":
            super().end(end_time)
        else:
            self._recording = 0
            self._tracer.service.open_spans.pop(self.span_id, None)


class HoldingTracer(Tracer):
    """A tracer that holds what its sampler leaves out."""

    __slots__ = ()

    def open_span(
        self,
        name: str,
        kind: str = "INTERNAL",
        attributes: Mapping[str, object] | None = None,
        *,
        parent: RemoteParent | None = None,
        is_root: bool = False,
        context: Context | None = None,
        start_time: int | None = None,
    ) -> Span:
        """Start a span without making it current (see `Tracer.open_span`)."""
        span = super().open_span(
            name,
            kind,
            attributes,
            parent=parent,
            is_root=is_root,
            context=context,
            start_time=start_time,
        )
        if not span.flags & FLAG_SAMPLED:
            self._hold(span, attributes)
        return span

    def _hold(self, span: Span, attributes: Mapping[str, object] | None) -> None:
        span.__class__ = HeldSpan
        span._recording = 1
        rollout_id = current_rollout_id()
        if rollout_id is not None:
            span._attributes[ROLLOUT_ID] = rollout_id
        limits = self.limits
        dropped = take(span._attributes, attributes or {}, limits.attributes, limits.characters)
        if dropped:
            span.drop_attributes(dropped)
        self.service.open_spans[span.span_id] = span
        if self.service.is_careful:
            self.service.opened_with_care(span)


class HoldingTracerProvider(TracerProvider):
    """Hands out tracers that hold what their sampler leaves out; takes what TracerProvider does."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # the same, handed on
        self.tracer.__class__ = HoldingTracer

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> trace.Tracer:
        """Return a tracer for an instrumenting library."""
        tracer = super().get_tracer(
            instrumenting_module_name, instrumenting_library_version, schema_url, attributes
        )
        if isinstance(tracer, Tracer):
            tracer.__class__ = HoldingTracer
        return tracer
