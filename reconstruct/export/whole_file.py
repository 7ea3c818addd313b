"""A file that appears whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from reconstruct.errors import DestinationError

__all__ = ["whole_file"]


@contextmanager
def whole_file(path: str) -> Iterator[IO[bytes]]:
    """Open `path` to be written in the block; it takes the place of what is there at its end.

    When the block fails, what was there stays. A pipe or device is written directly. Raises
    `DestinationError` when the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as out:
                yield out
            return
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name[:100]}.", delete=False
        ) as out:
            written = Path(out.name)
            try:
                yield out.file
                out.flush()
                written.chmod(target.stat().st_mode & 0o777 if target.exists() else _usual_mode())
                written.replace(target)
            except BaseException:
                written.unlink()
                raise
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {error.strerror or error}") from None


def _usual_mode() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
