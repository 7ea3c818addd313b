"""Steps: what one gym.job ran, else the run; how fast, how many at a time, how long its tail."""

import math
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reconstruct.conftest import BASE, LogBuilder


def steps(engine: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.rows("FROM steps ORDER BY run_id, step")
    return rows


def rollout(logs: Any, name: str, start: int, end: int | None, **facts: Any) -> None:
    logs.span(f"rollout {name}", None, start, end, **({"trace": name, "rollout": name} | facts))


def test_a_run_is_a_step(logs: Any) -> None:
    """0-0 ────      0 to 40
    0-1 ──────    0 to 60
    0-2     ───  40 to 70
    0-3     ────────────── 40 to 200, the tail
    """
    for name, start, end in (("0-0", 0, 40), ("0-1", 0, 60), ("0-2", 40, 70), ("0-3", 40, 200)):
        rollout(logs, name, start, end, status="ERROR" if name == "0-2" else "OK")
    with logs.engine() as engine:
        (step,) = steps(engine)
        ends = engine.rows("FROM step_rollouts ORDER BY nth_from_last")
    assert (step["span_id"], step["start_time_unix_nano"], step["duration_ns"]) == (None, BASE, 200)
    counts = ("rollout_count", "finished_count", "failed_count", "unfinished_count")
    assert [step[name] for name in counts] == [4, 4, 1, 0]
    assert step["rollouts_per_second"] == 4 * 1e9 / 200
    assert (step["peak_concurrency"], step["mean_concurrency"]) == (3, 290 / 200)
    assert [step[f"duration_{name}_ns"] for name in ("p50", "p99", "max")] == [40, 160, 160]
    assert [step[f"ended_{name}_ns"] for name in ("p50", "p90", "p99", "all")] == [
        60,
        200,
        200,
        200,
    ]
    assert (step["tail_count"], step["tail_ns"]) == (1, 130)
    assert [(row["rollout_id"], row["held_up_ns"]) for row in ends] == [
        ("0-3", 130),
        ("0-2", 140),
        ("0-1", 160),
        ("0-0", None),
    ]
    assert [row["began_after_ns"] for row in ends] == [40, 40, 0, 0]


def test_a_job_is_a_step(logs: Any) -> None:
    """Two jobs that run rollouts of the same ids, and a rollout of no job."""
    for job, start in (("x", 0), ("y", 1_000)):
        logs.span("job", None, start, start + 500, trace=job, name="gym.job")
        logs.span("a", "job", start + 10, start + 110, trace=job, rollout="0-0")
        logs.span("b", "job", start + 10, start + 400, trace=job, rollout="0-1")
    logs.span("apart", None, 50, 150, trace="split", rollout="0-0")
    logs.span("none", None, 2_000, 2_100, trace="none", rollout="9-9")
    with logs.engine() as engine:
        found = steps(engine)
        members = engine.rows("FROM step_rollouts ORDER BY step, rollout_id")
    assert [
        (step["step"], step["span_id"] is None, step["duration_ns"], step["rollout_count"])
        for step in found
    ] == [(1, False, 500, 2), (2, False, 500, 2), (3, True, 100, 1)]
    assert [(row["step"], row["rollout_id"], row["duration_ns"]) for row in members] == [
        (1, "0-0", 140),
        (1, "0-1", 390),
        (2, "0-0", 100),
        (2, "0-1", 390),
        (3, "9-9", 100),
    ]


def test_jobs_of_one_trace_are_told_apart_by_time(logs: Any) -> None:
    """A rollout is of the job that began last before it."""
    logs.span("train", None, 0, 2_000)
    logs.span("one", "train", 0, 900, name="gym.job")
    logs.span("two", "train", 1_000, 1_900, name="gym.job")
    logs.span("a", "one", 10, 100, rollout="0-0")
    logs.span("b", "two", 1_010, 1_100, rollout="1-0")
    with logs.engine() as engine:
        rows = engine.rows("FROM step_rollouts ORDER BY step")
    assert [(row["step"], row["rollout_id"]) for row in rows] == [(1, "0-0"), (2, "1-0")]


def test_the_order_of_lines_settles_no_tie(logs: Any, tmp_path: Path) -> None:
    """Jobs that begin at once, in one trace and in two, and spans side by side of which one failed
    and one never ended; who is to blame, of two who are alike."""
    for job in ("job", "again"):
        logs.span(job, None, 0, 500, trace="one", name="gym.job")
    for job in ("x", "y"):
        logs.span("job", None, 0, 500, trace=job, name="gym.job")
        logs.span("part", "job", 10, 50, trace=job, rollout="0-0")
    logs.span("apart", None, 10, 60, trace="apart", rollout="0-0")
    logs.span("work", None, 20, 90, trace="one", rollout="1-0")
    for label, end, status in (("a", 100, "OK"), ("b", None, "OK"), ("c", 100, "ERROR")):
        logs.span(label, None, 600, end and 600 + end, trace="mixed", rollout="2-0", status=status)
    for number in range(3):
        half = 50 if number < 2 else 300
        rollout(logs, f"3-{number}", 1_000, 1_000 + 2 * half)
        for label, start in (("left", 0), ("right", half)):
            logs.span(
                f"{label} {number}",
                f"rollout 3-{number}",
                1_000 + start,
                1_000 + start + half,
                trace=f"3-{number}",
                name=label,
            )
    relations = ("steps", "step_rollouts", "stragglers")
    with logs.engine() as engine:
        expected = [engine.rows(f"FROM {relation} ORDER BY ALL") for relation in relations]
    assert all(expected)
    turned = LogBuilder(tmp_path)
    turned.files = {"a.log": logs.files["a.log"][::-1]}
    with turned.engine() as engine:
        for relation, rows in zip(relations, expected, strict=True):
            assert engine.rows(f"FROM {relation} ORDER BY ALL") == rows, relation


def test_a_job_without_rollouts_is_a_step(logs: Any) -> None:
    logs.span("job", None, 0, 100, name="gym.job")
    with logs.engine() as engine:
        (step,) = steps(engine)
    assert (step["duration_ns"], step["rollout_count"], step["peak_concurrency"]) == (100, 0, 0)
    assert (step["mean_concurrency"], step["tail_ns"]) == (0, None)


def test_a_rollout_has_ended_when_its_outermost_span_has(logs: Any) -> None:
    """Whatever hangs below it; and failed by that, or by its gym.rollout span, not by a tool's."""
    rollout(logs, "0-0", 0, 100)
    logs.span("tool", "rollout 0-0", 10, 20, trace="0-0", status="ERROR")
    logs.span("hangs", "rollout 0-0", 10, None, trace="0-0")
    rollout(logs, "0-1", 0, 100)
    facts = {"trace": "0-1", "name": "gym.rollout", "status": "ERROR"}
    logs.span("inner", "rollout 0-1", 10, 90, **facts)
    rollout(logs, "0-2", 0, None)
    logs.span("tool", "rollout 0-2", 10, 300, trace="0-2", status="ERROR")
    with logs.engine() as engine:
        rows = engine.rows("FROM step_rollouts ORDER BY rollout_id")
    assert [(row["has_ended"], row["has_failed"]) for row in rows] == [
        (True, False),
        (True, True),
        (False, False),
    ]


@settings(max_examples=5, deadline=None)
@given(
    works=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), min_size=1, max_size=12),
    copies=st.sampled_from([1, 9, 25]),
)
def test_figures_are_those_of_a_count(works: list[tuple[int, int]], copies: int) -> None:
    """Peak, quantiles, ends and tail, also of more than a hundred rollouts."""
    works = works * copies
    with tempfile.TemporaryDirectory() as folder:
        logs = LogBuilder(Path(folder))
        for number, (start, length) in enumerate(works):
            rollout(logs, f"{number}-0", start, start + length)
        with logs.engine() as engine:
            (step,) = steps(engine)
    begin, count = min(start for start, _ in works), len(works)
    ends = sorted(start + length for start, length in works)
    lengths = sorted(length for _, length in works)
    peak = max(sum(start <= t < start + length for start, length in works) for t, _ in works)
    assert step["peak_concurrency"] == peak
    assert step["mean_concurrency"] == sum(lengths) / (ends[-1] - begin)
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("all", 100)):
        assert step[f"ended_{name}_ns"] == ends[-(-count * percent // 100) - 1] - begin
    assert step["duration_p50_ns"] == lengths[math.ceil(count / 2) - 1]
    assert step["duration_p99_ns"] == lengths[-(-count * 99 // 100) - 1]
    tail = max(count // 100, 1)
    assert step["tail_count"] == tail
    assert step["tail_ns"] == (ends[-1] - ends[-1 - tail] if count > tail else None)
