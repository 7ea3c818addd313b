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
        ("2025-06-01T14:00:00+02", NOON),
        ("2025-06-01t12:00:00z", NOON),
        ("2025-06-01 12:00:00 UTC", NOON),
        ("2025-06-01 14:00:00.000000001 +0200", NOON + 1),
        ("2025-06-01 12:00:00.312345678", NOON + 312_345_678),
        ("1969-12-31T23:59:59.999999999Z", -1),
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
        "2025-06-01T12:00:00+24:00",
        "2025-06-01T12:00:00+01:60",
        "２０２５-06-01T12:00:00Z",
        "-1748779200",
        0,
        5,
        86_400,
        600_000_000,
        5_000_000_000,
        10**12 // 2,
        5 * 10**12,
        5 * 10**15,
        5 * 10**18,
        -NOON,
        12.5,
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


@given(
    st.integers(631_152_000_000_000_000, 4_102_444_800_000_000_000 - 1),
    st.sampled_from([1, 10**3, 10**6, 10**9]),
)
def test_a_number_says_its_unit(nano: int, units_per_second: int) -> None:
    """Every instant between 1990 and 2100 is told in every unit, as a number and as text."""
    nanoseconds_per_unit = 10**9 // units_per_second
    value, rest = divmod(nano, nanoseconds_per_unit)
    assert to_unix_nano(value) == to_unix_nano(str(value)) == nano - rest
    if rest:
        digits = len(str(nanoseconds_per_unit)) - 1
        assert to_unix_nano(f"{value}.{rest:0{digits}d}") == nano


@given(st.text(max_size=40) | st.floats() | st.integers())
def test_anything(value: object) -> None:
    """Nothing raises."""
    to_unix_nano(value)
