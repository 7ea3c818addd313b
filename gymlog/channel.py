"""The way to fd 1: whole lines, a bounded wait, and a count of what did not get through.

A file takes every line at once. A pipe, a terminal or a socket may be full: then a line waits,
but all waiting together is at most `wait_seconds` at once and a quarter of the time in the long
run; after that lines are dropped whole and counted, until there is room again. The host's own
fd 1 keeps its blocking mode: gymlog opens the same pipe or terminal a second time, non-blocking.
A line that got through in part is finished before the next one starts.

Whatever the host later opens under the same number gets no line: gymlog writes to an fd of its
own, and takes for standard output only what a program started from here would inherit.
"""

import os
import select
import socket
import stat
import time
from typing import Final

from gymlog.notices import notice
from gymlog.record import PIPE_BUF

__all__ = ["DEFAULT_WAIT_SECONDS", "SPAN_LINE", "Channel"]

DEFAULT_WAIT_SECONDS: Final = 0.25

_WAITING_SHARE: Final = 0.25
"""Share of the time that goes into waiting at most, when a reader stays too slow."""

_NO_FD: Final = -1

SPAN_LINE: Final = b'{"record_type":"span",'
"""How a line begins whose loss the count of written spans must know."""


class Channel:
    """An unbuffered binary file on a file descriptor that never raises and never hangs.

    One `write` runs at a time (structlog's logger holds a lock); `refresh` may run beside it.
    """

    __slots__ = (
        "__weakref__",
        "_budget",
        "_budget_at",
        "_identity",
        "_is_begun",
        "_is_direct",
        "_is_stale",
        "_must_poll",
        "_own_fd",
        "_socket",
        "_tail",
        "_wait_seconds",
        "_writable_fd",
        "fd",
        "lines_dropped",
        "spans_dropped",
    )

    def __init__(self, fd: int, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> None:
        self.fd = fd
        self.lines_dropped = self.spans_dropped = 0
        self._wait_seconds = self._budget = wait_seconds
        self._budget_at = time.monotonic()
        self._tail = b""
        self._is_begun = False
        self._identity: tuple[int, int] | None = None
        self._own_fd: int | None = None
        self._socket: socket.socket | None = None
        self._open()

    def write(self, line: bytes, /) -> None:
        """Write one line, in one `write` when the channel has room; else drop and count it."""
        if self._is_direct:
            try:
                written = os.write(self._writable_fd, line)
            except OSError:
                written = 0  # tried again below, where there is time to ask why
            if written == len(line):
                return
            if written:
                self._tail, self._is_begun = line[written:], True
                self._finish()
                return
        self._write_slowly(line)

    def flush(self) -> None:
        """Nothing is buffered."""

    def refresh(self) -> None:
        """Look whether the host has put something else on the fd; then the next line goes there."""
        if self._identity != _identity(self.fd):
            self._is_stale = True
            self._is_direct = False

    def close(self) -> None:
        """Close what was opened here; the host's fd stays as it is."""
        self._is_direct = False
        self._writable_fd = _NO_FD
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._own_fd is not None:
            os.close(self._own_fd)
            self._own_fd = None

    def __del__(self) -> None:
        """Close the parent's descriptor in a forked child, which has a channel of its own."""
        self.close()

    def _open(self) -> None:
        self._is_stale = self._must_poll = False
        self._identity = _identity(self.fd)
        self._writable_fd = _NO_FD if self._identity is None else self.fd
        try:
            mode = os.fstat(self._writable_fd).st_mode
            if stat.S_ISSOCK(mode):
                self._socket = socket.socket(fileno=os.dup(self.fd))
            elif stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and os.isatty(self.fd)):
                self._must_poll = True
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
                self._own_fd = self._writable_fd = os.open(f"/proc/self/fd/{self.fd}", flags)
                self._must_poll = False
            else:
                self._own_fd = self._writable_fd = os.dup(self.fd)
        except OSError:
            pass  # then the host's own fd is used, polled first where it could block
        self._is_direct = not (self._must_poll or self._socket)

    def _write_slowly(self, line: bytes) -> None:
        """Write one line where something is in the way, perhaps the rest of the line before."""
        if self._is_stale:
            self.close()
            self._drop_tail()
            self._open()
        if self._tail:
            self._finish()
        if self._tail:
            self._drop(line)
            return
        self._tail = line  # so that an exception of a signal handler tears nothing
        self._finish()
        if not self._is_begun:
            self._drop_tail()

    def _drop_tail(self) -> None:
        line, self._tail, self._is_begun = self._tail, b"", False
        if line:
            self._drop(line)

    def _drop(self, line: bytes) -> None:
        self.lines_dropped += 1
        if line.startswith(SPAN_LINE):
            self.spans_dropped += 1

    def _finish(self) -> None:
        """Write as much of `_tail` as the channel takes within the budget."""
        self._is_direct = False
        while self._tail:
            try:
                if self._must_poll and not self._wait():
                    raise BlockingIOError
                self._put()
            except BlockingIOError:
                if not self._must_poll and self._wait():
                    continue
                self._tell("is full and nobody reads it fast enough; lines are dropped and")
                break
            except OSError as error:
                self._tell(f"cannot be written to ({error.strerror}); lines are dropped and")
                break
        self._is_direct = not (self._tail or self._must_poll or self._socket or self._is_stale)

    def _put(self) -> None:
        """Make one `write`; after a poll, of no more than a pipe with any room takes at once."""
        if self._socket is not None:
            flags = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
            written = self._socket.send(self._tail, flags)
        else:
            piece = self._tail[:PIPE_BUF] if self._must_poll else self._tail
            written = os.write(self._writable_fd, piece)
        self._tail = self._tail[written:]
        self._is_begun = bool(self._tail)

    def _tell(self, what: str) -> None:
        if self._is_begun and self._identity == _identity(2):
            return  # the sentence would stand inside the line
        notice("channel", f"fd {self.fd} {what} counted in the process records")

    def _wait(self) -> bool:
        """Wait for room as long as the budget allows; say whether there is room."""
        now = time.monotonic()
        refilled = self._budget + (now - self._budget_at) * _WAITING_SHARE
        self._budget = min(self._wait_seconds, refilled)
        self._budget_at = now
        poll = select.poll()
        poll.register(self._writable_fd if self._socket is None else self._socket, select.POLLOUT)
        ready = bool(poll.poll(max(self._budget, 0.0) * 1000))
        waited = time.monotonic() - now
        self._budget -= waited
        self._budget_at = now + waited
        return ready


def _identity(fd: int) -> tuple[int, int] | None:
    """Return what file an fd is; None when it is closed, or a number used anew by the host.

    A standard stream survived an `exec`, or was put there to survive one; what Python opens for
    other purposes does not.
    """
    try:
        if fd <= 2 and not os.get_inheritable(fd):
            return None
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
