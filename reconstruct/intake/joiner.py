"""Records printed over several lines (`indent=4`), put together per source.

Such a record begins with a line that is `{` alone and ends with one that is `}` alone; between
them every line is indented. A space may stand before all of them. Lines of other sources, and
ordinary text, may stand between.
"""

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reconstruct.intake.ledger import FileLedger
from reconstruct.intake.wrappers.layer import Origin

__all__ = ["BEGINS", "MAX_BYTES", "MAX_LINES", "Joiner", "Piece"]

_INSIDE: Final = re.compile(rb"\s+(?:\"|[}\]]|[-0-9]|true|false|null|NaN|-?Infinity|[{\[])")
BEGINS: Final = (b"{", b" {")
"""Lines with which a record begins."""
MAX_LINES: Final = 20_000
MAX_BYTES: Final = 64 << 20


class Piece(NamedTuple):
    """One physical line: number from 1, offset in bytes, its bytes, and where it is counted.

    `body` is what is left of it without wrappers and line end, indentation kept.
    """

    number: int
    offset: int
    line: bytes
    body: bytes
    ledger: FileLedger
    origin: Origin
    lost_lines: int = 0
    """So many lines like this one were left out by whoever wrapped it."""
    note: str | None = None
    """What was put right in the body."""
    length: int = 0
    """Bytes of a line that was too long to keep; 0 for any other."""


@dataclass(slots=True)
class _Open:
    pieces: list[Piece] = field(default_factory=list)
    size: int = 0
    space: bytes = b""
    """What stands before every line."""

    def goes_on(self, body: bytes) -> bool:
        """Say whether a line belongs to the record."""
        return body.startswith(self.space) and (
            self.is_end(body) or _INSIDE.match(body, len(self.space)) is not None
        )

    def is_end(self, body: bytes) -> bool:
        """Say whether a line is the record's last one."""
        return body == self.space + b"}"


class Joiner:
    """Holds the records that have begun, one per source (all that stood before the line).

    `MAX_LINES` and `MAX_BYTES` bound each of them, `MAX_BYTES` also all of them together.
    """

    __slots__ = ("_open", "_size")

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Open] = {}
        self._size = 0

    def take(self, piece: Piece) -> tuple[bool, list[list[Piece]]]:
        """Offer a line; return whether it was taken, and the groups of lines that are now done.

        A group whose last line is `}` is a whole record to try; any other was given up.
        """
        body, source = piece.body, piece.origin.sources
        if body in BEGINS:
            done = [self._end(source)] if source in self._open else []
            self._open[source] = _Open([piece], len(piece.line), body[:-1])
            self._size += len(piece.line)
            return True, done
        pending = self._open.get(source)
        if pending is None or not pending.goes_on(body):
            return False, []
        pending.pieces.append(piece)
        pending.size += len(piece.line)
        self._size += len(piece.line)
        done = []
        if pending.is_end(body) or len(pending.pieces) >= MAX_LINES or pending.size >= MAX_BYTES:
            done.append(self._end(source))
        while self._size >= MAX_BYTES:
            done.append(self._end(next(iter(self._open))))
        return True, done

    def rest(self) -> list[list[Piece]]:
        """Give up every record that is still open."""
        return [self._end(source) for source in list(self._open)]

    def _end(self, source: tuple[str, ...]) -> list[Piece]:
        pending = self._open.pop(source)
        self._size -= pending.size
        return pending.pieces

    @property
    def is_idle(self) -> bool:
        """No record has begun."""
        return not self._open
