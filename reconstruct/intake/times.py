"""Instants of other writers, exact to the nanosecond: ISO text and epoch numbers of any unit.

An epoch number says its unit by its size, since what is logged lies between 1990 and 2100:

| unit | from | to |
|---|---|---|
| s | 6.3e8 | 4.1e9 |
| ms | 6.3e11 | 4.1e12 |
| µs | 6.3e14 | 4.1e15 |
| ns | 6.3e17 | 4.1e18 |

A number between these ranges is no time: one of a monotonic clock, say, or a duration. Text
without a zone is UTC. Digits beyond the nanosecond are cut.
"""

import calendar
import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

__all__ = ["to_unix_nano"]

_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:[.,](\d+))?"
    r"\s?(?:[Zz]|UTC|([+-])(\d\d)(?::?(\d\d))?)?",
    re.ASCII,
)
_NUMBER: Final = re.compile(r"\d{1,20}(?:\.\d{1,20})?", re.ASCII)
_NANOSECONDS: Final = 10**9
_FIRST_SECOND: Final = 631_152_000  # 1990-01-01
_LAST_SECOND: Final = 4_102_444_800  # 2100-01-01


def to_unix_nano(value: object) -> int | None:
    """Return ns since 1970 of ISO text or an epoch number; None when it is neither."""
    if isinstance(value, str):
        match = _ISO.fullmatch(value)
        if match is not None:
            return _iso(match)
        if _NUMBER.fullmatch(value) is None:
            return None
        return _epoch(Decimal(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return _epoch(Decimal(repr(value))) if math.isfinite(value) else None
    return _epoch(value)


def _iso(match: re.Match[str]) -> int | None:
    second, fraction, sign, hours, minutes = match.groups()
    whole = _seconds(second)
    if whole is None:
        return None
    if sign is not None:
        if int(hours) > 23 or int(minutes or 0) > 59:
            return None
        offset = (int(hours) * 60 + int(minutes or 0)) * 60
        whole -= offset if sign == "+" else -offset
    return whole * _NANOSECONDS + int((fraction or "0")[:9].ljust(9, "0"))


@lru_cache(maxsize=1024)
def _seconds(text: str) -> int | None:
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second <= 60 and year >= 1678):
        return None
    if not 1 <= day <= calendar.monthrange(year, month)[1] or year > 2261:
        return None
    return calendar.timegm((year, month, day, hour, minute, second))


def _epoch(value: int | Decimal) -> int | None:
    for units_per_second in (1, 10**3, 10**6, 10**9):
        if _FIRST_SECOND * units_per_second <= value < _LAST_SECOND * units_per_second:
            return int(value * (_NANOSECONDS // units_per_second))
    return None
