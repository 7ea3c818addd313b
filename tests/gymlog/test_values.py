"""Values: the table of what stands on a line, and that nothing a host gives can break it."""

import dataclasses
import decimal
import enum
import json
import math
import uuid
from datetime import UTC, date, datetime, time
from pathlib import PurePosixPath
from unittest import mock

import numpy as np
import orjson
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog.values import (
    CYCLE,
    MAX_DEPTH,
    MAX_ITEMS,
    MORE,
    TOO_DEEP,
    Limits,
    clean,
    clean_key,
    clean_mapping,
    clean_text,
    cut,
    take,
)

LIMIT = 100


class Raises:
    """An object whose every method fails."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __eq__ = __getattr__ = __repr__

    def __hash__(self):
        return 1


class Text(str):
    __slots__ = ()

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __len__ = __str__


class Whole(int):
    def __int__(self):
        raise RuntimeError("no int")

    __str__ = __repr__ = __index__ = __int__


class Moment(datetime):
    def isoformat(self, *args):
        return object()


class ReprText:
    def __repr__(self):
        return type("Sub", (str,), {})("shown")


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    YES = "yes"


@dataclasses.dataclass
class Point:
    x: int


class Model(pydantic.BaseModel):
    x: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (-(2**63), -(2**63)),
        (2**63 - 1, 2**63 - 1),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        (0.1, 0.1),
        (-0.0, -0.0),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        ("text\n\u2028\x00", "text\n\u2028\x00"),
        ("", ""),
        (b"\x00\xff", "AP8="),
        (bytearray(b"ab"), "YWI="),
        (memoryview(b"abcd")[::2], "YWM="),
        ((1, "a", None, True, 0.5), [1, "a", None, True, 0.5]),
        ([], []),
        ([math.nan, 2**64], ["NaN", "18446744073709551616"]),
        ({1: 2, None: 3, "k": None}, {"1": 2, "None": 3, "k": None}),
        ({5}, [5]),
        (range(3), [0, 1, 2]),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02T03:04:05"),  # noqa: DTZ001 - naive is the case
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (decimal.Decimal("1.50"), "1.50"),
        (Level.HIGH, 3),
        (Word.YES, "yes"),
        (Colour.RED, "<Colour.RED: 1>"),
        (Point(1), "Point(x=1)"),
        (Model(x=1), "Model(x=1)"),
        (PurePosixPath("/a"), "PurePosixPath('/a')"),
        (np.float32(0.5), 0.5),
        (np.float64(0.5), 0.5),
        (np.int64(7), 7),
        (np.bool_(1), True),
        (np.str_("s"), "s"),
        (np.arange(3), [0, 1, 2]),
        (np.array([[1.0, np.nan]]), [[1.0, "NaN"]]),
        (np.float16("inf"), "Infinity"),
        (["\ud800", {"\udfff": "\ud83d\ude00"}], ["\ufffd", {"\ufffd": "\U0001f600"}]),
        (Raises(), "<Raises>"),
        ([1, Raises(), 2], [1, "<Raises>", 2]),
        ({"a": {"b": Raises()}, "c": 1}, {"a": {"b": "<Raises>"}, "c": 1}),
        (Text("kept"), "kept"),
        ({Text("key"): Text("kept")}, {"key": "kept"}),
        ({Raises(): 1}, {"<Raises>": 1}),
        (Whole(7), 7),
        (Moment(2026, 1, 2), "<Moment>"),
        (ReprText(), "shown"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_table_of_values(value, expected):
    """Each row of `record.md`, and the types a gym meets besides; types are plain."""
    cleaned = clean(value, LIMIT)
    assert cleaned == expected
    assert type(cleaned) is type(expected)
    assert orjson.loads(orjson.dumps(cleaned)) == expected


def test_text_is_cut_at_a_character_and_says_so():
    """The limit counts characters, the mark included; what fits is not touched."""
    assert clean("ä" * 100, LIMIT) == "ä" * 100
    assert clean("ä" * 101, LIMIT) == "ä" * 99 + "…"
    assert clean(["😀" * 101], LIMIT) == ["😀" * 99 + "…"]
    assert clean(b"x" * 1000, LIMIT) == "eHh4" * 24 + "eHh…"
    assert clean(10**200, LIMIT) == "1" + "0" * 98 + "…"
    assert [cut("abc", limit) for limit in range(5)] == ["", "…", "a…", "abc", "abc"]


def test_an_int_of_any_size_is_text():
    """Python refuses to write out more than 4,300 decimal digits; that is no failure."""
    assert clean(10**5000, 20).startswith("0x")


def test_cycles_end_in_a_marker():
    """A value within itself, and through others; the same value twice is no cycle."""
    mapping: dict = {"n": 1}
    mapping["self"] = mapping
    assert clean(mapping, LIMIT) == {"n": 1, "self": CYCLE}
    outer: list = [1]
    outer.append({"back": outer})
    assert clean(outer, LIMIT) == [1, {"back": CYCLE}]
    twice = [1]
    assert clean([twice, twice], LIMIT) == [[1], [1]]


def test_depth_ends_in_a_marker():
    """300 dicts in each other are cut at a depth that every JSON parser takes."""
    value: object = "bottom"
    for _ in range(300):
        value = {"d": value}
    cleaned = clean(value, LIMIT)
    for _ in range(MAX_DEPTH):
        cleaned = cleaned["d"]
    assert cleaned == TOO_DEEP


def test_a_failure_deep_inside_does_not_use_up_the_depth():
    """After many containers whose items fail, the rest is still converted."""

    class Failing(list):
        def __iter__(self):
            raise RuntimeError("no items")

    cleaned = clean([*(Failing() for _ in range(50)), [[1]]], LIMIT)
    assert cleaned == ["<Failing>"] * 50 + [[[1]]]


@pytest.mark.parametrize(
    "value",
    [range(10**12), [range(10**12)] * 3, dict.fromkeys(range(200_000))],
    ids=["range", "ranges", "dict"],
)
def test_huge_values_are_cut_and_say_so(value):
    """No value is walked through without bound."""
    text = orjson.dumps(clean(value, LIMIT))
    assert len(text) < 20 * MAX_ITEMS
    assert MORE in text.decode()


def test_nested_repetition_does_not_explode():
    """Ten references to ten references …, sixteen deep, are not written out."""
    value: list = [1]
    for _ in range(MAX_DEPTH - 1):
        value = [value] * 10
    assert len(orjson.dumps(clean(value, LIMIT))) < 100 * MAX_ITEMS


def test_a_large_array_is_its_repr():
    """A tensor of millions is named, not copied."""
    assert clean(np.zeros((1000, 1000)), 4000).startswith("array([[0., 0., 0., ..., 0.")


def test_a_mock_is_its_repr():
    """An object that has every attribute is no array (hosts' tests are full of them)."""
    assert clean(mock.MagicMock(name="m"), LIMIT).startswith("<MagicMock name='m'")


def test_what_ends_the_program_is_not_swallowed():
    """KeyboardInterrupt from a repr goes on to whoever must see it."""

    class Interrupts:
        def __repr__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clean(Interrupts(), LIMIT)


def test_attributes_none_is_left_out_and_the_count_is_kept():
    """None is no attribute; those over the limit are counted, a known key is not over it."""
    cleaned, dropped = clean_mapping({"a": 1, "n": None, "b": 2, "c": 3, 4: 5}, 2, LIMIT)
    assert cleaned == {"a": 1, "b": 2}
    assert dropped == 2
    assert take(cleaned, {"b": 9, "d": None, "e": 1}, 2, LIMIT) == 1
    assert cleaned == {"a": 1, "b": 9}


def test_any_key_becomes_plain_text():
    """A subclass of str loses its methods, others are `str(key)`."""
    assert [clean_key(key) for key in (1, None, "k", Text("t"), Raises())] == [
        "1",
        "None",
        "k",
        "t",
        "<Raises>",
    ]
    assert type(clean_key(Text("t"))) is str


def test_text_for_names_is_always_utf8():
    """A span's name may be anything."""
    assert clean_text("a\ud800", LIMIT) == "a\ufffd"
    assert clean_text(5, LIMIT) == "5"
    assert clean_text(None, LIMIT) == "None"
    assert clean_text(["\ud800"], LIMIT).encode()


def test_no_limit_is_no_limit():
    """None lifts a limit."""
    assert clean("x" * 100_000, Limits(characters=None).characters) == "x" * 100_000


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, exclude_categories=()))
)
_any_values = st.recursive(
    _scalars
    | st.binary()
    | st.decimals()
    | st.datetimes()
    | st.uuids()
    | st.complex_numbers()
    | st.builds(Raises)
    | st.builds(Text),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.sets(st.integers())
        | st.dictionaries(_scalars | st.builds(Text), inner)
    ),
    max_leaves=20,
)


@given(_any_values, st.integers(0, 50))
def test_any_nested_value_can_be_dumped(value, limit):
    """orjson and a strict JSON parser take it, within one nested value."""
    line = orjson.dumps(clean([value], limit))
    assert b"\n" not in line
    json.loads(line, parse_constant=lambda constant: pytest.fail(constant))


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**63 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=50),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_what_json_can_hold_is_kept_as_it_is(value):
    """Cleaning changes nothing where nothing is wrong."""
    assert clean(value, LIMIT) == value


@given(_any_values)
def test_cleaned_is_clean(value):
    """Cleaning twice is cleaning once."""
    cleaned = clean([value], LIMIT)
    assert clean(cleaned, LIMIT) == cleaned
