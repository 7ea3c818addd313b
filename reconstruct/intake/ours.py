"""Lines that begin as ours do, set aside block by block for whoever reads many at a time.

A block of whole lines becomes an Arrow array over its own bytes: nothing is copied, and no line
becomes a Python object, except those that begin otherwise, which are given back at once. About
0.2 µs a line. Memory holds one batch of blocks.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gymlog.record import RecordType

__all__ = ["BATCH_BYTES", "TYPES", "Line", "OurLines", "prefix"]

BATCH_BYTES: Final = 64 << 20
"""A batch of so much is worth being read."""
TYPES: Final = (RecordType.SPAN, RecordType.SPAN_START, RecordType.LOG, RecordType.METRIC)
"""What is set aside: the types of which there may be many."""

_LINE_FEED: Final = 10

Owner = TypeVar("Owner")


def prefix(record_type: RecordType) -> str:
    """Return how a line of this type begins."""
    return f'{{"record_type":"{record_type}"'


class Line(NamedTuple):
    """A physical line: number from 1, offset in bytes from the file's start, its bytes."""

    number: int
    offset: int
    data: bytes


class _Block(NamedTuple, Generic[Owner]):
    """Whole lines of a file, and whose they are; `begins` also says where the next would begin."""

    data: bytes
    begins: npt.NDArray[np.int32]
    owner: Owner
    file: str
    number: int
    offset: int

    def line(self, index: int) -> Line:
        """Return one line, its line feed too."""
        begin, end = self.begins[index : index + 2].tolist()
        return Line(self.number + index, self.offset + begin, self.data[begin:end])

    def texts(self) -> pa.StringArray:
        """Return the lines as Arrow text, which they must be."""
        begins = pa.py_buffer(self.begins.data)
        return pa.StringArray.from_buffers(len(self.begins) - 1, begins, pa.py_buffer(self.data))

    def rows(self, first: int) -> pa.RecordBatch:
        """Return the lines with their places; `nth` counts on from `first`."""
        indices = np.arange(len(self.begins) - 1)
        files = pa.DictionaryArray.from_arrays(np.zeros_like(indices), pa.array([self.file]))
        columns: dict[str, pa.Array[Any] | npt.NDArray[Any]] = {  # Any: a type each
            "nth": indices + first,
            "text": self.texts(),
            "file": files,
            "line": indices + self.number,
            "byte_offset": self.begins[:-1].astype(np.int64) + self.offset,
        }
        return pa.RecordBatch.from_pydict(columns)


class OurLines(Generic[Owner]):
    """One batch of lines. The blocks in it have owners, whatever those are."""

    __slots__ = ("_blocks", "_count", "_firsts", "size", "types")

    def __init__(self) -> None:
        self._blocks: list[_Block[Owner]] = []
        self._firsts: list[int] = []
        self._count = 0
        self.size = 0
        """Bytes of all blocks."""
        self.types: Counter[RecordType] = Counter()
        """How many lines there are of each type."""

    def take(
        self, data: bytes, owner: Owner, file: str, *, number: int, offset: int
    ) -> tuple[int, Iterable[Line]]:
        """Set aside what is ours of whole lines; return how many lines there are, and the others.

        The first of them is number `number` of the file and begins at byte `offset`. Each ends in
        a line feed. Where something is not UTF-8, all are given back.
        """
        ends = np.flatnonzero(np.frombuffer(data, np.uint8) == _LINE_FEED)
        begins = np.zeros(len(ends) + 1, np.int32)
        begins[1:] = ends + 1
        block = _Block(data, begins, owner, file, number, offset)
        if not _is_utf8(data):
            return len(ends), map(block.line, range(len(ends)))
        is_ours = self._told_apart(block.texts())
        if is_ours.any():
            self._firsts.append(self._count)
            self._blocks.append(block)
            self._count += len(ends)
            self.size += len(data)
        return len(ends), map(block.line, np.flatnonzero(~is_ours).tolist())

    def _told_apart(self, texts: pa.StringArray) -> npt.NDArray[np.bool_]:
        is_ours = np.zeros(len(texts), np.bool_)
        for record_type in TYPES:
            is_it = pc.starts_with(texts, prefix(record_type)).to_numpy(zero_copy_only=False)
            if is_it.any():
                self.types[record_type] += int(is_it.sum())
                is_ours |= is_it
        return is_ours

    def table(self) -> pa.Table:
        """Return the lines, the others between them too: `nth` from 0, `text` with its line feed,
        `file`, `line`, `byte_offset`."""
        blocks = zip(self._firsts, self._blocks, strict=True)
        return pa.Table.from_batches([block.rows(first) for first, block in blocks])

    def lines(self, nths: Iterable[int]) -> Iterator[tuple[Owner, Line]]:
        """Yield the lines with these `nth`, and whose each is."""
        for nth in nths:
            place = bisect_right(self._firsts, nth) - 1
            block = self._blocks[place]
            yield block.owner, block.line(nth - self._firsts[place])


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
