"""What a span says about an exception: enough to find it, without leaking what it quotes.

Messages of a gym's exceptions quote model output and URLs, and each hop repeats them. So a message
is cut and scrubbed, frames have no source text, and an exception is recorded once per trace.
"""

import re
import traceback
from typing import Final

from gymlog.redaction import scrub_text
from gymlog.semconv import EXCEPTION_MESSAGE, EXCEPTION_STACKTRACE, EXCEPTION_TYPE
from gymlog.values import cut

__all__ = ["exception_attributes", "first_sight"]

MAX_MESSAGE_CHARACTERS: Final = 512
MAX_FRAMES: Final = 16
MAX_CAUSES: Final = 3

_MARK: Final = "__gymlog_trace_id__"
_LAST_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://\S*\Z")


def exception_attributes(exception: BaseException) -> dict[str, str]:
    """Return type, message and stack (innermost frames last) of an exception; never raises."""
    attributes = {EXCEPTION_TYPE: _type_name(exception), EXCEPTION_MESSAGE: _message(exception)}
    frames = traceback.StackSummary.extract(
        traceback.walk_tb(exception.__traceback__), limit=-MAX_FRAMES, lookup_lines=False
    )
    lines = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
    lines += [f"caused by {_type_name(cause)}: {_message(cause)}" for cause in _causes(exception)]
    if lines:
        attributes[EXCEPTION_STACKTRACE] = "\n".join(lines)
    return attributes


def first_sight(exception: BaseException, trace_id: str) -> bool:
    """Say whether no span of this trace has recorded the exception yet, and remember it."""
    try:
        if getattr(exception, _MARK, None) == trace_id:
            return False
        setattr(exception, _MARK, trace_id)
    except Exception:  # noqa: BLE001 - an exception's own methods may raise anything
        return True  # one that takes no mark is recorded at every level
    return True


def _causes(exception: BaseException) -> list[BaseException]:
    causes: list[BaseException] = []
    cause: BaseException | None = exception
    while cause is not None and len(causes) < MAX_CAUSES:
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
        if cause is None or any(cause is known for known in (exception, *causes)):
            break  # compared by identity: an exception's __eq__ may raise
        causes.append(cause)
    return causes


def _type_name(exception: BaseException) -> str:
    kind = type(exception)
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def _message(exception: BaseException) -> str:
    try:
        text = str(exception)
    except Exception:  # noqa: BLE001 - an exception's own __str__ may raise anything
        return f"<{type(exception).__name__} whose text cannot be made>"
    if len(text) > 4 * MAX_MESSAGE_CHARACTERS:
        # A URL that is cut before its `@` would show its credentials.
        text = _LAST_URL.sub("…", text[: 4 * MAX_MESSAGE_CHARACTERS])
    return cut(scrub_text(text), MAX_MESSAGE_CHARACTERS)
