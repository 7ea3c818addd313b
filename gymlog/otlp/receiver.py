"""What a receiver is sent and what it answers, over whichever protocol.

Requests go through OpenTelemetry's own exporters, so endpoint, headers, TLS, compression and
retries are theirs, with every `OTEL_EXPORTER_OTLP_*` variable. What they log while they work for
gymlog is kept off the host's handlers: one notice says it.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, NamedTuple, Protocol

__all__ = ["Outcome", "Ready", "Receiver", "Signal", "outcome_of", "quietly"]

Signal = Literal["traces", "logs"]


class Outcome(NamedTuple):
    """How a request ended."""

    lost: int
    """Of what was sent, so much did not arrive."""
    words: str = ""
    """The receiver's or the network's words for it."""


class Receiver(Protocol):
    """A receiver of the requests of one signal."""

    destination: str
    """Where it is, for people."""

    def send(self, request: Any, count: int) -> Outcome:  # Any: a request of the signal
        """Send one request of `count` records; takes the timeout at most, retries included."""

    def close(self) -> None:
        """Let go of the connection; a request under way ends."""


class Ready:
    """A built request in the place of the SDK objects that an exporter expects."""

    def __init__(self, request: Any, count: int) -> None:  # Any: a request of the signal
        self.request = request
        self._count = count

    def __len__(self) -> int:
        return self._count


def outcome_of(response: Any, count: int) -> Outcome:  # Any: a signal's response message
    """Read what a receiver says beside that it took a request: records it rejected, a warning."""
    partial = response.partial_success
    rejected = sum(value for field, value in partial.ListFields() if field.name != "error_message")
    return Outcome(min(rejected, count), partial.error_message)


class _Quiet(threading.local):
    def __init__(self) -> None:
        self.complaints: list[list[str]] = []
        """Of each block that this thread is in."""


_quiet: Final = _Quiet()
_LOGGERS: Final = ("opentelemetry.", "urllib3", "grpc", "requests")
_MAX_COMPLAINTS: Final = 8


class _Silencer(logging.Filter):
    """Holds back what is logged in a thread while it is quiet."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record may go on."""
        for complaints in _quiet.complaints:
            if record.levelno >= logging.WARNING and len(complaints) < _MAX_COMPLAINTS:
                complaints.append(record.getMessage())
        return not _quiet.complaints


_silencer: Final = _Silencer()


@contextmanager
def quietly() -> Iterator[list[str]]:
    """Keep what exporters log in this thread from the host's handlers; its warnings are yielded.

    Their modules are to be imported before: the loggers of later ones are not known.
    """
    for name, logger in list(logging.root.manager.loggerDict.items()):
        if name.startswith(_LOGGERS) and isinstance(logger, logging.Logger):
            logger.addFilter(_silencer)
    complaints: list[str] = []
    _quiet.complaints.append(complaints)
    try:
        yield complaints
    finally:
        _quiet.complaints.pop()
