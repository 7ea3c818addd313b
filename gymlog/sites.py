"""The call sites: `managed_span`, `span_cm` and `trace_fn`.

A closed one costs one frozenset test: it builds nothing, imports nothing and leaves the current
context as it was. This module knows the tracer only once telemetry is on (`install`).
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

from gymlog import span_groups
from gymlog.redaction import REDACTED, SECRET_KEYS

if TYPE_CHECKING:
    from opentelemetry import trace

    from gymlog.scope import SpanScope
    from gymlog.tracer import Tracer

__all__ = [
    "install",
    "installed_tracer",
    "managed_span",
    "safe_set_span_attributes",
    "span_cm",
    "trace_fn",
]

P = ParamSpec("P")
R = TypeVar("R")


class _Closed:
    """The block of a closed site: nothing, and at no Python call's cost.

    Both methods are C functions that are no descriptors, so they are called without the instance:
    clearing a list that stays empty gives None, formatting an empty text gives "", which is false.
    """

    __slots__ = ()

    __enter__ = [].clear
    __exit__ = "".format


_CLOSED: Final = cast("AbstractContextManager[None]", _Closed())

_tracer: "Tracer | None" = None
_scope: "type[SpanScope]"


def install(tracer: "Tracer | None") -> None:
    """Give the call sites the tracer to open spans with; None takes it away."""
    global _tracer, _scope
    if tracer is not None:
        from gymlog.scope import SpanScope

        _scope = SpanScope
    _tracer = tracer


def installed_tracer() -> "Tracer | None":
    """Return the tracer that the call sites open spans with, None when telemetry is off."""
    return _tracer


def managed_span(
    group: str,
    name: str,
    tracer: "trace.Tracer | None" = None,
    **attributes: object,
) -> "AbstractContextManager[trace.Span | None]":
    """Open an INTERNAL span for a block when `group` is enabled; else yield None.

    The span is current in the block, ends with it, and has the exception that left it. Attribute
    names with dots are given as `**{"a.b": 1}`.
    """
    if group not in span_groups._open:
        return _CLOSED
    own = _tracer
    if tracer is None and own is not None and SECRET_KEYS.isdisjoint(attributes):
        scope = _scope()
        scope.tracer = own
        scope.name = name
        scope.given_attributes = attributes
        return scope
    return _block(name, tracer, attributes, record_exception=True)


def span_cm(
    name: str,
    tracer: "trace.Tracer | None" = None,
    record_exception: bool = True,  # noqa: FBT001, FBT002 - the published signature
    **attributes: object,
) -> "AbstractContextManager[trace.Span | None]":
    """Open an INTERNAL span for a block whatever groups are enabled; None with telemetry off."""
    return _block(name, tracer, attributes, record_exception=record_exception)


def trace_fn(
    group: str, name: str, tracer: "trace.Tracer | None" = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function so that each call has a span when `group` is enabled then.

    Works for functions, coroutines, generators and async generators: the span lasts as long as
    the work. A closed call of a plain function costs the test and one call more.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        from gymlog.wrapping import wrap

        def open_span() -> Any:  # Any: a span of whichever tracer
            own = _tracer
            if group not in span_groups._open or own is None:
                return None
            if tracer is None or tracer is own:
                return own.open_span(name)
            from gymlog.foreign_span import as_ours

            return as_ours(tracer.start_span(name))

        return wrap(function, open_span)

    return decorate


def safe_set_span_attributes(
    span: "trace.Span | None",
    attributes: Mapping[str, object],
    redact_keys: Iterable[str] = SECRET_KEYS,
) -> None:
    """Set the scalar attributes of a mapping, text under a secret key as `[REDACTED]`.

    None, and what is neither a scalar nor a list of scalars, is skipped. Never raises.
    """
    if span is None or not span.is_recording():
        return
    for key, value in _redacted(attributes, frozenset(redact_keys)).items():
        if isinstance(value, tuple):
            value = list(value)  # noqa: PLW2901 - the published behaviour
        if isinstance(value, _SCALARS) or (
            isinstance(value, list) and all(isinstance(item, _SCALARS) for item in value)
        ):
            span.set_attribute(key, value)


def _block(
    name: str,
    tracer: "trace.Tracer | None",
    attributes: Mapping[str, object],
    *,
    record_exception: bool,
) -> "AbstractContextManager[trace.Span | None]":
    own = _tracer
    if own is None:
        return _CLOSED
    if not SECRET_KEYS.isdisjoint(attributes):
        attributes = _redacted(attributes, SECRET_KEYS)
    return (tracer or own).start_as_current_span(
        name,
        attributes=attributes,  # type: ignore[arg-type]  # a tracer of ours takes any value
        record_exception=record_exception,
    )


_SCALARS: Final = (str, bool, int, float)


def _redacted(attributes: Mapping[str, object], keys: frozenset[str]) -> dict[str, object]:
    return {
        key: REDACTED if key in keys and _holds_text(value) else value
        for key, value in attributes.items()
    }


def _holds_text(value: object) -> bool:
    return isinstance(value, str | bytes) or (
        isinstance(value, list | tuple) and any(isinstance(item, str | bytes) for item in value)
    )
