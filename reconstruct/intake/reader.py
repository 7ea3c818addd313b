"""The careful path: each line of a file to its records and its class.

About 18 µs a span line on one core, three times what orjson alone takes. Memory holds one batch
and the longest line. Nothing in a file raises.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from reconstruct.intake import json_text
from reconstruct.intake.files import Lines, LogFile
from reconstruct.intake.formats import InvalidRecordError, Record, recognise
from reconstruct.intake.joiner import Joiner, Piece
from reconstruct.intake.json_text import NotJson, Rounded
from reconstruct.intake.ledger import FileLedger, LineClass
from reconstruct.intake.tables import Batches
from reconstruct.intake.unwrap import take_apart, without_prefixes

__all__ = ["read"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON_FIRST = tuple(bytes([character]) for character in b'{["tfn-0123456789')
_LOOK_EVERY = 1024  # lines between two looks at the batches and the progress


def read(
    files: Sequence[LogFile], *, progress: Callable[[int, int], None] | None = None
) -> Iterator[tuple[str, pa.Table]]:
    """Read `files` and yield batches: the name of a table of `intake.tables`, and its rows.

    `progress` is told the bytes done and the bytes there are, by the files' sizes.
    """
    batches = Batches()
    total = sum(file.size for file in files)
    done = 0
    for file in files:
        reader = _FileReader(file, batches)
        for offset in reader.read():
            yield from batches.full()
            if progress is not None:
                progress(done + min(offset, file.size), total)
        done += file.size
    yield from batches.rest()
    if progress is not None:
        progress(total, total)


class _FileReader:
    """Reads one file; rows go to the batches, every line to the ledger."""

    def __init__(self, file: LogFile, batches: Batches) -> None:
        self._file = file
        self._batches = batches
        self._ledger = FileLedger(file.name, batches)
        self._joiner = Joiner()

    def read(self) -> Iterator[int]:
        """Read to the end; yield now and then how many bytes that was so far."""
        lines = Lines(self._file)
        number = offset = 0
        for raw in lines:
            number += 1
            self._line(raw, number, offset)
            offset += len(raw)
            if number % _LOOK_EVERY == 0:
                yield offset
        for pieces in self._joiner.rest():
            self._give_up(pieces)
        self._ledger.close(size=offset, lines=number, problem=lines.problem)
        yield offset

    def _line(self, raw: bytes, number: int, offset: int) -> None:
        body = raw.rstrip()
        source: str | None = None
        if not body.startswith(b"{"):
            if not body:
                self._ledger.reject(LineClass.BLANK, number, offset, "nothing on it", line=body)
                return
            body, source = without_prefixes(body.removeprefix(_BYTE_ORDER_MARK))
        piece = Piece(number, offset, raw, body)
        if body.startswith(b'{"') and body.endswith(b"}"):
            try:
                value = json_text.decode(body)
            except NotJson:
                pass
            else:
                self._value(value, piece.body, piece, source)
                return
        if body == b"{" or not self._joiner.is_idle:
            taken, groups = self._joiner.take(source, piece)
            for group in groups:
                self._join(group, source)
            if taken:
                return
        self._single(piece, source)

    def _single(self, piece: Piece, source: str | None) -> None:
        """Handle a line that belongs to no other and is not simply an object."""
        if piece.body.lstrip()[:1] in _JSON_FIRST:
            try:
                value = json_text.decode(piece.body)
            except NotJson:
                pass
            else:
                self._value(value, piece.body, piece, source)
                return
        self._damaged(piece, source)

    def _value(self, value: json_text.Json, whole: bytes, piece: Piece, source: str | None) -> None:
        """Handle one JSON value, decoded from `whole`, that begins on the line of `piece`."""
        if isinstance(value, dict):
            try:
                try:
                    record = recognise(value, source)
                except Rounded:
                    record = recognise(json_text.decode_exactly(whole), source)
            except (InvalidRecordError, NotJson) as error:
                self._reject(LineClass.INVALID, piece, str(error))
                return
            if record is not None:
                self._keep(record, piece, recovered=False)
                self._ledger.record(record.line_class)
                return
        self._reject(LineClass.JSON, piece, "JSON, but no record of a known format")

    def _damaged(self, piece: Piece, source: str | None) -> None:
        """Handle a line that holds text, several objects, or pieces of them."""
        pieces = take_apart(piece.body)
        found = 0
        problem: str | None = None
        for value in pieces.objects:
            try:
                record = recognise(value, source)
            except (InvalidRecordError, NotJson) as error:
                problem = problem or str(error)
                continue
            if record is not None:
                self._keep(record, piece, recovered=True)
                found += 1
        if found:
            reason = f"{found} record{'s' if found > 1 else ''} found among other things"
            if pieces.is_alone and not pieces.is_utf8:
                reason = "bytes that are not UTF-8 were read as U+FFFD"
            elif pieces.has_damage or problem:
                reason += "; the rest is a piece of a record that is not whole"
            self._reject(LineClass.RECOVERED, piece, reason)
        elif problem is not None:
            self._reject(LineClass.INVALID, piece, problem)
        elif pieces.has_damage:
            self._reject(LineClass.TORN, piece, f"a record that is not whole: {pieces.reason}")
        elif not pieces.is_utf8:
            self._reject(LineClass.BAD_ENCODING, piece, "no record, and not UTF-8")
        else:
            self._reject(LineClass.TEXT, piece, "no record in it")

    def _join(self, group: list[Piece], source: str | None) -> None:
        """Make one record of the lines of `group`, or handle each by itself."""
        if group[-1].body != b"}":
            self._give_up(group)
            return
        try:
            whole = b"\n".join(piece.body for piece in group)
            value = json_text.decode(whole)
        except NotJson:
            self._give_up(group)
            return
        self._value(value, whole, group[0], source)
        self._ledger.record(LineClass.JOINED, len(group) - 1)

    def _give_up(self, group: list[Piece]) -> None:
        for piece in group:
            self._single(piece, None)

    def _keep(self, record: Record, piece: Piece, *, recovered: bool) -> None:
        place = (self._file.name, piece.number, piece.offset, recovered)
        for table, row in record.rows:
            self._batches.add(table, place + row)

    def _reject(self, line_class: LineClass, piece: Piece, reason: str) -> None:
        self._ledger.reject(line_class, piece.number, piece.offset, reason, line=piece.line)
