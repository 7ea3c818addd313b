"""Any way of cutting bytes into chunks gives the same lines; what is left out is counted."""

import io
import tracemalloc
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.files import OddLine
from reconstruct.intake.files.splitting import Splitter

TEXT = st.lists(st.sampled_from([b"\n", b"\0", b"\r", b"a", b"{", b"\xff", b"abcdefgh"])).map(
    b"".join
)


def split(chunks: list[bytes], limit: int = 1 << 20) -> list[bytes]:
    splitter = Splitter(limit)
    return [line for chunk in chunks for line in splitter.lines(chunk)] + splitter.rest()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut data at the places, which wrap around."""
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


def length(line: bytes) -> int:
    return line.length if isinstance(line, OddLine) else len(line)


def facts(line: bytes) -> tuple[object, ...]:
    return (
        bytes(line),
        *([line.length, line.nul_bytes, line.is_cut] if isinstance(line, OddLine) else []),
    )


@given(TEXT, st.lists(st.integers(0, 200)))
def test_where_chunks_are_cut_makes_no_difference(data: bytes, places: list[int]) -> None:
    """The lines are those of the whole, without the NUL bytes at their beginning."""
    lines = split(cut(data, places))
    assert [bytes(line) for line in lines] == [
        line.lstrip(b"\0") for line in io.BytesIO(data).readlines()
    ]
    assert [length(line) for line in lines] == list(map(len, io.BytesIO(data).readlines()))


@given(TEXT, st.lists(st.integers(0, 200)), st.integers(1, 12))
def test_a_long_line_is_cut_the_same_way_wherever_its_chunks_are(
    data: bytes, places: list[int], limit: int
) -> None:
    """Its head is kept, its whole length is told, and the lines after it are whole."""
    lines = split(cut(data, places), limit)
    assert [facts(line) for line in lines] == [facts(line) for line in split([data], limit)]
    whole = io.BytesIO(data).readlines()
    assert [length(line) for line in lines] == list(map(len, whole))
    for line, physical in zip(lines, whole, strict=True):
        text = physical.lstrip(b"\0")
        is_cut = len(text) > limit
        assert bytes(line) == (text[:limit] if is_cut else text)
        assert isinstance(line, OddLine) == (line != physical)
        if isinstance(line, OddLine):
            assert line.is_cut == is_cut
            assert line.nul_bytes == len(physical) - len(text)


def test_nul_bytes_before_a_record_are_left_out_and_counted() -> None:
    """The hole that a truncated file has where its writer went on at the old place."""
    first, second = split([b"\0" * 5_000, b"\0\0\0{}\n", b"a\0b\n"])
    assert isinstance(first, OddLine)
    assert (first, first.length, first.nul_bytes, first.is_cut) == (b"{}\n", 5_006, 5_003, False)
    assert (second, type(second)) == (b"a\0b\n", bytes)


def test_memory_does_not_grow_with_a_line() -> None:
    """Neither with a line without end nor with a hole."""
    splitter = Splitter(4 << 20)
    text, hole = b"x" * (1 << 20), bytes(1 << 20)
    tracemalloc.start()
    try:
        for chunk in [text] * 100 + [b"\n"] + [hole] * 100 + [b"{}\n"]:
            lines = splitter.lines(chunk)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert lines == [b"{}\n"]
    assert peak < 16 << 20
