"""Calls made many times one after the other (N+1), told from a fan-out by how they overlap."""

from statistics import median
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reconstruct.conftest import LogBuilder

COLUMNS = "parent_name, name, route, call_count, duration_total_ns, parent_share, overlap_share"


def found(logs: Any, columns: str = COLUMNS) -> list[tuple[Any, ...]]:
    with logs.engine() as engine:
        rows = engine.rows(f"SELECT {columns} FROM repeated_calls ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def calls(logs: Any, count: int, step: int, length: int = 10, **facts: Any) -> None:
    """Write calls of one name below `run`, one every `step` ns."""
    name = facts.pop("name", "get")
    for number in range(count):
        start = number * step
        logs.span(f"{name} {number}", "run", start, start + length, name=name, **facts)


def test_one_after_the_other(logs: Any) -> None:
    """Twelve calls of 10 ns in a parent of 240 ns: half of it."""
    logs.span("run", None, 0, 240)
    calls(logs, 12, 20)
    assert found(logs) == [("run", "get", None, 12, 120, 0.5, 0)]
    assert found(logs, "duration_p50_ns, end_time_unix_nano - start_time_unix_nano AS n") == [
        (10, 230)
    ]


def test_ten_are_not_many(logs: Any) -> None:
    """More than ten are."""
    logs.span("run", None, 0, 240)
    calls(logs, 10, 20)
    assert found(logs) == []
    calls(logs, 11, 20, name="put")
    assert found(logs, "name, call_count") == [("put", 11)]


def test_a_fan_out_is_none(logs: Any) -> None:
    """Calls that overlap by more than a tenth of their time run beside each other."""
    logs.span("run", None, 0, 1000)
    calls(logs, 20, 0, name="at once")
    calls(logs, 20, 5, name="by halves")
    calls(logs, 20, 9, 11, name="nearly in turn", service="b")
    calls(logs, 21, 19, 20, name="in turn")
    assert found(logs, "name, overlap_share < 0.1, overlap_share > 0") == [("in turn", True, True)]


def test_calls_that_differ(logs: Any) -> None:
    """Of another length, name, service or route they are no repetition."""
    logs.span("run", None, 0, 10_000)
    for number in range(12):
        logs.span(f"growing {number}", "run", 3**number, 2 * 3**number, name="growing")
        logs.span(f"name {number}", "run", number * 10, number * 10 + 5)
        logs.span(
            f"routed {number}", "run", number * 10, number * 10 + 5, name="GET",
            attributes={"http.route": f"/{number % 2}"},
        )  # fmt: skip
        logs.span(
            f"service {number}", "run", number * 10, number * 10 + 5, name="s",
            service="ab"[number % 2],
        )  # fmt: skip
    assert found(logs) == []


def test_what_is_much_shorter_or_longer_is_left_out(logs: Any) -> None:
    """Of a series that is long enough without it."""
    logs.span("run", None, 0, 10_000)
    calls(logs, 11, 20)
    logs.span("short", "run", 2_000, 2_004, name="get")
    logs.span("long", "run", 3_000, 3_021, name="get")
    logs.span("open", "run", 4_000, None, name="get")
    assert found(logs, "call_count, duration_total_ns") == [(11, 110)]


def test_a_client_span_has_the_route_of_its_server_half(logs: Any) -> None:
    """HTTP POST says nothing else of where it goes."""
    logs.span("run", None, 0, 1_000)
    for number in range(24):
        start = number * 40
        logs.span(f"call {number}", "run", start, start + 20, name="HTTP POST", kind="CLIENT")
        logs.span(
            f"serve {number}", f"call {number}", start + 1, start + 19, kind="SERVER",
            service="b", attributes={"http.route": f"/{number % 2}"},
        )  # fmt: skip
    assert found(logs, "route, call_count") == [("/0", 12), ("/1", 12)]


def test_children_are_cut_to_their_parent(logs: Any) -> None:
    """A share is never more than the whole."""
    logs.span("run", None, 0, 100)
    calls(logs, 15, 10)
    assert found(logs, "call_count, parent_share") == [(15, 1.0)]


def test_an_unfinished_parent(logs: Any) -> None:
    """Its share is of what was seen of it."""
    logs.process("started", 0)
    logs.span("run", None, 0, None)
    calls(logs, 12, 20)
    logs.process("stopped", 480)
    assert found(logs, "call_count, parent_share") == [(12, 0.25)]


def test_twenty_thousand_children(logs: Any) -> None:
    """In one parent, all of them one series."""
    logs.span("run", None, 0, 400_000)
    calls(logs, 20_000, 20)
    assert found(logs, "call_count, parent_share, overlap_share") == [(20_000, 0.5, 0)]


def test_any_children(logs: Any) -> None:
    """The same series as by looking at each pair of calls."""
    folder = logs.folder
    children = st.lists(
        st.tuples(st.integers(0, 800), st.integers(4, 12)), min_size=9, max_size=24, unique=True
    )

    @settings(max_examples=3, deadline=None)
    @given(st.lists(children, min_size=20, max_size=40))
    def check(forest: list[list[tuple[int, int]]]) -> None:
        logs = LogBuilder(folder)
        expected = []
        for number, works in enumerate(forest):
            logs.span("run", None, 0, 400, trace=f"{number}", name=f"{number}")
            for nth, (start, length) in enumerate(works):
                logs.span(f"{nth}", "run", start, start + length, trace=f"{number}", name="get")
            expected += [(f"{number}", *series) for series in looked_at(works)]
        rows = found(logs, "parent_name, call_count, duration_total_ns, overlap_share")
        assert [row[:3] for row in rows] == sorted(row[:3] for row in expected)
        for row, other in zip(rows, sorted(expected), strict=True):
            assert abs(row[3] - other[3]) < 1e-9

    check()


def looked_at(works: list[tuple[int, int]]) -> list[tuple[int, int, float]]:
    """Count, total and overlap of the calls of a parent, if they are a series."""
    if len(works) <= 10:
        return []
    middle = median(length for _, length in works)
    alike = [work for work in works if middle / 2 <= work[1] <= 2 * middle]
    total = sum(length for _, length in alike)
    covered = {moment for start, length in alike for moment in range(start, start + length)}
    if len(alike) <= 10 or 10 * (total - len(covered)) > total:
        return []
    return [(len(alike), total, 1 - len(covered) / total)]
