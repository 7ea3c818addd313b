"""JSON in and out: no digit, character or shape is lost, nothing but `NotJson` is raised."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake import json_text
from reconstruct.intake.json_text import NotJson, Rounded

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False, min_value=-1e15, max_value=1e15)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(VALUES)
def test_what_goes_in_comes_out(value: object) -> None:
    """Every value of the contract survives decoding and encoding, exactly."""
    line = json.dumps(value, ensure_ascii=False).encode()
    assert json.loads(json_text.encode(json_text.decode(line))) == value


@pytest.mark.parametrize("digits", ["123456789012345678901234567890", "-" + "9" * 39])
def test_an_integer_beyond_64_bits_keeps_its_digits(digits: str) -> None:
    """orjson would make a float of it: that is noticed, and the exact way keeps every digit."""
    line = f'{{"a":{{"b":[{digits}]}}}}'.encode()
    with pytest.raises(Rounded):
        json_text.encode(json_text.decode(line))
    assert json_text.encode(json_text.decode_exactly(line)) == line.decode()


@pytest.mark.parametrize("number", [1e300, -1.5e20, 2.0**63])
def test_a_large_float_is_still_a_float(number: float) -> None:
    """The exact way lets large floats through."""
    line = json.dumps([number]).encode()
    assert json.loads(json_text.encode(json_text.decode_exactly(line))) == [number]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a":NaN,"b":-Infinity}', {"a": "NaN", "b": "-Infinity"}),
        (b'{"a":1e999}', {"a": "1e999"}),
        (rb'{"a\ud800":"x\ud83d"}', {"a\ufffd": "x\ufffd"}),
        (rb'"\ud83d\ude00"', "😀"),
        (b'{"a":1,"a":2}', {"a": 2}),
    ],
)
def test_what_orjson_refuses_or_json_cannot_hold(line: bytes, value: object) -> None:
    """Such values become text or U+FFFD, as the contract says for writers."""
    decoded = json_text.decode(line)
    assert decoded == value
    assert json.loads(json_text.encode(decoded)) == value


@pytest.mark.parametrize("line", [b"", b"{", b"{}x", b"{'a':1}", b'{"a":1,}', b"\xff", b"[" * 5000])
def test_no_json_says_so(line: bytes) -> None:
    """Whatever is no single JSON value raises `NotJson` with a reason."""
    with pytest.raises(NotJson, match=r".+"):
        json_text.decode(line)


@given(st.binary(max_size=60))
def test_any_bytes(line: bytes) -> None:
    """Decoding arbitrary bytes gives a value or `NotJson`."""
    try:
        value = json_text.decode(line)
    except NotJson:
        return
    try:
        json.loads(json_text.encode(value))
    except Rounded:
        json.loads(json_text.encode(json_text.decode_exactly(line)))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_is_written_whatever_its_size(value: float) -> None:
    """A large float that is meant as one is no integer that was rounded."""
    assert json.loads(json_text.encode([json_text.double(value)])) == [value]
