"""Attribute values: which may stand on a line as they are, and what becomes of the others.

`clean` is the whole table of `record.md`: text, bool, int within int64 and finite floats stay;
everything else becomes text, a list or an object that JSON can hold. It never raises, whatever a
value's own methods do.
"""

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gymlog.record import DEFAULT_VALUE_MAX_CHARACTERS

__all__ = ["Limits", "clean", "clean_mapping", "clean_text", "cut"]

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
MAX_DEPTH: Final = 16

CYCLE: Final = "<cycle>"
TOO_DEEP: Final = "<too deep>"


class Limits:
    """Counts and lengths of OTEL_*_LIMIT; None is no limit."""

    __slots__ = (
        "attributes",
        "characters",
        "event_attributes",
        "events",
        "link_attributes",
        "links",
    )

    def __init__(
        self,
        *,
        attributes: int | None = 128,
        characters: int | None = DEFAULT_VALUE_MAX_CHARACTERS,
        events: int | None = 128,
        links: int | None = 128,
        event_attributes: int | None = 128,
        link_attributes: int | None = 128,
    ) -> None:
        unlimited = 1 << 62
        self.attributes = unlimited if attributes is None else attributes
        self.characters = unlimited if characters is None else characters
        self.events = unlimited if events is None else events
        self.links = unlimited if links is None else links
        self.event_attributes = unlimited if event_attributes is None else event_attributes
        self.link_attributes = unlimited if link_attributes is None else link_attributes


def clean(value: object, limit: int) -> Any:  # Any: one JSON value
    """Return `value` as JSON can hold it, texts cut at `limit` characters; about 100 ns a scalar.

    None comes back as None (a caller drops it); it never raises.
    """
    kind = type(value)
    if kind is str:
        return value if len(value) <= limit else cut(value, limit)  # type: ignore[arg-type]  # kind
    if kind is bool or value is None:
        return value
    if kind is int:
        return value if INT64_MIN <= value <= INT64_MAX else cut(str_of_int(value), limit)  # type: ignore[operator,arg-type]  # kind
    if kind is float:
        return value if math.isfinite(value) else non_finite(value)  # type: ignore[arg-type]  # kind
    try:
        return _clean_other(value, limit, ())
    except Exception:  # noqa: BLE001 - a value's own methods may raise anything
        return f"<{kind.__name__}>"


def clean_text(value: object, limit: int) -> str:
    """Return `value` as UTF-8 encodable text of at most `limit` characters."""
    text = clean(value, limit)
    if not isinstance(text, str):
        text = str(text)
    return without_surrogates(text)


def clean_mapping(
    attributes: Mapping[str, object], count: int, limit: int
) -> tuple[dict[str, Any], int]:  # Any: JSON values
    """Return the first `count` attributes cleaned, None values left out, and how many went."""
    cleaned: dict[str, Any] = {}
    dropped = 0
    for key, value in attributes.items():
        if value is None:
            continue
        if len(cleaned) >= count and key not in cleaned:
            dropped += 1
            continue
        cleaned[key if type(key) is str else clean_key(key)] = clean(value, limit)
    return cleaned, dropped


def clean_key(key: object) -> str:
    """Return any key as plain text."""
    if isinstance(key, str):
        return str.__str__(key)
    try:
        return str(key)
    except Exception:  # noqa: BLE001 - a key's own __str__ may raise anything
        return f"<{type(key).__name__}>"


def cut(text: str, limit: int) -> str:
    """Return `text` cut to `limit` characters, the last one `…` when anything went."""
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…" if limit > 0 else ""


def without_surrogates(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def str_of_int(value: int) -> str:
    """Return the decimal digits of an int of any size."""
    try:
        return str(value)
    except ValueError:  # over sys.get_int_max_str_digits()
        return hex(value)


def non_finite(value: float) -> str:
    """Return OTLP/JSON's words for a float that JSON cannot hold."""
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _clean_other(value: object, limit: int, inside: tuple[int, ...]) -> Any:  # Any: JSON value
    """Clean a value of any type; `inside` holds the ids of the containers around it."""
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value, limit, inside)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy, without importing it
        return _nested(value.tolist(), limit, inside)
    return _repr(value, limit)


def _nested(value: object, limit: int, inside: tuple[int, ...]) -> Any:  # Any: JSON value
    if type(value) in _SCALARS:
        cleaned = clean(value, limit)
        return without_surrogates(cleaned) if type(cleaned) is str else cleaned
    try:
        return _clean_other(value, limit, inside)
    except Exception:  # noqa: BLE001 - a value's own methods may raise anything
        return f"<{type(value).__name__}>"


def _mapping(value: Mapping[Any, object], limit: int, inside: tuple[int, ...]) -> Any:  # Any: keys
    if (marker := _marker(value, inside)) is not None:
        return marker
    inside = (*inside, id(value))
    return {
        without_surrogates(clean_key(key)): _nested(item, limit, inside)
        for key, item in value.items()
    }


def _sequence(value: Iterable[object], limit: int, inside: tuple[int, ...]) -> Any:  # Any: JSON
    if (marker := _marker(value, inside)) is not None:
        return marker
    inside = (*inside, id(value))
    return [_nested(item, limit, inside) for item in value]


def _marker(value: object, inside: tuple[int, ...]) -> str | None:
    if id(value) in inside:
        return CYCLE
    return TOO_DEEP if len(inside) >= MAX_DEPTH else None


def _repr(value: object, limit: int) -> str:
    try:
        return without_surrogates(cut(repr(value), limit))
    except Exception:  # noqa: BLE001 - a hostile repr may raise anything
        return f"<{type(value).__name__}>"


def _text(value: str, limit: int) -> str:
    return without_surrogates(cut(str.__str__(value), limit))


_SCALARS: Final = frozenset({str, bool, int, float, type(None)})

_CONVERSIONS: Final[Sequence[tuple[Any, Callable[[Any, int, tuple[int, ...]], Any]]]] = (
    # Any: each function takes the type beside it
    (str, lambda value, limit, _: _text(value, limit)),
    (bool, lambda value, _, __: bool(value)),
    (int, lambda value, limit, _: clean(int(value), limit)),
    (float, lambda value, limit, _: clean(float(value), limit)),
    (bytes | bytearray | memoryview, lambda value, limit, _: cut(_base64(value), limit)),
    (datetime | date | time, lambda value, _, __: value.isoformat()),
    (UUID | Decimal, lambda value, limit, _: cut(str(value), limit)),
    (Mapping, _mapping),
    (list | tuple | set | frozenset | Sequence, _sequence),
)


def _base64(value: bytes | bytearray | memoryview) -> str:
    return base64.b64encode(value).decode()
