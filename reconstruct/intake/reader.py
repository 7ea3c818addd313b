"""The careful path: each line of a file to its records and its class.

About 18 µs a span line on one core, three times what orjson alone takes. Memory holds the
batch that is filled and the one that is read, the lines nearby and what has begun and not ended,
all bounded. Nothing in a file raises.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa

from reconstruct.intake import json_text, tables
from reconstruct.intake.continuation import Continuations
from reconstruct.intake.documents import Documents
from reconstruct.intake.files import Lines, LogFile, OddLine, lines_of
from reconstruct.intake.formats import (
    InvalidRecordError,
    Record,
    recognise,
    recognise_text,
)
from reconstruct.intake.joiner import BEGINS, Joiner, Piece
from reconstruct.intake.json_text import Json, NotJson, Rounded
from reconstruct.intake.ledger import FileLedger, LineClass
from reconstruct.intake.ours import BATCH_BYTES, TYPES, Line, prefix
from reconstruct.intake.owners import Owners
from reconstruct.intake.set_aside import SetAside, Vouch
from reconstruct.intake.tables import Batches
from reconstruct.intake.unwrap import JSON_BEGINS, Pieces, is_plain_text, take_apart
from reconstruct.intake.verdict import NO_RECORD, verdict
from reconstruct.intake.wrappers import checked_name
from reconstruct.intake.wrappers.containers import origin_of_file
from reconstruct.intake.wrappers.layer import Origin
from reconstruct.intake.wrappers.unwrapper import Found, Unwrapper, without_escapes

__all__ = ["Reader", "read"]

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OURS: Final = b'{"record_type":'
_SET_ASIDE: Final = tuple(prefix(each).encode() for each in TYPES)
"""No wrapper begins so: these lines say nothing of those nearby, set aside or not."""
_NEARBY_LINES: Final = 64
_NEARBY_BYTES: Final = 1 << 20
_NO_HINTS: Final = Origin()


def read(
    files: Sequence[LogFile],
    *,
    progress: Callable[[int, int], None] | None = None,
    wrapper: str | None = None,
    vouch: Vouch | None = None,
    batch_bytes: int = BATCH_BYTES,
    owners: Owners | None = None,
) -> Iterator[tuple[str, pa.Table]]:
    """Read `files` and yield batches: the name of a table of `intake.tables`, and its rows.

    The files of a rotation set follow each other; what begins in one may end in the next. Of a file
    that is read from `start_offset` on, only what was read is counted. `progress` is told the bytes
    done and the bytes there are, by the files' sizes. `wrapper` names the only wrapper to look for
    around lines; raises `UsageError` when there is none of that name. `vouch` has lines of ours
    read many at a time, those that can be vouched for: `batch_bytes` of them, or one block more,
    while the next ones are looked for. `owners` are numbered on.
    """
    reader = Reader(Batches(owners), wrapper, vouch)
    total = sum(file.size for file in files)
    done = 0
    following_sets = [*(file.rotation_set for file in files[1:]), None]
    for file, following in zip(files, following_sets, strict=False):  # no file: nothing follows
        goes_on = following is not None and following == file.rotation_set
        for offset in reader.read(file, goes_on=goes_on):
            if reader.set_aside.size >= batch_bytes:
                reader.end_batch()
            yield from reader.batches.full()
            if progress is not None:
                progress(done + min(offset, file.size), total)
        done += file.size
    reader.end_batch()
    reader.take_left()
    yield from reader.batches.rest()
    if progress is not None:
        progress(total, total)


class Reader:
    """Reads files one after the other; rows go to the batches, every line to its file's ledger.

    `number` lines of `offset` bytes have been read of the latest file. Raises `UsageError` when
    there is no wrapper of that name.
    """

    def __init__(
        self, batches: Batches, wrapper: str | None = None, vouch: Vouch | None = None
    ) -> None:
        self.batches = batches
        self.set_aside = SetAside(vouch)
        self.number = 0
        self.offset = 0
        self._wrapper = wrapper = None if wrapper is None else checked_name(wrapper)
        self._unwrapper = Unwrapper(wrapper)
        self._joiner = Joiner()
        self._continuations = Continuations()
        self._ledgers: list[FileLedger] = []
        self._ledger = FileLedger("", batches)
        self._origin = Origin()
        self._nearby: list[Line] = []
        self._nearby_bytes = 0

    def read(self, file: LogFile, *, goes_on: bool) -> Iterator[int]:
        """Read to the end; yield now and then how many bytes that was so far.

        `goes_on`: the next file is of the same rotation set, or is this one when it has grown; what
        has begun may end there.
        """
        self._begin(file)
        begins_within = not self._is_idle
        lines = Lines(file)
        blocks: Iterable[bytes]
        problem: str | None = None
        can_go_on = True
        if self.offset:
            blocks = lines.blocks()
        else:
            documents = Documents(lines, self._ledger, self.batches)
            yield from documents.read()
            self.number, self.offset = documents.number, documents.offset
            blocks, problem = documents.rest(), documents.problem
            can_go_on = not (self.offset or documents.may_go_on)
        for block in blocks:
            for _ in self._take(self._set_aside(block)):
                yield self.offset
            can_go_on = can_go_on and block.endswith(b"\n")
            yield self.offset
        self._take_nearby()
        ends_within = not self._is_idle
        if not goes_on:
            self.give_up()
        self._ledger.close(
            size=self.offset - file.start_offset,
            lines=self.number - file.start_line,
            problem=lines.problem or problem,
            pending_bytes=lines.pending,
            can_go_on=can_go_on
            and not ends_within
            and lines.compression is None
            and lines.problem is None,
            begins_within=begins_within,
            ends_within=ends_within,
        )
        yield self.offset

    @property
    def _is_idle(self) -> bool:
        """Nothing has begun that may go on."""
        return self._joiner.is_idle and self._continuations.is_idle

    def read_on(self, file: LogFile, lines: Iterable[bytes]) -> None:
        """Read lines of an input that someone else reads, such as a pipe, from its `start_*` on."""
        self._begin(file)
        for _ in self._take(map(self._placed, lines)):
            pass
        self._take_nearby()
        self._ledger.close(
            size=self.offset - file.start_offset,
            lines=self.number - file.start_line,
            problem=None,
        )

    def _begin(self, file: LogFile) -> None:
        if not file.start_offset or self._ledger.file != file.name:
            self._unwrapper = Unwrapper(self._wrapper, before=file.start_line)
            self._ledger = FileLedger(file.name, self.batches)
            self._ledgers.append(self._ledger)
            self._origin = origin_of_file(file.name)
        self.number, self.offset = file.start_line, file.start_offset

    def _set_aside(self, block: bytes) -> Iterable[Line]:
        """Set aside what is ours of a block; return its other lines."""
        is_plain = type(block) is bytes and block.endswith(b"\n")
        origin = self._origin
        has_hints = (origin.server, origin.host, origin.pid) != (None, None, None)
        if not self.set_aside.is_open or not is_plain or has_hints or self._wrapper:
            return map(self._placed, lines_of(block))
        lines, others = self.set_aside.take(
            block, self._ledger, number=self.number + 1, offset=self.offset
        )
        self.number += lines
        self.offset += len(block)
        return others

    def _placed(self, line: bytes) -> Line:
        """Number the next line."""
        placed = Line(self.number + 1, self.offset, line)
        self.number += 1
        self.offset += line.length if type(line) is OddLine else len(line)
        return placed

    def end_batch(self) -> None:
        """Have what was set aside read."""
        self.take_left()
        self.set_aside.ask()

    def take_left(self) -> None:
        """Read what was not vouched for of the latest batch: it goes the way of other lines."""
        ledger, origin = self._ledger, self._origin
        self._origin = _NO_HINTS
        late: set[FileLedger] = set()
        for owner, line in self.set_aside.left():
            self._ledger = owner
            self._line(line)
            late.add(owner)
        for each in late:  # their files may have been read to the end
            each.hand_over()
        self._ledger, self._origin = ledger, origin

    def _take(self, lines: Iterable[Line]) -> Iterator[None]:
        """Read lines, some at a time: what they are in is seen from those nearby, however few of
        them arrive at once. Yields now and then."""
        for count, line in enumerate(lines):
            if count % _NEARBY_LINES == 0:
                yield
            if line.data.startswith(_SET_ASIDE):
                self._line(line)
                continue
            self._nearby.append(line)
            self._nearby_bytes += len(line.data)
            if len(self._nearby) >= _NEARBY_LINES or self._nearby_bytes >= _NEARBY_BYTES:
                self._take_nearby()

    def _take_nearby(self) -> None:
        nearby, self._nearby, self._nearby_bytes = self._nearby, [], 0
        self._unwrapper.look_at((line.number, line.data) for line in nearby)
        for line in nearby:
            number, offset, raw = line
            if self._is_bare_text(raw):
                self._ledger.reject(LineClass.TEXT, number, offset, NO_RECORD, line=raw)
            else:
                self._line(line)

    def _is_bare_text(self, raw: bytes) -> bool:
        """Say whether a line is text in no wrapper, and no part of anything: most text is."""
        return (
            type(raw) is bytes
            and b"\x1b" not in raw
            and is_plain_text(raw)
            and not raw.isspace()
            and self._is_idle
            and self._unwrapper.of_line(raw.removesuffix(b"\n"), 0) is None
        )

    def give_up(self) -> None:
        """Handle what has begun as it is: nothing follows that could go on with it."""
        while not self._is_idle:
            # in what was a piece of one wrapper there may be one of another
            for piece in self._continuations.rest():
                self._unwrap(piece)
            for pieces in self._joiner.rest():
                self._give_up(pieces)
        for ledger in self._ledgers:
            ledger.hand_over()
        self._ledgers.clear()

    def _line(self, line: Line) -> None:
        number, offset, raw = line
        if raw.startswith(_OURS) and type(raw) is bytes:
            whole = raw.rstrip()
            try:
                value = json_text.decode(whole)
            except NotJson:
                pass
            else:
                self._value(
                    value, whole, Piece(number, offset, raw, whole, self._ledger, self._origin)
                )
                return
        body = raw.removesuffix(b"\n").removeprefix(_BYTE_ORDER_MARK)
        piece = Piece(number, offset, raw, body, self._ledger, self._origin)
        if type(raw) is OddLine:
            if raw.is_cut:
                piece = piece._replace(length=raw.length)
            elif raw.nul_bytes:
                note = f"{raw.nul_bytes} NUL bytes stood before it: the file was truncated while "
                piece = piece._replace(note=note + "someone wrote to it")
        self._unwrap(piece)

    def _unwrap(self, piece: Piece) -> None:
        """Take layer after layer off, until a value or bare text is left, or a piece is held."""
        if piece.length:
            self._reject(LineClass.OVERSIZE, f"{piece.length:,} bytes: too long to be read", piece)
            return
        while True:
            depth = len(piece.origin.sources)
            found: Found | None = None
            whole = piece.body.rstrip() if piece.body.startswith(b'{"') else b""
            if whole.endswith(b"}"):
                try:
                    value = json_text.decode(whole)
                    found = self._of_object(value, whole, depth)
                except NotJson:
                    pass
                else:
                    if found is None:
                        self._value(value, whole, piece)
                        return
            if found is None and (body := without_escapes(piece.body)) != piece.body:
                piece = piece._replace(body=body)
                continue
            found = found or self._unwrapper.of_line(piece.body, depth)
            if found is None:
                self._text(piece)
                return
            inner = self._inside(piece, found)
            if inner is None:
                return
            piece = inner

    def _of_object(self, value: Json, whole: bytes, depth: int) -> Found | None:
        try:
            return self._unwrapper.of_object(value, depth)
        except Rounded:
            return self._unwrapper.of_object(json_text.decode_exactly(whole), depth)

    def _inside(self, piece: Piece, found: Found) -> Piece | None:
        """Return what a wrapper held, put together with the pieces before it; None when there is
        nothing yet, or nothing at all."""
        wrapper, layer = found
        piece = piece._replace(
            body=layer.payload,
            origin=piece.origin.within(wrapper, layer),
            lost_lines=piece.lost_lines + layer.lost_lines,
            note=layer.note or piece.note,
        )
        if layer.problem is not None:
            self._reject(LineClass.TORN, layer.problem, piece)
            return None
        if not layer.continues and self._continuations.is_idle:
            return piece
        whole, given_up = self._continuations.take(piece, continues=layer.continues)
        for each in given_up:
            self._unwrap(each)
        return whole

    def _text(self, piece: Piece) -> None:
        """Handle what is in no wrapper and not simply an object."""
        body = piece.body.rstrip()
        if body.endswith(b"\r{"):  # a progress bar, then the first line of a record
            body = b"{"
        if body != piece.body:
            piece = piece._replace(body=body)
        if not body:
            self._reject(LineClass.BLANK, "nothing on it", piece)
            return
        if body in BEGINS or not self._joiner.is_idle:
            taken, groups = self._joiner.take(piece)
            for group in groups:
                self._join(group)
            if taken:
                return
        self._single(piece)

    def _join(self, group: list[Piece]) -> None:
        """Make one record of the lines of `group`, or handle each by itself."""
        head = group[0]
        if group[-1].body.lstrip() != b"}":
            self._give_up(group)
            return
        whole = b"\n".join(piece.body for piece in group)
        try:
            value = json_text.decode(whole)
            found = self._of_object(value, whole, len(head.origin.sources))
        except NotJson:
            self._give_up(group)
            return
        for piece in group[1:]:
            piece.ledger.record(LineClass.JOINED)
        head = head._replace(lost_lines=sum(piece.lost_lines for piece in group))
        if found is None:
            self._value(value, whole, head)
        elif (inner := self._inside(head, found)) is not None:
            self._unwrap(inner)

    def _give_up(self, group: list[Piece]) -> None:
        for piece in group:
            self._single(piece)

    def _single(self, piece: Piece) -> None:
        """Handle a line that belongs to no other."""
        if is_plain_text(piece.body):
            self._reject(LineClass.TEXT, NO_RECORD, piece)
            return
        if piece.body.lstrip().startswith(JSON_BEGINS):
            try:
                value = json_text.decode(piece.body)
            except NotJson:
                pass
            else:
                self._value(value, piece.body, piece)
                return
        self._damaged(piece)

    def _value(self, value: Json, whole: bytes, piece: Piece) -> None:
        """Handle one JSON value, decoded from `whole`, that begins on the line of `piece`."""
        try:
            try:
                record = recognise(value, piece.origin.server)
            except Rounded:
                record = recognise(json_text.decode_exactly(whole), piece.origin.server)
        except (InvalidRecordError, NotJson) as error:
            self._reject(LineClass.INVALID, str(error), piece)
            return
        if record is None:
            self._reject(LineClass.JSON, "JSON, but no record of a known format", piece)
        else:
            self._accept(record, piece)

    def _accept(self, record: Record, piece: Piece) -> None:
        """Keep what the line of `piece` is, and nothing else is on it."""
        if record.problems or piece.note or piece.lost_lines:
            self._keep(record, piece, recovered=True)
            reason = record.what_is_missing if record.problems else "a record"
            self._reject(LineClass.RECOVERED, reason, piece)
        else:
            # Several records on a line: a repeated one makes no line a duplicate.
            self._keep(record, piece, recovered=record.record_count > 1)
            piece.ledger.record(record.line_class)
            self._count_wrapper(piece)

    def _damaged(self, piece: Piece) -> None:
        """Handle a line that holds text, several objects, or pieces of them."""
        pieces = take_apart(piece.body)
        found, problem = self._found_in(pieces, piece)
        if not (found or problem or pieces.has_damage):
            record = recognise_text(piece.body, piece.origin.server)
            if record is not None:
                self._accept(record, piece)
                return
        self._reject(*verdict(piece.body, pieces, found, problem), piece)

    def _found_in(self, pieces: Pieces, piece: Piece) -> tuple[int, str | None]:
        """Keep the records of a line; return how many, and what is wrong with another one."""
        found = 0
        problem: str | None = None
        for value, name in zip(pieces.objects, pieces.names, strict=True):
            if name is not None:
                piece = piece._replace(origin=piece.origin.of_server(name))
            try:
                wrapper = self._unwrapper.of_object(value, len(piece.origin.sources))
                if wrapper is not None:
                    inside = take_apart(wrapper[1].payload)
                    origin = piece.origin.within(*wrapper)
                    more, trouble = self._found_in(inside, piece._replace(origin=origin))
                    found += more
                    problem = problem or trouble or (inside.reason if inside.has_damage else None)
                elif (record := recognise(value, piece.origin.server)) is not None:
                    self._keep(record, piece, recovered=True)
                    found += 1
                    problem = problem or next(iter(record.problems), None)
            except (InvalidRecordError, NotJson) as error:
                problem = problem or str(error)
        return found, problem

    def _keep(self, record: Record, piece: Piece, *, recovered: bool) -> None:
        place = (piece.ledger.file, piece.number, piece.offset, recovered)
        host, pid = piece.origin.host, piece.origin.pid
        is_told = host is not None or pid is not None
        for table, row in record.rows:
            owned = tables.with_process(table, row, host, pid) if is_told else row
            self.batches.add(table, place + owned)

    def _reject(self, line_class: LineClass, reason: str, piece: Piece) -> None:
        if piece.note is not None and line_class is not LineClass.BLANK:
            reason = f"{reason}; {piece.note}"
        if piece.lost_lines:
            lines = "line" if piece.lost_lines == 1 else "lines"
            reason = f"{reason}; {piece.lost_lines:,} {lines} like it were left out before it"
        piece.ledger.reject(
            line_class,
            piece.number,
            piece.offset,
            reason,
            line=piece.line,
            lost_lines=piece.lost_lines,
        )
        self._count_wrapper(piece)

    def _count_wrapper(self, piece: Piece) -> None:
        if piece.origin.wrappers:
            piece.ledger.wrapped(piece.origin.wrappers)
