"""The doctor's benchmark, on one small log of many faults and a few logs of one."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def bench() -> Any:
    sys.path.insert(0, str(BENCH))
    try:
        yield importlib.import_module("bench_doctor")
    finally:
        sys.path.remove(str(BENCH))
        for name in ("bench_doctor", "busy_gym", "planted_faults"):
            sys.modules.pop(name, None)


def test_what_is_planted_is_found_and_nothing_else(bench: Any, tmp_path: Path) -> None:
    """Each fault of a rollout, three times, among healthy ones; proposed parents are the right
    ones where they are sure of themselves."""
    scores = bench.Scores()
    log = bench.mixed(7, 9 * len(bench.ROLLOUT_FAULTS), tmp_path)
    proposed = bench.ask("mixed", tmp_path, log.expected, scores)
    bench.compare_joins(proposed, log, scores)
    assert scores.is_enough, scores.examples
    assert {f"{code} {cause}" for code, cause, _ in log.expected} <= scores.by_cause.keys()
    assert scores.by_cause[bench.JOINS].right >= 10


@pytest.mark.parametrize("fault", ["healthy", "clock", "server_group_closed", "not_initialised"])
def test_a_fault_of_a_whole_log_is_found_alone(bench: Any, tmp_path: Path, fault: str) -> None:
    scores = bench.Scores()
    bench.alone(fault, 3, scores, tmp_path)
    assert scores.is_enough, scores.examples


def test_a_false_alarm_and_a_miss_are_counted(bench: Any) -> None:
    """The benchmark can fail."""
    scores = bench.Scores()
    scores.add("x", {("orphan", "line_torn", "1")}, {("orphan", "line_torn", "2")})
    score = scores.by_cause["orphan line_torn"]
    assert (score.right, score.wrong, score.missed) == (0, 1, 1)
    assert not scores.is_enough
