"""The benchmark of the intake runs, on a handful of rollouts."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCH))
    module = importlib.import_module("bench_intake")
    yield module
    for name in ("bench_intake", "gym_logs"):
        sys.modules.pop(name)


def test_its_ways_read_the_same(bench: Any, tmp_path: Path) -> None:
    """The command finds every span, cold and grown; the other ways run, and say how long."""
    logs = bench.Logs(tmp_path, 320)
    written = [line for path in logs.logs.iterdir() for line in path.read_text().splitlines()]
    assert logs.lines == len(written)
    assert sum('"span"' in line for line in written) == 320
    logs.cold()
    asked = [logs.question(words) for words in bench.QUESTIONS.values()]
    assert all(seconds > 0 and peak > 1 << 20 for seconds, peak in asked)
    logs.grown()
    assert logs.peak_bytes > 1 << 20
    ways = {
        "quick": logs.quick,
        "careful": logs.careful,
        "duckdb": lambda: logs.duckdb(":memory:"),
    }
    times = bench.timed(ways, 2)
    assert times.keys() == ways.keys()
    assert all(seconds > 0 for both in times.values() for seconds in both)
    assert {len(both) for both in times.values()} == {2}
