"""The benchmark of the answers runs, on a handful of rollouts."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("bench_answers")
    yield module
    for name in ("bench_answers", "gym_logs"):
        sys.modules.pop(name)


def test_it_times_every_answer(bench: Any) -> None:
    """Beside the plain query; only some where that is asked for, and a tenth beside them."""
    report = bench.measure(160, 1, is_linear=False, only="")
    assert set(report["answers"]) == {"plain", *bench.COMPUTED, *bench.ANSWERS}
    assert report["answers"]["plain"]["to_plain"] == 1
    report = bench.measure(160, 1, is_linear=True, only="stats")
    assert {"plain", "stats"} < set(report["answers"]) < {"plain", *bench.ANSWERS}
    assert all(answer["per_span_to_tenth"] > 0 for answer in report["answers"].values())
    assert "stats" in bench.as_text(report)
