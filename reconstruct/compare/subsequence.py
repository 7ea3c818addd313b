"""The longest common subsequence of two long lists.

Myers' greedy algorithm takes n + d² steps for n items of which d differ, so lists of 100,000 that
are nearly equal take as long as to read them. Where more than `_MOST_EDITS` differ, lists are
parted at items that occur once in each (patience); what is left without such, or after
`_MOST_STEPS`, is paired by number of occurrence: the subsequence is common then, and perhaps not
the longest.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from math import isqrt
from typing import Final

__all__ = ["common_subsequence"]

_MOST_EDITS: Final = 500
_MOST_STEPS: Final = 1_000_000

Pairs = list[tuple[int, int]]


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> tuple[Pairs, bool]:
    """Return the places (in `a`, in `b`) of a common subsequence, and whether it is the longest."""
    found: Pairs = []
    is_longest = True
    steps = _MOST_STEPS
    waiting = [(0, len(a), 0, len(b))]
    while waiting:
        a_from, a_to, b_from, b_to = waiting.pop()
        while a_from < a_to and b_from < b_to and a[a_from] == b[b_from]:
            found.append((a_from, b_from))
            a_from, b_from = a_from + 1, b_from + 1
        while a_from < a_to and b_from < b_to and a[a_to - 1] == b[b_to - 1]:
            a_to, b_to = a_to - 1, b_to - 1
            found.append((a_to, b_to))
        if a_from == a_to or b_from == b_to:
            continue
        part_a, part_b = a[a_from:a_to], b[b_from:b_to]
        most = min(len(part_a) + len(part_b), _MOST_EDITS, isqrt(steps))
        pairs = _greedy(part_a, part_b, most)
        if pairs is None:
            is_longest = False
            steps -= most * most
            pairs = _increasing(_once(part_a, part_b))
            if pairs:
                waiting += _between(pairs, a_from, a_to, b_from, b_to)
            else:
                pairs = _increasing(_by_occurrence(part_a, part_b))
        found += [(a_from + i, b_from + j) for i, j in pairs]
    return sorted(found), is_longest


def _greedy(a: Sequence[int], b: Sequence[int], most: int) -> Pairs | None:
    """Return the longest common subsequence, or None when more than `most` items differ."""
    reached = {1: 0}  # diagonal i - j -> the furthest i on it
    rounds: list[dict[int, int]] = []
    for edits in range(most + 1):
        rounds.append(reached.copy())
        for diagonal in range(-edits, edits + 1, 2):
            i = _step(reached, diagonal, edits)
            j = i - diagonal
            while i < len(a) and j < len(b) and a[i] == b[j]:
                i, j = i + 1, j + 1
            reached[diagonal] = i
            if i >= len(a) and j >= len(b):
                return _traced(rounds, len(a), len(b))
    return None


def _step(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """Return where a diagonal is entered: down from the next one, or right from the one before."""
    if diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1]):
        return reached[diagonal + 1]
    return reached[diagonal - 1] + 1


def _traced(rounds: Sequence[dict[int, int]], i: int, j: int) -> Pairs:
    """Walk back from the end through what was reached after each number of edits."""
    pairs: Pairs = []
    for edits in range(len(rounds) - 1, -1, -1):
        start = _step(rounds[edits], i - j, edits) if edits else 0
        diagonal = i - j
        while i > start and i - 1 >= 0 and j - 1 >= 0:
            i, j = i - 1, j - 1
            pairs.append((i, j))
        if edits:
            # One edit back: where this diagonal was entered from.
            came_down = diagonal == -edits or (
                diagonal != edits and rounds[edits][diagonal - 1] < rounds[edits][diagonal + 1]
            )
            i, j = (i, j - 1) if came_down else (i - 1, j)
    return pairs


def _once(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Pair the items that occur once in each."""
    times_a, times_b = Counter(a), Counter(b)
    places = {item: j for j, item in enumerate(b) if times_b[item] == 1}
    return [(i, places[item]) for i, item in enumerate(a) if times_a[item] == 1 and item in places]


def _by_occurrence(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Pair the first of an item with the first of its like, the second with the second."""
    places: defaultdict[int, list[int]] = defaultdict(list)
    for j in range(len(b) - 1, -1, -1):
        places[b[j]].append(j)
    return [(i, places[item].pop()) for i, item in enumerate(a) if places[item]]


def _increasing(pairs: Pairs) -> Pairs:
    """Return the longest part of pairs, which are in order of `a`, that is in order of `b` too."""
    ends: list[int] = []  # of the best subsequence of each length, its last place in `b` …
    last: list[int] = []  # … and the pair that ends it
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [index]
    kept: Pairs = []
    index = last[-1] if last else -1
    while index >= 0:
        kept.append(pairs[index])
        index = before[index]
    return kept[::-1]


def _between(
    pairs: Pairs, a_from: int, a_to: int, b_from: int, b_to: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield what lies before, between and after pairs."""
    a_start, b_start = a_from, b_from
    for i, j in pairs:
        yield a_start, a_from + i, b_start, b_from + j
        a_start, b_start = a_from + i + 1, b_from + j + 1
    yield a_start, a_to, b_start, b_to
