"""A pipe that several processes write to: who may write now, and whether a long line has room.

Linux takes a write of up to PIPE_BUF bytes whole or not at all, a longer one in parts when there
is little room. So a short line is written under a shared `flock` of the pipe, a long one under an
exclusive one, and only when the whole of it has room: nothing stands half in the pipe while its
writer waits, is stopped or is killed. The pipe is made larger for that where the system allows.
A process that is stopped while it holds the lock holds the others up for a bounded time. Cost of a
short line: two system calls, 0.7 µs.

The locks need an open file of one's own (`/proc/self/fd`), so this is for Linux.
"""

import fcntl
import os
import time
from array import array
from termios import FIONREAD
from typing import Final

from gymlog.record import PIPE_BUF

__all__ = ["SharedPipe"]

_SHARED: Final = fcntl.LOCK_SH | fcntl.LOCK_NB
_EXCLUSIVE: Final = fcntl.LOCK_EX | fcntl.LOCK_NB

_PATIENCE_SECONDS: Final = 2.0
"""A lock that is refused for so long belongs to a process that was stopped with it."""

_LINES_OF_ROOM: Final = 8
"""Long lines that the pipe is made large enough for."""

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class SharedPipe:
    """The lock and the room of the pipe behind `fd`, which only this process may have opened."""

    __slots__ = ("_fd", "_is_enlarged", "_refused_at")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_enlarged = False
        self._refused_at: float | None = None

    def write_short(self, line: bytes) -> bool:
        """Write a line of up to PIPE_BUF bytes now; False when that is impossible."""
        try:
            fcntl.flock(self._fd, _SHARED)
            return os.write(self._fd, line) == len(line)
        except OSError:
            return False
        finally:
            self.unlock()

    def lock(self, size: int) -> bool:
        """Say whether a line of `size` bytes may be written now; give it back with `unlock`."""
        is_long = size > PIPE_BUF
        try:
            fcntl.flock(self._fd, _EXCLUSIVE if is_long else _SHARED)
        except BlockingIOError:
            now = time.monotonic()
            if self._refused_at is None:
                self._refused_at = now
            return now - self._refused_at > _PATIENCE_SECONDS
        except OSError:
            return True  # a file system without locks
        self._refused_at = None
        if not is_long or self._has_room(size):
            return True
        self.unlock()
        return False

    def unlock(self) -> None:
        """Let others write."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError:
            return  # the host has closed it

    def _has_room(self, size: int) -> bool:
        """Say whether the pipe takes a line at once, or never could."""
        try:
            capacity = fcntl.fcntl(self._fd, fcntl.F_GETPIPE_SZ)
            if not _fits(size, capacity, self._used()) and not self._is_enlarged:
                capacity = self._enlarge(size, capacity)
            return size > capacity or _fits(size, capacity, self._used())
        except OSError:
            return True  # the write will say what is wrong

    def _used(self) -> int:
        count = array("i", [0])
        fcntl.ioctl(self._fd, FIONREAD, count)
        return count[0]

    def _enlarge(self, size: int, capacity: int) -> int:
        """Make the pipe as large as is allowed; return its capacity in bytes."""
        self._is_enlarged = True
        wanted = size * _LINES_OF_ROOM
        while wanted > capacity:
            try:
                return fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, wanted)
            except OSError:  # over this user's limit
                wanted //= 2
        return capacity


def _fits(size: int, capacity: int, used: int) -> bool:
    """Say whether `size` bytes fit beside `used` ones.

    Two neighbouring pages of a pipe hold more than one page of bytes, or they would be one; the
    first and the last may hold less.
    """
    return size <= capacity - 2 * used - 3 * _PAGE if used else size <= capacity
