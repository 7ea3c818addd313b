"""How much goes on at a time: exact stretches, and their means and peaks over equal parts."""

import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reconstruct.conftest import BASE, LogBuilder

Interval = tuple[int, int]


def stretches(engine: Any, counted: str = "rollouts") -> list[tuple[int, int, int]]:
    return [
        (row["start_time_unix_nano"] - BASE, row["end_time_unix_nano"] - BASE, row["running"])
        for row in engine.rows(
            "FROM concurrency WHERE counted = $counted ORDER BY start_time_unix_nano",
            {"counted": counted},
        )
    ]


def test_stretches_lie_end_to_end(logs: Any) -> None:
    """0-0 ────────        0 to 80
    0-1     ────────     40 to 120, then nothing, then 0-2 from 200 to 210
    """
    logs.span("a", None, 0, 80, trace="a", rollout="0-0")
    logs.span("b", None, 40, 120, trace="b", rollout="0-1")
    logs.span("c", None, 200, 210, trace="c", rollout="0-2")
    logs.span("no time", None, 50, 50, trace="d", rollout="0-3")
    with logs.engine() as engine:
        assert stretches(engine) == [
            (0, 40, 1),
            (40, 80, 2),
            (80, 120, 1),
            (120, 200, 0),
            (200, 210, 1),
        ]


def test_what_touches_is_one_stretch(logs: Any) -> None:
    """One ends where the next begins: as much goes on."""
    logs.span("a", None, 0, 80, trace="a", rollout="0-0")
    logs.span("b", None, 80, 120, trace="b", rollout="0-1")
    with logs.engine() as engine:
        assert stretches(engine) == [(0, 120, 1)]


def test_requests_of_services_are_counted_apart(logs: Any) -> None:
    """SERVER spans, also what has no end as far as it was seen."""
    logs.process("started", 0, service="b")
    logs.span("serve", None, 10, 20, kind="SERVER", service="a", trace="a")
    logs.span("serve", None, 15, None, kind="SERVER", service="b", trace="b")
    logs.span("work", None, 0, 100, service="b", trace="c")
    with logs.engine() as engine:
        rows = engine.rows("FROM concurrency ORDER BY service_name")
    assert [
        (row["counted"], row["service_name"], row["duration_ns"], row["running"]) for row in rows
    ] == [("requests", "a", 10, 1), ("requests", "b", 85, 1)]


def test_parts_have_a_mean_and_a_peak(logs: Any) -> None:
    """Over 0 to 100 in two parts: 1.5 on average in the first, 0.4 in the second."""
    logs.span("a", None, 0, 70, trace="a", rollout="0-0")
    logs.span("b", None, 25, 50, trace="b", rollout="0-1")
    logs.span("c", None, 100, 200, trace="c", rollout="0-2")
    with logs.engine() as engine:
        rows = engine.rows(
            "FROM concurrency_in($since, $until, 2) ORDER BY bucket",
            {"since": BASE, "until": BASE + 100},
        )
    assert [
        (row["bucket"], row["start_time_unix_nano"] - BASE, row["mean_running"], row["max_running"])
        for row in rows
    ] == [(1, 0, 1.5, 2), (2, 50, 0.4, 1)]


@settings(max_examples=4, deadline=None)
@given(
    works=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 12)).map(lambda w: (w[0], w[0] + w[1])),
        min_size=1,
        max_size=8,
    ),
    buckets=st.integers(1, 9),
)
def test_they_count_what_goes_on(works: list[Interval], buckets: int) -> None:
    """As counting at every nanosecond does, whole and in parts."""
    with tempfile.TemporaryDirectory() as folder:
        logs = LogBuilder(Path(folder))
        for number, (start, end) in enumerate(works):
            logs.span("s", None, start, end, trace=f"t{number}", rollout=f"{number}-0")
        with logs.engine() as engine:
            found = stretches(engine)
            parts = engine.rows(
                "FROM concurrency_in(NULL, NULL, $n) ORDER BY bucket", {"n": buckets}
            )
    running = {
        time: sum(start <= time < end for start, end in works) for time in range(min(works)[0], 45)
    }
    for start, end, number in found:
        assert {running[time] for time in range(start, end)} == {number}
    assert sum((end - start) * number for start, end, number in found) == sum(
        end - start for start, end in works
    )
    for part in parts:
        times = range(part["start_time_unix_nano"] - BASE, part["end_time_unix_nano"] - BASE)
        counts = [running[time] for time in times]
        assert part["mean_running"] == float(Fraction(sum(counts), len(counts)))
        assert part["max_running"] == max(counts)
