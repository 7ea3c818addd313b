"""Files that are one JSON document over many lines, or on one line that is long.

A document is a list, or an object with a list under one of the keys of `_LIST_KEYS`: what Jaeger,
Zipkin, Datadog and Chrome save. Its elements are read one by one, each as the record that it would
be on a line of its own, so that memory holds one element, at most 64 MiB. The first line has the
class of what the document has most, the others are `joined`; where an element could not be read,
its line says why. What turns out to be no document is left to be read line by line.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Self

from reconstruct.intake import json_text
from reconstruct.intake.files import Lines, OddLine, lines_of
from reconstruct.intake.formats import InvalidRecordError, Record, datadog, recognise, trace_events
from reconstruct.intake.formats.fields import listed, main_class
from reconstruct.intake.formats.rows import class_of
from reconstruct.intake.json_scan import Scanner, Value
from reconstruct.intake.json_text import Json, NotJson, Rounded
from reconstruct.intake.ledger import FileLedger, LineClass
from reconstruct.intake.tables import Batches

__all__ = ["Documents", "may_begin_document"]

_LIST_KEYS: Final = frozenset(
    {
        "batches",
        "data",
        "resourceLogs",
        "resourceMetrics",
        "resourceSpans",
        "resource_logs",
        "resource_spans",
        trace_events.LIST_KEY,
    }
)
_INNER_KEYS: Final = frozenset({"spans"})
"""Lists in Jaeger's traces, of elements that can be read by themselves."""
_LONG_BYTES: Final = 1 << 20
"""A document on one line that is shorter is read as that line."""
_SLICE_BYTES: Final = 1 << 20
_SAMPLE_BYTES: Final = 4096
_ROWS_AT_ONCE: Final = 1024
_NAMED_PROBLEMS: Final = 8
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Documents:
    """The documents with which a file begins, one after the other.

    When they are read, `number` lines of `offset` bytes have their class, `rest` gives the lines
    after them, and `problem` says what is wrong with the last document.
    """

    def __init__(self, lines: Lines, ledger: FileLedger, batches: Batches) -> None:
        self._source = lines
        self._blocks = lines.blocks()
        self._ahead: list[bytes] = []
        """Lines of the latest block that were not asked for yet, the next one last."""
        self._lines = self._each_line()
        self._left: list[bytes] = []
        self._ledger = ledger
        self._batches = batches
        self.number = 0
        self.offset = 0
        self.problem: str | None = None
        self.may_go_on = False
        """The last document had no end yet, so that more bytes may change what it is."""

    def _each_line(self) -> Iterator[bytes]:
        for block in self._blocks:
            self._ahead = lines_of(block)[::-1]
            while self._ahead:
                yield self._ahead.pop()

    def rest(self) -> Iterator[bytes]:
        """Return the lines that belong to no document, as blocks of lines."""
        ahead = b"".join(reversed(self._ahead))
        return chain(self._left, [ahead] if ahead else [], self._blocks)

    def read(self) -> Iterator[int]:
        """Read them; yield now and then how many bytes that was so far."""
        for first in self._lines:
            if not may_begin_document(first):
                self._left = [first]
                return
            with _Document(self.number, self.offset, self._ledger, self._batches) as document:
                yield from document.take(first, self._parts(first))
                while not document.is_over:
                    line = next(self._lines, None)
                    if line is None or type(line) is OddLine:
                        self._left = [] if line is None else [line]
                        break
                    yield from document.take(line, _slices(line))
                self.may_go_on = not document.is_over
                yield from document.finish()
            self.number, self.offset = document.number, document.offset
            self._left = document.left + self._left
            self.problem = document.problem
            if self._left:
                return

    def _parts(self, line: bytes) -> Iterator[bytes]:
        """Return the bytes of a line; those of one that is too long to be held are read again."""
        if type(line) is not OddLine:
            yield from _slices(line)
            return
        left = line.length
        for chunk in self._source.chunks(self.offset):
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return


def _slices(line: bytes) -> Iterator[bytes]:
    return (line[at : at + _SLICE_BYTES] for at in range(0, len(line), _SLICE_BYTES))


def may_begin_document(line: bytes) -> bool:
    """Say whether a file that begins with this line may be a document, to be read as a whole.

    Not if the document ends on the line and is short: that is a line like any other.
    """
    text = line.removeprefix(_BYTE_ORDER_MARK).strip()
    if text[:1] not in (b"[", b"{"):
        return False
    if type(line) is OddLine:
        return line.is_cut
    if len(line) >= _LONG_BYTES:
        return True
    with suppress(NotJson):
        json_text.decode(text)
        return False  # a whole value
    scanner = Scanner(_LIST_KEYS)
    for _ in scanner.feed(text):
        pass
    return scanner.problem is None and scanner.end is None


def _in_utf8(data: bytes) -> bytes:
    """Return `data` itself if it is UTF-8, else with U+FFFD for what is not."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode()
    return data


@dataclass(slots=True)
class _Line:
    """A line of a document: what was found of the elements that begin on it."""

    number: int
    offset: int
    raw: bytes
    rows: int = 0
    unknown: int = 0
    problems: list[str] = field(default_factory=list)
    is_torn: bool = False

    def add_problem(self, problem: str) -> None:
        """Note what could not be read; of many, only how many they are."""
        self.problems.append(problem if len(self.problems) < _NAMED_PROBLEMS else "")

    @property
    def damage(self) -> LineClass:
        """Return its class if no record begins on it."""
        if not self.problems:
            return LineClass.JSON
        return LineClass.TORN if self.is_torn else LineClass.INVALID


def _without_mark(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Blank out a byte order mark, so that offsets stay."""
    for number, part in enumerate(parts):
        is_marked = number == 0 and part.startswith(_BYTE_ORDER_MARK)
        yield b"   " + part[3:] if is_marked else part


class _Document:
    """One document. A context manager, for what waits in it.

    When it is finished, `left` are lines that are to be read as lines after all, and `number` and
    `offset` say how many lines and bytes of the file lie before those.
    """

    def __init__(self, number: int, offset: int, ledger: FileLedger, batches: Batches) -> None:
        self._ledger = ledger
        self._batches = batches
        self._start = offset
        self._scanner = Scanner(_LIST_KEYS)
        self._events = trace_events.TraceEvents()
        self._halves = datadog.UpperHalves()
        self._first: _Line | None = None
        self._open: list[_Line] = []
        """Lines that have no class yet, the first line of all left out once others have one."""
        self._classes: Counter[LineClass] = Counter()
        self._has_elements = False
        self._has_events = False
        self._told = offset
        self.number = number
        self.offset = offset
        self.left: list[bytes] = []
        self.problem: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.close()

    @property
    def is_over(self) -> bool:
        """The document has ended, or is none."""
        return self._scanner.end is not None or self._scanner.problem is not None

    def take(self, raw: bytes, parts: Iterable[bytes]) -> Iterator[int]:
        """Take the next line, in parts; yield how many bytes of the file were read so far."""
        line = _Line(self.number + 1, self.offset, raw)
        if self._first is None:
            self._first = line
            parts = _without_mark(parts)
        self._open.append(line)
        offset = self.offset
        for part in parts:
            for value in self._scanner.feed(part):
                self._take_value(value)
            offset += len(part)
            if offset - self._told >= _SLICE_BYTES:
                self._told = offset
                yield offset
        self.number += 1
        self.offset += raw.length if type(raw) is OddLine else len(raw)
        if self._has_elements and not self.is_over:
            self._release(self._unfinished())

    def _take_value(self, value: Value) -> None:
        if not value.is_element:
            self._take_member(value)
            return
        offset = self._start + value.offset
        line = next(line for line in reversed(self._open) if line.offset <= offset)
        data = _in_utf8(value.data)
        if data is not value.data:
            line.add_problem("bytes that are not UTF-8 were read as U+FFFD")
        try:
            element = json_text.decode(data)
            self._has_elements = self._has_elements or isinstance(element, dict | list)
            if trace_events.is_trace_event(element):
                self._has_events = True
                self._events.add(element, data, line=line.number, offset=offset)
                line.rows += 1
                return
            record = self._recognised(element, data)
        except (InvalidRecordError, NotJson) as error:
            line.add_problem(str(error))
            return
        if record is None:
            line.unknown += 1
            return
        for problem in record.problems:
            line.add_problem(problem)
        line.rows += record.record_count
        self._classes[record.line_class] += record.record_count
        place = (self._ledger.file, line.number, offset, True)
        for table, row in record.rows:
            self._batches.add(table, place + row)

    def _take_member(self, value: Value) -> None:
        try:
            self._events.learn(value.key or "", json_text.decode(value.data))
        except NotJson as error:
            self._open[-1].add_problem(f"{value.key}: {error}")

    def _recognised(self, element: Json, data: bytes) -> Record | None:
        try:
            return self._of_a_format(element)
        except Rounded:
            return self._of_a_format(json_text.decode_exactly(data))

    def _of_a_format(self, element: Json) -> Record | None:
        if isinstance(element, dict):
            record = datadog.recognise(element, None, halves=self._halves)
            if record is not None:
                return record
        return recognise(element, None)

    def finish(self) -> Iterator[int]:
        """Settle what has waited for the end, and the class of every line."""
        if self._scanner.end is None:
            self._take_inner()
        if not self._has_elements:
            self._leave(0)
            return
        for count, (number, offset, (table, row)) in enumerate(self._events.rows()):
            self._classes[class_of((table, row))] += 1
            self._batches.add(table, (self._ledger.file, number, offset, True, *row))
            if count % _ROWS_AT_ONCE == 0:
                yield self.offset
        if self._scanner.end is None:
            self._end_too_early()
        elif self._open and self._open[-1].raw[self._behind_end() :].strip():
            self._open[-1].add_problem("more text follows the JSON document on its last line")
        self._release(len(self._open))
        self._class_of_first()

    def _end_too_early(self) -> None:
        """Say that the document is cut or broken; what follows the break may be lines."""
        reason = self._scanner.problem
        if reason is not None:
            self.problem = f"the JSON document breaks off: {reason}"
        elif self._scanner.begun is not None or not self._has_events:
            self.problem = f"the JSON document has no end: it was cut at line {self.number:,}"
        unfinished = self._unfinished()
        if unfinished == len(self._open):
            return
        torn = self._open[unfinished]
        if self._scanner.begun is None and not (torn.rows or torn.unknown or torn.problems):
            self._leave(unfinished)
            return
        torn.is_torn = True
        torn.problems.insert(0, reason or "the document ends inside this element")
        for index in range(unfinished + 1, len(self._open)):
            line = self._open[index]
            if line.raw.lstrip().startswith(b'{"') and not line.rows:
                self._leave(index)
                return

    def _take_inner(self) -> None:
        """Read the whole spans of a trace that is not; their service may lie behind the cut."""
        begun = self._scanner.begun
        if begun is not None:
            inner = Scanner(_INNER_KEYS)
            for value in inner.feed(self._scanner.unfinished):
                if value.is_element and value.key in _INNER_KEYS:
                    self._take_value(value._replace(offset=begun + value.offset))

    def _unfinished(self) -> int:
        """Return the index of the open line with which what is not whole begins."""
        begun = self._scanner.begun
        if begun is None:
            if self._scanner.problem is None:
                return len(self._open)
            return len(self._open) - 1
        offset = self._start + begun
        return next(
            index
            for index in range(len(self._open) - 1, -1, -1)
            if self._open[index].offset <= offset
        )

    def _behind_end(self) -> int:
        assert self._scanner.end is not None
        return self._start + self._scanner.end - self._open[-1].offset

    def _leave(self, index: int) -> None:
        """Leave the open lines from `index` on to be read as lines."""
        self.left = [line.raw for line in self._open[index:]]
        if self.left:
            self.number = self._open[index].number - 1
            self.offset = self._open[index].offset
        del self._open[index:]

    def _release(self, count: int) -> None:
        """Settle the class of the first `count` open lines."""
        for line in self._open[:count]:
            if line is self._first:
                line.raw = line.raw[:_SAMPLE_BYTES]
            elif line.problems or line.unknown:
                self._reject(line, LineClass.RECOVERED if line.rows else line.damage)
            else:
                self._ledger.record(LineClass.JOINED)
        del self._open[:count]

    def _class_of_first(self) -> None:
        line = self._first
        assert line is not None, "a document has a line"
        if not self._classes:
            self._reject(line, line.damage)
        elif line.problems or line.unknown:
            self._reject(line, LineClass.RECOVERED if line.rows else line.damage)
        else:
            self._ledger.record(main_class(self._classes))

    def _reject(self, line: _Line, line_class: LineClass) -> None:
        reasons = list(line.problems)
        if line.unknown:
            elements = "element is" if line.unknown == 1 else "elements are"
            reasons.append(f"{line.unknown:,} {elements} of no known format")
        reason = listed(reasons) or "a JSON document without records of a known format"
        if line_class is LineClass.RECOVERED:
            records = "record" if line.rows == 1 else "records"
            reason = f"{line.rows:,} {records} read; not read: {reason}"
        self._ledger.reject(line_class, line.number, line.offset, reason, line=line.raw)
