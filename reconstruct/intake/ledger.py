"""The class of every physical line: each has exactly one, and they add up to the lines read."""

from collections import Counter
from enum import StrEnum
from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.tables import Batches

__all__ = ["SAMPLE_CHARACTERS", "FileLedger", "LineClass"]

SAMPLE_CHARACTERS: Final = 200


class LineClass(StrEnum):
    """What a physical line turned out to be."""

    SPAN = "span"
    SPAN_START = "span_start"
    LOG = "log"
    METRIC = "metric"
    PROCESS = "process"
    JOINED = "joined"
    """Belongs to the record that began on an earlier line."""
    RECOVERED = "recovered"
    """Records were found in a line that holds other things too, or bytes that are not UTF-8."""
    JSON = "json"
    """A JSON value that is no record of a known format."""
    TEXT = "text"
    BLANK = "blank"
    TORN = "torn"
    """Pieces of a record that is not whole."""
    INVALID = "invalid"
    """A whole record that breaks its format: a required field is missing or wrong."""
    BAD_ENCODING = "bad_encoding"
    """No record, and bytes that are not UTF-8."""
    DUPLICATE = "duplicate"
    """A record that another line has already given; decided in SQL, when all lines are known."""


class FileLedger:
    """Counts the lines of one file by class and keeps those that are no record."""

    __slots__ = ("_batches", "_counts", "_file")

    def __init__(self, file: str, batches: Batches) -> None:
        self._file = file
        self._batches = batches
        self._counts: Counter[LineClass] = Counter()

    def record(self, line_class: LineClass, lines: int = 1) -> None:
        """Count lines that gave a record, or belong to one."""
        self._counts[line_class] += lines

    def reject(
        self, line_class: LineClass, number: int, offset: int, reason: str, *, line: bytes
    ) -> None:
        """Count a line that is no clean record; `offset` in bytes from the file's start."""
        self._counts[line_class] += 1
        sample = line[: 4 * SAMPLE_CHARACTERS].decode("utf-8", "replace").strip()
        if len(sample) > SAMPLE_CHARACTERS or len(line) > 4 * SAMPLE_CHARACTERS:
            sample = sample[: SAMPLE_CHARACTERS - 1] + "…"
        row = (self._file, number, offset, line_class.value, reason, sample)
        self._batches.add(tables.REJECTED_LINES, row)

    def close(self, *, size: int, lines: int, problem: str | None) -> None:
        """Hand over the counts of a file of `size` bytes that has been read to its end."""
        for line_class, count in self._counts.items():
            self._batches.add(tables.CLASS_COUNTS, (self._file, line_class.value, count))
        self._batches.add(tables.FILES, (self._file, size, lines, problem))
