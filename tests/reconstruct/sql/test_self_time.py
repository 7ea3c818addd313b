"""Self time: what of a span its children do not cover."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("children", "self_time"),
    [
        ([], 100),
        ([(10, 40), (30, 60), (90, 130), (150, 160)], 40),
        ([(0, 100)], 0),
        ([(20, 50), (20, 50)], 70),
        ([(-50, 10), (10, 20)], 80),
        ([(10, 90), (20, 30), (40, 95)], 15),
        ([(30, 30)], 100),
        ([(-20, -10)], 100),
    ],
)
def test_children(logs: Any, children: list[tuple[int, int]], self_time: int) -> None:
    """Children are clipped to the parent 0-100; where they overlap, time counts once."""
    logs.span("parent", start=0, end=100)
    for number, (start, end) in enumerate(children):
        logs.span(f"child {number}", "parent", start, end)
    with logs.engine() as engine:
        (row,) = engine.rows(
            """
            SELECT self_time_ns
            FROM self_time JOIN spans USING (trace_id, span_id, occurrence)
            WHERE name = 'parent'
            """
        )
    assert row["self_time_ns"] == self_time


def test_unfinished_spans(logs: Any) -> None:
    """They have no self time, but cover their parent as far as they were seen."""
    logs.process("started", 0)
    logs.span("parent", start=0, end=100)
    logs.span("child", "parent", 20, None)
    logs.process("stopped", 60)
    with logs.engine() as engine:
        assert [row["self_time_ns"] for row in engine.rows("FROM self_time")] == [20]
