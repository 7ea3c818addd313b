"""A line taken apart, and which lines need not be."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconstruct.intake import json_text
from reconstruct.intake.formats import explain, recognise_text
from reconstruct.intake.json_text import NotJson
from reconstruct.intake.unwrap import is_plain_text, take_apart

PIECES = [
    *("{", "}", "[", '"', "'", ":", "=", "\\", " ", "\x1c", "\t", "\r", "-", "7", "é", "\ufeff"),
    *("trace_id", "attributes", "true", "null", "NaN", "INFO", '"span_id":', "'status' :"),
    *("trace_id=" + 32 * "a", "  traceId: '" + 32 * "a" + "',"),
]


@example("\x1ctrue")
@example("\rtrue")
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join))
def test_plain_text_is_nothing_else(text):
    line = text.rstrip().encode("utf-8", "surrogatepass")
    if not line or not is_plain_text(line):
        return
    pieces = take_apart(line)
    assert not pieces.objects
    assert not pieces.has_damage
    assert pieces.is_utf8
    assert recognise_text(line, None) is None
    assert explain(line) is None
    with pytest.raises(NotJson):
        json_text.decode(line)


@pytest.mark.parametrize(
    ("line", "is_plain"),
    [
        ('INFO:     127.0.0.1:40000 - "POST /run" 200 OK', True),
        ("train step 5: loss 0.1", True),
        ("Traceback (most recent call last):", True),
        ('tail of one","span_id": "00f1"', False),
        ("step trace_id=a1b2c3d4e5f60718293a4b5c6d7e8f90", False),
        ('done {"a":1}', False),
        ("true", False),
        ("-1", False),
        ("café", False),
    ],
)
def test_most_text_is_plain(line, is_plain):
    assert is_plain_text(line.encode()) is is_plain
