"""Where lines end: chunks of bytes, cut anywhere, to whole lines.

A line ends in a line feed. One that begins with NUL bytes (a file was truncated while someone
wrote to it) loses them, one that is longer than the limit keeps its head; both say so and still
count with their full length. Memory holds a chunk and one line up to the limit.
"""

from io import BytesIO
from typing import Final

__all__ = ["MAX_LINE_BYTES", "OddLine", "Splitter", "lines_of"]

MAX_LINE_BYTES: Final = 64 << 20
_HEAD_BYTES: Final = 64 << 10


class OddLine(bytes):
    """A line of which some bytes were left out.

    `length` is its length in the file, line feed included. `nul_bytes` is how many NUL bytes stood
    before what is here. `is_cut`: it was longer than the limit and this is its head, no line feed.
    """

    length: int
    nul_bytes: int
    is_cut: bool


class Splitter:
    """Cuts chunks into lines; holds the line that has begun."""

    __slots__ = ("_held", "_is_cut", "_length", "_limit", "_nul_bytes")

    def __init__(self, limit: int = MAX_LINE_BYTES) -> None:
        self._limit = limit
        self._begin()

    def _begin(self) -> None:
        self._held = bytearray()
        self._length = self._nul_bytes = 0
        self._is_cut = False

    @property
    def held_bytes(self) -> int:
        """Length of the line that has begun and not ended."""
        return self._length

    def blocks(self, chunk: bytes) -> list[bytes]:
        """Take a chunk; return the lines that are whole now, many in one where nothing is odd."""
        end = chunk.find(b"\n") + 1
        if not end:
            self._hold(chunk)
            return []
        blocks: list[bytes] = []
        if self._length:
            self._hold(chunk[:end])
            blocks = self.rest()
            chunk = chunk[end:]
        whole, after = _parted(chunk)
        if after:
            self._hold(after)
        if b"\0" in whole or len(whole) > self._limit:
            blocks += [self._checked(line) for line in BytesIO(whole).readlines()]
        elif whole:
            blocks.append(whole)
        return blocks

    def lines(self, chunk: bytes) -> list[bytes]:
        """Take a chunk; return the lines that are whole now."""
        return [line for block in self.blocks(chunk) for line in lines_of(block)]

    def rest(self) -> list[bytes]:
        """Return what follows the last line feed, one line or none, and hold it no longer."""
        if not self._length:
            return []
        line = bytes(self._held)
        if len(line) != self._length:
            line = _odd(line, self._length, self._nul_bytes, is_cut=self._is_cut)
        self._begin()
        return [line]

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        if not self._held:
            without = part.lstrip(b"\0")
            self._nul_bytes += len(part) - len(without)
            part = without
        if self._is_cut:
            return
        self._held += part
        if len(self._held) > self._limit:
            self._is_cut = True
            self._held = self._held[: self._head]

    def _checked(self, line: bytes) -> bytes:
        """Look at a line that lay whole in its chunk."""
        text = line.lstrip(b"\0") if line.startswith(b"\0") else line
        is_cut = len(text) > self._limit
        if text is line and not is_cut:
            return line
        kept = text[: self._head] if is_cut else text
        return _odd(kept, len(line), len(line) - len(text), is_cut=is_cut)

    @property
    def _head(self) -> int:
        return min(self._limit, _HEAD_BYTES)


def lines_of(block: bytes) -> list[bytes]:
    """Return the lines of a block, each with its line feed, the last one maybe without."""
    return [block] if type(block) is OddLine else BytesIO(block).readlines()


def _parted(chunk: bytes) -> tuple[bytes, bytes]:
    """Part a chunk behind its last line feed."""
    end = chunk.rfind(b"\n") + 1
    return (chunk, b"") if end == len(chunk) else (chunk[:end], chunk[end:])


def _odd(kept: bytes, length: int, nul_bytes: int, *, is_cut: bool) -> OddLine:
    line = OddLine(kept)
    line.length, line.nul_bytes, line.is_cut = length, nul_bytes, is_cut
    return line
