"""Pieces of lines put together per source, within bounds."""

import pytest

from reconstruct.intake import continuation
from reconstruct.intake.continuation import Continuations
from reconstruct.intake.joiner import Piece
from reconstruct.intake.ledger import FileLedger
from reconstruct.intake.tables import Batches
from reconstruct.intake.wrappers.layer import Origin


class Log:
    """Pieces of one file, numbered as they come, and what was counted."""

    def __init__(self) -> None:
        self._batches = Batches()
        self._ledger = FileLedger("a.log", self._batches)
        self._number = 0

    def piece(self, source: str, body: bytes, **more: object) -> Piece:
        self._number += 1
        origin = Origin((source,))
        piece = Piece(self._number, 0, body, body, self._ledger, origin)
        return piece._replace(**more)

    @property
    def counted(self) -> dict[str, int]:
        self._ledger.hand_over()
        rows = [row for name, batch in self._batches.rest() for row in batch.to_pylist()]
        return {row["class"]: row["lines"] for row in rows}


@pytest.fixture
def log() -> Log:
    return Log()


def test_the_whole_takes_the_place_of_its_first_piece(log):
    """Further pieces are counted as joined, what they say is kept."""
    lines = Continuations()
    assert lines.take(log.piece("a", b"1"), continues=True) == (None, [])
    assert lines.take(log.piece("b", b"x"), continues=False)[0].body == b"x"
    assert lines.take(log.piece("a", b"2", lost_lines=2), continues=True) == (None, [])
    whole, given_up = lines.take(log.piece("a", b"3", lost_lines=3), continues=False)
    assert (whole.number, whole.body, whole.lost_lines) == (1, b"123", 5)
    assert given_up == []
    assert lines.rest() == []
    assert log.counted == {"joined": 2}


def test_a_line_that_grows_too_long_is_only_counted(log):
    """Its length is known at the end; no bytes are kept, and others go on."""
    lines = Continuations(max_bytes=10)
    for _ in range(5):
        assert lines.take(log.piece("a", b"xxxx"), continues=True) == (None, [])
    whole, _ = lines.take(log.piece("a", b"x"), continues=False)
    assert (whole.number, whole.body, whole.length) == (1, b"", 21)
    assert lines.take(log.piece("a", b"y"), continues=False)[0].body == b"y"
    assert log.counted == {"joined": 5}


def test_too_much_in_all_gives_up_what_began_first(log):
    """The rest stays whole."""
    lines = Continuations(max_bytes=10)
    for source in "abc":
        none, given_up = lines.take(log.piece(source, b"xxxx"), continues=True)
        assert none is None
    assert [piece.body for piece in given_up] == [b"xxxx"]
    assert [piece.number for piece in given_up] == [1]
    assert lines.take(log.piece("b", b"y"), continues=False)[0].body == b"xxxxy"
    assert [piece.body for piece in lines.rest()] == [b"xxxx"]


def test_too_many_sources_give_up_what_began_first(log, monkeypatch):
    """However short their lines are."""
    monkeypatch.setattr(continuation, "MAX_SOURCES", 2)
    lines = Continuations()
    given_up = [
        piece.origin.sources
        for source in "abcd"
        for piece in lines.take(log.piece(source, b""), continues=True)[1]
    ]
    assert given_up == [("a",), ("b",)]
