"""The sockets of the fleet: where its servers listen, and how many may be open."""

import resource
import socket
from contextlib import suppress
from typing import Final

__all__ = ["BACKLOG", "listen", "local_url", "raise_open_files_limit"]

BACKLOG: Final = 4096
"""Connections that the kernel keeps until a server takes them."""


def listen(port: int = 0, *, is_shared: bool = False) -> socket.socket:
    """Return a listening socket on 127.0.0.1; callers queue in the kernel until it is served.

    `is_shared` lets several sockets listen on one port: Linux then spreads connections evenly,
    where workers that share one socket leave bursts to whoever wakes up first.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if is_shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def local_url(listener: socket.socket) -> str:
    """Return the URL of a server that listens here."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def raise_open_files_limit() -> None:
    """Raise the limit of open files, which processes started from here inherit, as far as allowed.

    A rollout takes up to four sockets in the agent server, the widest place: from the environment,
    to and from itself, to a model. `gymlog.request` bounds the connections to one server, so more
    rollouts than that wait for their turn.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses "unlimited"; the soft limit then stands
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
