"""Lines that a wrapper has cut into pieces, put together per source.

Pieces of several sources interleave; a rotation may lie between two of them. What is held is
bounded: a line that grows too long is counted and no longer kept, and when there is too much in
all, the line that began first is given up.
"""

from typing import Final

from reconstruct.intake.files import MAX_LINE_BYTES
from reconstruct.intake.joiner import Piece
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.wrappers.timestamps import STAMP_IN_A_LINE, without_stamp

__all__ = ["MAX_SOURCES", "Continuations"]

MAX_SOURCES: Final = 4096
_CUT_CHARACTER: Final = "\ufffd".encode()
_WAS_CUT: Final = "a character that docker cut in two was read as U+FFFD"


class _Begun:
    """A line of which some pieces are there."""

    __slots__ = ("head", "lost_lines", "note", "parts", "size")

    def __init__(self, head: Piece) -> None:
        self.head = head
        self.parts: list[bytes] = [head.body]
        self.size = len(head.body)
        self.lost_lines = head.lost_lines
        self.note = head.note

    def add(self, piece: Piece) -> None:
        part = without_stamp(piece.body)
        if part is not piece.body:
            self.note = STAMP_IN_A_LINE
        elif part.startswith(_CUT_CHARACTER) and self.ends_in_a_cut():
            self.note = _WAS_CUT
        self.size += len(part)
        self.lost_lines += piece.lost_lines
        if self.parts:
            self.parts.append(part)

    def ends_in_a_cut(self) -> bool:
        return bool(self.parts) and self.parts[-1].endswith(_CUT_CHARACTER)

    def whole(self) -> Piece:
        return self.head._replace(
            body=b"".join(self.parts),
            lost_lines=self.lost_lines,
            note=self.note,
            length=0 if self.parts else self.size,
        )


class Continuations:
    """Holds the lines that have begun, one per source. `max_bytes` bounds one and all of them."""

    __slots__ = ("_begun", "_held", "_max_bytes")

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._begun: dict[tuple[str, ...], _Begun] = {}
        self._held = 0
        self._max_bytes = max_bytes

    def take(self, piece: Piece, *, continues: bool) -> tuple[Piece | None, list[Piece]]:
        """Offer what a wrapper held; return the line that is whole now, and those given up.

        A further piece is counted as joined; the whole takes the place of its first piece.
        """
        source = piece.origin.sources
        begun = self._begun.get(source)
        if begun is None:
            if not continues:
                return piece, []
            begun = self._begun[source] = _Begun(piece)
            self._held += begun.size
        else:
            size = begun.size
            begun.add(piece)
            piece.ledger.record(LineClass.JOINED)
            self._held += begun.size - size if begun.parts else 0
        if not continues:
            return self._end(source), []
        if begun.parts and begun.size > self._max_bytes:
            self._held -= begun.size
            begun.parts = []
        given_up: list[Piece] = []
        while self._held > self._max_bytes or len(self._begun) > MAX_SOURCES:
            given_up.append(self._end(next(iter(self._begun))))
        return None, given_up

    def rest(self) -> list[Piece]:
        """Give up every line that has begun."""
        return [self._end(source) for source in list(self._begun)]

    @property
    def is_idle(self) -> bool:
        """No line has begun."""
        return not self._begun

    def _end(self, source: tuple[str, ...]) -> Piece:
        begun = self._begun.pop(source)
        if begun.parts:
            self._held -= begun.size
        return begun.whole()
