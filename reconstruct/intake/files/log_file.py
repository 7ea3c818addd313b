"""One input: the name it has in every result, where it lies, and how it is known again later."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["STDIN", "LogFile", "fingerprint", "fingerprint_of", "shown"]

STDIN: Final = "-"

_ENDS: Final = 1024
"""So many bytes at the start, and before the size asked for, tell one file from another."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One input: its name in every result, and its size in bytes (0 when not known).

    `name` is always text that can be printed and stored; `path` is what the system knows the file
    by, `-` for standard input, the name when left out. `identity` is device and inode, None for
    what cannot be read a second time (standard input, a FIFO, a device). `rotation_set` is the
    current file of the set to which this one belongs: the files of a set follow each other, the
    oldest first.

    Reading begins at `start_offset` (bytes, behind a line feed; of the unpacked bytes when the
    file is compressed), `start_line` lines lie before it.
    """

    name: str
    size: int
    path: str = ""
    identity: tuple[int, int] | None = None
    mtime_ns: int = 0
    rotation_set: str | None = None
    start_offset: int = 0
    start_line: int = 0

    def __post_init__(self) -> None:
        if not self.path:
            object.__setattr__(self, "path", self.name)


def shown(path: str) -> str:
    r"""Write a path as text: bytes of it that are no UTF-8 become escapes like `\xff`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def fingerprint(path: str, size: int) -> str:
    """Return 32 hex digits that stand for the first `size` bytes of a file.

    They are taken from the size, the first 1 KiB and the last 1 KiB of these bytes. A file that
    grew keeps the fingerprint of the size it had; one that was truncated, or truncated and written
    anew past that size, does not. Raises `OSError` when the file cannot be read.
    """
    digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    with open(path, "rb") as handle:
        digest.update(handle.read(min(size, _ENDS)))
        tail = max(_ENDS, size - _ENDS)
        if size > tail:
            handle.seek(tail)
            digest.update(handle.read(size - tail))
    return digest.hexdigest()


def fingerprint_of(chunks: Iterable[bytes], size: int) -> str | None:
    """Return the fingerprint of the first `size` bytes of what comes in chunks; None: too few."""
    head = tail = b""
    left = size
    for chunk in chunks:
        part = chunk[:left]
        left -= len(part)
        if len(head) < _ENDS:
            need = _ENDS - len(head)
            head += part[:need]
            part = part[need:]
        tail = (tail + part)[-_ENDS:]
        if not left:
            break
    if left:
        return None
    digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    digest.update(head)
    digest.update(tail)
    return digest.hexdigest()
