"""Compressed data, told by its first bytes and never by its name, and what it unpacks to.

gzip, zstd, xz and bzip2; several members one after the other are one text. What can be unpacked is
handed out, before a cut or a damage and in the members after it (a writer was killed, and the next
one appended). Memory is bounded whatever the data claims.
"""

import re
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from typing import Final, Protocol

__all__ = ["MAGIC_BYTES", "SUFFIXES", "CutError", "DamagedError", "compression", "unpacked"]

SUFFIXES: Final = (".gz", ".zst", ".xz", ".bz2")

_MAGIC: Final = {
    "gzip": re.compile(rb"\x1f\x8b\x08"),
    # A frame to be skipped may stand before the first one with data.
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    "xz": re.compile(rb"\xfd7zXZ\x00"),
    "bzip2": re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"),
}
_MAGIC_AMID: Final = _MAGIC | {
    # Three bytes occur by chance: ask for sensible flags, level and system, too.
    "gzip": re.compile(rb"\x1f\x8b\x08[\x00-\x1f].{4}[\x00\x02\x04][\x00-\x0d\x13\xff]", re.DOTALL),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
}
MAGIC_BYTES: Final = 10
"""So many bytes from the start decide."""

_OUT_BYTES: Final = 1 << 20
_IN_BYTES: Final = 1 << 14  # what a call that fails takes along is lost with it
_SEEN_BYTES: Final = 1 << 20  # so far back the next member may begin when damage is noticed
_MOST_DAMAGES: Final = 100
_XZ_MEMORY_BYTES: Final = 256 << 20


class DamagedError(Exception):
    """Compressed data is damaged, or followed by something else."""


class CutError(DamagedError):
    """Compressed data ends early."""


class _Decompressor(Protocol):
    """What bz2, lzma and zstd agree on: one member, bounded output."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the ways of the others."""

    __slots__ = ("_inner", "needs_input")

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


def compression(head: bytes) -> str | None:
    """Name the compression of data that begins with `head`, at least `MAGIC_BYTES` if there are."""
    return next((name for name, magic in _MAGIC.items() if magic.match(head)), None)


def unpacked(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Unpack data of the compression `name`, in pieces of at most 1 MiB.

    Raises `DamagedError`, after all that could be unpacked, when the data is not whole.
    """
    packed = _Packed(chunks, name)
    damages: list[DamagedError] = []
    data = packed.start(b"")
    while data and len(damages) < _MOST_DAMAGES:
        try:
            data = packed.start((yield from _unpack_member(packed, data, name)))
        except DamagedError as error:
            damages.append(error)
            data = packed.find_member()
    if damages:
        raise damages[0]


def _unpack_member(packed: "_Packed", data: bytes, name: str) -> Generator[bytes, None, bytes]:
    """Unpack the member that `data` begins; return what was read behind it."""
    if compression(data) != name:
        raise DamagedError(f"{name} data is followed by other bytes, which were not read")
    packed.begin_member(data)
    member, failure = _member(name)
    while True:
        try:
            out = member.decompress(data, _OUT_BYTES)
        except failure as error:
            raise DamagedError(f"{name} data is damaged: {error}") from error
        if out:
            yield out
        if member.eof:
            return member.unused_data
        data = packed.more() if member.needs_input else b""
        if member.needs_input and not data:
            raise CutError(f"{name} data ends early; what is there was read")


class _Packed:
    """Packed bytes in small pieces; keeps the last ones, to look for a member in them again."""

    __slots__ = ("_magic", "_pieces", "_seen")

    def __init__(self, chunks: Iterable[bytes], name: str) -> None:
        self._pieces = _pieces(chunks)
        self._magic = _MAGIC_AMID[name]
        self._seen = bytearray()

    def more(self) -> bytes:
        """Return the next piece, empty at the end."""
        piece = next(self._pieces, b"")
        self._seen += piece
        if len(self._seen) > 2 * _SEEN_BYTES:
            del self._seen[:-_SEEN_BYTES]
        return piece

    def start(self, data: bytes) -> bytes:
        """Return `data`, and more until it tells what it is, without the zeros before it."""
        # A cut member may take the first byte of the next one for its last: keep that, too.
        del self._seen[: -len(data) - 2]
        data = data.lstrip(b"\0")
        while len(data) < MAGIC_BYTES and (more := self.more()):
            data = (data + more).lstrip(b"\0")
        return data

    def begin_member(self, data: bytes) -> None:
        """Know that a member begins with `data`."""
        self._seen[:] = data

    def find_member(self) -> bytes:
        """Return what begins with the next member behind this beginning; empty: there is none."""
        data = bytes(self._seen[1:])
        while not (found := self._magic.search(data)):
            more = next(self._pieces, b"")
            if not more:
                return b""
            data = data[1 - MAGIC_BYTES :] + more
        return data[found.start() :]


def _member(name: str) -> tuple[_Decompressor, type[Exception]]:
    """Return what unpacks one member, and the error that it raises; only what is used is loaded."""
    if name == "gzip":
        return _Gzip(), zlib.error
    if name == "zstd":
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
        return zstd.ZstdDecompressor(), zstd.ZstdError
    if name == "xz":
        import lzma

        return lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY_BYTES), lzma.LZMAError
    import bz2

    return bz2.BZ2Decompressor(), OSError


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Cut at the same places however the bytes arrive: what is lost to damage hangs on it."""
    held = b""
    for chunk in chunks:
        held += chunk
        whole = len(held) - len(held) % _IN_BYTES
        for start in range(0, whole, _IN_BYTES):
            yield held[start : start + _IN_BYTES]
        held = held[whole:]
    if held:
        yield held
