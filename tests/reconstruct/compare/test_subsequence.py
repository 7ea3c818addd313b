"""The longest common subsequence: as long as it can be, in order, and soon found."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.compare.subsequence import common_subsequence

few_items = st.lists(st.integers(0, 3), max_size=14)


def longest(a: list[int], b: list[int]) -> int:
    """The length, by the textbook's table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
            )
    return table[-1][-1]


def check(a: list[int], b: list[int], pairs: list[tuple[int, int]]) -> None:
    """Equal items, each once, in the order of both."""
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs))


@given(few_items, few_items)
def test_it_is_the_longest(a: list[int], b: list[int]) -> None:
    pairs, is_longest = common_subsequence(a, b)
    check(a, b, pairs)
    assert is_longest
    assert len(pairs) == longest(a, b)


def test_a_missing_one_among_many_alike() -> None:
    """100,000 of one kind, and one fewer."""
    pairs, is_longest = common_subsequence([0] * 100_000, [0] * 99_999)
    assert (len(pairs), is_longest) == (99_999, True)


@pytest.mark.parametrize("kinds", [3, 1_000, 100_000])
def test_long_lists_without_order_end_soon(kinds: int) -> None:
    """What is found then is common and says that it may not be the longest."""
    chance = random.Random(0)
    a, b = ([chance.randrange(kinds) for _ in range(10_000)] for _ in "ab")
    pairs, is_longest = common_subsequence(a, b)
    check(a, b, pairs)
    assert pairs
    assert not is_longest


def test_unique_items_hold_long_lists_together() -> None:
    """Blocks that have nothing to do with each other, between items that occur once."""
    a = [item for n in range(60) for item in (1_000 + n, *[1] * 5)]
    b = [item for n in range(60) for item in (1_000 + n, *[2] * 5)]
    pairs, _ = common_subsequence(a, b)
    assert [a[i] for i, _ in pairs] == [1_000 + n for n in range(60)]
