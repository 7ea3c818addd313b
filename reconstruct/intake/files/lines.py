"""The physical lines of one input, as bytes: opened, unpacked, cut, never raising.

Of a regular file the bytes are read that it had when it was opened, so that a reader never chases
a writer. A last line without a line feed is a line like any other, unless the file has grown since
it was found: then someone is writing it, and it is left `pending`. A file that was renamed after
it was found (a rotation) is read under its new name.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final

from reconstruct.intake.files.compressed import (
    MAGIC_BYTES,
    CutError,
    DamagedError,
    compression,
    unpacked,
)
from reconstruct.intake.files.log_file import STDIN, LogFile
from reconstruct.intake.files.splitting import MAX_LINE_BYTES, Splitter, lines_of

__all__ = ["Lines"]

_CHUNK_BYTES: Final = 1 << 20


class Lines:
    """The lines of one file; `problem` says why they end early or lack something, if they do.

    Each has its line feed, the last one maybe not. A line of which bytes were left out is an
    `OddLine`. As fast as the lines of Python's file object. After the last line: `pending` is how
    many bytes follow it that are still being written, `compression` what was undone.
    """

    __slots__ = ("_file", "_limit", "compression", "pending", "problem")

    def __init__(self, file: LogFile, *, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._file = file
        self._limit = max_line_bytes
        self.problem: str | None = None
        self.pending = 0
        self.compression: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(map(lines_of, self.blocks()))

    def chunks(self, offset: int) -> Iterator[bytes]:
        """Read again: the unpacked bytes from `offset` on, wherever lines end. Damage ends them.

        Nothing of what cannot be read twice, such as standard input.
        """
        if self._file.identity is None:
            return
        with suppress(DamagedError, OSError), _opened(self._file) as handle:
            yield from _behind(offset, self._unpacked(_Source(handle, self._file)))

    def blocks(self) -> Iterator[bytes]:
        """Yield the lines, many in one: whole lines, an `OddLine`, or the last one, without end."""
        splitter = Splitter(self._limit)
        is_growing = False
        try:
            with _opened(self._file) as handle:
                source = _Source(handle, self._file)
                try:
                    for chunk in self._unpacked(source):
                        yield from splitter.blocks(chunk)
                except DamagedError as error:
                    # An archive that someone is writing ends early, and that is no damage.
                    if not (isinstance(error, CutError) and source.has_grown()):
                        self.problem = str(error)
                is_growing = source.has_grown()
                self.problem = self.problem or source.problem()
        except OSError as error:
            self.problem = f"cannot be read: {error.strerror or error}"
        if is_growing:
            self.pending = splitter.held_bytes
        else:
            yield from splitter.rest()

    def _unpacked(self, source: "_Source") -> Iterator[bytes]:
        head = source.head()
        self.compression = compression(head)
        if self.compression is None:
            return source.chunks(self._file.start_offset)
        return _behind(self._file.start_offset, unpacked(source.chunks(0), self.compression))


def _behind(offset: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        if len(chunk) > offset:
            yield chunk[offset:]
        offset = max(0, offset - len(chunk))


class _Source:
    """The bytes of an opened input, up to the size that a regular file has now."""

    __slots__ = ("_file", "_handle", "_head", "_read", "_size")

    def __init__(self, handle: BinaryIO, file: LogFile) -> None:
        self._handle = handle
        self._file = file
        self._head = b""
        self._size = _regular_size(handle)
        self._read = 0

    def head(self) -> bytes:
        """Return the first bytes, enough to tell a compression; they stay to be read."""
        room = MAGIC_BYTES if self._file.start_offset else _CHUNK_BYTES
        while len(self._head) < MAGIC_BYTES:
            more = self._next(room)
            if not more:
                break
            self._head += more
        return self._head

    def chunks(self, offset: int) -> Iterator[bytes]:
        """Read on to the end, from `offset` bytes behind the start."""
        rest = iter(lambda: self._next(_CHUNK_BYTES), b"")
        if not offset or self._size is None:
            return _behind(offset, chain((self._head,), rest))
        self._handle.seek(offset)
        self._read = offset
        return rest

    def _next(self, room: int) -> bytes:
        if self._size:  # files of /proc say 0 whatever they hold
            room = min(room, self._size - self._read)
            if room <= 0:
                return b""
        # read1: whatever a pipe has now
        chunk: bytes = self._handle.read1(room)  # type: ignore[attr-defined]  # buffered: has it
        self._read += len(chunk)
        return chunk

    def has_grown(self) -> bool:
        """Say whether a regular file has more bytes than when it was opened, or found."""
        now = _regular_size(self._handle)
        if now is None or self._size is None:
            return False
        return now > self._size or (self._is_known and self._size > self._file.size)

    def problem(self) -> str | None:
        """Say what is missing from a file that became shorter since it was found, or opened."""
        if self._size is None:
            return None
        had = max(self._size, self._file.size if self._is_known else 0)
        there = self._size
        if self._read < self._size:
            there = _regular_size(self._handle) or 0
        if there >= had:
            return None
        return f"was truncated while it was read: {there:,} of {had:,} bytes were left"

    @property
    def _is_known(self) -> bool:
        return self._file.identity is not None


def _regular_size(handle: BinaryIO) -> int | None:
    """Return the size of a regular file; None for a pipe, a device, a handle of no file."""
    try:
        status = os.fstat(handle.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _opened(file: LogFile) -> AbstractContextManager[BinaryIO]:
    if file.path != STDIN:
        return open(_path_now(file), "rb")
    if sys.stdin is None:
        raise OSError("standard input is closed")
    try:
        # Not its own buffer: a thread that waits here would hold that one's lock when Python ends.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # a stand-in without a file
        return nullcontext(sys.stdin.buffer)


def _path_now(file: LogFile) -> str:
    """Return where the file that was found lies now."""
    if file.identity is None:
        return file.path
    try:
        status = Path(file.path).stat()
    except FileNotFoundError:
        status = None
    if status is not None and (status.st_dev, status.st_ino) == file.identity:
        return file.path
    renamed = _renamed(file.path, file.identity)
    if renamed is None and status is not None and file.start_offset:
        raise OSError("another file has its name now")
    # What has the name is what was asked for; some network file systems number files anew.
    return renamed or file.path


def _renamed(path: str, identity: tuple[int, int]) -> str | None:
    """Find the file of this identity in the folder of `path`."""
    with os.scandir(Path(path).parent) as entries:
        for entry in entries:
            if entry.inode() == identity[1] and entry.stat().st_dev == identity[0]:
                return entry.path
    return None
