"""Protobuf's JSON in the spellings that writers give it: field names, ids, enums, numbers."""

import base64
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError
from reconstruct.intake.json_text import Json

__all__ = ["camel", "count", "enum_names", "identity", "items", "named", "nanoseconds"]

_HEX: Final = re.compile(r"[0-9a-f]+")
_URL_SAFE: Final = str.maketrans("-_", "+/")
_BYTE: Final = range(256)


def camel(message: Json, field: str) -> dict[str, Json]:
    """Return a message with its fields in camelCase; what is absent is an empty message."""
    if type(message) is not dict:
        if message is None:
            return {}
        raise InvalidRecordError(f"{field} is no object: {fields.shown(message)}")
    for name in message:
        if "_" in name:
            return {_camel(name): value for name, value in message.items()}
    return message


@lru_cache(maxsize=1024)
def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other[:1].upper() + other[1:] for other in others)


def items(message: dict[str, Json], field: str) -> list[Json]:
    """Return a repeated field; it is absent when nothing is in it."""
    value = message.get(field)
    if isinstance(value, list):
        return value
    if value is None:
        return []
    raise InvalidRecordError(f"{field} is no list: {fields.shown(value)}")


def identity(value: Json, size: int, field: str) -> str | None:
    """Return the lower-case hex digits of an id of `size` bytes; None when it is empty or zero.

    Hex is told from base64 by its length, and base64 has its padding: 16 bytes are 32 digits or 24
    characters, 8 bytes are 16 digits or 12 characters. Shorter trace ids of 16 digits get zeros in
    front. A list of bytes is an id too: some writers of Rust gave their links such ones.
    """
    if type(value) is str and len(value) == 2 * size and _HEX.fullmatch(value) is not None:
        text = value
    else:
        text = _identity(value, size)
        if text == "":
            raise InvalidRecordError(
                f"{field} is neither {2 * size} hex digits nor {size} bytes in base64: "
                f"{fields.shown(value)}"
            )
    return text if text.strip("0") else None


def _identity(value: Json, size: int) -> str:
    """Hex digits of an id in a rarer spelling; empty when it is none."""
    if not value:
        return "0"
    if isinstance(value, list):
        is_bytes = len(value) == size and all(type(one) is int and one in _BYTE for one in value)
        return bytes(value).hex() if is_bytes else ""
    if not isinstance(value, str):
        return ""
    digits = value.lower().removeprefix("0x")
    if len(digits) in (2 * size, 16) and _HEX.fullmatch(digits) is not None:
        return digits.zfill(2 * size)
    try:
        decoded = base64.b64decode(value.translate(_URL_SAFE), validate=True)
    except ValueError:
        return ""
    return decoded.hex() if len(decoded) == size else ""


def nanoseconds(value: Json, field: str) -> int | None:
    """Return ns since 1970; None when there is no time, which OTLP says with 0 too."""
    if value is None:
        return None
    time = fields.int64(value)
    if time is None or time < 0:
        raise InvalidRecordError(f"{field} is not ns since 1970: {fields.shown(value)}")
    return time or None


def count(value: Json) -> int | None:
    """Return a number of things; None for 0, which our lines leave out."""
    return fields.int64(value) or None


def named(value: Json) -> str | None:
    """Return text; None when it is empty, which our lines leave out."""
    return fields.text(value) or None


def enum_names(prefix: str, numbers: Iterable[tuple[int, str]]) -> dict[Json, str]:
    """Return what an enum's value may look like, and which of our words each of these is.

    A number, its digits as text, OTLP's name with its prefix and the bare one.
    """
    names: dict[Json, str] = {}
    for number, word in numbers:
        names |= dict.fromkeys((number, str(number), f"{prefix}{word}", word), word)
    return names
