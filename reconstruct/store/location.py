"""Where a store lies, and whether there may be one.

Beside the logs, in `.reconstruct/`, when they all lie below one folder; elsewhere in the folder
that was named. Each set of paths that is asked for has a database of its own in it, the latest few
are kept.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconstruct.intake.files import LogFile

__all__ = [
    "FOLDER",
    "UNFINISHED",
    "WORTH_BYTES",
    "are_lasting",
    "beside",
    "database",
    "home",
    "prepare",
]

FOLDER: Final = ".reconstruct"
WORTH_BYTES: Final = 16 << 20
"""Logs smaller than this are read again as quickly as a store is opened."""

UNFINISHED: Final = ".new"
"""How the names of files end that someone is writing."""

_KEPT: Final = 4
_ABANDONED_SECONDS: Final = 86_400
"""Whoever writes a file for so long has died."""
_NAME: Final = "logs.duckdb"
_KEY_BYTES: Final = 8
_KEY: Final = re.compile(rf"[0-9a-f]{{{2 * _KEY_BYTES}}}")
"""How the folders of databases are called."""


def beside(found: Sequence[LogFile]) -> Path | None:
    """Return the folder of a store beside the logs; None when they do not lie below one folder
    that is theirs, or are too small to be worth it."""
    return home(found) if sum(file.size for file in found) >= WORTH_BYTES else None


def home(found: Sequence[LogFile]) -> Path | None:
    """Return the folder beside the logs that is ours to keep things in; None when they do not lie
    below one folder that is theirs, or cannot be read again."""
    if not found or not are_lasting(found):
        return None
    parents = {Path(file.path).absolute().parent for file in found}
    common = Path(os.path.commonpath(parents))
    return common / FOLDER if common in parents else None


def are_lasting(found: Sequence[LogFile]) -> bool:
    """Say whether all inputs are files that can be read again."""
    return all(file.identity is not None for file in found)


def database(folder: Path, paths: Sequence[str], wrapper: str | None) -> Path:
    """Return where in a store the database lies for what was asked for."""
    asked = "\n".join(sorted(str(Path(path).absolute()) for path in paths))
    key = hashlib.blake2b(
        f"{wrapper}\n{asked}".encode("utf-8", "surrogateescape"), digest_size=_KEY_BYTES
    )
    return folder / key.hexdigest() / _NAME


def prepare(folder: Path) -> None:
    """Make the folder, which no version control wants; remove the databases that were not used for
    longest, and what was left by processes that died. What else is in it stays."""
    if not folder.exists():  # else it may be anyone's
        folder.mkdir(parents=True)
        (folder / ".gitignore").write_text("*\n")
    with suppress(OSError):
        own = [path for path in folder.iterdir() if _KEY.fullmatch(path.name)]
        used = [path / _NAME for path in own if (path / _NAME).exists()]
        used.sort(key=lambda path: path.stat().st_atime_ns)
        for path in used[:-_KEPT]:
            shutil.rmtree(path.parent, ignore_errors=True)
        for path in (new for each in own for new in each.glob(f"*{UNFINISHED}")):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()
