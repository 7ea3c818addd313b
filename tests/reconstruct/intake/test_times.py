"""Instants of other writers, to the nanosecond."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.times import to_unix_nano

NOON = 1_748_779_200_000_000_000  # 2025-06-01T12:00:00Z


@pytest.mark.parametrize(
    ("value", "nano"),
    [
        ("2025-06-01T12:00:00Z", NOON),
        ("2025-06-01T12:00:00.312Z", NOON + 312_000_000),
        ("2025-06-01T12:00:00.312000001Z", NOON + 312_000_001),
        ("2025-06-01T14:00:00.5+02:00", NOON + 500_000_000),
        ("2025-06-01 12:00:00,250", NOON + 250_000_000),
        ("2025-06-01T07:00:00-0500", NOON),
        ("2025-06-01T12:00:00.1234567891Z", NOON + 123_456_789),
        (NOON, NOON),
        (str(NOON), NOON),
        (NOON // 1_000, NOON),
        (NOON // 1_000_000, NOON),
        (NOON // 1_000_000_000, NOON),
        (1748779200.25, NOON + 250_000_000),
        ("1748779200.000000001", NOON + 1),
    ],
)
def test_known_forms(value: object, nano: int) -> None:
    """ISO text with any number of digits and any zone, epoch numbers of any unit."""
    assert to_unix_nano(value) == nano


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        "",
        "soon",
        "2025-13-01T00:00:00Z",
        "2025-02-30T00:00:00Z",
        "2025-06-01T25:00:00Z",
        "9999-01-01T00:00:00Z",
        float("nan"),
        float("inf"),
        [],
        {},
        10**40,
        "1" * 50,
    ],
)
def test_no_time(value: object) -> None:
    """What is no time is None, never an exception or another time."""
    assert to_unix_nano(value) is None


@given(
    st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1)),  # noqa: DTZ001  # the zone is added
    st.integers(0, 999_999_999),
    st.integers(-14 * 60, 14 * 60),
)
def test_every_instant_in_every_zone(moment: datetime, nano: int, minutes: int) -> None:
    """The same instant written in any zone is the same number."""
    zone = timezone(timedelta(minutes=minutes))
    aware = moment.replace(microsecond=0, tzinfo=zone)
    text = f"{aware:%Y-%m-%dT%H:%M:%S}.{nano:09d}{aware:%z}"
    seconds = int((aware - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    assert to_unix_nano(text) == seconds * 1_000_000_000 + nano


@given(st.text(max_size=40) | st.floats() | st.integers())
def test_anything(value: object) -> None:
    """Nothing raises."""
    to_unix_nano(value)
