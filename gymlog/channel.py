"""The way to fd 1: whole lines, a bounded wait, and a count of what did not get through.

A file takes every line at once. A pipe, a terminal or a socket may be full: then a line waits,
but all waiting together is at most `wait_seconds` at once and a quarter of the time in the long
run; after that lines are dropped whole and counted, until there is room again. The host's own
fd 1 keeps its blocking mode: gymlog opens the same pipe or terminal a second time, non-blocking.
A line that got through in part is finished before the next one starts.
"""

import os
import select
import socket
import stat
import time
from typing import Final

from gymlog.notices import notice

__all__ = ["DEFAULT_WAIT_SECONDS", "Channel"]

DEFAULT_WAIT_SECONDS: Final = 0.25

_WAITING_SHARE: Final = 0.25
"""Share of the time that goes into waiting at most, when a reader stays too slow."""


class Channel:
    """An unbuffered binary file on a file descriptor that never raises and never hangs."""

    __slots__ = (
        "__weakref__",
        "_budget",
        "_budget_at",
        "_identity",
        "_must_poll",
        "_own_fd",
        "_socket",
        "_tail",
        "_wait_seconds",
        "_writable_fd",
        "fd",
        "lines_dropped",
    )

    def __init__(self, fd: int, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> None:
        self.fd = fd
        self.lines_dropped = 0
        self._wait_seconds = self._budget = wait_seconds
        self._budget_at = time.monotonic()
        self._tail = b""
        self._own_fd: int | None = None
        self._socket: socket.socket | None = None
        self._open()

    def write(self, line: bytes, /) -> None:
        """Write one line, in one `write` when the channel has room; else drop and count it."""
        if self._tail:
            self._tail = self._tail[self._put(self._tail) :]
            if self._tail:
                self.lines_dropped += 1
                return
        written = self._put(line)
        if written == len(line):
            return
        if written:
            self._tail = line[written:]
        else:
            self.lines_dropped += 1

    def flush(self) -> None:
        """Nothing is buffered."""

    def refresh(self) -> None:
        """Follow the fd when the host has put something else there (daemons, tests)."""
        if self._identity != _identity(self.fd):
            self.close()
            self._tail = b""
            self._open()

    def close(self) -> None:
        """Close what was opened here; the host's fd stays as it is."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._own_fd is not None:
            os.close(self._own_fd)
            self._own_fd = None
        self._writable_fd = self.fd

    def _open(self) -> None:
        self._must_poll = False
        self._writable_fd = self.fd
        self._identity = _identity(self.fd)
        try:
            mode = os.fstat(self.fd).st_mode
            if stat.S_ISSOCK(mode):
                self._socket = socket.socket(fileno=os.dup(self.fd))
            elif stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and os.isatty(self.fd)):
                self._must_poll = True
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
                self._own_fd = self._writable_fd = os.open(f"/proc/self/fd/{self.fd}", flags)
                self._must_poll = False
        except OSError:
            return  # then the host's own fd is used, polled first where it could block

    def _put(self, data: bytes) -> int:
        """Write as much as the channel takes within the budget; return the count of bytes."""
        done = 0
        while done < len(data):
            if self._must_poll and not self._wait():
                break
            rest = data[done:] if done else data
            try:
                if self._socket is not None:
                    done += self._socket.send(rest, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
                else:
                    done += os.write(self._writable_fd, rest)
            except BlockingIOError:
                if not self._wait():
                    notice(
                        "channel full",
                        f"fd {self.fd} is full and nobody reads it fast enough; lines are "
                        "dropped and counted in the process records",
                    )
                    break
            except OSError as error:
                notice(
                    "channel",
                    f"cannot write to fd {self.fd} ({error.strerror}); lines are dropped and "
                    "counted in the process records, the program goes on",
                )
                break
        return done

    def _wait(self) -> bool:
        """Wait for room as long as the budget allows; say whether there is room."""
        now = time.monotonic()
        refilled = self._budget + (now - self._budget_at) * _WAITING_SHARE
        self._budget = min(self._wait_seconds, refilled)
        self._budget_at = now
        poll = select.poll()
        poll.register(self._writable_fd, select.POLLOUT)
        ready = bool(poll.poll(max(self._budget, 0.0) * 1000))
        waited = time.monotonic() - now
        self._budget -= waited
        self._budget_at = now + waited
        return ready


def _identity(fd: int) -> tuple[int, int] | None:
    """Return what file an fd is, None when it is closed."""
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
