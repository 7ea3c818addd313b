"""Trace context between processes: W3C headers into and out of a carrier.

`extract` and `inject` follow W3C Trace Context level 2 (`traceparent`, `tracestate`); the rollout
id travels as one member of W3C Baggage. Headers are judged, never repaired: a `traceparent` that
breaks a rule starts a new trace, a `tracestate` that breaks one is dropped and the trace goes on.
Nothing here raises, whatever the bytes. A request costs about 3 µs: one walk over the headers,
one regular expression without backtracking.
"""

import re
from collections.abc import Iterable, MutableMapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context, get_current
from opentelemetry.propagators.textmap import (
    CarrierT,
    Getter,
    Setter,
    TextMapPropagator,
    default_getter,
    default_setter,
)
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from gymlog.generators import current_span
from gymlog.record import FLAG_RANDOM_TRACE_ID, FLAG_SAMPLED
from gymlog.rollout import current_rollout_id, is_valid_rollout_id
from gymlog.semconv import ROLLOUT_ID
from gymlog.spans import Span, get_context
from gymlog.trace_state import OtelTraceState, combine

__all__ = [
    "MAX_BAGGAGE_LENGTH",
    "OWN_MEMBER",
    "Propagator",
    "RemoteParent",
    "extract",
    "extract_rollout_id",
    "inject",
    "inject_current",
    "inject_span",
    "remote_parent",
    "rollout_id_in",
]

MAX_BAGGAGE_LENGTH: Final = 8_192
"""Characters of `baggage` sent (W3C asks for as many)."""

_KNOWN_FLAGS: Final = FLAG_SAMPLED | FLAG_RANDOM_TRACE_ID
_ZERO_TRACE_ID: Final = "0" * 32
_ZERO_SPAN_ID: Final = "0" * 16
_VERSION_00_LENGTH: Final = 55
_OWS: Final = " \t"

OWN_MEMBER: Final = f"{ROLLOUT_ID}=".encode()
"""How the `baggage` begins that gymlog sends."""

_HEADERS: Final = frozenset({"traceparent", "tracestate", "baggage"})

_otel_baggage = W3CBaggagePropagator()

_traceparent = re.compile(
    r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?", re.DOTALL
).fullmatch
_common_traceparent = re.compile(
    r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-0([0-3])"
).fullmatch
"""A valid one of today's version and flags, as nearly all are."""


class RemoteParent(NamedTuple):
    """The caller's span as its headers name it; ids are lower-case hex, `flags` 0 to 3."""

    trace_id: str
    span_id: str
    flags: int
    trace_state: str
    """`tracestate` to hand on, empty when there was none or it broke a rule."""


def extract(headers: Iterable[tuple[bytes, bytes]]) -> RemoteParent | None:
    """Return the caller's span from raw ASGI headers; None asks for a new trace.

    Header names may have any case. Several `traceparent` headers contradict each other, so they
    give None; several `tracestate` headers are one list. Flags that level 2 does not define are
    dropped.
    """
    parent: bytes | None = None
    states: list[str] = []
    for name, value in headers:
        length = len(name)
        if length == 11 and name.lower() == b"traceparent":
            if parent is not None:
                return None
            parent = value
        elif length == 10 and name.lower() == b"tracestate":
            states.append(value.decode("latin-1"))
    return None if parent is None else _remote_parent(parent.decode("latin-1"), states)


def remote_parent(traceparent: bytes) -> RemoteParent | None:
    """Return the caller's span from its only header, as `extract` does."""
    text = traceparent.decode("latin-1")
    match = _common_traceparent(text)
    if match is None:
        return _remote_parent(text, None)
    trace_id, span_id, flags = match.groups()
    return RemoteParent(trace_id, span_id, int(flags), "")


def extract_rollout_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """Return the caller's rollout id from the `baggage` of raw ASGI headers, if valid."""
    for name, value in headers:
        if len(name) == 7 and name.lower() == b"baggage":
            rollout_id = rollout_id_in(value)
            if rollout_id is not None:
                return rollout_id
    return None


def rollout_id_in(baggage_header: bytes) -> str | None:
    """Return the rollout id in the value of a `baggage` header, if valid."""
    if baggage_header.startswith(OWN_MEMBER):  # as gymlog itself sends it
        rollout_id = baggage_header[len(OWN_MEMBER) :].decode("latin-1")
        if is_valid_rollout_id(rollout_id):
            return rollout_id
    return _rollout_id(baggage_header.decode("latin-1"))


def inject(
    carrier: MutableMapping[str, str],
    trace_id: str,
    span_id: str,
    flags: int,
    trace_state: str,
    rollout_id: str | None,
) -> None:
    """Write the context of a span (hex ids, W3C flags) into a carrier, in place of any other.

    A `traceparent` or `tracestate` already there is removed whatever its case. The rollout id
    becomes the first member of `baggage`, in place of any other; members of others stay as long
    as they fit. A rollout id that no reader would take is not sent.
    """
    _write(carrier, _traceparent_of(trace_id, span_id, flags), trace_state, _members(rollout_id))


def inject_current(carrier: MutableMapping[str, str], context: Context | None = None) -> None:
    """Write what is current into a carrier: span, rollout id, OpenTelemetry's baggage.

    Span and baggage are those of `context`, or of the current one. What there is none of is not
    written.
    """
    if context is None:
        context = get_current()
    traceparent, trace_state = "", ""
    span = current_span(context)
    if isinstance(span, Span):
        traceparent = _traceparent_of(span.trace_id, span.span_id, span.flags)
        trace_state = span.trace_state
    elif isinstance(span, trace.Span) and (other := span.get_span_context()).is_valid:
        traceparent = _traceparent_of(
            f"{other.trace_id:032x}", f"{other.span_id:016x}", other.trace_flags
        )
        trace_state = other.trace_state.to_header()
    _inject(carrier, context, span, traceparent, trace_state)


def inject_span(headers: MutableMapping[str, str], span: Span) -> None:
    """Do as `inject_current` where `span` is the current one and names have no case."""
    context = get_context()
    if (
        span.trace_state
        or len(context) > 1
        or "traceparent" in headers
        or "tracestate" in headers
        or "baggage" in headers
    ):
        traceparent = _traceparent_of(span.trace_id, span.span_id, span.flags)
        _inject(headers, context, span, traceparent, span.trace_state)
        return
    headers["traceparent"] = f"00-{span.trace_id}-{span.span_id}-0{span.flags & _KNOWN_FLAGS}"
    rollout_id = current_rollout_id()
    if rollout_id is not None:
        headers["baggage"] = f"{ROLLOUT_ID}={rollout_id}"


def _inject(
    carrier: MutableMapping[str, str],
    context: Context,
    span: object,
    traceparent: str,
    trace_state: str,
) -> None:
    members = _members(current_rollout_id())
    if len(context) > (span is not None) and baggage.get_all(context):  # mostly no more than a span
        headers: dict[str, str] = {}
        _otel_baggage.inject(headers, context)
        members += headers.get("baggage", "").split(",")
    _write(carrier, traceparent, trace_state, members)


class Propagator(TextMapPropagator):
    """The same rules for OpenTelemetry's API, with the whole of its baggage; install globally."""

    def extract(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        getter: Getter[CarrierT] = default_getter,
    ) -> Context:
        """Return `context` with the carrier's span as current one, and with its baggage."""
        if context is None:
            context = get_current()
        parents = _values(getter, carrier, "traceparent")
        if len(parents) == 1:
            remote = _remote_parent(parents[0], _values(getter, carrier, "tracestate"))
            if remote is not None:
                context = trace.set_span_in_context(
                    NonRecordingSpan(_span_context(remote)), context
                )
        members = ",".join(_values(getter, carrier, "baggage"))
        if members:
            context = _otel_baggage.extract({"baggage": members}, context)
            rollout_id = _rollout_id(members)
            if rollout_id is not None:
                context = baggage.set_baggage(ROLLOUT_ID, rollout_id, context)
            elif ROLLOUT_ID in members:
                context = baggage.remove_baggage(ROLLOUT_ID, context)
        return context

    def inject(
        self,
        carrier: CarrierT,
        context: Context | None = None,
        setter: Setter[CarrierT] = default_setter,
    ) -> None:
        """Write the current span of `context`, its baggage and the current rollout id."""
        headers: dict[str, str] = {}
        inject_current(headers, context)
        for name, value in headers.items():
            setter.set(carrier, name, value)

    @property
    def fields(self) -> set[str]:
        """Return the names that `inject` may set."""
        return set(_HEADERS)


def _remote_parent(traceparent: str, tracestates: list[str] | None) -> RemoteParent | None:
    traceparent = traceparent.strip(_OWS)
    match = _traceparent(traceparent)
    if match is None:
        return None
    version, trace_id, span_id, flags = match.groups()
    if version == "00":
        if len(traceparent) != _VERSION_00_LENGTH:
            return None
    elif version == "ff":
        return None
    if trace_id == _ZERO_TRACE_ID or span_id == _ZERO_SPAN_ID:
        return None
    trace_state = combine(tracestates) if tracestates else ""
    return RemoteParent(trace_id, span_id, int(flags, 16) & _KNOWN_FLAGS, trace_state)


def _rollout_id(baggage_header: str) -> str | None:
    if ROLLOUT_ID not in baggage_header:
        return None
    for member in baggage_header.split(","):
        if _is_rollout_member(member):
            value = member.partition("=")[2].partition(";")[0]
            rollout_id = unquote(value.strip(_OWS))
            if is_valid_rollout_id(rollout_id):
                return rollout_id
    return None


def _is_rollout_member(member: str) -> bool:
    return member.partition("=")[0].strip(_OWS) == ROLLOUT_ID


def _traceparent_of(trace_id: str, span_id: str, flags: int) -> str:
    return f"00-{trace_id}-{span_id}-0{flags & _KNOWN_FLAGS}"


def _members(rollout_id: str | None) -> list[str]:
    if rollout_id is None or not is_valid_rollout_id(rollout_id):
        return []
    return [f"{ROLLOUT_ID}={rollout_id}"]


def _write(
    carrier: MutableMapping[str, str], traceparent: str, trace_state: str, members: list[str]
) -> None:
    """Write what is not empty, in place of what the carrier has of it."""
    names = " ".join(carrier).lower()
    is_there = "trace" in names or "baggage" in names  # mostly not, and this is soon known
    for name in [name for name in carrier if name.lower() in _HEADERS] if is_there else ():
        if name.lower() != "baggage":
            if traceparent:
                carrier.pop(name)
        elif members:
            members += carrier.pop(name).split(",")
    if traceparent:
        carrier["traceparent"] = traceparent
        if trace_state:
            carrier["tracestate"] = trace_state
    if members:
        carrier["baggage"] = members[0] if len(members) == 1 else _fitting(members)


def _fitting(members: list[str]) -> str:
    """Return the members as one list: of equal keys the first, and none that does not fit."""
    kept: dict[str, str] = {}
    room = MAX_BAGGAGE_LENGTH + 1
    for member in members:
        key = member.partition("=")[0].strip(_OWS)
        if key and key not in kept and len(member) < room:
            kept[key] = member
            room -= len(member) + 1
    return ",".join(kept.values())


def _span_context(remote: RemoteParent) -> SpanContext:
    return SpanContext(
        trace_id=int(remote.trace_id, 16),
        span_id=int(remote.span_id, 16),
        is_remote=True,
        trace_flags=TraceFlags(remote.flags),
        trace_state=OtelTraceState(remote.trace_state) if remote.trace_state else None,
    )


def _values(getter: Getter[CarrierT], carrier: CarrierT, name: str) -> list[str]:
    """Return all values of a header, whatever its case in the carrier."""
    values = getter.get(carrier, name)
    if values is not None:
        return list(values)
    return [
        value
        for key in getter.keys(carrier)
        if key.lower() == name
        for value in getter.get(carrier, key) or ()
    ]
