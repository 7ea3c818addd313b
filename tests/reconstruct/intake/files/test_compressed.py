"""Any compression, any members, any chunks: the same bytes; what is cut or damaged is named."""

import bz2
import functools
import gzip
import lzma
import random
import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.files.compressed import DamagedError, compression, unpacked

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    # With a checksum, as the command does it.
    "zstd": lambda data: zstd.compress(
        data, options={zstd.CompressionParameter.checksum_flag: True}
    ),
    "xz": functools.partial(lzma.compress, preset=0),
    "bzip2": bz2.compress,
}
OPEN: dict[str, Callable[[], Any]] = {  # Any: what the four libraries agree on
    "gzip": lambda: zlib.decompressobj(31),
    "zstd": zstd.ZstdDecompressor,
    "xz": lzma.LZMADecompressor,
    "bzip2": bz2.BZ2Decompressor,
}
TEXT = b"".join(b"line %d of %d\n" % (number, number * 7919) for number in range(60_000))
PACKED = {name: pack(TEXT) for name, pack in PACK.items()}

each_compression = pytest.mark.parametrize("name", PACK)


def read(chunks: Iterable[bytes], name: str) -> tuple[bytes, str | None]:
    """Unpack as far as it goes; return that and what the error says."""
    data = b""
    try:
        for piece in unpacked(chunks, name):
            data += piece
    except DamagedError as error:
        return data, str(error)
    return data, None


@given(
    st.sampled_from(list(PACK)),
    st.lists(st.binary(max_size=200), min_size=1, max_size=4),
    st.integers(1, 60),
    st.integers(0, 8),
)
def test_members_and_chunks_make_no_difference(
    name: str, members: list[bytes], size: int, padding: int
) -> None:
    """Members one after the other, zeros behind each, read in chunks of any size."""
    data = b"".join(PACK[name](member) + bytes(padding) for member in members)
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert compression(data) == name
    assert read(chunks, name) == (b"".join(members), None)


@each_compression
def test_much_comes_out_of_little(name: str) -> None:
    """What the pieces hold is bounded, not what a piece of input may unpack to."""
    pieces = list(unpacked([PACK[name](bytes(20 << 20))], name))
    assert sum(map(len, pieces)) == 20 << 20
    assert max(map(len, pieces)) <= 1 << 20


@each_compression
def test_a_cut_archive_gives_all_that_can_be_unpacked(name: str) -> None:
    """As much as the library itself makes of it at once, and a word about the cut."""
    for part in (0.3, 0.6, 0.9):
        cut = PACKED[name][: int(part * len(PACKED[name]))]
        data, problem = read([cut], name)
        assert data == OPEN[name]().decompress(cut)
        assert problem == f"{name} data ends early; what is there was read"
    assert TEXT.startswith(data)
    assert data


@given(st.sampled_from(list(PACK)), st.integers(10, 60))
def test_a_cut_is_named_wherever_it_is(name: str, size: int) -> None:
    """In the header, in the data, in the checksum."""
    packed = PACK[name](b"some lines\n" * 3)
    data, problem = read([packed[:size]], name)
    assert (b"some lines\n" * 3).startswith(data)
    assert (problem is None) == (size >= len(packed))


@each_compression
def test_a_cut_after_a_whole_member_keeps_the_member(name: str) -> None:
    """What was appended before is not lost."""
    packed = PACK[name](b"one\n") + PACK[name](b"two\n")
    for cut in range(1, len(PACK[name](b"two\n"))):
        data, problem = read([packed[:-cut]], name)
        assert data.startswith(b"one\n")
        assert problem is not None


@each_compression
def test_damage_is_named_and_keeps_what_came_before(name: str) -> None:
    """Some flipped bytes in the last quarter; the piece that they lie in goes with them."""
    packed = bytearray(PACKED[name])
    place = len(packed) * 3 // 4
    whole = OPEN[name]().decompress(bytes(packed[: place - (16 << 10)]))
    packed[place : place + 8] = bytes(byte ^ 0xFF for byte in packed[place : place + 8])
    data, problem = read([bytes(packed)], name)
    assert problem is not None
    assert problem.startswith(f"{name} data is damaged: ")
    assert data.startswith(whole)
    assert whole


@given(st.sampled_from(list(PACK)), st.data(), st.integers(1, 300))
def test_what_was_appended_after_a_cut_is_found(name: str, data: Any, size: int) -> None:
    """A writer was killed, another one went on in the same file; what it wrote is there."""
    first = PACK[name](random.Random(1).randbytes(200))
    cut = first[: data.draw(st.integers(1, len(first) - 1))]
    packed = PACK[name](b"zero\n") + cut + PACK[name](b"one\n" * 30) + PACK[name](b"two\n")
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    text, problem = read(chunks, name)
    assert text.startswith(b"zero\n")
    assert text.endswith(b"one\n" * 30 + b"two\n")
    assert problem is not None


def test_many_damages_come_to_an_end() -> None:
    """Bytes made to look like members everywhere cost no more than so many tries."""
    start = gzip.compress(b"")[:10]
    text, problem = read([gzip.compress(b"one\n") + start * 200_000], "gzip")
    assert text.startswith(b"one\n")
    assert problem is not None


@each_compression
def test_bytes_after_the_last_member_are_named(name: str) -> None:
    """However many chunks they are."""
    chunks = [PACK[name](b"one\n") + b"no archive", b" at all", b"\n"]
    assert read(chunks, name) == (
        b"one\n",
        f"{name} data is followed by other bytes, which were not read",
    )


def test_a_frame_to_be_skipped_may_come_first() -> None:
    """Parallel zstd writes one that says how much follows."""
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size"
    data = skipped + zstd.compress(b"one\n") + skipped + zstd.compress(b"two\n")
    assert compression(data) == "zstd"
    assert read([data], "zstd") == (b"one\ntwo\n", None)


def test_text_is_not_compressed() -> None:
    """The word at the start of a line decides nothing."""
    for head in (b"", b"{", b"BZh9 is a name", b"\x1f\x8b", b"7zXZ", b"(server) {}"):
        assert compression(head) is None
