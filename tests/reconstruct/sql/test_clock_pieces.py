"""Pieces of time: how the calls of two clocks are divided where they contradict each other."""

from collections.abc import Sequence
from math import isqrt
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def agreeing(bounds: Sequence[tuple[int, int]]) -> int:
    """At most how many intervals have a point in common; one of their ends is such a point."""
    ends = {end for pair in bounds for end in pair}
    return max(sum(low <= end <= high for low, high in bounds) for end in ends)


def best(
    bounds: Sequence[tuple[int, int]], level: int = 0, piece: int = 0
) -> tuple[int, list[tuple[int, int, int]]]:
    """The cheapest way to halve calls in order of time: its cost; place, calls, contradicting."""
    size = len(bounds)
    members = [pair for rank, pair in enumerate(bounds) if (rank << level) // size == piece]
    if not members:
        return 0, []
    contradicting = len(members) - agreeing(members)
    own = 2 * contradicting + max(isqrt(size), size // 50)
    late = sum(low > 0 for low, _ in members)
    early = sum(high < 0 for _, high in members)
    if contradicting and late * 4 <= len(members) and early * 100 <= len(members):
        contradicting = late + early
    alone = (own, [(piece << 6 - level, len(members), contradicting)])
    if level == 6:
        return alone
    left, right = (best(bounds, level + 1, 2 * piece + side) for side in (0, 1))
    below = (left[0] + right[0], left[1] + right[1])
    return alone if own <= below[0] else below


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    runs=st.lists(
        st.lists(st.tuples(st.integers(-8, 8), st.integers(0, 6)), min_size=1, max_size=14),
        min_size=1,
        max_size=12,
    )
)
def test_time_is_divided_where_that_explains_most(
    tmp_path_factory: pytest.TempPathFactory,
    logs: Any,
    runs: list[list[tuple[int, int]]],
) -> None:
    """As a search through all ways to halve finds it; several pairs of clocks at once."""
    logs = type(logs)(Path(tmp_path_factory.mktemp("pieces")))
    expected = {}
    for run, intervals in enumerate(runs):
        bounds = [(low, low + width) for low, width in intervals]
        for number, (low, high) in enumerate(bounds):
            start, end, trace = number * 1_001 + 1, number * 1_001 + 501, f"{run}/{number}"
            client, server = {"service": f"a{run}"}, {"service": f"b{run}", "kind": "SERVER"}
            logs.span("call", None, start, end, trace=trace, kind="CLIENT", **client)
            logs.span("serve", "call", start + high, end + low, trace=trace, **server)
        expected[f"a{run}"] = best(bounds)[1]
    with logs.engine() as engine:
        rows = engine.rows(
            """
            SELECT split_part(clock, '#', 1) AS name, place, calls, contradicting
            FROM _clock_pieces AS piece
            JOIN _clock_names AS name ON name.number = piece.first
            ORDER BY ALL
            """,
        )
    found: dict[str, list[tuple[int, int, int]]] = {name: [] for name in expected}
    for row in rows:
        found[row["name"]].append((row["place"], row["calls"], row["contradicting"]))
    assert found == expected
