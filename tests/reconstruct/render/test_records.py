"""Rows as text: exact as data, harmless in a spreadsheet."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.render.records import FORMATS, distinct, texts

VALUES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)
ROWS = st.lists(st.tuples(VALUES, VALUES), max_size=4)


def written(names, rows, form):
    return "".join(texts(names, rows, form))


@given(rows=ROWS)
def test_json_comes_back_as_it_was(rows):
    """In both forms, whatever the texts hold; an array is indented as elsewhere."""
    expected = [{"a": a, "b": b} for a, b in rows]
    array = written(["a", "b"], rows, "json")
    assert json.loads(array) == expected
    lines = written(["a", "b"], rows, "jsonl")
    assert lines.count("\n") == len(rows)
    assert [json.loads(line) for line in lines.splitlines()] == expected


def test_an_array_is_indented():
    assert written(["a"], [(1,), ([2],)], "json") == (
        '[\n  {\n    "a": 1\n  },\n  {\n    "a": [\n      2\n    ]\n  }\n]\n'
    )
    assert written(["a"], [], "json") == "[]\n"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=cmd()", "'=cmd()"),
        ("+1+1", "'+1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3", "'-2+3"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("-5", "-5"),
        ("+1.5e3", "+1.5e3"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_no_cell_is_a_formula(text, cell):
    """A text that looks like one gets a quote in front; a number that came as text does not."""
    (row,) = list(csv.reader(io.StringIO(written(["a", "b"], [(text, -5)], "csv"), newline="")))[1:]
    assert row == [cell, "-5"]


@given(rows=st.lists(st.tuples(st.text(), st.integers()), max_size=4))
def test_csv_has_a_row_for_each_row(rows):
    """Line feeds and quotes in texts do not break it; a NUL, at which many readers end, is none."""
    read = list(csv.reader(io.StringIO(written(["a", "b"], rows, "csv"), newline="")))
    assert read[0] == ["a", "b"]
    assert [(a.removeprefix("'"), int(b)) for a, b in read[1:]] == [
        (a.removeprefix("'").replace("\0", "\ufffd"), b) for a, b in rows
    ]


def test_values_without_a_word_in_csv():
    """Truth as in SQL, bytes as base64, lists and objects as JSON, nothing for null."""
    row = (True, b"\x00", [1, "x"], {"a": None}, None)
    assert written(list("abcde"), [row], "csv").splitlines()[1] == (
        'true,AA==,"[1,""x""]","{""a"":null}",'
    )


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_taken_one_by_one(form):
    """What was read is written before the next is asked for."""

    def rows():
        yield (1,)
        raise LookupError

    pieces = texts(["a"], rows(), form)
    assert "1" in next(pieces) + ("" if form != "csv" else next(pieces))
    with pytest.raises(LookupError):
        next(pieces)


def test_names_that_repeat_are_numbered():
    assert distinct(["n", "n", "n_2", "n"]) == ["n", "n_2", "n_2_2", "n_3"]
