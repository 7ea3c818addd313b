"""Drag and slack: what a span's length means to the end of its root."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine

Work = tuple[str, str | None, int, int]


def found(engine: Engine) -> dict[str, tuple[bool, int, int | None]]:
    """On the path, drag and slack, by name."""
    rows = engine.rows(
        "SELECT name, critical, drag_ns, slack_ns FROM slack JOIN spans USING (trace_id, span_id)"
    )
    return {row["name"]: (row["critical"], row["drag_ns"], row["slack_ns"]) for row in rows}


def write(logs: Any, works: Iterable[Work], trace: str = "t") -> None:
    for name, parent, start, end in works:
        logs.span(name, parent, start, end, trace=trace, name=f"{trace}{name}")


def test_one_after_the_other(logs: Any) -> None:
    """All of each would have been gained; nothing could have taken longer."""
    write(logs, [("r", None, 0, 100), ("a", "r", 10, 40), ("b", "r", 50, 90), ("g", "b", 60, 80)])
    with logs.engine() as engine:
        assert found(engine) == {
            "tr": (True, 100, 0),
            "ta": (True, 30, 0),
            "tb": (True, 40, 0),
            "tg": (True, 20, 0),
        }


def test_side_by_side(logs: Any) -> None:
    """The longer one drags by what it ends after the other, which has that much slack."""
    write(
        logs,
        [
            ("r", None, 0, 100),
            ("a", "r", 10, 90),
            ("b", "r", 10, 60),
            ("g", "a", 20, 85),
            ("h", "b", 20, 50),
        ],
    )
    with logs.engine() as engine:
        assert found(engine) == {
            "tr": (True, 100, 0),
            "ta": (True, 30, 0),
            "tb": (False, 0, 30),
            "tg": (True, 30, 0),
            "th": (False, 0, 30),
        }


def test_slack_adds_up_on_the_way_to_the_root(logs: Any) -> None:
    """What is beside others in a span that is itself beside others has the slack of both."""
    write(
        logs,
        [
            ("r", None, 0, 100),
            ("a", "r", 0, 100),
            ("b", "r", 0, 60),
            ("g", "b", 0, 60),
            ("h", "b", 0, 45),
        ],
    )
    with logs.engine() as engine:
        rows = found(engine)
    assert rows["tg"] == (False, 0, 40)
    assert rows["th"] == (False, 0, 55)


def test_what_nobody_waits_for(logs: Any) -> None:
    """A consumer may take as long as it likes; what is outside its parent has no row."""
    logs.span("r", None, 0, 100, kind="PRODUCER", name="r")
    logs.span("c", "r", 20, 80, kind="CONSUMER", name="c")
    logs.span("d", "c", 30, 40, name="d")
    logs.span("out", "r", 110, 120, name="out")
    with logs.engine() as engine:
        assert found(engine) == {
            "r": (True, 100, 0),
            "c": (False, 0, None),
            "d": (False, 0, None),
        }


@st.composite
def trees(draw: st.DrawFn) -> list[Work]:
    """Spans within their parents, siblings at any times."""
    works: list[Work] = [("s0", None, 0, 60)]
    for number in range(1, draw(st.integers(2, 9))):
        name, _, low, high = works[draw(st.integers(0, number - 1))]
        start = draw(st.integers(low, high - 1))
        works.append((f"s{number}", name, start, draw(st.integers(start + 1, high))))
    return works


def judged(works: list[Work], name: str) -> tuple[bool, int, int]:
    """On the path, drag and slack of a span, by what they mean."""
    (work,) = (each for each in works if each[0] == name)
    _, parent, start, end = work
    if parent is None:
        return True, end - start, 0
    critical, drag, slack = judged(works, parent)
    siblings = [each for each in works if each[1] == parent]
    waited, at = [], next(each[3] for each in works if each[0] == parent)
    while over := [each for each in siblings if each[3] <= at]:
        last = max(over, key=lambda each: (each[3], -each[2]))
        waited.append(last)
        at = last[2]
    if work in waited:
        limit = max(
            (each[3] for each in siblings if each != work and each[3] <= end), default=start
        )
        return critical, min(drag, end - max(start, limit)), slack
    return False, 0, slack + min(each[3] for each in waited if each[3] >= end) - end


@settings(
    max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(trees(), min_size=10, max_size=30))
def test_any_tree(logs: Any, forest: list[list[Work]]) -> None:
    """Many at once; twins, of which one is waited for by its id, are left out."""
    logs.files.clear()
    for number, works in enumerate(forest):
        write(logs, works, trace=f"t{number}")
    with logs.engine() as engine:
        rows = found(engine)
    for number, works in enumerate(forest):
        twins = {each[1:] for each in works if sum(o[1:] == each[1:] for o in works) > 1}
        if not twins:
            for name, *_ in works:
                assert rows[f"t{number}{name}"] == judged(works, name)


@pytest.mark.parametrize("shape", ["chain", "row"])
def test_ten_thousand_spans(logs: Any, shape: str) -> None:
    """Deep or wide."""
    count = 10_000
    if shape == "chain":
        works: list[Work] = [
            (f"s{n}", f"s{n - 1}" if n else None, n, 3 * count - n) for n in range(count)
        ]
    else:
        works = [("s", None, 0, 10 * count)]
        works += [(f"s{n}", "s", 10 * n, 10 * n + 15) for n in range(count)]
    write(logs, works)
    with logs.engine() as engine:
        rows = found(engine)
    assert len(rows) == len(works)
