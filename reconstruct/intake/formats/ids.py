"""Ids of writers that spell them otherwise: zeros cut off, decimal numbers, or none at all."""

import hashlib
from typing import Final

from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError
from reconstruct.intake.json_text import Json

__all__ = ["derived", "from_decimal", "padded_parent", "padded_span_id", "padded_trace_id"]

_UINT64: Final = 2**64


def padded_trace_id(value: Json) -> str:
    """Return the 32 digits of a hex id whose leading zeros may be missing."""
    return fields.trace_id(_filled(value, 32))


def padded_span_id(value: Json) -> str:
    """Return the 16 digits of a hex id whose leading zeros may be missing."""
    return fields.span_id(_filled(value, 16))


def padded_parent(value: Json) -> str | None:
    """Return the parent's 16 digits; None, empty and zero are a root."""
    return fields.parent_span_id(_filled(value, 16))


def from_decimal(value: Json, field: str) -> str | None:
    """Return 16 hex digits of an unsigned 64-bit number, given as number or as text; None for 0.

    Writers without unsigned numbers give the upper half as negative ones. Raises
    `InvalidRecordError` for anything else, floats included: they have lost digits.
    """
    number = value
    if isinstance(value, str) and len(value) <= 20 and value.removeprefix("-").isdecimal():
        number = int(value)
    if type(number) is not int or not -(_UINT64 // 2) <= number < _UINT64:
        raise InvalidRecordError(f"{field} is no unsigned 64-bit number: {str(value)[:60]}")
    return format(number % _UINT64, "016x") if number else None


def derived(digits: int, *parts: object) -> str:
    """Return an id for what has none: the same parts, the same id."""
    text = "\x1f".join(map(str, parts))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:digits]


def _filled(value: Json, digits: int) -> Json:
    return value.zfill(digits) if isinstance(value, str) and value else value
