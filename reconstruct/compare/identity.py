"""What makes a span the same work in another rollout, and which of its attributes say how it went.

Ids, addresses and times are never the same twice. A route is: `/ng-rollout/3-0/v1/responses` is
`/v1/responses` in each rollout, and `/items/17` the same work as `/items/18`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlsplit

from gymlog.semconv import HTTP_ROUTE, URL_FULL, URL_PATH
from reconstruct.intake.json_text import Json
from reconstruct.tree import Span

__all__ = ["changed_attributes", "identity"]

_ORDINALS: Final = frozenset({"turn", "step", "attempt", "stage"})
"""Last words of keys that say which of several alike a span is."""
_IDS: Final = frozenset({"id", "ids", "port", "pid", "traceparent", "tracestate"})
"""Last words of keys whose values name something of one rollout or process."""
_AMOUNTS: Final = frozenset(
    {"tokens", "size", "bytes", "length", "count", "duration", "seconds", "ms", "ns"}
)
"""Last words of keys whose numbers are compared with the tolerance."""
_WORDS: Final = re.compile(r"[._]")
_ROLLOUT_PREFIX: Final = re.compile(r"^/ng-rollout/[^/]+(/training-token-capture)?(?=/|$)")
_SERIAL: Final = re.compile(r"/(?=[^/]*\d)(?!v\d+(?:/|$))[^/]+")
"""A part of a path with a digit in it, but for a version."""


def identity(span: Span, keys: Iterable[str] = ()) -> str:
    """Return what two spans that are the same work have in common, as one text.

    That is service, name, kind, route, which turn or attempt it is, and the attributes `keys`.
    """
    chosen = {
        key: value
        for key, value in span.attributes.items()
        if _last_word(key) in _ORDINALS or key in keys
    }
    facts = (span.service_name, span.name, span.kind, span.state == "missing", _route(span))
    return repr((*facts, sorted((key, repr(value)) for key, value in chosen.items())))


def changed_attributes(a: Span, b: Span, tolerance: float) -> dict[str, tuple[Json, Json]]:
    """Return the attributes that say something else in `b`, by key; None where there is none."""
    return dict(_changed(a, b, tolerance))


def _changed(a: Span, b: Span, tolerance: float) -> Iterator[tuple[str, tuple[Json, Json]]]:
    for key in sorted(a.attributes.keys() | b.attributes.keys()):
        one, other = a.attributes.get(key), b.attributes.get(key)
        if one == other or _last_word(key) in _IDS or key.endswith("_unix_nano"):
            continue
        if key in (URL_FULL, URL_PATH) and _route(a) == _route(b):
            continue
        if _last_word(key) in _AMOUNTS and _is_close(one, other, tolerance):
            continue
        yield key, (one, other)


def _is_close(one: Json, other: Json, tolerance: float) -> bool:
    return (
        isinstance(one, int | float)
        and isinstance(other, int | float)
        and abs(one - other) <= tolerance * max(abs(one), abs(other))
    )


def _last_word(key: str) -> str:
    return _WORDS.split(key)[-1].lower()


def _route(span: Span) -> str:
    """Return the path of a request without what is of one rollout; empty for other spans."""
    if isinstance(route := span.attributes.get(HTTP_ROUTE), str):
        return route
    for key in (URL_PATH, URL_FULL):
        if isinstance(url := span.attributes.get(key), str):
            try:
                path = urlsplit(url).path
            except ValueError:  # no URL at all
                return ""
            return _SERIAL.sub("/*", _ROLLOUT_PREFIX.sub("", path))
    return ""
