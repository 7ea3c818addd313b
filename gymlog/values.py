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

__all__ = [
    "INT64_MAX",
    "INT64_MIN",
    "Limits",
    "clean",
    "clean_key",
    "clean_mapping",
    "clean_text",
    "cut",
    "take",
]

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
MAX_DEPTH: Final = 16
MAX_ITEMS: Final = 65_536
"""Values within one value; more of them than a line has room for are not even looked at."""

CYCLE: Final = "<cycle>"
TOO_DEEP: Final = "<too deep>"
MORE: Final = "…"
"""Stands where items were left out, as it does where text was."""


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
        return _Walk(limit).convert(value)
    except Exception:  # noqa: BLE001 - a value's own methods may raise anything
        return f"<{kind.__name__}>"


def clean_text(value: object, limit: int) -> str:
    """Return `value` as UTF-8 encodable text of at most `limit` characters."""
    text = clean(value, limit)
    if not isinstance(text, str):
        text = str(text)
    return without_surrogates(text)


def take(
    taken: dict[str, Any],  # Any: JSON values
    attributes: Mapping[str, object],
    count: int,
    limit: int,
) -> int:
    """Put attributes, cleaned, into `taken` up to `count` keys; return how many found no room.

    None values are left out. About 50 ns an attribute of a plain type.
    """
    has_room = len(taken) + len(attributes) <= count
    dropped = 0
    for key, value in attributes.items():
        kind = type(value)
        if kind is str:
            if len(value) > limit:  # type: ignore[arg-type]  # kind
                value = cut(value, limit)  # type: ignore[arg-type]  # noqa: PLW2901 - kind
        elif kind is int:
            if not INT64_MIN <= value <= INT64_MAX:  # type: ignore[operator]  # kind
                value = clean(value, limit)  # noqa: PLW2901 - what goes on
        elif value is None:
            continue
        elif kind is not bool:
            value = clean(value, limit)  # noqa: PLW2901 - what goes on
        if type(key) is not str:
            key = clean_key(key)  # noqa: PLW2901 - what goes on
        if has_room or len(taken) < count or key in taken:
            taken[key] = value
        else:
            dropped += 1
    return dropped


def clean_mapping(
    attributes: Mapping[str, object], count: int, limit: int
) -> tuple[dict[str, Any], int]:  # Any: JSON values
    """Return the first `count` attributes cleaned, and how many found no room (see `take`)."""
    cleaned: dict[str, Any] = {}
    return cleaned, take(cleaned, attributes, count, limit)


def clean_key(key: object) -> str:
    """Return any key as plain text."""
    if isinstance(key, str):
        return str.__str__(key)
    try:
        return str.__str__(str(key))
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


class _Walk:
    """The way through one nested value: the containers around, and how many items may follow."""

    __slots__ = ("_inside", "_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._inside: list[int] = []
        self._left = MAX_ITEMS

    def convert(self, value: object) -> Any:  # Any: JSON value
        """Return a value of any type as JSON can hold it; its own methods may raise."""
        for kind, convert in _CONVERSIONS:
            if isinstance(value, kind):
                return convert(self, value)
        if hasattr(type(value), "tolist") and hasattr(value, "dtype"):  # numpy, not imported
            return self.array(value)
        return self.text(repr(value))

    def text(self, value: str) -> str:
        """Return the plain text of a str of any subclass."""
        return without_surrogates(cut(str.__str__(value), self._limit))

    def integer(self, value: int) -> Any:  # Any: an int or, beyond int64, text
        """Return the plain int of a subclass."""
        return clean(int.__int__(value), self._limit)

    def number(self, value: float) -> Any:  # Any: a float or, when not finite, text
        """Return the plain float of a subclass."""
        return clean(float.__float__(value), self._limit)

    def base64(self, value: bytes | bytearray | memoryview) -> str:
        """Return bytes as base64; what will be cut away is not encoded."""
        data = value.tobytes() if isinstance(value, memoryview) else value
        return cut(base64.b64encode(data[: self._limit]).decode(), self._limit)

    def array(self, value: Any) -> Any:  # Any: a numpy or torch array or scalar, or like it
        """Return an array's items as lists; of a large one its repr, which is short."""
        if math.prod(value.shape) > MAX_ITEMS:
            return self.text(repr(value))
        return self._nested(value.tolist())

    def mapping(self, value: Mapping[Any, object]) -> Any:  # Any: keys of any type, JSON value
        """Return an object with text keys, or a marker."""
        if (marker := self._marker(value)) is not None:
            return marker
        self._inside.append(id(value))
        cleaned: dict[str, Any] = {}  # Any: JSON values
        for number, (key, item) in enumerate(value.items()):
            if not self._has_room(number):
                cleaned[MORE] = MORE
                break
            cleaned[without_surrogates(clean_key(key))] = self._nested(item)
        self._inside.pop()
        return cleaned

    def sequence(self, value: Iterable[object]) -> Any:  # Any: JSON value
        """Return a list, or a marker."""
        if (marker := self._marker(value)) is not None:
            return marker
        self._inside.append(id(value))
        cleaned: list[Any] = []  # Any: JSON values
        for number, item in enumerate(value):
            if not self._has_room(number):
                cleaned.append(MORE)
                break
            cleaned.append(self._nested(item))
        self._inside.pop()
        return cleaned

    def _nested(self, value: object) -> Any:  # Any: JSON value
        if type(value) in _SCALARS:
            cleaned = clean(value, self._limit)
            return without_surrogates(cleaned) if type(cleaned) is str else cleaned
        depth = len(self._inside)
        try:
            return self.convert(value)
        except Exception:  # noqa: BLE001 - a value's own methods may raise anything
            del self._inside[depth:]
            return f"<{type(value).__name__}>"

    def _has_room(self, number: int) -> bool:
        """Say whether item `number` of the innermost container may be looked at.

        The outermost container's items count apart: a long one does not displace the others.
        """
        if len(self._inside) == 1:
            return number < MAX_ITEMS
        self._left -= 1
        return self._left >= 0

    def _marker(self, value: object) -> str | None:
        if id(value) in self._inside:
            return CYCLE
        return TOO_DEEP if len(self._inside) >= MAX_DEPTH else None


_SCALARS: Final = frozenset({str, bool, int, float, type(None)})

_CONVERSIONS: Final[Sequence[tuple[Any, Callable[[_Walk, Any], Any]]]] = (
    # Any: each function takes the type beside it
    (str, _Walk.text),
    (int, _Walk.integer),
    (float, _Walk.number),
    (bytes | bytearray | memoryview, _Walk.base64),
    (datetime | date | time, lambda walk, value: walk.text(value.isoformat())),
    (UUID | Decimal, lambda walk, value: walk.text(str(value))),
    (Mapping, _Walk.mapping),
    (list | tuple | set | frozenset | Sequence, _Walk.sequence),
)
