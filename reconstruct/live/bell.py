"""A bell that wakes the one thread that waits for it, from other threads or a signal handler."""

import os
import select
from contextlib import suppress

__all__ = ["Bell"]


class Bell:
    """Rings stay until they were heard. It is a pipe: a lock must not be taken in a handler."""

    def __init__(self) -> None:
        self._heard, self._rung = os.pipe()
        os.set_blocking(self._heard, False)
        os.set_blocking(self._rung, False)

    def ring(self) -> None:
        """Wake whoever waits, or will."""
        with suppress(BlockingIOError):  # it is full of rings
            os.write(self._rung, b"\0")

    def wait(self, seconds: float) -> None:
        """Wait until it rings, or for so long."""
        select.select([self._heard], [], [], seconds)

    def quiet(self) -> None:
        """Forget the rings so far."""
        with suppress(BlockingIOError):
            while os.read(self._heard, 4096):
                pass

    def __del__(self) -> None:
        os.close(self._heard)
        os.close(self._rung)
