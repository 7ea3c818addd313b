"""Cohorts of rollouts: the change of the mean duration, taken apart by call path."""

import random
from collections import defaultdict
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from statistics import fmean, variance
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine

MS = 1_000_000
COHORTS = """
    WITH cohort AS (
        SELECT upper(rollout_id[1]) AS cohort, run_id, rollout_id, trace_id
        FROM _rollout_traces
    )
"""


def changes(engine: Engine) -> dict[str, dict[str, Any]]:
    """The rows by their calls, whole and outside; rollouts whose ids begin with a are A."""
    rows = engine.rows(f"{COHORTS} FROM path_changes_of('cohort') ORDER BY ALL")
    return {row["calls"] or row["part"]: row for row in rows}


def write(logs: Any, rollout: str, works: Sequence[tuple[str, int]], gap: int = 0) -> None:
    """Write root ── works, one after the other for so long, in a trace; times are ns.

    With a gap, a second trace of the rollout begins that long after the first.
    """
    at = 0
    for number, (name, length) in enumerate(works):
        logs.span(f"w{number}", "root", at, at + length, trace=rollout, name=name)
        at += length
    logs.span("root", None, 0, at, trace=rollout, rollout=rollout)
    if gap:
        logs.span("late", None, at + gap, at + gap + 10, trace=f"{rollout} 2", rollout=rollout)


def test_means_and_counts_per_rollout(logs: Any) -> None:
    """A rollout without a path counts as 0."""
    write(logs, "a0", [("work", 100), ("work", 200)])
    write(logs, "a1", [("rest", 60)])
    write(logs, "b0", [("work", 500)])
    logs.span("w9", "root", 0, 40, trace="b0", name="fail", status="ERROR")
    with logs.engine() as engine:
        found = changes(engine)
    work = found["a: root > work"]
    assert (work["rollouts_a"], work["rollouts_b"]) == (1, 1)
    assert (work["spans_a"], work["spans_b"]) == (1.0, 1.0)
    assert (work["duration_p50_a_ns"], work["duration_p95_a_ns"]) == (100, 200)
    assert (work["blame_a_ns"], work["blame_b_ns"], work["difference_ns"]) == (150, 500, 350)
    assert work["ratio"] == pytest.approx(500 / 150)
    assert (work["low_ns"], work["is_real"]) == (None, None)
    gone = found["a: root > rest"]
    assert (gone["spans_a"], gone["spans_b"], gone["blame_a_ns"], gone["blame_b_ns"]) == (
        0.5, None, 30, 0,
    )  # fmt: skip
    assert (found["a: root > fail"]["failed_b"], work["failed_b"]) == (1.0, 0.0)
    assert (found["whole"]["blame_a_ns"], found["whole"]["blame_b_ns"]) == (180, 500)


def test_a_small_change_of_many_is_reported(logs: Any) -> None:
    """100 to 124 ms, which between two is within the tolerance."""
    for number in range(1_000):
        write(logs, f"a{number}", [("work", 100 * MS)])
        write(logs, f"b{number}", [("work", 124 * MS)])
    with logs.engine() as engine:
        found = changes(engine)
    for row in (found["a: root > work"], found["whole"]):
        assert row["is_real"]
        assert (row["difference_ns"], row["low_ns"], row["high_ns"]) == (24 * MS,) * 3
    assert not found["a: root"]["is_real"]


def test_chance_is_not_a_change(logs: Any) -> None:
    """Of ten paths that differ by chance none is marked, but the one that is slower."""
    chance = random.Random(7)
    for number in range(80):
        works = [(f"work{n}", round(MS * chance.lognormvariate(0, 0.5))) for n in range(10)]
        if number % 2:
            works[3] = ("work3", works[3][1] * 3)
        write(logs, f"{'ab'[number % 2]}{number}", works)
    with logs.engine() as engine:
        found = changes(engine)
    assert {name for name, row in found.items() if row["is_real"]} == {
        "a: root > work3",
        "whole",
    }
    for row in found.values():
        assert row["low_ns"] <= row["difference_ns"] <= row["high_ns"]


def test_a_gap_between_traces_is_outside(logs: Any) -> None:
    for cohort, gap in (("a", 100), ("b", 700)):
        write(logs, f"{cohort}0", [("work", 50)], gap)
    with logs.engine() as engine:
        found = changes(engine)
    assert (found["outside"]["blame_a_ns"], found["outside"]["blame_b_ns"]) == (100, 700)
    assert found["whole"]["difference_ns"] == 600


def test_runs_of_one_id_are_kept_apart_by_their_traces(logs: Any) -> None:
    """Rollouts of the same id in both cohorts, as when two runs share a job's id."""
    write(logs, "t", [("work", 100)])
    logs.span("w", "r", 0, 300, trace="u", name="work")
    logs.span("r", None, 0, 300, trace="u", name="root", rollout="t")
    with logs.engine() as engine:
        rows = engine.rows(
            """
            WITH cohort AS (
                SELECT
                    CASE WHEN trace_id = (SELECT min(trace_id) FROM traces) THEN 'A' ELSE 'B' END
                        AS cohort,
                    run_id,
                    rollout_id,
                    trace_id
                FROM _rollout_traces
            )
            SELECT blame_a_ns, blame_b_ns FROM path_changes_of('cohort') WHERE part = 'whole'
            """
        )
    assert sorted(rows[0].values()) == [100, 300]


def test_traces_without_rollouts(logs: Any) -> None:
    """A null rollout is the whole trace."""
    logs.span("one", trace="t", end=100)
    logs.span("one", trace="u", end=150)
    with logs.engine() as engine:
        (row,) = engine.rows(
            """
            WITH cohort AS (
                SELECT
                    CASE WHEN duration_ns < 120 THEN 'A' ELSE 'B' END AS cohort,
                    run_id,
                    NULL::VARCHAR AS rollout_id,
                    trace_id
                FROM traces
            )
            SELECT blame_a_ns, blame_b_ns FROM path_changes_of('cohort') WHERE part = 'path'
            """
        )
    assert tuple(row.values()) == (100, 150)


def test_the_interval_is_welchs(logs: Any) -> None:
    """Of the whole, with 95 %; with unequal numbers and spreads."""
    a, b = [100, 140, 90, 110, 160, 130], [300, 100, 420, 150, 280, 500, 90, 333]
    for name, lengths in (("a", a), ("b", b)):
        for number, length in enumerate(lengths):
            write(logs, f"{name}{number}", [("work", length * MS)])
    errors = [variance(lengths) / len(lengths) for lengths in (a, b)]
    df = sum(errors) ** 2 / sum(
        error**2 / (len(lengths) - 1) for error, lengths in zip(errors, (a, b), strict=True)
    )
    assert 7.5 < df < 8
    t = 2.32  # between the 2.365 of 7 degrees and the 2.306 of 8
    with logs.engine() as engine:
        whole = changes(engine)["whole"]
    difference = fmean(b) - fmean(a)
    assert whole["difference_ns"] == round(difference * MS)
    margin = t * sum(errors) ** 0.5
    assert whole["low_ns"] / MS == pytest.approx(difference - margin, abs=0.02 * margin)
    assert whole["high_ns"] / MS == pytest.approx(difference + margin, abs=0.02 * margin)


@pytest.mark.parametrize(
    ("df", "quantiles"),
    [
        (1.9, (None, None)),
        (2, (4.303, 22.327)),
        (3.9, (4.303, 22.327)),
        (4, (2.776, 7.173)),
        (10, (2.228, 4.144)),
        (30, (2.042, 3.385)),
        (10_000, (1.960, 3.091)),
    ],
)
def test_quantiles_of_student(df: float, quantiles: tuple[float | None, ...]) -> None:
    """As the tables have them, for tails of 2.5 % and of 1 in 1,000."""
    folder = files("reconstruct") / "sql"
    with duckdb.connect() as shell:
        for name in ("_normal_quantile", "_student_quantile"):
            shell.execute(folder.joinpath(f"{name}.sql").read_text("utf-8"))
        for tail, expected in zip((0.025, 0.001), quantiles, strict=True):
            sql = f"SELECT _student_quantile({tail}, _normal_quantile({tail}), {df}::DOUBLE)"
            (t,) = shell.execute(sql).fetchone() or ()
            assert t == (expected if expected is None else pytest.approx(expected, rel=2e-3))


Rollout = tuple[str, list[tuple[str, int]], int]
rollouts = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.lists(st.tuples(st.sampled_from(["x", "y", "z"]), st.integers(1, 50)), max_size=5),
        st.sampled_from([0, 0, 7]),
    ),
    min_size=2,
    max_size=14,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cohorts")


def test_the_changes_add_up_to_the_wholes(logs: Any, folder: Path) -> None:
    """And each is the mean over all rollouts of what its spans are to blame for."""

    @settings(max_examples=4, deadline=None)
    @given(rollouts)
    def check(cohorts: list[Rollout]) -> None:
        logs.folder, logs.files = folder, {}
        walls: dict[str, list[int]] = {"a": [], "b": []}
        blames: dict[tuple[str, str], int] = defaultdict(int)
        for number, (side, works, gap) in enumerate([("a", [], 0), ("b", [], 0), *cohorts]):
            write(logs, f"{side}{number}", works, gap)
            length = sum(each for _, each in works)
            walls[side].append(length + (gap + 10 if gap else 0))
            for name, each in works:
                blames[side, name] += each
        with logs.engine() as engine:
            found = changes(engine)
        whole = found.pop("whole")
        for side in "ab":
            mean = fmean(walls[side])
            assert whole[f"blame_{side}_ns"] == pytest.approx(mean, abs=0.51)
            parts = sum(row[f"blame_{side}_ns"] for row in found.values())
            assert parts == pytest.approx(mean, abs=0.5 * len(found) + 0.1)
        assert sum(row["difference_ns"] for row in found.values()) == pytest.approx(
            whole["difference_ns"], abs=0.5 * len(found) + 0.6
        )
        for name in "xyz":
            row = found.get(f"a: root > {name}")
            for side in "ab":
                expected = blames[side, name] / len(walls[side])
                assert (row[f"blame_{side}_ns"] if row else 0) == pytest.approx(expected, abs=0.51)

    check()
