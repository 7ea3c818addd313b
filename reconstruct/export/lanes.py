"""Spans of one process in lanes, so that those of a lane lie within each other or apart.

Viewers draw what overlaps on one line as nested, whoever called whom. Here a span is drawn below
another only when that is its parent: a child that runs in its parent's time goes below it, unless a
sibling is still running there; everything else goes to the first lane that is free. Without any
parents that takes as many lanes as spans ever ran at once, which is the least there can be.
"""

from heapq import heappop, heappush
from typing import NamedTuple

__all__ = ["Lanes"]


class _Running(NamedTuple):
    end: int
    number: int


class Lanes:
    """The lanes of one process, filled in the order of time; memory is that of what runs at once.

    An interval is [start, end): what begins when another ends is apart from it.
    """

    def __init__(self) -> None:
        self._stacks: list[list[_Running]] = []
        """What runs in each lane, the outermost first."""
        self._lane_of: dict[int, int] = {}
        """Of what may still run: its lane by its number."""
        self._busy: list[tuple[int, int]] = []
        """A heap: until when each lane that is not free is taken by its outermost, and the lane."""
        self._free: list[int] = []
        """A heap."""

    def __len__(self) -> int:
        """How many there are."""
        return len(self._stacks)

    def place(self, number: int, parent: int | None, start: int, end: int) -> int:
        """Return the lane, from 0, of a span that has this `number`; times in ns.

        Spans come by start, the longest first, parents before children. `parent` is the number of
        one that was placed here, or None.
        """
        while self._busy and self._busy[0][0] <= start:
            self._empty(heappop(self._busy)[1])
        lane = None if parent is None else self._below(parent, start, end)
        if lane is None:
            lane = self._first_free()
            heappush(self._busy, (end, lane))
        self._stacks[lane].append(_Running(end, number))
        self._lane_of[number] = lane
        return lane

    def _below(self, parent: int, start: int, end: int) -> int | None:
        """Return the parent's lane if nothing but the parent and what it lies in runs there."""
        lane = self._lane_of.get(parent)
        if lane is None:
            return None
        stack = self._stacks[lane]
        while stack[-1].end <= start:
            del self._lane_of[stack.pop().number]
        return lane if stack[-1].number == parent and end <= stack[-1].end else None

    def _empty(self, lane: int) -> None:
        for running in self._stacks[lane]:
            del self._lane_of[running.number]
        self._stacks[lane].clear()
        heappush(self._free, lane)

    def _first_free(self) -> int:
        if self._free:
            return heappop(self._free)
        self._stacks.append([])
        return len(self._stacks) - 1
