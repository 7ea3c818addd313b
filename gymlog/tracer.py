"""Opening spans: ids, parent, sampling, and the block during which a span is current.

Implements OpenTelemetry's Tracer and TracerProvider. `open_span` is the lean way in, used by the
call sites, the ingress and the egress; `start_span` and `start_as_current_span` are the API's.
"""

import sys
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.context.context import Context

from gymlog import ids
from gymlog.record import FLAG_RANDOM_TRACE_ID, FLAG_SAMPLED
from gymlog.rollout import current_rollout_id
from gymlog.samplers import Sampler
from gymlog.scope import SpanScope, current_span
from gymlog.semconv import ROLLOUT_ID
from gymlog.service import ServiceInstance
from gymlog.spans import Span
from gymlog.values import Limits, clean_text, take

__all__ = ["RemoteParent", "Tracer", "TracerProvider"]

_PASSED_ON: Final = FLAG_SAMPLED | FLAG_RANDOM_TRACE_ID


class RemoteParent(Protocol):
    """A caller's span, as `propagation.extract` reads it from headers."""

    @property
    def trace_id(self) -> str: ...
    @property
    def span_id(self) -> str: ...
    @property
    def flags(self) -> int: ...
    @property
    def trace_state(self) -> str: ...


class Tracer(trace.Tracer):
    """Opens the spans of one instrumentation scope (None: gymlog's own)."""

    __slots__ = ("instrumentation_scope", "limits", "sampler", "service")

    def __init__(
        self,
        service: ServiceInstance,
        *,
        instrumentation_scope: Mapping[str, str] | None = None,
        sampler: Sampler | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.service = service
        self.instrumentation_scope = instrumentation_scope
        self.sampler = sampler
        self.limits = limits or Limits()

    def open_span(  # noqa: C901 - the hot path is one function
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
        """Start a span without making it current; about 4 µs.

        Its parent is `parent` when given (a caller in another process), none when `is_root`, else
        the span of `context` (the current one when None). `attributes` is the caller's to keep;
        the rollout id is added. `start_time` is ns since 1970.
        """
        trace_state = ""
        is_remote = False
        parent_flags: int | None
        if parent is not None:
            trace_id, parent_id, parent_flags = parent.trace_id, parent.span_id, parent.flags
            trace_state, is_remote = parent.trace_state, True
        else:
            current = None if is_root else current_span(context)
            if type(current) is Span:
                trace_id, parent_id = current.trace_id, current.span_id
                parent_flags, trace_state = current.flags, current.trace_state
            elif current is not None and (other := current.get_span_context()).is_valid:
                trace_id, parent_id = f"{other.trace_id:032x}", f"{other.span_id:016x}"
                parent_flags, is_remote = int(other.trace_flags), other.is_remote
                trace_state = other.trace_state.to_header() if other.trace_state else ""
            else:
                trace_id, parent_id, parent_flags = ids.new_trace_id(), None, None
        if self.sampler is None:  # parentbased_always_on
            flags = _PASSED_ON if parent_flags is None else parent_flags & _PASSED_ON
        else:
            sampled = self.sampler(trace_id, parent_flags)
            random = (
                FLAG_RANDOM_TRACE_ID
                if parent_flags is None
                else parent_flags & FLAG_RANDOM_TRACE_ID
            )
            flags = (FLAG_SAMPLED if sampled else 0) | random
        taken: dict[str, Any] = {}  # Any: one JSON value
        span = Span(
            self,
            name if type(name) is str else clean_text(name, self.limits.characters),
            kind,
            trace_id,
            ids.new_span_id(),
            parent_id,
            flags,
            trace_state,
            is_remote,
            taken,
        )
        if start_time is not None:
            span.start_time_unix_nano = start_time
        if not flags & FLAG_SAMPLED:
            return span
        rollout_id = current_rollout_id()
        if rollout_id is not None:
            taken[ROLLOUT_ID] = rollout_id
        if attributes:
            dropped = take(taken, attributes, self.limits.attributes, self.limits.characters)
            if dropped:
                span.drop_attributes(dropped)
        service = self.service
        service.open_spans[span.span_id] = span
        if service.is_careful:
            service.opened_with_care(span)
        return span

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
        attributes: Mapping[str, object] | None = None,
        links: Iterable[trace.Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
        set_status_on_exception: bool = True,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
    ) -> Span:
        """Start a span without making it current; the caller ends it."""
        span = self.open_span(name, kind.name, attributes, context=context, start_time=start_time)
        span.on_exception(record=record_exception, set_status=set_status_on_exception)
        for link in links or ():
            span.add_link(link.context, link.attributes)
        return span

    def start_as_current_span(  # type: ignore[override]  # the scope is both, as the API asks
        self,
        name: str,
        context: Context | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
        attributes: Mapping[str, object] | None = None,
        links: Iterable[trace.Link] | None = None,
        start_time: int | None = None,
        record_exception: bool = True,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
        set_status_on_exception: bool = True,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
        end_on_exit: bool = True,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
    ) -> SpanScope:
        """Return a context manager, also a decorator, in which a new span is current."""
        span_arguments = (
            context, kind, attributes, tuple(links or ()), start_time,
            record_exception, set_status_on_exception,
        )  # fmt: skip
        return _ApiScope(self, name, span_arguments, ends=end_on_exit)


class _ApiScope(SpanScope):
    """A scope with all that `start_as_current_span` may be given."""

    __slots__ = ("_ends", "_span_arguments")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        span_arguments: tuple[Any, ...],  # Any: the arguments of start_span after the name
        *,
        ends: bool,
    ) -> None:
        super().__init__(tracer, name, {})
        self._span_arguments = span_arguments
        self._ends = ends

    def open(self) -> Span:
        return self._tracer.start_span(self._name, *self._span_arguments)

    def __enter__(self) -> Span:
        return self._make_current(self.open(), sys._getframe(1))

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self._leave(exc_val)
        if self._ends:
            self.span.end()


class TracerProvider(trace.TracerProvider):
    """Hands out tracers that write the lines of one service instance."""

    def __init__(
        self,
        service: ServiceInstance,
        *,
        sampler: Sampler | None = None,
        limits: Limits | None = None,
        silent_scopes: frozenset[str] = frozenset(),
    ) -> None:
        self.service = service
        self.sampler = sampler
        self.limits = limits or Limits()
        self.silent_scopes = silent_scopes
        self.tracer = Tracer(service, sampler=sampler, limits=self.limits)
        """gymlog's own: spans without a scope."""

    def get_tracer(
        self,
        instrumenting_module_name: str,
        instrumenting_library_version: str | None = None,
        schema_url: str | None = None,
        attributes: Mapping[str, object] | None = None,
    ) -> trace.Tracer:
        """Return a tracer for an instrumenting library; its name and version stand as `scope`."""
        del schema_url, attributes
        if instrumenting_module_name in self.silent_scopes:
            return trace.NoOpTracer()
        scope = {"name": clean_text(instrumenting_module_name or "", 256)}
        if instrumenting_library_version:
            scope["version"] = clean_text(instrumenting_library_version, 256)
        return Tracer(
            self.service, instrumentation_scope=scope, sampler=self.sampler, limits=self.limits
        )

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is buffered: every ended span is written."""
        del timeout_millis
        return True

    def shutdown(self) -> None:
        """Write what is still open and the `stopped` record."""
        self.service.stop()
