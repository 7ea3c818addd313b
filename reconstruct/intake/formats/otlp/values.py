"""OTLP's `AnyValue` and lists of attributes as the JSON of our lines, every type exact.

An int64 stays an integer to its last digit, a double stays one when it is whole, bytes are base64,
NaN and the infinities are text; no value at all is null.
"""

import math
import re
from collections.abc import Callable
from typing import Final

from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError
from reconstruct.intake.formats.otlp.spelling import camel, items
from reconstruct.intake.json_text import Json, Rounded, double

__all__ = ["any_value", "attributes", "float64", "int64"]

_INTEGER: Final = re.compile(r"-?[0-9]{1,4000}")
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NO_NUMBERS: Final = ("NaN", "Infinity", "-Infinity")
_INT64: Final = range(-(2**63), 2**63)


def attributes(value: Json) -> dict[str, Json]:
    """Return a list of keys with values as an object; the last of equal keys counts."""
    if not value:
        return {}
    if isinstance(value, dict):  # home-made writers give the object itself
        return value
    if not isinstance(value, list):
        raise InvalidRecordError(f"attributes are no list: {fields.shown(value)}")
    found: dict[str, Json] = {}
    for item in value:
        if type(item) is not dict:
            raise InvalidRecordError(f"an attribute is no object: {fields.shown(item)}")
        key = item.get("key", "")
        if type(key) is not str:
            raise InvalidRecordError(f"an attribute's key is no text: {fields.shown(key)}")
        try:
            found[key] = any_value(item.get("value"))
        except InvalidRecordError as error:
            raise InvalidRecordError(f"attribute {key!r}: {error}") from None
    return found


def any_value(value: Json) -> Json:
    """Return what an `AnyValue` holds."""
    if not value and (value is None or value == {}):
        return None
    if type(value) is not dict:
        raise InvalidRecordError(f"no value of OTLP: {fields.shown(value)}")
    for name, content in value.items():
        if content is not None and name in _CONTENT:
            return _CONTENT[name](content)
    if all(name in _CONTENT for name in value):
        return None
    raise InvalidRecordError(f"no value of OTLP: {fields.shown(value)}")


def int64(value: Json) -> int | str:
    """Return an integer; beyond 64 bits, where our lines have none, the text of its digits."""
    if type(value) is str and _INTEGER.fullmatch(value) is not None:
        value = int(value)
    if type(value) is int:
        return value if value in _INT64 else str(value)
    if isinstance(value, float) and value.is_integer():
        if abs(value) < 2**63:
            return int(value)
        if type(value) is float:  # maybe an integer that was rounded
            raise Rounded
        return str(int(value))  # JavaScript writes 1e+21
    raise InvalidRecordError(f"no integer: {fields.shown(value)}")


def float64(value: Json) -> float | str:
    """Return a double; where JSON has no number for it, its text."""
    is_text = isinstance(value, str)
    if is_text and value in _NO_NUMBERS:
        return str(value)
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    if not is_number and not (is_text and _NUMBER.fullmatch(value)):
        raise InvalidRecordError(f"no number: {fields.shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        return str(value)
    return double(number) if math.isfinite(number) else str(value)


def _boolean(value: Json) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidRecordError(f"neither true nor false: {fields.shown(value)}")


def _bytes(value: Json) -> str:
    return fields.required_text(value, "bytesValue")


def _array(value: Json) -> list[Json]:
    return [any_value(item) for item in items(camel(value, "arrayValue"), "values")]


def _object(value: Json) -> dict[str, Json]:
    return attributes(camel(value, "kvlistValue").get("values"))


_CONTENT: Final[dict[str, Callable[[Json], Json]]] = {
    "stringValue": fields.text,
    "string_value": fields.text,
    "boolValue": _boolean,
    "bool_value": _boolean,
    "intValue": int64,
    "int_value": int64,
    "doubleValue": float64,
    "double_value": float64,
    "bytesValue": _bytes,
    "bytes_value": _bytes,
    "arrayValue": _array,
    "array_value": _array,
    "kvlistValue": _object,
    "kvlist_value": _object,
}
