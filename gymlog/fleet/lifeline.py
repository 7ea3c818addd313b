"""How the processes of the fleet end: by a signal, or because their supervisor is gone.

The lifeline is one socket pair per process. Through it a process tells what the supervisor waits
for, as JSON lines. When the supervisor's end closes, whatever the reason (kill -9 included), the
process ends itself: by SIGTERM first, so that its last lines are written, and without ceremony if
that takes too long. It is the kernel that closes the end of a dead supervisor, so nothing is left
behind, and nothing but sockets is needed for it.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import Final, NoReturn

__all__ = ["Lifeline", "exit_on_signals"]

_GRACE_SECONDS: Final = 5.0


class Lifeline:
    """The process's end of its lifeline; with no `fd`, started by hand, it does nothing."""

    def __init__(self, fd: int | None) -> None:
        self._socket = None if fd is None else socket.socket(fileno=fd)
        if self._socket is not None:
            watch = threading.Thread(
                target=_watch, args=(self._socket,), name="lifeline", daemon=True
            )
            watch.start()

    def tell(self, **message: object) -> None:
        """Send one message to the supervisor; that it is gone is no error here."""
        if self._socket is None:
            return
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return  # _watch sees the same and ends this process


def _watch(lifeline: socket.socket) -> None:
    try:
        while lifeline.recv(4096):
            pass
    except OSError:
        pass  # reset instead of closed: gone all the same
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_SECONDS)
    os._exit(1)


def exit_on_signals() -> None:
    """Make SIGINT and SIGTERM raise SystemExit, so that `finally` blocks run.

    SIGINT too: a process started in a shell's background inherits it as ignored.
    """

    def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(0)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
