"""Opening spans: ids, parent, sampling, and the block during which a span is current.

Implements OpenTelemetry's Tracer and TracerProvider. `open_span` is the lean way in, used by the
call sites, the ingress and the egress; `start_span` and `start_as_current_span` are the API's.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

from opentelemetry import trace
from opentelemetry.context.context import Context

from gymlog.generators import current_span
from gymlog.record import FLAG_HAS_IS_REMOTE, FLAG_IS_REMOTE
from gymlog.samplers import Sampler
from gymlog.scope import SpanScope
from gymlog.service import ServiceInstance
from gymlog.spans import REMOTE, SPAN_KEY, Parent, Span, get_context
from gymlog.values import Limits, clean_text

__all__ = ["Tracer", "TracerProvider"]


class _Foreign(NamedTuple):
    """A span of another tracer."""

    trace_id: str
    span_id: str
    flags: int
    trace_state: str


class Tracer(trace.Tracer):
    """Opens the spans of one instrumentation scope (None: gymlog's own)."""

    __slots__ = ("instrumentation_scope", "keeps_errors", "limits", "sampler", "service")

    def __init__(
        self,
        service: ServiceInstance,
        *,
        instrumentation_scope: Mapping[str, str] | None = None,
        sampler: Sampler | None = None,
        keeps_errors: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.service = service
        self.instrumentation_scope = instrumentation_scope
        self.sampler = sampler
        self.keeps_errors = keeps_errors
        """Whether spans that are not sampled are written if they fail (see README, Sampling)."""
        self.limits = limits or Limits()

    def open_span(
        self,
        name: str,
        kind: str = "INTERNAL",
        attributes: Mapping[str, object] | None = None,
        *,
        parent: Parent | None = None,
        is_root: bool = False,
        context: Context | None = None,
        start_time: int | None = None,
    ) -> Span:
        """Start a span without making it current; about 3 µs.

        Its parent is `parent` when given (a caller in another process), none when `is_root`, else
        the span of `context` (the current one when None). `attributes` is the caller's to keep;
        the rollout id is added. `start_time` is ns since 1970.
        """
        span = Span()
        own = dict(attributes) if attributes else {}
        if parent is not None:
            span.begin(self, name, kind, own, parent, REMOTE)
        elif is_root:
            span.begin(self, name, kind, own, None)
        else:
            self.begin(span, name, kind, own, context)
        if start_time is not None:
            span.starts_at(start_time)
        return span

    def begin(
        self,
        span: Span,
        name: str,
        kind: str,
        attributes: dict[str, Any],  # Any: whatever the caller gave
        context: Context | None = None,
    ) -> None:
        """Start `span` as a child of the span of `context`, or of the current one."""
        current: Any = (get_context() if context is None else context).get(SPAN_KEY)  # Any: a Span
        if current is None or (isinstance(current, Span) and current.generator is None):
            span.begin(self, name, kind, attributes, current)  # as almost always
            return
        flags = FLAG_HAS_IS_REMOTE
        parent: Parent | None = None
        current = current_span(context)
        if current is None or isinstance(current, Span):
            parent = current
        elif (other := current.get_span_context()).is_valid:
            parent = _Foreign(
                f"{other.trace_id:032x}",
                f"{other.span_id:016x}",
                int(other.trace_flags),
                other.trace_state.to_header() if other.trace_state else "",
            )
            flags |= FLAG_IS_REMOTE if other.is_remote else 0
        span.begin(self, name, kind, attributes, parent, flags)

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
        span = Span()
        self.begin_as_asked(
            span, name, context, kind, attributes, links, start_time,
            record_exception, set_status_on_exception,
        )  # fmt: skip
        return span

    def begin_as_asked(
        self,
        span: Span,
        name: str,
        context: Context | None,
        kind: trace.SpanKind,
        attributes: Mapping[str, object] | None,
        links: Iterable[trace.Link] | None,
        start_time: int | None,
        record_exception: bool,  # noqa: FBT001 - as `start_span` has it
        set_status_on_exception: bool,  # noqa: FBT001 - as `start_span` has it
    ) -> None:
        """Start `span` as `start_span` would."""
        self.begin(span, name, kind.name, dict(attributes or ()), context)
        if start_time is not None:
            span.starts_at(start_time)
        span.on_exception(record=record_exception, set_status=set_status_on_exception)
        for link in links or ():
            span.add_link(link.context, link.attributes)

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
        scope = _ApiScope()
        scope.tracer = self
        scope.name = name
        scope.span_arguments = span_arguments
        scope.ends = end_on_exit
        return scope


class _ApiScope(SpanScope):
    """A scope with all that `start_as_current_span` may be given."""

    __slots__ = ("ends", "span_arguments")

    span_arguments: tuple[Any, ...]  # Any: the arguments of start_span after the name
    ends: bool

    def open(self) -> Span:
        return self.tracer.start_span(self.name, *self.span_arguments)

    def __enter__(self) -> Self:
        self.tracer.begin_as_asked(self, self.name, *self.span_arguments)
        self._make_current(sys._getframe(1))
        return self

    def __exit__(
        self,
        exc_type: object,
        exc_val: BaseException | None,
        exc_tb: object,
    ) -> None:
        self._leave(exc_val)
        if self.ends:
            self.end()


class TracerProvider(trace.TracerProvider):
    """Hands out tracers that write the lines of one service instance."""

    def __init__(
        self,
        service: ServiceInstance,
        *,
        sampler: Sampler | None = None,
        keeps_errors: bool = False,
        limits: Limits | None = None,
        silent_scopes: frozenset[str] = frozenset(),
    ) -> None:
        self.service = service
        self.sampler = sampler
        self.keeps_errors = keeps_errors
        self.limits = limits or Limits()
        self.silent_scopes = silent_scopes
        self.tracer = Tracer(
            service, sampler=sampler, keeps_errors=keeps_errors, limits=self.limits
        )
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
            self.service,
            instrumentation_scope=scope,
            sampler=self.sampler,
            keeps_errors=self.keeps_errors,
            limits=self.limits,
        )

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what is on its way to OTLP; lines are not buffered."""
        flush = getattr(self.service.sink, "flush", None)
        return flush is None or bool(flush(timeout_millis / 1_000))

    def shutdown(self) -> None:
        """Write what is still open and the `stopped` record."""
        self.service.stop()
