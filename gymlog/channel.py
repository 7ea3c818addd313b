"""The way to fd 1: whole lines, a bounded wait, and a count of what did not get through.

A file takes every line at once. A pipe, a terminal or a socket may be full: then a line waits,
but all waiting together is at most `wait_seconds` at once and a quarter of the time in the long
run; after that lines are dropped whole and counted, until there is room again. The host's own
fd 1 keeps its blocking mode: gymlog opens the same pipe or terminal a second time, non-blocking.
A line that got through in part is finished before the next one starts.

Several processes may share a pipe (`gymlog.pipe`) or a file. A file is put in append mode, for all
who have it open: no line overwrites another, and one that is truncated begins anew at its start.

Whatever the host later opens under the same number gets no line: gymlog writes to an fd of its
own, and takes for standard output only what a program started from here would inherit.
"""

import errno
import fcntl
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from typing import Final

from gymlog.notices import notice
from gymlog.pipe import SharedPipe
from gymlog.record import PIPE_BUF

__all__ = ["DEFAULT_WAIT_SECONDS", "SPAN_LINE", "Channel"]

DEFAULT_WAIT_SECONDS: Final = 0.25

_WAITING_SHARE: Final = 0.25
"""Share of the time that goes into waiting at most, when a reader stays too slow."""

_PAUSE_SECONDS: Final = 0.0002
"""Between two looks whether others have left the pipe alone, or a long line has room."""

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
        "_pipe",
        "_pipe_is_clear",
        "_socket",
        "_tail",
        "_wait_seconds",
        "_writable_fd",
        "fd",
        "lines_dropped",
        "spans_dropped",
        "takes_many_lines",
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
        self._pipe: SharedPipe | None = None
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
        elif (
            self._pipe_is_clear
            and len(line) <= PIPE_BUF
            and (pipe := self._pipe) is not None
            and pipe.write_short(line)
        ):
            return
        self._write_slowly(line)

    flush = [].clear
    """Nothing is buffered; a C function that does nothing costs least."""

    def refresh(self) -> None:
        """Look whether the host has put something else on the fd; then the next line goes there.

        Or has closed what was opened here, as a daemon does that closes all it does not know.
        """
        if self._own_fd is not None and _file_of(self._own_fd) != self._identity:
            self._own_fd = None  # by now the number may be the host's
        elif self._identity == _identity(self.fd):
            return
        self._is_stale = True
        self._is_direct = self._pipe_is_clear = False

    def grant(self) -> None:
        """Allow to wait once more for the whole of `wait_seconds`: the last lines are to come."""
        self._budget = self._wait_seconds

    def close(self) -> None:
        """Close what was opened here; the host's fd stays as it is."""
        self._is_direct = self._pipe_is_clear = False
        self._writable_fd = _NO_FD
        self._pipe = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._own_fd is not None:
            os.close(self._own_fd)
            self._own_fd = None

    def __del__(self) -> None:
        """Close the parent's descriptor in a forked child, which has a channel of its own."""
        try:
            self.close()
        except (AttributeError, TypeError):
            return  # the interpreter is being torn down; the system closes it

    def _open(self) -> None:
        self._is_stale = self._must_poll = False
        self._identity = _identity(self.fd)
        self._writable_fd = _NO_FD if self._identity is None else self.fd
        self.takes_many_lines = False
        """Whether several lines in one write stay together, as in a file."""
        try:
            mode = os.fstat(self._writable_fd).st_mode
            if stat.S_ISREG(mode):
                _append(self.fd)
                self._own_fd = self._writable_fd = os.dup(self.fd)
                self.takes_many_lines = True
            elif stat.S_ISSOCK(mode):
                self._must_poll = True
                self._socket = socket.socket(fileno=os.dup(self.fd))
                self._must_poll = False
            elif stat.S_ISFIFO(mode) or (stat.S_ISCHR(mode) and os.isatty(self.fd)):
                self._must_poll = True
                flags = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
                self._own_fd = self._writable_fd = os.open(f"/proc/self/fd/{self.fd}", flags)
                self._must_poll = False
                if stat.S_ISFIFO(mode):
                    self._pipe = SharedPipe(self._own_fd)
            else:
                self._own_fd = self._writable_fd = os.dup(self.fd)
        except OSError as error:
            # Then the host's own fd is used, polled first where it could block.
            if error.errno in (errno.EMFILE, errno.ENFILE):
                notice(
                    "descriptors",
                    f"fd {self.fd} cannot be opened a second time ({error.strerror}); lines are "
                    "written through the program's own",
                )
        self._set_way()

    def _set_way(self) -> None:
        """Choose how the next line is written: at once, under the pipe's lock, or slowly."""
        is_clear = not (self._tail or self._must_poll or self._socket or self._is_stale)
        self._is_direct = is_clear and self._pipe is None
        self._pipe_is_clear = is_clear and self._pipe is not None

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
        self.lines_dropped += line.count(b"\n")
        if line.startswith(SPAN_LINE):
            self.spans_dropped += 1

    def _finish(self) -> None:
        """Write as much of `_tail` as the channel takes within the budget."""
        self._is_direct = self._pipe_is_clear = False
        while self._tail:
            try:
                wait = self._advance()
            except OSError as error:
                self._tell(f"cannot be written to ({error.strerror}); lines are dropped and")
                break
            if wait is not None and not wait():
                self._tell("is full and nobody reads it fast enough; lines are dropped and")
                break
        self._set_way()

    def _advance(self) -> Callable[[], bool] | None:
        """Write once; return how to wait when nothing could be written yet."""
        if self._must_poll and not self._has_room(0.0):
            return self._wait
        pipe = self._pipe
        try:
            if pipe is not None and not self._is_begun and not pipe.lock(len(self._tail)):
                return self._pause
            self._put()
        except BlockingIOError:
            return self._wait
        finally:
            if pipe is not None and not self._is_begun:
                pipe.unlock()
        return None

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
        return self._spend(self._has_room, max(self._left(), 0.0))

    def _pause(self) -> bool:
        """Wait a moment if the budget allows; say whether it did."""
        left = self._left()
        return left > 0 and self._spend(_sleep, min(_PAUSE_SECONDS, left))

    def _left(self) -> float:
        """Return the seconds that may go into waiting now."""
        now = time.monotonic()
        refilled = self._budget + (now - self._budget_at) * _WAITING_SHARE
        self._budget = min(self._wait_seconds, refilled)
        self._budget_at = now
        return self._budget

    def _spend(self, wait: Callable[[float], bool], seconds: float) -> bool:
        answer = wait(seconds)
        waited = time.monotonic() - self._budget_at
        self._budget -= waited
        self._budget_at += waited
        return answer

    def _has_room(self, seconds: float) -> bool:
        """Wait until the channel takes anything, `seconds` at most; say whether it does."""
        poll = select.poll()
        poll.register(self._writable_fd if self._socket is None else self._socket, select.POLLOUT)
        return bool(poll.poll(seconds * 1000))


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


def _append(fd: int) -> None:
    """Let all writes to a file go to its end, wherever that is then."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    if not flags & os.O_APPEND:
        fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_APPEND)


def _identity(fd: int) -> tuple[int, int] | None:
    """Return what file an fd is; None when it is closed, or a number used anew by the host.

    A standard stream survived an `exec`, or was put there to survive one; what Python opens for
    other purposes does not.
    """
    try:
        if fd <= 2 and not os.get_inheritable(fd):
            return None
    except OSError:
        return None
    return _file_of(fd)


def _file_of(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
