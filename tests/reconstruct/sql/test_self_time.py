"""Self time: what of a span its children do not cover."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reconstruct.conftest import LogBuilder


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


def of_parent(logs: Any) -> tuple[int, int]:
    """Return the parent's self time, and that without detached children."""
    with logs.engine() as engine:
        (row,) = engine.rows(
            """
            SELECT self_time_ns, self_excluding_detached_ns
            FROM self_time JOIN spans USING (trace_id, span_id, occurrence)
            WHERE name = 'parent'
            """
        )
    return row["self_time_ns"], row["self_excluding_detached_ns"]


def test_what_outlives_its_parent_in_one_process_is_detached(logs: Any) -> None:
    """The parent waited for the other child alone, and for nothing where that one is."""
    logs.span("parent", start=0, end=100)
    logs.span("waited for", "parent", 10, 40)
    logs.span("left running", "parent", 30, 130)
    assert of_parent(logs) == (10, 70)


def test_all_children_are_detached(logs: Any) -> None:
    logs.span("parent", start=0, end=100)
    logs.span("left running", "parent", 30, 130)
    assert of_parent(logs) == (30, 100)


def test_who_outlives_its_caller_in_another_process_is_not(logs: Any) -> None:
    """Clocks differ: a server's half may seem to end after its client's."""
    logs.span("parent", start=0, end=100, kind="CLIENT")
    logs.span("server", "parent", 30, 130, kind="SERVER", service="b")
    assert of_parent(logs) == (30, 30)


def test_a_producer_waits_for_no_consumer(logs: Any) -> None:
    """Wherever that is; a consumer of another span is a child like others."""
    logs.span("parent", start=0, end=100, kind="PRODUCER")
    logs.span("taken up", "parent", 20, 60, kind="CONSUMER", service="b")
    logs.span("other", start=0, end=100, trace="t2")
    logs.span("in it", "other", 20, 60, kind="CONSUMER", trace="t2")
    assert of_parent(logs) == (60, 100)
    with logs.engine() as engine:
        rows = engine.rows(
            """
            SELECT name
            FROM self_time JOIN spans USING (trace_id, span_id, occurrence)
            WHERE self_time_ns <> self_excluding_detached_ns
            """
        )
    assert rows == [{"name": "parent"}]


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    children=st.lists(
        st.tuples(st.integers(-20, 120), st.integers(0, 80), st.booleans()), max_size=6
    )
)
def test_any_children(
    children: list[tuple[int, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Counted moment by moment; children are in the parent's process, or in another one."""
    logs = LogBuilder(tmp_path_factory.mktemp("logs"))
    logs.span("parent", start=0, end=100)
    covered, attached = set[int](), set[int]()
    for number, (start, length, is_near) in enumerate(children):
        end = start + length
        logs.span(f"child {number}", "parent", start, end, service="a" if is_near else "b")
        moments = {moment for moment in range(100) if start <= moment < end}
        covered |= moments
        if not (is_near and end > 100):
            attached |= moments
    assert of_parent(logs) == (100 - len(covered), 100 - len(attached))
