"""Values as a person reads them: harmless, of a known width, with a fitting unit."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.render.text import (
    Part,
    clean,
    count,
    duration,
    fit,
    instant,
    json_text,
    plain,
    plural,
    rate,
    short_names,
    size,
    width,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def is_inert(text: str) -> bool:
    return not any(
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(character) in {"RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI"}
        for character in text
    )


@given(ANY_TEXT)
def test_clean_leaves_nothing_that_a_terminal_obeys(text):
    assert is_inert(clean(text))


def test_clean_shows_what_it_took_out():
    assert clean("a\x1b[31mred\x9bm\n\u202etxt\ud800") == "a\\x1b[31mred\\x9bm\\n\\u202etxt\\ud800"
    assert clean("naïve 日本 ✗") == "naïve 日本 ✗"


@given(ANY_TEXT, st.integers(0, 40), st.booleans(), st.booleans())
def test_fit_is_exactly_as_wide_as_asked(text, columns, right, keep_end):
    fitted = fit(text, columns, right=right, keep_end=keep_end)
    assert width(fitted) == columns
    assert is_inert(fitted)


def test_fit_marks_what_it_cut():
    assert fit("reconstruct", 6) == "recon…"
    assert fit("日本語テキスト", 6) == "日本… "
    assert fit("ab", 4, right=True) == "  ab"
    assert fit("simple_agent", 6, keep_end=True) == "…agent"


@given(JSON)
def test_json_text_is_the_same_value_and_inert(value):
    text = json_text(value)
    assert json.loads(text) == value
    assert is_inert(text)
    assert json.loads(json_text(value, indent=2)) == value


def test_json_text_keeps_what_json_has_no_word_for():
    value = {"nan": float("nan"), "inf": [float("-inf")], "bytes": b"\x00\xff", 3: 1.0}
    assert json.loads(json_text(value)) == {
        "nan": "NaN",
        "inf": ["-Infinity"],
        "bytes": "AP8=",
        "3": 1.0,
    }
    assert json_text(1.0) == "1.0"
    assert json_text("\U000e0001") == '"\\udb40\\udc01"'


@pytest.mark.parametrize(
    ("length_ns", "words"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (9_994, "9.99 µs"),
        (9_995, "10.0 µs"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (999_499_999, "999 ms"),
        (999_500_000, "1.00 s"),
        (59_900_000_000, "59.9 s"),
        (59_960_000_000, "1 min"),
        (63_000_000_000, "1 min 3 s"),
        (3_599_700_000_000, "1 h"),
        (5_400_000_000_000, "1 h 30 min"),
        (273_600_000_000_000, "3 d 4 h"),
        (-5_000, "-5.00 µs"),
    ],
)
def test_duration_has_three_digits_and_a_fitting_unit(length_ns, words):
    assert duration(length_ns) == words


@given(st.integers(0, 2**63 - 1))
def test_duration_is_within_half_a_percent_or_its_smaller_unit(length_ns):
    units = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}
    units |= {"min": 60 * 10**9, "h": 3_600 * 10**9, "d": 86_400 * 10**9}
    words = duration(length_ns).replace(",", "").split()
    told = sum(
        float(number) * units[unit] for number, unit in zip(words[::2], words[1::2], strict=True)
    )
    finest = {"min": "s", "h": "min", "d": "h"}.get(words[1])
    slack = 0.0051 * length_ns if finest is None else units[finest] + 10**9
    assert abs(told - length_ns) <= slack


def test_instant_is_iso_in_utc():
    assert instant(1_764_475_132_123_456_789) == "2025-11-30T03:58:52.123Z"
    assert instant(-1) == "1969-12-31T23:59:59.999Z"
    assert instant(10**30) == f"{10**30} ns since 1970"


def test_counts_have_separators_and_nouns_a_number():
    assert count(1_234_567) == "1,234,567"
    assert plural(1, "span") == "1 span"
    assert plural(2_000, "span") == "2,000 spans"
    assert plural(0, "batch", "batches") == "0 batches"


@pytest.mark.parametrize(
    ("per_second", "words"),
    [
        (0, "0.00/s"),
        (7.4993, "7.50/s"),
        (99.96, "100/s"),
        (999.7, "1,000/s"),
        (12_345.6, "12,346/s"),
    ],
)
def test_rate_has_three_digits(per_second, words):
    assert rate(per_second) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.00 kB"), (1_240_000, "1.24 MB"), (10**16, "10000 TB")],
)
def test_size_has_a_decimal_unit(number, words):
    assert size(number) == words


def test_short_names_drop_a_shared_folder_only():
    names = ["gym/model", "gym/agent", None]
    assert short_names(names) == {"gym/model": "model", "gym/agent": "agent", None: "-"}
    assert short_names(["gym/model", "gym"]) == {"gym/model": "gym/model", "gym": "gym"}
    assert short_names(["a/b/x", "a/b/y"]) == {"a/b/x": "x", "a/b/y": "y"}
    assert short_names(["gym/model"]) == {"gym/model": "gym/model"}


@given(st.lists(st.none() | st.text(st.sampled_from("ab/"), max_size=6)))
def test_short_names_stay_distinct(names):
    short = short_names(names)
    shown = [text for name, text in short.items() if name]
    assert set(short) == set(names)
    assert len(set(shown)) == len(shown)


def test_plain_joins_parts_and_ends_lines_without_spaces():
    assert plain([(Part("a "), Part("b  ", "error")), ()]) == "a b\n\n"
