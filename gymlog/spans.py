"""A span: what one piece of work was, from its start until its one line is written.

Implements `opentelemetry.trace.Span`. Times are ns since 1970, ids lower-case hex. Nothing here
raises into the host. Cost of a span with three attributes, from open to its line in a file:
about 11 µs; an attribute set while it is open: 0.2 µs.
"""

from collections.abc import Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final

import opentelemetry.context as otel_context
from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.trace.propagation import _SPAN_KEY as SPAN_KEY

from gymlog import clock
from gymlog.exceptions import exception_attributes, first_sight
from gymlog.record import FLAG_HAS_IS_REMOTE, FLAG_IS_REMOTE, FLAG_SAMPLED
from gymlog.semconv import CANCELLED, ERROR_TYPE, EXCEPTION_MESSAGE
from gymlog.trace_state import OtelTraceState
from gymlog.values import clean, clean_key, clean_mapping, clean_text

if TYPE_CHECKING:
    from gymlog.scope import SpanScope
    from gymlog.tracer import Tracer

__all__ = ["SPAN_KEY", "Span", "get_context", "reset_context"]

_UNSET: Final = {"code": "UNSET"}
_OK: Final = {"code": "OK"}
_ERROR: Final = {"code": "ERROR"}

_LOCAL: Final = FLAG_HAS_IS_REMOTE
_REMOTE: Final = FLAG_HAS_IS_REMOTE | FLAG_IS_REMOTE

# OpenTelemetry's own attach() and detach() log as an error what is normal here (a generator that
# is closed in another context), and cost three calls each.
_runtime = otel_context._RUNTIME_CONTEXT
_variable = getattr(_runtime, "_current_context", None)
get_context = _runtime.get_current if _variable is None else _variable.get
_set_context = _runtime.attach if _variable is None else _variable.set
reset_context = _runtime.detach if _variable is None else _variable.reset
_set_item = dict.__setitem__


class Span(trace.Span):
    """One span; `Tracer.open_span` makes it.

    A span that is not sampled carries its ids on, records nothing and writes nothing.
    """

    __slots__ = (
        "_attributes",
        "_clock_offset",
        "_recording",
        "_tracer",
        "flags",
        "is_parent_remote",
        "kind",
        "name",
        "parent_span_id",
        "span_id",
        "start_time_unix_nano",
        "trace_id",
        "trace_state",
    )

    # What most spans never have stays on the class until it is set.
    _events: list[dict[str, Any]] | None = None  # Any: as record.md lists them
    _links: list[dict[str, Any]] | None = None  # Any: as record.md lists them
    _status: Mapping[str, str] = _UNSET
    _dropped_attributes = _dropped_events = _dropped_links = 0
    _has_detail = False
    _context: trace.SpanContext | None = None
    _on_exception = (True, True)
    announced = False
    scope: "SpanScope | None" = None

    def __init__(
        self,
        tracer: "Tracer",
        name: str,
        kind: str,
        trace_id: str,
        span_id: str,
        parent_span_id: str | None,
        flags: int,
        trace_state: str,
        is_parent_remote: bool,  # noqa: FBT001 - the hot path passes by position
        attributes: dict[str, Any],  # Any: one JSON value
    ) -> None:
        self._tracer = tracer
        self.name = name
        self.kind = kind
        self.trace_id = trace_id
        self.span_id = span_id
        self.parent_span_id = parent_span_id
        self.flags = flags
        self.trace_state = trace_state
        self.is_parent_remote = is_parent_remote
        self._recording = flags & FLAG_SAMPLED
        self._attributes = attributes
        self._clock_offset = offset = clock.offset
        self.start_time_unix_nano = clock.monotonic_ns() + offset

    # Identity.

    def get_span_context(self) -> trace.SpanContext:
        """Return the ids and flags as OpenTelemetry's type."""
        context = self._context
        if context is None:
            context = self._context = trace.SpanContext(
                int(self.trace_id, 16),
                int(self.span_id, 16),
                is_remote=False,
                trace_flags=trace.TraceFlags(self.flags),
                trace_state=OtelTraceState(self.trace_state) if self.trace_state else None,
            )
        return context

    def is_recording(self) -> bool:
        """Say whether attributes and events are still taken."""
        return bool(self._recording)

    # Facts.

    def set_attribute(self, key: str, value: object) -> None:
        """Set one attribute; None is ignored, a value that JSON cannot hold becomes text."""
        if not self._recording or value is None:
            return
        if type(key) is not str:
            key = clean_key(key)
        attributes = self._attributes
        limits = self._tracer.limits
        if len(attributes) >= limits.attributes and key not in attributes:
            self.drop_attributes(1)
            return
        kind = type(value)
        if kind is not bool and (kind is not str or len(value) > limits.characters):  # type: ignore[arg-type]  # kind
            value = clean(value, limits.characters)
        attributes[key] = value

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Set several attributes."""
        for key, value in (attributes or {}).items():
            self.set_attribute(key, value)

    def drop_attributes(self, count: int) -> None:
        """Count attributes that a limit kept out."""
        self._dropped_attributes += count
        self._has_detail = True

    @property
    def attributes(self) -> Mapping[str, Any]:  # Any: one JSON value
        """The attributes so far."""
        return self._attributes

    def add_event(
        self,
        name: str,
        attributes: Mapping[str, object] | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Add a span event at `timestamp` (ns since 1970; now when None)."""
        if not self._recording:
            return
        limits = self._tracer.limits
        self._has_detail = True
        if self._events is None:
            self._events = []
        if len(self._events) >= limits.events:
            self._dropped_events += 1
            return
        cleaned, dropped = clean_mapping(
            attributes or {}, limits.event_attributes, limits.characters
        )
        event: dict[str, Any] = {  # Any: as record.md lists them
            "time_unix_nano": clock.monotonic_ns() + self._clock_offset
            if timestamp is None
            else timestamp,
            "name": clean_text(name, limits.characters),
            "attributes": cleaned,
        }
        if dropped:
            event["dropped_attributes_count"] = dropped
        self._events.append(event)

    def add_link(
        self, context: trace.SpanContext, attributes: Mapping[str, object] | None = None
    ) -> None:
        """Add a link to another span."""
        if not self._recording or context is None:
            return
        if not context.is_valid and not attributes and not context.trace_state:
            return
        limits = self._tracer.limits
        self._has_detail = True
        if self._links is None:
            self._links = []
        if len(self._links) >= limits.links:
            self._dropped_links += 1
            return
        cleaned, dropped = clean_mapping(
            attributes or {}, limits.link_attributes, limits.characters
        )
        link: dict[str, Any] = {  # Any: as record.md lists them
            "trace_id": f"{context.trace_id:032x}",
            "span_id": f"{context.span_id:016x}",
            "attributes": cleaned,
        }
        if context.trace_state:
            link["trace_state"] = context.trace_state.to_header()
        if dropped:
            link["dropped_attributes_count"] = dropped
        self._links.append(link)

    def update_name(self, name: str) -> None:
        """Give the span another name."""
        if self._recording:
            self.name = clean_text(name, self._tracer.limits.characters)

    def set_status(
        self, status: trace.Status | trace.StatusCode | str, description: str | None = None
    ) -> None:
        """Set the status by OpenTelemetry's rules: OK is final, UNSET never overrides.

        `status` may be the code's name as text. Only an ERROR has a message.
        """
        if not self._recording or self._status is _OK:
            return
        if isinstance(status, trace.Status):
            code, description = status.status_code.name, status.description
        else:
            code = status if isinstance(status, str) else getattr(status, "name", "")
        if code == "OK":
            self._status = _OK
        elif code == "ERROR":
            message = clean_text(description or "", self._tracer.limits.characters)
            self._status = {"code": "ERROR", "message": message} if message else _ERROR

    @property
    def status_code(self) -> str:
        """UNSET, OK or ERROR."""
        return self._status["code"]

    def record_exception(
        self,
        exception: BaseException,
        attributes: Mapping[str, object] | None = None,
        timestamp: int | None = None,
        escaped: bool = False,  # noqa: FBT001, FBT002 - OpenTelemetry's signature
    ) -> None:
        """Add an exception event: type, message, innermost frames (see `exceptions`)."""
        del escaped  # deprecated by the conventions
        if self._recording and isinstance(exception, BaseException):
            first_sight(exception, self.trace_id)
            self.add_event(
                "exception", {**exception_attributes(exception), **(attributes or {})}, timestamp
            )

    def on_exception(self, *, record: bool, set_status: bool) -> None:
        """Say what `fail` does: add an exception event, set the status."""
        self._on_exception = (record, set_status)

    def fail(self, exception: BaseException) -> None:
        """Mark that `exception` left this span's block.

        An exception that leaves several spans of a process is recorded as an event in the
        innermost only. Work that was cancelled is an ERROR marked `gymlog.cancelled`; a generator
        that is closed early is no error, but `error.type` tells.
        """
        if not self._recording:
            return
        record, set_status = self._on_exception
        kind = type(exception)
        self.set_attribute(ERROR_TYPE, kind.__qualname__)
        if isinstance(exception, GeneratorExit):
            return
        if kind.__name__ == "CancelledError":
            self.set_attribute(CANCELLED, True)  # noqa: FBT003 - an attribute's value
            if set_status:
                self.set_status("ERROR", "cancelled")
            return
        recorded = exception_attributes(exception)
        if record and first_sight(exception, self.trace_id):
            self.add_event("exception", recorded)
        if set_status:
            message = recorded[EXCEPTION_MESSAGE]
            self.set_status("ERROR", f"{kind.__name__}: {message}" if message else kind.__name__)

    # Life.

    def attach(self) -> Token[Context]:
        """Make this the current span; give the token to `detach`."""
        before = get_context()
        context = Context()
        if len(before) > 1 or (before and SPAN_KEY not in before):
            dict.update(context, before)
        _set_item(context, SPAN_KEY, self)
        return _set_context(context)

    @staticmethod
    def detach(token: Token[Context]) -> None:
        """Undo `attach`; in another context than it was made in there is nothing to undo."""
        try:
            reset_context(token)
        except (ValueError, RuntimeError):
            return

    def end(self, end_time: int | None = None) -> None:
        """Write the span's line; only the first call does. `end_time` is ns since 1970."""
        service = self._tracer.service
        if service.open_spans.pop(self.span_id, None) is None:
            return
        service.spans_ended += 1
        self._recording = False
        end = clock.monotonic_ns() + self._clock_offset if end_time is None else end_time
        tracer = self._tracer
        record: dict[str, Any] = {  # Any: see gymlog.record
            "record_type": "span",
            "seq": 0,  # the sink numbers lines in the order in which it writes them
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_span_id": self.parent_span_id,
            "name": self.name,
            "kind": self.kind,
            "start_time_unix_nano": self.start_time_unix_nano,
            "end_time_unix_nano": end,
            "flags": self.flags | (_REMOTE if self.is_parent_remote else _LOCAL),
        }
        if self.trace_state:
            record["trace_state"] = self.trace_state
        record["status"] = self._status
        record["attributes"] = self._attributes
        if self._has_detail:
            self._add_detail(record)
        if tracer.instrumentation_scope is not None:
            record["scope"] = tracer.instrumentation_scope
        record["resource"] = service.short_resource
        service.sink.write(record)

    def age_ns(self, now: int) -> int:
        """Return ns since the start, `now` being a reading of the monotonic clock."""
        return now + self._clock_offset - self.start_time_unix_nano

    def start_record(self) -> dict[str, Any]:  # Any: see gymlog.record
        """Return the `span_start` record of this span, which is still open."""
        record: dict[str, Any] = {  # Any: see gymlog.record
            "record_type": "span_start",
            "seq": 0,
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_span_id": self.parent_span_id,
            "name": self.name,
            "kind": self.kind,
            "start_time_unix_nano": self.start_time_unix_nano,
            "flags": self.flags | (_REMOTE if self.is_parent_remote else _LOCAL),
        }
        if self.trace_state:
            record["trace_state"] = self.trace_state
        record["attributes"] = self._attributes
        if self._has_detail:
            self._add_detail(record)
        if self._tracer.instrumentation_scope is not None:
            record["scope"] = self._tracer.instrumentation_scope
        record["resource"] = self._tracer.service.short_resource
        return record

    def _add_detail(self, record: dict[str, Any]) -> None:  # Any: see gymlog.record
        if self._events:
            record["events"] = self._events
        if self._links:
            record["links"] = self._links
        if self._dropped_attributes:
            record["dropped_attributes_count"] = self._dropped_attributes
        if self._dropped_events:
            record["dropped_events_count"] = self._dropped_events
        if self._dropped_links:
            record["dropped_links_count"] = self._dropped_links

    def __exit__(self, exc_type: object, exc_val: BaseException | None, exc_tb: object) -> None:
        """End the span; an exception that leaves the block is marked on it."""
        if exc_val is not None:
            self.fail(exc_val)
        self.end()

    def __repr__(self) -> str:
        return f"<Span {self.name!r} {self.trace_id}/{self.span_id}>"
