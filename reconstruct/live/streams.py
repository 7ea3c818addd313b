"""Inputs that are read once as they come: standard input, FIFOs, devices."""

import queue
import threading
from collections.abc import Iterator
from typing import Final

from reconstruct.intake.files import Lines, LogFile
from reconstruct.intake.files.splitting import lines_of
from reconstruct.live.bell import Bell

__all__ = ["Stream"]

_BLOCKS: Final = 8
"""So many, of up to 1 MiB, wait to be taken; a writer that is faster waits too."""


class Stream:
    """One such input, read by a thread of its own that never holds up the end of the program."""

    def __init__(self, file: LogFile, bell: Bell) -> None:
        self.file = file
        self._lines = Lines(file)
        self._bell = bell
        self._blocks: queue.Queue[bytes | None] = queue.Queue(_BLOCKS)
        self.is_over = False
        """Everything was taken, and nothing more can come."""
        threading.Thread(target=self._read, name=f"reads {file.name}", daemon=True).start()

    def _read(self) -> None:
        for block in self._lines.blocks():
            self._blocks.put(block)
            self._bell.ring()
        self._blocks.put(None)
        self._bell.ring()

    def take(self) -> Iterator[bytes]:
        """Yield the lines that are there by now, no more than wait at a time; the bell says when
        more have come."""
        for _ in range(_BLOCKS):
            try:
                block = self._blocks.get_nowait()
            except queue.Empty:
                return
            if block is None:
                self.is_over = True
                return
            yield from lines_of(block)

    @property
    def problem(self) -> str | None:
        """What has ended it, if not its end."""
        return self._lines.problem if self.is_over else None
