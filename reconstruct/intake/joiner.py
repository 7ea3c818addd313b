"""Records printed over several lines (`indent=4`), put together per source within a file.

Such a record begins with a line that is `{` alone and ends with one that is `}` alone; between
them every line is indented. Lines of other sources, and ordinary text, may stand between.
"""

import re
from dataclasses import dataclass, field
from typing import Final

__all__ = ["MAX_BYTES", "MAX_LINES", "Joiner", "Piece"]

_INSIDE: Final = re.compile(rb"\s+(?:\"|[}\]]|[-0-9]|true|false|null|NaN|-?Infinity|[{\[])")
MAX_LINES: Final = 20_000
MAX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """One physical line: number from 1, offset in bytes, and its bytes.

    `body` is what is left of them without prefix and line end, indentation kept.
    """

    number: int
    offset: int
    line: bytes
    body: bytes


@dataclass(slots=True)
class _Open:
    pieces: list[Piece] = field(default_factory=list)
    size: int = 0


class Joiner:
    """Holds the records that have begun, one per source (the name before the line)."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str | None, _Open] = {}

    def take(self, source: str | None, piece: Piece) -> tuple[bool, list[list[Piece]]]:
        """Offer a line; return whether it was taken, and the groups of lines that are now done.

        A group whose last line is `}` is a whole record to try; any other was given up.
        """
        body = piece.body
        if body == b"{":
            given_up = self._open.pop(source, None)
            self._open[source] = _Open([piece], len(body))
            return True, [] if given_up is None else [given_up.pieces]
        pending = self._open.get(source)
        if pending is None or not (body == b"}" or _INSIDE.match(body)):
            return False, []
        pending.pieces.append(piece)
        pending.size += len(body)
        if body == b"}" or len(pending.pieces) >= MAX_LINES or pending.size >= MAX_BYTES:
            del self._open[source]
            return True, [pending.pieces]
        return True, []

    def rest(self) -> list[list[Piece]]:
        """Give up every record that is still open."""
        groups = [pending.pieces for pending in self._open.values()]
        self._open.clear()
        return groups

    @property
    def is_idle(self) -> bool:
        """No record has begun."""
        return not self._open
