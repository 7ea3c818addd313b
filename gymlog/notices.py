"""What gymlog says to a person: single lines on stderr, each subject once per process.

The host's logging is not used: its handlers may be the very thing that fails, or trace.
"""

import os

__all__ = ["notice", "reset"]

_said: set[str] = set()


def notice(subject: str, text: str) -> None:
    """Write `gymlog: text` to fd 2 unless `subject` was written about before; never raises."""
    if subject in _said:
        return
    _said.add(subject)
    line = " ".join(f"gymlog: {text}".split())
    try:
        os.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        return  # no stderr: nobody to tell


def reset() -> None:
    """Forget what was said (tests)."""
    _said.clear()
