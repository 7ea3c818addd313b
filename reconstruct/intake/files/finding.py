"""Which files are read, each once, and what was left out of folders.

A folder means every file below it, except hidden ones and those whose name says they are no text;
links to folders are not followed, FIFOs, sockets and devices are not opened. `*`, `?`, `[…]` and
`**` are globs, unless a file of just that name exists. A file that is named is read whatever it
is; `-` is standard input. What cannot be read is found all the same: reading it names the problem.
"""

import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from reconstruct.errors import InputError
from reconstruct.intake.files.compressed import SUFFIXES
from reconstruct.intake.files.log_file import STDIN, LogFile, shown
from reconstruct.intake.files.rotation import arranged

__all__ = ["Found", "Skipped", "find", "search"]

# fmt: off
_NOT_TEXT: Final = frozenset({
    ".7z", ".arrow", ".bin", ".ckpt", ".db", ".duckdb", ".gguf", ".gif", ".h5", ".html", ".ipynb",
    ".jpeg", ".jpg", ".mp4", ".npy", ".npz", ".onnx", ".parquet", ".pb", ".pdf", ".pickle", ".pkl",
    ".png", ".pt", ".pth", ".py", ".pyc", ".safetensors", ".so", ".sqlite", ".svg", ".wal", ".webp",
    ".whl",
})
_ARCHIVES: Final = frozenset({
    ".7z", ".jar", ".rar", ".tar", ".tbz", ".tbz2", ".tgz", ".txz", ".tzst", ".zip",
})
_OTHER_COMPRESSIONS: Final = frozenset({".br", ".lz", ".lz4", ".lzma", ".lzo", ".sz", ".z"})
# fmt: on


@dataclass(frozen=True, slots=True)
class Skipped:
    """What was left out of folders for one reason: how many, and the first of them."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a list of paths means."""

    files: list[LogFile]
    skipped: list[Skipped]


def find(paths: Sequence[str]) -> list[LogFile]:
    """List the files that `paths` mean, each once; those of a rotation set follow each other.

    Raises `InputError` when a path means nothing.
    """
    return search(paths).files


def search(paths: Sequence[str], *, may_be_missing: bool = False) -> Found:
    """Find the files that `paths` mean, as `find` does, and say what was left out.

    `may_be_missing`: a path may mean nothing yet.
    """
    if not paths:
        raise InputError("nothing to read; pass log files, a folder, a glob or '-' for stdin")
    search = _Search()
    for path in paths:
        if not search.add(path) and not may_be_missing:
            left_out = "".join(
                f", left out {skipped.example}: {skipped.reason}"
                for skipped in search.skipped()[:1]
            )
            raise InputError(
                f"no log files match '{shown(path)}' (looked in {_looked_in(path)}{left_out}); "
                "pass a folder, a glob or '-' for stdin"
            )
    return Found(arranged(search.files()), search.skipped())


class _Search:
    """Collects files by their identity, and what was left out by its reason."""

    def __init__(self) -> None:
        self._files: dict[object, LogFile] = {}
        self._skipped: dict[str, Skipped] = {}
        self._met = 0  # files, those that were known among them

    def files(self) -> list[LogFile]:
        """Return the files in the order in which they were met, each under a name of its own."""
        names: set[str] = set()
        files: list[LogFile] = []
        for file in self._files.values():
            name, number = file.name, 1
            while name in names:  # bytes of one name, escaped, are the letters of another
                number += 1
                name = f"{file.name} ({number})"
            names.add(name)
            files.append(file if number == 1 else replace(file, name=name))
        return files

    def skipped(self) -> list[Skipped]:
        return list(self._skipped.values())

    def add(self, path: str) -> bool:
        """Add what one path means; say whether it means any file, be it one that is known."""
        before = self._met
        if path == STDIN:
            self._files.setdefault(STDIN, LogFile(STDIN, 0))
            self._met += 1
        elif path:
            self._add_path(path)
        return self._met > before

    def _add_path(self, path: str) -> None:
        try:
            status = Path(path).stat()
        except PermissionError:
            self._add_unreadable(path)
        except (OSError, ValueError):
            if os.path.lexists(path):
                self._add_unreadable(path)
            elif glob.has_magic(path):
                self._add_glob(path)
        else:
            if stat.S_ISDIR(status.st_mode):
                self._add_folder(path)
            else:
                self._add(path, status)

    def _add(self, path: str, status: os.stat_result) -> None:
        self._met += 1
        if path == STDIN:  # a file of that name, met in this folder
            path = f"./{STDIN}"
        key = status.st_dev, status.st_ino
        is_regular = stat.S_ISREG(status.st_mode)
        if key not in self._files:
            self._files[key] = LogFile(
                shown(path),
                status.st_size if is_regular else 0,
                path,
                identity=key if is_regular else None,
                mtime_ns=status.st_mtime_ns,
            )

    def _add_unreadable(self, path: str) -> None:
        """Add what is there and cannot be looked at; reading it says why."""
        self._met += 1
        self._files.setdefault(path, LogFile(shown(path), 0, path))

    def _skip(self, path: str, reason: str) -> None:
        known = self._skipped.get(reason)
        count, example = (known.count, known.example) if known else (0, shown(path))
        self._skipped[reason] = Skipped(reason, count + 1, example)

    def _add_folder(self, folder: str) -> None:
        folders = [folder]
        while folders:
            below: list[str] = []
            for entry in self._entries(folders.pop()):
                path = str(PurePath(entry.path))
                status = _status(entry)
                if status is not None and stat.S_ISDIR(status.st_mode):
                    if entry.is_symlink():
                        self._skip(path, "a link to a folder; name it to read it")
                    else:
                        below.append(path)
                elif reason := _no_log(entry.name):
                    self._skip(path, reason)
                else:
                    self._add_met(path, status, is_link=entry.is_symlink())
            folders += reversed(below)

    def _add_met(self, path: str, status: os.stat_result | None, *, is_link: bool) -> None:
        """Add what a folder holds or a glob matches, which nobody has named."""
        if status is None and is_link:
            self._skip(path, "a link to nothing")
        elif status is None:
            self._add_unreadable(path)
        elif stat.S_ISREG(status.st_mode):
            self._add(path, status)
        elif stat.S_ISFIFO(status.st_mode):
            self._skip(path, "a FIFO; name it to read it")
        else:
            self._skip(path, "neither a file nor a folder")

    def _add_glob(self, pattern: str) -> None:
        parts = PurePath(pattern).parts
        is_deep = "**" in parts
        for path in self._matches(parts):
            status = _status(Path(path))
            if status is None or not stat.S_ISDIR(status.st_mode):
                is_link = os.path.islink(path)  # noqa: PTH114  # never raises
                self._add_met(path, status, is_link=is_link)
            elif not is_deep or parts[-1] == "**":
                self._add_folder(path)

    def _matches(self, parts: Sequence[str]) -> Iterable[str]:
        """List the paths that fit a pattern part by part; `**` follows no links, so it ends."""
        paths: Iterable[str] = [""]
        for index, part in enumerate(parts):
            if part == "**":
                if index < len(parts) - 1:
                    paths = [below for path in paths for below in self._folders(path)]
            elif glob.has_magic(part):
                fits = re.compile(fnmatch.translate(part)).match
                hidden = part.startswith(".")
                paths = [
                    str(PurePath(path, entry.name))
                    for path in paths
                    for entry in self._entries(path, hidden=hidden)
                    if fits(entry.name)
                ]
            else:
                paths = [str(PurePath(path, part)) for path in paths]
                paths = [path for path in paths if os.path.lexists(path)]
            paths = dict.fromkeys(paths)
        return paths

    def _folders(self, folder: str) -> Iterator[str]:
        """List a folder and all those below it."""
        folders = [folder]
        while folders:
            folder = folders.pop()
            yield folder
            below = [
                str(PurePath(folder, entry.name))
                for entry in self._entries(folder)
                if entry.is_dir(follow_symlinks=False)
            ]
            folders += reversed(below)

    def _entries(self, folder: str, *, hidden: bool = False) -> list[os.DirEntry[str]]:
        """List what is in a folder by name, links last: a file's own name is the better one."""
        try:
            with os.scandir(folder or ".") as entries:
                shown_entries = [
                    entry for entry in entries if hidden or not entry.name.startswith(".")
                ]
        except NotADirectoryError:
            return []
        except OSError:
            self._add_unreadable(folder)
            return []
        return sorted(shown_entries, key=lambda entry: (entry.is_symlink(), entry.name))


def _status(path: Path | os.DirEntry[str]) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


def _is_folder(path: Path) -> bool:
    status = _status(path)
    return status is not None and stat.S_ISDIR(status.st_mode)


def _no_log(name: str) -> str | None:
    """Say why a file of this name is no log; None when it may be one."""
    name = name.lower()
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    suffix = PurePath(name).suffix
    if suffix in _ARCHIVES:
        return f"an archive of files ({suffix}); unpack it to read it"
    if suffix in _OTHER_COMPRESSIONS:
        return f"compressed in a way that is not read ({suffix}); unpack it to read it"
    if suffix in _NOT_TEXT:
        return f"no text by its name ({suffix})"
    return None


def _looked_in(path: str) -> str:
    """Name the deepest folder on the way to `path` that exists."""
    folder = Path(path).absolute()
    while glob.has_magic(str(folder)) or not _is_folder(folder):
        folder = folder.parent
        if folder == folder.parent:
            break
    return shown(str(folder))
