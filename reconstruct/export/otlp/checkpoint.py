"""What a destination has acknowledged, in a file that is only added to.

A line of JSON says whose it is; then come frames of a count, a checksum and so many keys of 64
bits each. A frame is added when an answer has come, so whoever is killed between the two sends one
batch again at most; a torn frame at the end is cut off. Two of a million records share a key with
a chance of three in a hundred million.
"""

import fcntl
import hashlib
import json
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

import numpy as np

from reconstruct.errors import DestinationError, InputError
from reconstruct.export.otlp.settings import Target

__all__ = ["Checkpoint", "checkpoint_path"]

Keys = Any  # Any: an array of uint64; numpy's own generics say no more

_FRAME: Final = struct.Struct("<II")
_FORMAT: Final = "reconstruct: acknowledged over OTLP"
_NAME_BYTES: Final = 8


def checkpoint_path(folder: Path, target: Target) -> Path:
    """Return where below a folder of ours the checkpoint of a target lies."""
    name = hashlib.blake2b(_destination(target).encode(), digest_size=_NAME_BYTES).hexdigest()
    return folder / "sent" / f"{name}.{target.signal}"


def _destination(target: Target) -> str:
    return f"{target.protocol} {target.words}"


class Checkpoint:
    """The keys one destination has acknowledged; open for one process at a time.

    Raises `InputError` for a file that is no checkpoint of this destination, `DestinationError`
    where it cannot be written or another process has it open.
    """

    def __init__(self, path: Path, target: Target) -> None:
        self._path = path
        head = {"format": _FORMAT, "signal": target.signal, "destination": _destination(target)}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = open(path, "a+b", buffering=0)  # noqa: SIM115  # see close
        except OSError as error:
            raise DestinationError(
                f"cannot keep a checkpoint in {path}: {error.strerror}"
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._known = self._read(head)
        except BlockingIOError:
            self._file.close()
            raise DestinationError(
                f"another export to {target.words} is under way ({path} is locked)"
            ) from None
        except BaseException:
            self._file.close()
            raise

    def __len__(self) -> int:
        """How many records were acknowledged before."""
        return len(self._known)

    def news(self, keys: Keys) -> list[bool]:
        """Say of each key whether it is new; what is added meanwhile does not count."""
        if not len(self._known):
            return [True] * len(keys)
        places = np.minimum(np.searchsorted(self._known, keys), len(self._known) - 1)
        found: list[bool] = (self._known[places] != keys).tolist()
        return found

    def add(self, keys: Sequence[int]) -> None:
        """Note that records arrived; it is in the file when this returns. Raises `OSError`."""
        payload = np.array(keys, dtype="<u8").tobytes()
        self._file.write(_FRAME.pack(len(keys), zlib.crc32(payload)) + payload)

    def close(self) -> None:
        """Let another process have it."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, head: dict[str, str]) -> Keys:
        self._file.seek(0)
        line = self._file.readline()
        if not line.endswith(b"\n"):  # new, or torn in its first line
            if line and not json.dumps(head).encode().startswith(line):
                raise InputError(f"{self._path} is no checkpoint of an export")
            self._file.truncate(0)
            self._file.write(json.dumps(head).encode() + b"\n")
            return np.empty(0, dtype="<u8")
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if found != head:
            raise InputError(
                f"{self._path} is no checkpoint of an export of {head['signal']} to "
                f"{head['destination']}; name another file"
            )
        frames, end = [], self._file.tell()
        while len(start := self._file.read(_FRAME.size)) == _FRAME.size:
            count, checksum = _FRAME.unpack(start)
            left = os.fstat(self._file.fileno()).st_size - self._file.tell()
            if 8 * count > left or zlib.crc32(payload := self._file.read(8 * count)) != checksum:
                break
            frames.append(np.frombuffer(payload, dtype="<u8"))
            end = self._file.tell()
        self._file.truncate(end)
        return np.unique(np.concatenate(frames)) if frames else np.empty(0, dtype="<u8")
