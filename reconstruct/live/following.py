"""One file that is followed: which one it is, and how far it was read.

A file is told by its identity (device and inode) as long as its beginning and what stood before
the place where it was read to are the same. Else it was truncated or written anew.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from reconstruct.intake.files import Lines, LogFile, fingerprint
from reconstruct.intake.files.compressed import MAGIC_BYTES, compression
from reconstruct.intake.files.log_file import fingerprint_of, shown
from reconstruct.intake.reader import Reader

__all__ = ["Followed"]

_CHUNK_BYTES: Final = 1 << 16


@dataclass(slots=True)
class Followed:
    """A regular file. `offset` bytes and `number` lines of it were read, unpacked ones if it is
    compressed; `file` has the size and the time it had when it was last looked at."""

    file: LogFile
    reader: Reader
    is_packed: bool
    offset: int = 0
    number: int = 0
    has_changed: bool = True
    """There may be something new in it."""
    left_at: float | None = None
    """When no path meant it any more (`time.monotonic`): it was renamed."""
    _print: str = ""
    _print_bytes: int = 0

    @classmethod
    def begin(cls, file: LogFile, reader: Reader) -> Self:
        """Begin to follow a file from its start."""
        try:
            with open(file.path, "rb") as handle:
                is_packed = compression(handle.read(MAGIC_BYTES)) is not None
        except OSError:  # reading it says why
            is_packed = False
        return cls(file, reader, is_packed)

    @property
    def log(self) -> str:
        """The log that it is, or is a piece of."""
        return self.file.rotation_set or self.file.name

    @property
    def bytes_left(self) -> int:
        """Bytes that were seen and not read; 0 of a compressed file."""
        return 0 if self.is_packed else max(0, self.file.size - self.offset)

    def see(self, file: LogFile) -> None:
        """Take what was found of it: its name, size and time."""
        if (file.size, file.mtime_ns) != (self.file.size, self.file.mtime_ns):
            self.has_changed = True
        self.file = file

    def look(self) -> bool:
        """Look at it anew; return False when its path is not its own any more."""
        try:
            status = os.stat(self.file.path)  # noqa: PTH116  # pathlib takes twice the time
        except OSError:
            return False
        if (status.st_dev, status.st_ino) != self.file.identity:
            return False
        if (status.st_size, status.st_mtime_ns) != (self.file.size, self.file.mtime_ns):
            self.file = replace(self.file, size=status.st_size, mtime_ns=status.st_mtime_ns)
            self.has_changed = True
        return True

    def find_again(self) -> bool:
        """Look for it under another name in its folder; say whether it is there."""
        folder = Path(self.file.path).parent
        try:
            with os.scandir(folder) as entries:
                inode = self.file.identity[1] if self.file.identity else None
                names = [entry.name for entry in entries if entry.inode() == inode]
        except OSError:
            return False
        for name in names:
            path = str(folder / name)
            moved = replace(self.file, name=shown(path), path=path, rotation_set=self.log)
            before, self.file = self.file, moved
            if self.look():
                return True
            self.file = before
        return False

    def was_rewritten(self) -> bool:
        """Say whether what was read is not what the file holds now."""
        if not self.is_packed and self.file.size < self.offset:
            return True
        if not self._print:
            return False
        try:
            return fingerprint(self.file.path, self._print_bytes) != self._print
        except OSError:
            return False

    def start_anew(self) -> None:
        """Read it from its start again."""
        self.offset = self.number = self._print_bytes = 0
        self._print = ""

    def skip(self) -> None:
        """Leave out what is there now, to the last line feed."""
        if self.is_packed:
            self.has_changed = False
        else:
            self.offset = _behind_last_line(self.file)

    def to_read(self, *, is_last: bool = False) -> LogFile:
        """Return what is new in it. `is_last`: a line without an end gets none any more."""
        size = self.file.size if self.is_packed or is_last else self.offset
        return replace(self.file, size=size, start_offset=self.offset, start_line=self.number)

    def reached(self, offset: int, number: int) -> None:
        """Remember how far it was read."""
        self.offset, self.number = offset, number
        self._print_bytes = self.file.size if self.is_packed else offset
        self._print = ""
        if self._print_bytes and self.look():
            with suppress(OSError):  # gone meanwhile; the next look says so
                self._print = fingerprint(self.file.path, self._print_bytes)

    def is_copy_of(self, other: "Followed") -> bool:
        """Say whether this file begins with what was read of the other: a copy, maybe packed."""
        if other.is_packed or not other.offset or not other._print:
            return False
        try:
            if self.is_packed:
                mine = fingerprint_of(Lines(self.file).chunks(0), other.offset)
            elif self.file.size >= other.offset:
                mine = fingerprint(self.file.path, other.offset)
            else:
                return False
        except OSError:
            return False
        return mine == other._print

    def go_on_from(self, original: "Followed") -> None:
        """Leave out what was read in the file that this one is a copy of."""
        self.offset, self.number = original.offset, original.number


def _behind_last_line(file: LogFile) -> int:
    """Return the offset behind the last line feed of a file."""
    end = file.size
    try:
        with open(file.path, "rb") as handle:
            while end > 0:
                start = max(0, end - _CHUNK_BYTES)
                handle.seek(start)
                found = handle.read(end - start).rfind(b"\n")
                if found >= 0:
                    return start + found + 1
                end = start
    except OSError:
        pass
    return 0
