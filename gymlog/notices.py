"""What gymlog says to a person: single lines on stderr, each subject once per process.

The host's logging is not used: its handlers may be the very thing that fails, or trace.
A stderr that is full and that nobody reads delays nothing: the sentence then waits for the next
occasion.
"""

import os
import select
from typing import Final

__all__ = ["notice", "reset"]

_MAX_CHARACTERS: Final = 1_000
"""At most 4,000 bytes: a pipe that has any room takes them at once."""

_said: set[str] = set()


def notice(subject: str | None, text: str) -> None:
    """Write `gymlog: text` to fd 2 unless `subject` was written about before; None: always.

    Never raises, never waits.
    """
    if subject in _said:
        return
    if subject is not None:
        _said.add(subject)
    line = " ".join(f"gymlog: {text}".split())[:_MAX_CHARACTERS]
    try:
        if _has_room():
            os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
        else:
            _said.discard(subject or "")
    except OSError:
        return  # no stderr: nobody to tell


def reset() -> None:
    """Forget what was said (tests)."""
    _said.clear()


def _has_room() -> bool:
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    return bool(poll.poll(0))
