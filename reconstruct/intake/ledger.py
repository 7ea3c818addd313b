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
    MODEL_CALL = "model_call"
    """A captured call of a model, no record of ours."""
    JOINED = "joined"
    """Belongs to the record, or the text, that began on an earlier line."""
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
    OVERSIZE = "oversize"
    """Too long to be read; only its length is known."""
    DUPLICATE = "duplicate"
    """A record that another line has already given; decided in SQL, when all lines are known."""


class FileLedger:
    """Counts the lines of one file by class and keeps those that are no record."""

    __slots__ = ("_batches", "_counts", "_wrappers", "file")

    def __init__(self, file: str, batches: Batches) -> None:
        self.file = file
        self._batches = batches
        self._counts: Counter[LineClass] = Counter()
        self._wrappers: Counter[tuple[str, ...]] = Counter()

    def record(self, line_class: LineClass, lines: int = 1) -> None:
        """Count lines that gave a record, or belong to one."""
        self._counts[line_class] += lines

    def wrapped(self, wrappers: tuple[str, ...]) -> None:
        """Count a line that was in wrappers, named from the outermost to the innermost."""
        self._wrappers[wrappers] += 1

    def reject(
        self,
        line_class: LineClass,
        number: int,
        offset: int,
        reason: str,
        *,
        line: bytes,
        lost_lines: int = 0,
    ) -> None:
        """Count a line that is no clean record; `offset` in bytes from the file's start.

        `lost_lines`: so many others are known to be missing because of what it says.
        """
        self._counts[line_class] += 1
        sample = line[: 4 * SAMPLE_CHARACTERS].decode("utf-8", "replace").strip()
        if len(sample) > SAMPLE_CHARACTERS or len(line) > 4 * SAMPLE_CHARACTERS:
            sample = sample[: SAMPLE_CHARACTERS - 1] + "…"
        row = (self.file, number, offset, line_class.value, reason, sample, lost_lines or None)
        self._batches.add(tables.REJECTED_LINES, row)

    def close(
        self,
        *,
        size: int,
        lines: int,
        problem: str | None,
        pending_bytes: int = 0,
        can_go_on: bool = False,
        begins_within: bool = False,
        ends_within: bool = False,
    ) -> None:
        """Hand over what is known of a file of which `size` bytes were read.

        `pending_bytes` follow them: a line that someone is writing. `can_go_on`: what is appended
        can be read without what was before. `begins_within`, `ends_within`: a line or record began
        in the file before it, or may go on in the next one.
        """
        self.hand_over()
        common = self._wrappers.most_common(1)
        wrapper = " > ".join(common[0][0]) if common else None
        ends = (can_go_on, begins_within, ends_within)
        row = (self.file, size, lines, problem, wrapper, pending_bytes, *ends)
        self._batches.add(tables.FILES, row)

    def hand_over(self) -> None:
        """Hand over the counts since the last time: what begins in a file may end in the next."""
        for line_class, count in self._counts.items():
            self._batches.add(tables.CLASS_COUNTS, (self.file, line_class.value, count))
        self._counts.clear()
