"""JSON in both directions without losing a number, a character or the reader.

orjson is tried first. What it refuses (bare NaN and Infinity, halves of surrogate pairs) goes
through the standard library at once; where it rounds (integers beyond 64 bits become floats),
`encode` notices and raises `Rounded`, and the line is decoded again, exactly. The result
is always JSON that DuckDB and every other parser takes: NaN and the infinities become
text, half surrogates become U+FFFD, as `record.md` says for writers.
"""

import json
import math
import re
from typing import Any, Final

import orjson

__all__ = [
    "Json",
    "NotJson",
    "Rounded",
    "decode",
    "decode_encoded",
    "decode_exactly",
    "decode_prefix",
    "decode_text",
    "double",
    "encode",
]

Json = Any  # Any: whatever JSON can hold

_HALF_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_WHITESPACE: Final = " \t\n\r"
"""JSON's own; Python strips more."""
_ROUNDED_FROM: Final = float(2**63)
"""orjson's floats at and beyond this may have been integers."""


class NotJson(ValueError):  # noqa: N818  # reads as the answer to a question
    """The text is not one JSON value; the message says why and where."""


class Rounded(Exception):  # noqa: N818  # reads as the answer to a question
    """The value may have lost digits: decode the line with `decode_exactly`."""


class _Exact(float):
    """A large float that is a float on the line too."""

    __slots__ = ()


def decode(line: bytes) -> Json:
    """Parse `line`, which must be one JSON value in UTF-8; raise `NotJson` otherwise."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return decode_exactly(line)


def decode_exactly(line: bytes) -> Json:
    """Parse `line` as `decode` does, every digit kept; about four times slower."""
    try:
        return decode_text(line.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start} is not UTF-8") from None


def decode_text(text: str) -> Json:
    """Parse `text`, which must be one JSON value; raise `NotJson` otherwise."""
    value, end = decode_prefix(text, len(text) - len(text.lstrip(_WHITESPACE)))
    if text[end:].strip(_WHITESPACE):
        raise NotJson(f"more text after the value, at character {end}")
    return value


def decode_prefix(text: str, start: int) -> tuple[Json, int]:
    """Parse the JSON value that begins at `start`; return it and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg.lower()} at character {error.pos}") from None
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    if "\\ud" in text or "\\uD" in text:
        try:
            value = _without_half_surrogates(value)
        except RecursionError:
            raise NotJson("nested too deeply") from None
    return value, end


def encode(value: Json) -> str:
    """Write `value` as compact JSON text.

    Raises `NotJson` when it is nested too deeply, `Rounded` when orjson may have cut its digits.
    """
    try:
        _refuse_rounded(value)
        try:
            return orjson.dumps(value).decode()
        except (TypeError, ValueError):  # integers beyond 64 bits, large floats, many levels
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise NotJson("nested too deeply") from None


def decode_encoded(text: str) -> Json:
    """Parse what `encode` wrote, every digit kept."""
    line = text.encode()
    value = decode(line)
    try:
        _refuse_rounded(value)
    except Rounded:
        return decode_exactly(line)
    return value


def double(value: float) -> float:
    """Return a float that `encode` takes for one, however large it is."""
    return _Exact(value) if abs(value) >= _ROUNDED_FROM else value


def _refuse_rounded(value: Json) -> None:
    if type(value) is float:
        if not -_ROUNDED_FROM < value < _ROUNDED_FROM:
            raise Rounded
    elif type(value) is dict:
        for item in value.values():
            if type(item) in _MAY_BE_ROUNDED:
                _refuse_rounded(item)
    elif type(value) is list:
        for item in value:
            if type(item) in _MAY_BE_ROUNDED:
                _refuse_rounded(item)


_MAY_BE_ROUNDED: Final = frozenset({float, dict, list})


def _float(digits: str) -> float | str:
    value = float(digits)
    return digits if math.isinf(value) else double(value)


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < 4_000 else digits


_DECODER: Final = json.JSONDecoder(
    parse_constant=lambda name: name, parse_float=_float, parse_int=_integer, strict=False
)


def _without_half_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return _HALF_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_half_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {
            _without_half_surrogates(key): _without_half_surrogates(item)
            for key, item in value.items()
        }
    return value
