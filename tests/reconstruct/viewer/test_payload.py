"""The payload: every span, number and text of the contents comes back exact, in few bytes."""

import gzip
import json

import numpy as np
import pytest

from reconstruct.viewer.payload import VALUE_LIMIT, payload

TYPES = {"u8": "<u1", "u32": "<u4", "i32": "<i4"}


def unpacked(data):
    """The head and the columns, as the layout says, read without the code under test."""
    raw = gzip.decompress(data)
    size = int.from_bytes(raw[:4], "little")
    head, at, columns = json.loads(raw[4 : 4 + size]), 4 + size, {}
    for name, kind, length in head["columns"]:
        part = raw[at : at + length]
        columns[name] = (
            part.decode().split("\n") if kind == "text" else np.frombuffer(part, TYPES[kind])
        )
        at += length
    assert at == len(raw)
    return head, columns


def times(columns, name):
    pairs = zip(columns[f"{name}High"].tolist(), columns[f"{name}Low"].tolist(), strict=True)
    return [None if high == -(2**31) else (high << 32) + low for high, low in pairs]


def test_times_are_exact_offsets_from_a_decimal_start(many):
    shown = many(30)
    head, columns = unpacked(payload(shown))
    assert head["t0"] == str(min(row["start_time_unix_nano"] for row in shown.spans))
    starts = [int(head["t0"]) + after for after in times(columns, "start")]
    assert starts == [row["start_time_unix_nano"] for row in shown.spans]
    assert times(columns, "length") == [row["length_ns"] for row in shown.spans]


def test_offsets_beyond_what_a_double_holds_are_exact_too(many):
    shown = many(2)
    shown.spans[0]["start_time_unix_nano"] = 1
    shown.spans[1]["start_time_unix_nano"] = 1_800_000_000_123_456_789
    shown.spans[1]["self_time_ns"] = None
    head, columns = unpacked(payload(shown))
    assert (head["t0"], times(columns, "start")[1]) == ("1", 1_800_000_000_123_456_788)
    assert times(columns, "self")[1] is None


def test_a_clock_that_was_set_back_makes_a_negative_length(many):
    shown = many(2)
    shown.spans[1]["length_ns"] = -5_000_000_001
    assert times(unpacked(payload(shown))[1], "length")[1] == -5_000_000_001


def test_attributes_of_every_shape_come_back_with_their_numbers_as_written(many):
    shown = many(4)
    written = ['{"a":1,"b":"x\\ny"}', '{"c":9007199254740993}', '{"a":2,"b":[1.50]}', "{}"]
    for row, attributes in zip(shown.spans, written, strict=True):
        row["attributes"] = attributes
    head, columns = unpacked(payload(shown))
    assert head["shapes"] == [["a", "b"], ["c"], []]
    assert columns["shape"].tolist() == [0, 1, 0, 2]
    assert columns["values"] == ["1", "2", '"x\\ny"', "[1.5]", "9007199254740993"]


def test_what_is_cut_says_how_much_and_is_counted(many):
    shown = many(1)
    shown.spans[0]["attributes"] = json.dumps({"long": "y" * (VALUE_LIMIT + 5), "short": "y"})
    head, columns = unpacked(payload(shown))
    assert head["notes"] == ["cut after 2,000 characters: 1 value"]
    assert json.loads(columns["values"][0]).endswith("y… (5 more characters)")


def test_the_same_contents_give_the_same_bytes(many):
    assert payload(many(50)) == payload(many(50))


def test_a_span_takes_less_than_60_bytes_of_the_file(many):
    assert len(payload(many(20_000))) * 4 / 3 / 20_000 < 60


@pytest.mark.parametrize("rows", [1, 2])
def test_a_page_without_paths_logs_and_rollouts_has_empty_columns(many, rows):
    head, columns = unpacked(payload(many(rows)))
    assert head["count"] == rows
    assert len(columns["pathSpan"]) == len(columns["logSpan"]) == len(columns["extraSpan"]) == 0
