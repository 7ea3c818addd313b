"""Trees: places in them, orphans, cycles, and cost in deep and wide ones."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine


def tree(logs: Any) -> dict[str, tuple[int, int, bool, bool]]:
    """Return depth, path, orphan, cycle by name."""
    with logs.engine() as engine:
        rows = engine.rows(
            """
            SELECT name, depth, path, orphan, cycle
            FROM span_tree JOIN spans USING (trace_id, span_id, occurrence)
            """
        )
    return {row.pop("name"): tuple(row.values()) for row in rows}


def test_order_from_top_to_bottom(logs: Any) -> None:
    """Parents before children, siblings by start.

    root ── b ── c
         └─ a
    """
    logs.span("a", "root", 50, 60)
    logs.span("c", "b", 12, 13)
    logs.span("b", "root", 10, 20)
    logs.span("root", start=0, end=100)
    assert tree(logs) == {
        "root": (0, 0, False, False),
        "b": (1, 1, False, False),
        "c": (2, 2, False, False),
        "a": (1, 3, False, False),
    }


def test_a_parent_that_is_not_there(logs: Any) -> None:
    """Its children are orphans and stand together, whatever starts between them."""
    logs.span("late", "gone", 50, 60)
    logs.span("early", "gone", 10, 20)
    logs.span("other", "elsewhere", 30, 31)
    logs.span("root", start=40, end=100)
    assert tree(logs) == {
        "early": (0, 0, True, False),
        "late": (0, 1, True, False),
        "other": (0, 2, True, False),
        "root": (0, 3, False, False),
    }


def test_an_unfinished_parent_is_a_parent(logs: Any) -> None:
    """A start line is enough: the child is no orphan."""
    logs.span("open", start=0, end=None)
    logs.span("child", "open", 10, 20)
    assert tree(logs)["child"] == (1, 1, False, False)


def test_cycles_are_cut_above_their_earliest_span(logs: Any) -> None:
    """Each span is shown once; healthy trees come first.

    root        a → b → a, with c under b        self → self
    """
    logs.span("root", start=90, end=99)
    logs.span("a", "b", 20, 30)
    logs.span("b", "a", 10, 40)
    logs.span("c", "b", 11, 12)
    logs.span("self", "self", 1, 2)
    assert tree(logs) == {
        "root": (0, 0, False, False),
        "self": (0, 1, False, True),
        "b": (0, 2, False, True),
        "c": (1, 3, False, False),
        "a": (1, 4, False, True),
    }


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parents=st.lists(st.integers(-2, 30), min_size=1, max_size=40))
def test_every_span_has_one_place(
    tmp_path_factory: pytest.TempPathFactory, parents: list[int]
) -> None:
    """Whatever the parents, cycles too: paths count from 0, children stand below their parent."""
    folder = tmp_path_factory.mktemp("any")
    rows = []
    for number, parent in enumerate(parents):
        rows.append(
            {
                "record_type": "span",
                "seq": number,
                "trace_id": "a" * 32,
                "span_id": f"{number + 1:016x}",
                "parent_span_id": None if parent < 0 else f"{parent + 1:016x}",
                "name": "x",
                "kind": "INTERNAL",
                "start_time_unix_nano": 10**18 + number,
                "end_time_unix_nano": 10**18 + number,
                "attributes": {},
                "resource": {},
            }
        )
    (folder / "a.log").write_text("\n".join(json.dumps(row) for row in rows))
    with Engine.read([str(folder)]) as engine:
        tree = engine.rows("FROM span_tree_of(NULL) ORDER BY path")
    assert [row["path"] for row in tree] == list(range(len(parents)))
    place = {row["node"]: row for row in tree}
    for row in tree:
        above = place.get(row["parent"])
        if above is None:
            assert row["depth"] == 0
        else:
            assert row["depth"] == above["depth"] + 1
            assert 0 < row["path"] - above["path"] < above["subtree_span_count"]
    orphans = sum(parent >= len(parents) for parent in parents)
    assert sum(row["orphan"] for row in tree) == orphans


@pytest.mark.parametrize("shape", ["chain", "star", "ring"])
def test_ten_thousand_spans_take_no_time(tmp_path: Path, shape: str) -> None:
    """Depth, width and length of a cycle cost a logarithm, not a square."""
    count = 10_000
    with (tmp_path / "a.log").open("w") as file:
        for number in range(count):
            parent = {
                "chain": number - 1,
                "star": min(number, 1) - 1,
                "ring": (number + 1) % count,
            }[shape]
            ids = f'"span_id":"{number + 1:016x}","parent_span_id":' + (
                "null" if parent < 0 else f'"{parent + 1:016x}"'
            )
            file.write(
                f'{{"record_type":"span","seq":{number},"trace_id":"{"a" * 32}",{ids},"name":"x",'
                f'"start_time_unix_nano":{number},"end_time_unix_nano":{2 * count - number}}}\n'
            )
    with Engine.read([str(tmp_path)]) as engine:
        begin = time.perf_counter()
        (row,) = engine.rows(
            "SELECT max(depth) AS depth, count(DISTINCT path) AS paths FROM span_tree"
        )
        assert time.perf_counter() - begin < 5
    assert row == {"depth": 1 if shape == "star" else count - 1, "paths": count}
