"""Lines of ours that wait until they are read many at a time, by someone who vouches for them.

One batch is being read while the next one is set aside; memory holds both.
"""

from collections.abc import Callable, Iterable, Iterator

from reconstruct.intake.ledger import FileLedger
from reconstruct.intake.ours import Line, OurLines

__all__ = ["SetAside", "Vouch"]

Vouch = Callable[[OurLines[FileLedger]], Callable[[], list[int]]]
"""Has the lines of a batch read; returns how to ask for `nth` of those that are not vouched for,
which waits until they are known."""


class SetAside:
    """What was set aside for `vouch`; without one nothing may be."""

    __slots__ = ("_asked", "_lines", "_vouch")

    def __init__(self, vouch: Vouch | None) -> None:
        self._vouch = vouch
        self._lines: OurLines[FileLedger] = OurLines()
        self._asked: tuple[OurLines[FileLedger], Callable[[], list[int]]] | None = None

    @property
    def is_open(self) -> bool:
        """Say whether anything may be set aside."""
        return self._vouch is not None

    @property
    def size(self) -> int:
        """Bytes that wait."""
        return self._lines.size

    def take(
        self, block: bytes, ledger: FileLedger, *, number: int, offset: int
    ) -> tuple[int, Iterable[Line]]:
        """Set aside what is ours of a block, see `OurLines.take`."""
        return self._lines.take(block, ledger, ledger.file, number=number, offset=offset)

    def ask(self) -> None:
        """Have what waits read; what is left of the batch before must have been taken."""
        if self._vouch is not None and self._lines.size:
            self._asked = self._lines, self._vouch(self._lines)
        self._lines = OurLines()

    def left(self) -> Iterator[tuple[FileLedger, Line]]:
        """Wait until the latest batch is read; yield whose each line is that was not vouched for,
        and the line."""
        if self._asked is not None:
            (lines, nths), self._asked = self._asked, None
            yield from lines.lines(nths())
