"""A line taken apart: the JSON objects in it, and what lies between them.

Progress bars end in a carriage return, and two writers on one pipe cut each other's records:
whatever is whole in such a line is found, whatever is not is named.
"""

import re
from dataclasses import dataclass
from typing import Final

from reconstruct.intake.json_text import Json, NotJson, decode_prefix

__all__ = ["JSON_BEGINS", "MAX_OBJECTS", "Pieces", "is_plain_text", "take_apart"]

_NAME_BEFORE: Final = re.compile(r"\(([^()\r\n]{1,200})\) \Z")
_NAME_CHARACTERS: Final = 203
_OBJECT_START: Final = re.compile(r"\{\s*\"")
_MARK: Final = re.compile(
    r"""["'](?:record_type|trace_id|span_id|parent_span_id|start_time_unix_nano|"""
    r"""end_time_unix_nano|resource_metrics|service\.name|service\.instance\.id|"""
    r"""traceId|spanId|startTimeUnixNano|resourceSpans|resourceLogs|resourceMetrics)\\*["']\s*:"""
    r"""|["'](?:resource|attributes|context|status|scope)["']\s*:\s*\Z"""
)
"""A quoted key that only records have, or one of theirs just before a whole object: text with
one is a piece of a record, not prose. Backslashes: the record was text in another object."""
_MAY_BE_MORE: Final = re.compile(rb"\{|[\"'][\s\x1c-\x1f]*:|trace_id=")
"""What text has in it of which `take_apart`, or a format of text, might make something."""
JSON_BEGINS: Final = (
    *(b"true", b"false", b"null", b"NaN", b"Infinity"),
    *(bytes([byte]) for byte in b'{["-0123456789'),
)
"""What every JSON value begins with."""
_NOT_TEXT_BEGINS: Final = (b" ", b"\t", b"\r", *JSON_BEGINS)
MAX_OBJECTS: Final = 10_000


def is_plain_text(line: bytes) -> bool:
    """Say whether a line is surely text, no record, no JSON value and no piece of either.

    Most text of a log is; it need not be taken apart.
    """
    return (
        line.isascii()
        and not line.startswith(_NOT_TEXT_BEGINS)
        and _MAY_BE_MORE.search(line) is None
    )


@dataclass(frozen=True, slots=True)
class Pieces:
    """What a line that is not simply one JSON value is made of."""

    objects: tuple[dict[str, Json], ...]
    names: tuple[str | None, ...]
    """Of each object the `(name) ` right before it, where several writers' lines met."""
    is_alone: bool
    """There is one object and nothing else."""
    has_damage: bool
    """Outside the objects lie pieces of records."""
    is_utf8: bool
    reason: str
    """Why there is no more to be had."""


def take_apart(line: bytes) -> Pieces:
    """Find every whole JSON object in `line`, from left to right, the outermost of each."""
    try:
        text = line.decode()
        is_utf8 = True
    except UnicodeDecodeError:
        text = line.decode("utf-8", "replace")
        is_utf8 = False
    text = text.removeprefix("\ufeff")
    objects: list[dict[str, Json]] = []
    between: list[str] = []
    reason = "no JSON object in it"
    tried = begin = position = 0
    while (match := _OBJECT_START.search(text, position)) is not None:
        tried += 1
        if tried > MAX_OBJECTS:
            reason = f"more than {MAX_OBJECTS} places where an object might begin"
            break
        try:
            value, end = decode_prefix(text, match.start())
        except NotJson as error:
            reason = str(error)
            position = match.start() + 1
            continue
        between.append(text[begin : match.start()])
        begin = position = end
        objects.append(value)
    between.append(text[begin:])
    return Pieces(
        objects=tuple(objects),
        names=tuple(_name_before(text) for text in between[:-1]),
        is_alone=len(objects) == 1 and not any(piece.strip() for piece in between),
        has_damage=any(_MARK.search(piece) for piece in between),
        is_utf8=is_utf8,
        reason=reason,
    )


def _name_before(text: str) -> str | None:
    match = _NAME_BEFORE.search(text[-_NAME_CHARACTERS:])
    return None if match is None else match[1]
