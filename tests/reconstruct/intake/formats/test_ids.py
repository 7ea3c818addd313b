"""Ids in other spellings: whatever the spelling, the number stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.formats import InvalidRecordError, ids

TRACE_IDS = st.integers(1, 2**128 - 1)
SPAN_IDS = st.integers(1, 2**64 - 1)


@given(number=TRACE_IDS, is_upper=st.booleans())
def test_hex_with_its_zeros_cut(number: int, is_upper: bool) -> None:
    """Leading zeros come back, letters become small."""
    text = format(number, "X" if is_upper else "x")
    assert ids.padded_trace_id(text) == format(number, "032x")
    if number < 2**64:
        assert ids.padded_span_id(text) == format(number, "016x")
        assert ids.padded_parent(text) == format(number, "016x")


@given(number=SPAN_IDS, is_text=st.booleans())
def test_decimal_numbers(number: int, is_text: bool) -> None:
    """Unsigned, signed, as number or as text: the same 64 bits."""
    signed = number if number < 2**63 else number - 2**64
    for value in (number, signed):
        written = str(value) if is_text else value
        assert ids.from_decimal(written, "id") == format(number, "016x")


def test_zero_is_no_id() -> None:
    """Zero stands for none."""
    assert ids.from_decimal(0, "id") is None
    assert ids.from_decimal("0", "id") is None
    assert ids.padded_parent("0") is None
    assert ids.padded_parent(None) is None
    assert ids.padded_parent("") is None
    with pytest.raises(InvalidRecordError, match="trace_id"):
        ids.padded_trace_id("0")


@pytest.mark.parametrize("value", [1e18, 2**64, -(2**63) - 1, True, None, "x", "1.5", "", "-"])
def test_what_is_no_number_is_refused(value: object) -> None:
    """A float has lost digits already; the message shows the value."""
    with pytest.raises(InvalidRecordError, match="id is no unsigned 64-bit number: "):
        ids.from_decimal(value, "id")


@pytest.mark.parametrize("value", ["", None, 7, "xyz", "1" * 33, "0x1"])
def test_what_is_no_hex_is_refused(value: object) -> None:
    """Numbers, other letters, too many digits."""
    with pytest.raises(InvalidRecordError):
        ids.padded_trace_id(value)


def test_derived_ids_tell_parts_apart() -> None:
    """The same parts give the same id, parts moved across a border another one."""
    assert ids.derived(16, "a", 1) == ids.derived(16, "a", 1)
    assert len({ids.derived(32, *parts) for parts in [("a", "b"), ("ab",), ("a", "", "b")]}) == 3
