"""A span: what one piece of work was, from its start until its one line is written.

Implements `opentelemetry.trace.Span`. Times are ns since 1970, ids lower-case hex. Nothing here
raises into the host. An open span is small, for a gym has 100,000 of them: its record is made when
it ends; what few spans have (events, links, trace state, a scope) is put in its place then.
Cost of a span with three attributes, from its start to its line in a file: about 8 µs; an attribute
set meanwhile: 0.15 µs.
"""

import threading
from asyncio import _get_running_loop, current_task
from collections.abc import Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

import opentelemetry.context as otel_context
from opentelemetry import trace
from opentelemetry.context.context import Context
from opentelemetry.trace.propagation import _SPAN_KEY as SPAN_KEY

from gymlog import clock, execution_unit, ids
from gymlog.exceptions import exception_attributes, first_sight
from gymlog.record import (
    FLAG_HAS_IS_REMOTE,
    FLAG_IS_REMOTE,
    FLAG_RANDOM_TRACE_ID,
    FLAG_SAMPLED,
)
from gymlog.rollout import current_rollout_id
from gymlog.semconv import CANCELLED, ERROR_TYPE, EXCEPTION_MESSAGE, ROLLOUT_ID, TASK_ID
from gymlog.span_detail import SpanDetail
from gymlog.trace_state import OtelTraceState
from gymlog.values import INT64_MAX, INT64_MIN, Limits, clean, clean_key, clean_text, take

if TYPE_CHECKING:
    from gymlog.generators import EnclosingGenerator
    from gymlog.tracer import Tracer

__all__ = [
    "REMOTE",
    "SPAN_KEY",
    "Parent",
    "Span",
    "context_with",
    "get_context",
    "reset_context",
    "set_context",
]

REMOTE: Final = FLAG_HAS_IS_REMOTE | FLAG_IS_REMOTE
"""The bits of a span's flags that say that its parent is another process's."""

_PASSED_ON: Final = FLAG_SAMPLED | FLAG_RANDOM_TRACE_ID
"""The W3C flags that a span has from its parent."""

_UNSET: Final = {"code": "UNSET"}
_OK: Final = {"code": "OK"}
_ERROR: Final = {"code": "ERROR"}

# OpenTelemetry's own attach() and detach() log as an error what is normal here (a generator that
# is closed in another context), and cost three calls each.
_runtime = otel_context._RUNTIME_CONTEXT
_variable = getattr(_runtime, "_current_context", None)
get_context = _runtime.get_current if _variable is None else _variable.get
set_context = _runtime.attach if _variable is None else _variable.set
reset_context = _runtime.detach if _variable is None else _variable.reset


class Parent(Protocol):
    """A span as its child sees it: of this process, or as the headers of a request tell."""

    @property
    def trace_id(self) -> str: ...
    @property
    def span_id(self) -> str: ...
    @property
    def flags(self) -> int: ...
    @property
    def trace_state(self) -> str: ...


if TYPE_CHECKING:
    _SpanInterface = trace.Span
else:
    _SpanInterface = object
    """A base class without slots would give each span a dictionary of its own."""


class Span(_SpanInterface):
    """One span; `Tracer.open_span` makes it.

    A span that is not sampled carries its ids on, records nothing and writes nothing; where its
    tracer keeps errors it records all the same, and is written if it fails.
    """

    __slots__ = (
        "__weakref__",
        "_attributes",
        "_clock_offset",
        "_detail",
        "_line_flags",
        "_recording",
        "_status",
        "flags",
        "generator",
        "kind",
        "name",
        "parent_span_id",
        "span_id",
        "start_time_unix_nano",
        "trace_id",
        "trace_state",
        "tracer",
        "unit",
    )

    def begin(  # noqa: C901 - the hot path is one function
        self,
        tracer: "Tracer",
        name: str,
        kind: str,
        attributes: dict[str, Any],  # Any: whatever the caller gave
        parent: Parent | None,
        flags_of_parent: int = FLAG_HAS_IS_REMOTE,
        longest_text: int | None = None,
    ) -> None:
        """Start the span: draw its ids, note the time, and take its place among the open ones.

        `attributes` are the span's to keep; they are cleaned, and the rollout id is added.
        `flags_of_parent` are the bits of the span's flags that say where `parent` is.
        `longest_text`, in characters, is given where all attributes are known to be text.
        """
        self.tracer = tracer
        if parent is None:
            trace_id, parent_id, flags, trace_state = ids.new_trace_id(), None, _PASSED_ON, ""
        else:
            trace_id, parent_id = parent.trace_id, parent.span_id
            flags, trace_state = parent.flags & _PASSED_ON, parent.trace_state
        if tracer.sampler is not None:
            sampled = tracer.sampler(trace_id, None if parent is None else flags)
            flags = flags | FLAG_SAMPLED if sampled else flags & ~FLAG_SAMPLED
        self.trace_id = trace_id
        self.span_id = span_id = ids.new_span_id()
        self.flags = flags
        self.trace_state = trace_state
        self.generator: EnclosingGenerator | None = None
        self._detail: SpanDetail | None = None
        self._recording = flags & FLAG_SAMPLED or tracer.keeps_errors
        if attributes and self._recording:
            limits = tracer.limits
            characters = limits.characters
            is_short = longest_text is not None and longest_text <= characters
            for value in () if is_short else attributes.values():
                kind_of_value = type(value)
                if kind_of_value is str:
                    if len(value) <= characters:
                        continue
                elif kind_of_value is bool or (
                    kind_of_value is int and INT64_MIN <= value <= INT64_MAX
                ):
                    continue
                attributes = self._taken(attributes, limits)
                break
            else:
                if len(attributes) >= limits.attributes:
                    attributes = self._taken(attributes, limits)
        rollout_id = current_rollout_id()
        if rollout_id is not None:
            attributes.setdefault(ROLLOUT_ID, rollout_id)
        loop = _get_running_loop()
        task = None if loop is None else current_task(loop)
        # The execution unit it began in: a child that begins in another one names its own.
        self.unit = unit = threading.get_ident() if task is None else id(task)
        if (
            parent is not None
            and getattr(parent, "unit", unit) != unit
            and self._recording
            and len(attributes) < tracer.limits.attributes
        ):
            attributes[TASK_ID] = execution_unit.name_of(task, tracer.limits.characters)
        self._attributes = attributes
        service = tracer.service
        self._clock_offset = offset = clock.offset
        self.name = name if type(name) is str else clean_text(name, tracer.limits.characters)
        self.kind = kind
        self.parent_span_id = parent_id
        self._line_flags = flags | flags_of_parent
        self._status = _UNSET
        self.start_time_unix_nano = clock.monotonic_ns() + offset
        if flags & FLAG_SAMPLED:
            service.unannounced[span_id] = self
            if service.is_careful:
                service.opened_with_care(self)
        elif self._recording:
            service.hold(self)

    def _taken(
        self, attributes: Mapping[str, object], limits: Limits
    ) -> dict[str, Any]:  # Any: one JSON value
        """Return attributes cleaned, as many as there may be beside the rollout id."""
        taken: dict[str, Any] = {}  # Any: one JSON value
        room = limits.attributes - (current_rollout_id() is not None)
        dropped = take(taken, attributes, room, limits.characters)
        if dropped:
            self.drop_attributes(dropped)
        return taken

    # Identity.

    def get_span_context(self) -> trace.SpanContext:
        """Return the ids and flags as OpenTelemetry's type."""
        detail = self._get_detail()
        if detail.context is None:
            detail.context = trace.SpanContext(
                int(self.trace_id, 16),
                int(self.span_id, 16),
                is_remote=False,
                trace_flags=trace.TraceFlags(self.flags),
                trace_state=OtelTraceState(self.trace_state) if self.trace_state else None,
            )
        return detail.context

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
        limits = self.tracer.limits
        if len(attributes) >= limits.attributes and key not in attributes:
            self.drop_attributes(1)
            return
        kind = type(value)
        if kind is str:
            if len(value) > limits.characters:  # type: ignore[arg-type]  # kind
                value = clean(value, limits.characters)
        elif kind is not bool and not (kind is int and INT64_MIN <= value <= INT64_MAX):  # type: ignore[operator]  # kind
            value = clean(value, limits.characters)
        attributes[key] = value

    def put(self, key: str, value: str | int, length: int = 0) -> None:
        """Set an attribute that needs no cleaning, at half the cost; `length` is that of a text."""
        limits = self.tracer.limits
        has_room = len(self._attributes) < limits.attributes and length <= limits.characters
        if has_room and self._recording:
            self._attributes[key] = value
        else:
            self.set_attribute(key, value)

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Set several attributes."""
        for key, value in (attributes or {}).items():
            self.set_attribute(key, value)

    def drop_attributes(self, count: int) -> None:
        """Count attributes that a limit kept out."""
        self._get_detail().dropped_attributes += count

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
        if self._recording:
            at = self._now() if timestamp is None else timestamp
            self._get_detail().add_event(name, attributes or {}, at, self.tracer.limits)

    def add_link(
        self, context: trace.SpanContext, attributes: Mapping[str, object] | None = None
    ) -> None:
        """Add a link to another span."""
        if not self._recording or context is None:
            return
        if context.is_valid or attributes or context.trace_state:
            self._get_detail().add_link(context, attributes or {}, self.tracer.limits)

    def update_name(self, name: str) -> None:
        """Give the span another name."""
        if self._recording:
            is_plain = type(name) is str and len(name) <= self.tracer.limits.characters
            self.name = name if is_plain else clean_text(name, self.tracer.limits.characters)

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
            message = clean_text(description or "", self.tracer.limits.characters)
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
        if not (record and set_status):
            detail = self._get_detail()
            detail.records_exception, detail.sets_status = record, set_status

    def fail(self, exception: BaseException) -> None:
        """Mark that `exception` left this span's block.

        An exception that leaves several spans of a process is recorded as an event in the
        innermost only. Work that was cancelled is an ERROR marked `gymlog.cancelled`; a generator
        that is closed early is no error, but `error.type` tells.
        """
        if not self._recording:
            return
        detail = self._get_detail()
        kind = type(exception)
        self.set_attribute(ERROR_TYPE, kind.__qualname__)
        if isinstance(exception, GeneratorExit):
            return
        if kind.__name__ == "CancelledError":
            self.set_attribute(CANCELLED, True)  # noqa: FBT003 - an attribute's value
            if detail.sets_status:
                self.set_status("ERROR", "cancelled")
            return
        recorded = exception_attributes(exception)
        if detail.records_exception and first_sight(exception, self.trace_id):
            self.add_event("exception", recorded)
        if detail.sets_status:
            message = recorded[EXCEPTION_MESSAGE]
            self.set_status("ERROR", f"{kind.__name__}: {message}" if message else kind.__name__)

    # Life.

    def attach(self) -> Token[Context]:
        """Make this the current span; give the token to `detach`."""
        return set_context(context_with(self, get_context()))

    @staticmethod
    def detach(token: Token[Context]) -> None:
        """Undo `attach`; in another context than it was made in there is nothing to undo."""
        try:
            reset_context(token)
        except (ValueError, RuntimeError):
            return

    def end(self, end_time: int | None = None) -> None:
        """Write the span's line; only the first call does. `end_time` is ns since 1970."""
        service = self.tracer.service
        span_id = self.span_id
        if (
            service.unannounced.pop(span_id, None) is None
            and service.announced.pop(span_id, None) is None
            and not self._has_failed_unsampled()
        ):
            return
        service.spans_ended += 1
        self._recording = 0
        end = self._now() if end_time is None else end_time
        record: dict[str, Any] = {  # Any: see gymlog.record
            "record_type": "span",
            "seq": 0,  # the sink numbers lines in the order in which it writes them
            "trace_id": self.trace_id,
            "span_id": span_id,
            "parent_span_id": self.parent_span_id,
            "name": self.name,
            "kind": self.kind,
            "start_time_unix_nano": self.start_time_unix_nano,
            "end_time_unix_nano": end,
            "flags": self._line_flags,
            "status": self._status,
            "attributes": self._attributes,
            "resource": service.short_resource,
        }
        if self._detail is not None or self.trace_state or self.tracer.instrumentation_scope:
            self._complete(record)
        service.sink.write(record)

    def _has_failed_unsampled(self) -> bool:
        """Say whether the span is open, not sampled, and to be written since it failed."""
        if self.tracer.service.held.pop(self.span_id, None) is None:
            return False
        self._recording = 0
        return self.status_code == "ERROR"

    def starts_at(self, time_unix_nano: int) -> None:
        """Set another start than now."""
        self.start_time_unix_nano = time_unix_nano

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
            "flags": self._line_flags,
            "attributes": self._attributes,
            "resource": self.tracer.service.short_resource,
        }
        self._complete(record)
        return record

    def _now(self) -> int:
        return clock.monotonic_ns() + self._clock_offset

    def _get_detail(self) -> SpanDetail:
        if self._detail is None:
            self._detail = SpanDetail()
        return self._detail

    def _complete(self, record: dict[str, Any]) -> None:  # Any: see gymlog.record
        """Put what few spans have in its place among the last fields of a record."""
        last = ("status", "attributes", "resource")
        after = {key: record.pop(key) for key in last if key in record}
        resource = after.pop("resource")
        if self.trace_state:
            record["trace_state"] = self.trace_state
        record.update(after)
        if self._detail is not None:
            self._detail.put_into(record)
        if self.tracer.instrumentation_scope is not None:
            record["scope"] = self.tracer.instrumentation_scope
        record["resource"] = resource

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, exc_val: BaseException | None, exc_tb: object) -> None:
        """End the span; an exception that leaves the block is marked on it."""
        if exc_val is not None:
            self.fail(exc_val)
        self.end()

    def __repr__(self) -> str:
        return f"<Span {self.name!r} {self.trace_id}/{self.span_id}>"


def context_with(span: Span, context: Context) -> Context:
    """Return `context` with `span` as the current one."""
    if len(context) == (SPAN_KEY in context):
        return Context({SPAN_KEY: span})
    return Context({**context, SPAN_KEY: span})


trace.Span.register(Span)
