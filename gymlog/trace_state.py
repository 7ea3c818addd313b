"""W3C `tracestate`: what of a received list is handed on.

Other tracing systems keep their own facts there; gymlog adds none. A list is one text in one
order, checked against the grammar of Trace Context level 2: a member that breaks it, or more than
32 members, and the list is dropped while the trace goes on. About 1 µs per member.
"""

import re
from collections.abc import Iterable
from typing import Final

from opentelemetry import trace

__all__ = ["MAX_LENGTH", "OtelTraceState", "combine"]

MAX_LENGTH: Final = 2_048
"""Characters handed on (W3C asks for at least 512): every line of the trace carries them, and
half of PIPE_BUF leaves room for the rest of the line."""

_MAX_MEMBERS: Final = 32
_LONG_MEMBER: Final = 128
_OWS: Final = " \t"

_member = re.compile(
    r"([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}"
).fullmatch


def combine(headers: Iterable[str]) -> str:
    """Return the list that several headers make up, or "" when it breaks a rule.

    Of equal keys the first stays, which is the newest. What is longer than `MAX_LENGTH` loses
    whole members: those over 128 characters first, each time from the end.
    """
    members: dict[str, str] = {}
    for header in headers:
        for part in header.split(","):
            member = part.strip(_OWS)
            if not member:
                continue
            match = _member(member)
            if match is None:
                return ""
            members.setdefault(match[1], member)
            if len(members) > _MAX_MEMBERS:
                return ""
    combined = ",".join(members.values())
    if len(combined) <= MAX_LENGTH:
        return combined
    return ",".join(_shortened(list(members.values()), len(combined)))


def _shortened(members: list[str], length: int) -> list[str]:
    for longer_than in (_LONG_MEMBER, 0):
        for index in reversed(range(len(members))):
            if length <= MAX_LENGTH:
                return members
            if len(members[index]) > longer_than:
                length -= len(members[index]) + 1
                del members[index]
    return members


class OtelTraceState(trace.TraceState):
    """A combined list as OpenTelemetry's type.

    Its own parser knows level 1 only and would drop keys such as `1a` or `a@`.
    """

    def __init__(self, combined: str) -> None:
        super().__init__()
        self._dict = dict(member.split("=", 1) for member in combined.split(",") if member)
