"""Where a span's bar stands on a time axis of so many terminal columns.

A column is cut into eighths, so a bar ends on an eighth of a column, starts on a half, and is never
invisible. Solid cells are the span's own work, a thin line is time covered by its children, strokes
are work that never ended. Times are int64 ns; nothing here knows colours or trees.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["HATCH", "OWN", "WAITING", "Axis"]

OWN: Final = "█"
WAITING: Final = "━"
HATCH: Final = "╱"

_LEFT: Final = (" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█")
# Unicode has right-aligned blocks of one eighth and one half only.
_RIGHT: Final = (" ", "▕", "▕", "▐", "▐", "▐", "▐", "█", "█")

_SECOND: Final = 1_000_000_000
_LONG_STEPS: Final = tuple(
    seconds * _SECOND
    for seconds in (10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400)
)
_TICK_UNITS: Final = (
    (86_400 * _SECOND, "d"),
    (3_600 * _SECOND, "h"),
    (60 * _SECOND, "min"),
    (_SECOND, "s"),
    (1_000_000, "ms"),
    (1_000, "µs"),
    (1, "ns"),
)
_TICK_COLUMNS: Final = 8
"""A tick and its label have at least this much room."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of time, `start_ns` to `end_ns`, laid over `columns` columns."""

    start_ns: int
    end_ns: int
    columns: int

    def bar(
        self, start_ns: int, end_ns: int, covered: Iterable[tuple[int, int]]
    ) -> tuple[int, str]:
        """Draw one span: its first column and its cells.

        `covered` are the children's intervals in ns, in any order and overlapping as they like.
        """
        first, last = self._eighths(start_ns, end_ns)
        cells = []
        waits = _Coverage(_merged(covered, start_ns, end_ns))
        for column in range(first // 8, (last + 7) // 8):
            left, right = max(first, column * 8), min(last, column * 8 + 8)
            cell_start, cell_end = self._time(left), self._time(right)
            waiting_ns = waits.overlap(cell_start, cell_end)
            if waiting_ns * 2 > cell_end - cell_start:
                cells.append(_line_glyph(left % 8, right - left))
            else:
                cells.append(_block_glyph(left % 8, right - left))
        return first // 8, "".join(cells)

    def hatched(self, start_ns: int, end_ns: int) -> tuple[int, str]:
        """Draw a span that never ended: its first column and its strokes up to `end_ns`."""
        first, last = self._eighths(start_ns, end_ns)
        return first // 8, HATCH * ((last + 7) // 8 - first // 8)

    def ticks(self) -> list[tuple[int, str]]:
        """List round times with the column each falls on, the start's `0` first."""
        length = max(1, self.end_ns - self.start_ns)
        step = _step(length, max(1, self.columns // _TICK_COLUMNS))
        size, unit = _tick_unit(step, length)
        return [
            (self.columns * time // length, f"{time / size:g} {unit}" if time else "0")
            for time in range(0, length, step)
            if self.columns * time // length < self.columns
        ]

    def ruler(self) -> str:
        """Write the ticks' labels, each from its column on; one that has no room is left out."""
        line = ""
        for column, label in self.ticks():
            if column >= len(line) and column + len(label) <= self.columns:
                line = line.ljust(column) + label + " "
        return line.ljust(self.columns)[: self.columns]

    def _eighths(self, start_ns: int, end_ns: int) -> tuple[int, int]:
        length, room = max(1, self.end_ns - self.start_ns), self.columns * 8
        first = (start_ns - self.start_ns) * room // length
        last = -((self.start_ns - end_ns) * room // length)
        first = min(max(first, 0), room - 1)
        return first, min(max(last, first + 1), room)

    def _time(self, eighths: int) -> float:
        return self.start_ns + eighths * (self.end_ns - self.start_ns) / (self.columns * 8)


def _block_glyph(offset: int, eighths: int) -> str:
    left_aligned = offset == 0 or (offset < 4 and offset + eighths < 8)
    return _LEFT[eighths] if left_aligned else _RIGHT[eighths]


def _line_glyph(offset: int, eighths: int) -> str:
    if offset >= 4:
        return "╺"
    return "╸" if offset + eighths <= 4 else WAITING


def _step(length: int, ticks: int) -> int:
    """Find the smallest round step that needs at most so many ticks."""
    return next(step for step in _steps() if length <= step * ticks)


def _tick_unit(step: int, length: int) -> tuple[int, str]:
    """Pick the unit that keeps labels short: `0.5 s` rather than `500 ms` beside `1000 ms`."""
    return next(
        (size, unit)
        for size, unit in _TICK_UNITS
        if step >= size or (size <= _SECOND and size <= length and step * 10 >= size)
    )


def _steps() -> Iterator[int]:
    power = 1
    while power < 10 * _SECOND:
        yield from (power, 2 * power, 5 * power)
        power *= 10
    yield from _LONG_STEPS
    days = _LONG_STEPS[-1]
    while True:
        days *= 2
        yield days


def _merged(intervals: Iterable[tuple[int, int]], low: int, high: int) -> Iterator[tuple[int, int]]:
    """Clip intervals to low..high, then join those that touch; in order of time."""
    clipped = sorted((max(start, low), min(end, high)) for start, end in intervals)
    current: tuple[int, int] | None = None
    for start, end in clipped:
        if end <= start:
            continue
        if current is not None and start <= current[1]:
            current = current[0], max(current[1], end)
            continue
        if current is not None:
            yield current
        current = start, end
    if current is not None:
        yield current


class _Coverage:
    """Answers how much of ever later windows disjoint, ordered intervals cover."""

    def __init__(self, intervals: Iterator[tuple[int, int]]) -> None:
        self._intervals = intervals
        self._current = next(intervals, None)

    def overlap(self, start: float, end: float) -> float:
        """Sum the covered ns between start and end; windows must not go back in time."""
        covered = 0.0
        while self._current is not None and self._current[0] < end:
            covered += max(0.0, min(self._current[1], end) - max(self._current[0], start))
            if self._current[1] > end:
                break
            self._current = next(self._intervals, None)
        return covered
