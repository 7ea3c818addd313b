"""Questions on a store: how much of it they read, counted by DuckDB itself."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine
from reconstruct.tree import rollout_traces, trace_tree

ROLLOUTS = 65_000
"""Two spans each: a bit more than one block of DuckDB's, 122,880 rows."""
BLOCK = 122_880


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Logs of rollouts of two spans, and where they are kept; the traces are in no order."""
    folder = tmp_path_factory.mktemp("questions")
    numbers = list(range(ROLLOUTS))
    random.Random(1).shuffle(numbers)
    (folder / "logs").mkdir()
    with (folder / "logs" / "a.log").open("w") as file:
        for number in numbers:
            file.write(_line(number, 2, f'"{2 * number + 1:016x}"', "step"))
            file.write(_line(number, 1, "null", "root"))
    with Engine.read([str(folder / "logs")], store=folder / "store"):
        return folder / "logs", folder / "store"


def _line(number: int, nth: int, parent: str, name: str) -> str:
    trace_id = (number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)
    start = 1_800_000_000_000_000_000 + number * 1_000 + nth
    return (
        f'{{"record_type":"span","seq":{2 * number + nth},"trace_id":"{trace_id:032x}",'
        f'"span_id":"{2 * number + nth:016x}","parent_span_id":{parent},"name":"{name}",'
        f'"kind":"INTERNAL","start_time_unix_nano":{start},"end_time_unix_nano":{start + 500},'
        f'"flags":259,"status":{{"code":"UNSET"}},'
        f'"attributes":{{"nemo.gym.rollout.id":"{number}-0"}},'
        f'"resource":{{"attributes":{{"service.name":"a","service.instance.id":"1"}}}}}}\n'
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The profiles of all queries that an engine of ours is asked in the test."""
    profiles: list[dict[str, Any]] = []
    rows = Engine.rows

    def profiled(self: Engine, sql: str, parameters: Any = None) -> list[dict[str, Any]]:
        (plan,) = rows(self, f"EXPLAIN (ANALYZE, FORMAT json) {sql}", parameters)
        profiles.append(json.loads(plan["explain_value"]))
        return rows(self, sql, parameters)

    monkeypatch.setattr(Engine, "rows", profiled)
    return profiles


def scanned(profiles: list[dict[str, Any]], table: str) -> list[int]:
    """Rows read of a table, by each scan of it."""

    def walk(operators: list[dict[str, Any]]) -> list[int]:
        found = []
        for operator in operators:
            if operator["extra_info"].get("Table", "").endswith(f".{table}"):
                found.append(operator["rows_scanned"])
            found += walk(operator.get("children", []))
        return found

    return [rows for profile in profiles for rows in walk(profile["operator"])]


def early(engine: Engine) -> tuple[str, str]:
    """Return a trace and its rollout of which all lines lie in the first block."""
    (found,) = engine.rows(
        f"""
        SELECT trace_id, min(rollout_id) AS rollout_id
        FROM spans
        GROUP BY trace_id
        HAVING max(rowid) < {BLOCK // 2}
        ORDER BY trace_id
        LIMIT 1
        """
    )
    return found["trace_id"], found["rollout_id"]


def test_a_trace_reads_its_block(store: tuple[Path, Path], asked: list[dict[str, Any]]) -> None:
    """Places and times of a trace come from one block, its spans from the blocks they lie in."""
    logs, kept = store
    with Engine.read([str(logs)], store=kept) as engine:
        trace_id, _ = early(engine)
        asked.clear()
        assert trace_tree(engine, trace_id).span_count == 2
    for table in ("_edges", "_span_lines"):
        rows = scanned(asked, table)
        assert rows
        assert max(rows) <= BLOCK < 2 * ROLLOUTS, table


def test_a_rollout_is_found_without_its_spans(
    store: tuple[Path, Path], asked: list[dict[str, Any]]
) -> None:
    """Its traces stand in a table of their own; no query reads the attributes of other spans."""
    logs, kept = store
    with Engine.read([str(logs)], store=kept) as engine:
        _, rollout_id = early(engine)
        asked.clear()
        (found,) = rollout_traces(engine, rollout_id)
    assert found.span_count == 2
    assert scanned(asked[:1], "_span_lines") == []
    assert scanned(asked[:1], "_rollout_traces")
    assert max(scanned(asked[-1:], "_span_lines")) <= BLOCK < 2 * ROLLOUTS
