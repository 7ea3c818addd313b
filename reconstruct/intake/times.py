"""Instants of other writers, exact to the nanosecond: ISO text and epoch numbers of any unit."""

import calendar
import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

__all__ = ["to_unix_nano"]

_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:[.,](\d+))?\s?(Z|z|[+-]\d\d:?\d\d)?"
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_UNITS: Final = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3))
"""Below the first number a value is in seconds, then milli- and microseconds: these ranges of
epoch numbers meet only before 1973 and after 5138."""


def to_unix_nano(value: object) -> int | None:
    """Return ns since 1970 of ISO text or an epoch number; None when it is neither.

    Text without a zone is taken as UTC. Digits beyond the nanosecond are cut.
    """
    if isinstance(value, str):
        match = _ISO.fullmatch(value)
        if match is not None:
            return _iso(*match.groups())
        if _NUMBER.fullmatch(value) is None or len(value) > 40:
            return None
        return _epoch(Decimal(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return _epoch(Decimal(repr(value)) if isinstance(value, float) else Decimal(value))


def _iso(second: str, fraction: str | None, zone: str | None) -> int | None:
    whole = _seconds(second)
    if whole is None:
        return None
    if zone is not None and zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        offset = (hours * 60 + minutes) * 60
        whole -= offset if zone[0] == "+" else -offset
    return whole * 1_000_000_000 + int((fraction or "0")[:9].ljust(9, "0"))


@lru_cache(maxsize=1024)
def _seconds(text: str) -> int | None:
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    if not (1 <= month <= 12 and hour < 24 and minute < 60 and second <= 60 and year >= 1678):
        return None
    if not 1 <= day <= calendar.monthrange(year, month)[1] or year > 2261:
        return None
    return calendar.timegm((year, month, day, hour, minute, second))


def _epoch(value: Decimal) -> int | None:
    if not value.is_finite():
        return None
    for limit, factor in _UNITS:
        if abs(value) < limit:
            return int(value * factor)
    return int(value) if abs(value) < 2**63 else None
