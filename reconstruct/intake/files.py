"""Which files to read, and their bytes line by line.

A folder means every file below it, except hidden ones and those whose name says they are no
text; links to folders are not followed. `*`, `?`, `[…]` and `**` are globs, unless a file of just
that name exists. `-` is standard input. A file that is reached twice is read once.
"""

import glob
import gzip
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from reconstruct.errors import InputError

__all__ = ["STDIN", "Lines", "LogFile", "find"]

STDIN: Final = "-"

# fmt: off
_NOT_TEXT: Final = frozenset({
    ".7z", ".arrow", ".bin", ".bz2", ".db", ".duckdb", ".gif", ".html", ".ipynb", ".jpg", ".npy",
    ".npz", ".parquet", ".pb", ".pdf", ".pickle", ".pkl", ".png", ".pt", ".py", ".pyc",
    ".safetensors", ".so", ".sqlite", ".svg", ".tar", ".tgz", ".wal", ".whl", ".xz", ".zip", ".zst",
})
# fmt: on
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One input: its name in every result, and its size in bytes (0 when not known)."""

    name: str
    size: int


def find(paths: Sequence[str]) -> list[LogFile]:
    """List the files that `paths` mean, in order, each once.

    Raises `InputError` when a path means nothing or cannot be read.
    """
    if not paths:
        raise InputError("nothing to read; pass log files, a folder, a glob or '-' for stdin")
    found: dict[object, LogFile] = {}
    for path in paths:
        if path == STDIN:
            found.setdefault(STDIN, LogFile(STDIN, 0))
            continue
        names = _names(path)
        if not names:
            raise InputError(
                f"no log files match '{path}' (looked in {_looked_in(path)}); "
                "pass a folder, a glob or '-' for stdin"
            )
        for name in names:
            try:
                status = Path(name).stat()
            except OSError as error:
                raise InputError(f"cannot read {name}: {error.strerror}") from None
            key = (status.st_dev, status.st_ino)
            found.setdefault(key, LogFile(name, status.st_size))
    return list(found.values())


def _names(path: str) -> list[str]:
    if Path(path).is_dir():
        return _in_folder(path)
    if Path(path).exists():
        return [path]
    if not glob.has_magic(path):
        return []
    names: list[str] = []
    # Path.glob takes no absolute patterns
    for name in sorted(glob.glob(path, recursive=True)):  # noqa: PTH207
        if not Path(name).is_dir():
            names.append(name)
        elif "**" not in path:
            names.extend(_in_folder(name))
    return names


def _in_folder(folder: str) -> list[str]:
    names: list[str] = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            is_text = not name.startswith(".") and path.suffix.lower() not in _NOT_TEXT
            if is_text and path.is_file():
                names.append(str(path))
    return names


def _looked_in(path: str) -> str:
    """Name the deepest folder on the way to `path` that exists."""
    folder = Path(path).absolute()
    while not folder.is_dir() or glob.has_magic(str(folder)):
        folder = folder.parent
        if folder == folder.parent:
            break
    return str(folder)


class Lines:
    """The physical lines of one file, gzip undone; `problem` says why they end early, if they do.

    A line ends in a line feed or where the file ends. Iterating never raises.
    """

    __slots__ = ("_file", "problem")

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.problem: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        try:
            if self._file.name == STDIN:
                yield from self._plain_or_gzip(sys.stdin.buffer)
            else:
                with open(self._file.name, "rb") as handle:
                    yield from self._plain_or_gzip(handle)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self.problem = f"gzip data ends early or is damaged: {error}"
        except OSError as error:
            self.problem = f"cannot be read: {error.strerror or error}"

    def _plain_or_gzip(self, handle: BinaryIO) -> Iterator[bytes]:
        # peek: standard input and pipes cannot be wound back
        if handle.peek(2)[:2] == _GZIP:  # type: ignore[attr-defined]  # BufferedReader has it
            yield from _whole_and_cut(handle)
        else:
            yield from handle


def _whole_and_cut(handle: BinaryIO) -> Iterator[bytes]:
    """Lines of gzip data; of a cut archive also the piece of a line before the cut."""
    rest = b""
    with gzip.open(handle) as unpacked:
        while True:
            try:
                chunk = unpacked.read1(1 << 20)
            except (EOFError, zlib.error, gzip.BadGzipFile):
                if rest:
                    yield rest
                raise
            if not chunk:
                break
            lines = _split(rest + chunk)
            rest = lines.pop()
            yield from lines
    if rest:
        yield rest


def _split(data: bytes) -> list[bytes]:
    """Split after each line feed; the last piece is what follows the last one, maybe empty."""
    pieces = data.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + pieces[-1:]
