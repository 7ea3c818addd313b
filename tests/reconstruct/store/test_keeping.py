"""Answers that are kept: computed once, the same as without, views again when lines are added."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from reconstruct.engine import Engine
from reconstruct.store import building, keeping

KINDS = "SELECT view_name FROM duckdb_views() WHERE list_contains($kept, view_name)"
COMMENTS = """
    SELECT table_name, column_name, data_type, comment
    FROM duckdb_columns()
    WHERE NOT internal
    ORDER BY ALL
"""


@pytest.fixture(autouse=True)
def _few_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_WORTH_SPANS", 3)


@pytest.fixture
def folder(logs: Any) -> Path:
    """Logs of a call between two services, one of its spans without a parent."""
    logs.span("root", end=1_000, service="a", rollout="0-0")
    logs.span("call", "root", 100, 900, service="a", kind="CLIENT")
    logs.span("server", "call", 200, 700, service="b", kind="SERVER")
    logs.span("lost", "nobody", 300, 400, service="b")
    return Path(logs.write())


def everything(engine: Engine) -> dict[str, list[dict[str, Any]]]:
    names = ("self_time", "blame", "rollout_path", "rollout_shares", "service_edges", "findings")
    return {name: engine.rows(f"FROM {name} ORDER BY ALL") for name in names}


def views(engine: Engine) -> list[str]:
    return sorted(row["view_name"] for row in engine.rows(KINDS, {"kept": list(keeping.KEPT)}))


def test_they_are_computed_once(folder: Path, tmp_path: Path) -> None:
    """By the first engine that asks, for all that follow; nothing is different in them."""
    store = tmp_path / "store"
    with Engine.read([str(folder)]) as engine:
        expected = everything(engine)
    assert all(expected.values())
    with Engine.read([str(folder)], store=store) as engine:
        assert views(engine) == sorted(keeping.KEPT)
        comments = engine.rows(COMMENTS)
        engine.keep(*keeping.KEPT)
        assert views(engine) == []
        assert everything(engine) == expected
        assert engine.rows(COMMENTS) == comments
    with Engine.read([str(folder)], store=store) as engine:
        assert views(engine) == []
        assert everything(engine) == expected


def test_new_lines_make_them_anew(folder: Path, logs: Any, tmp_path: Path) -> None:
    """What was kept says nothing of lines that were added."""
    store = tmp_path / "store"
    with Engine.read([str(folder)], store=store) as engine:
        engine.keep(*keeping.KEPT)
    logs.span("late", "root", 950, 960, service="b", kind="SERVER")
    logs.write()
    with Engine.read([str(folder)]) as engine:
        expected = everything(engine)
    with Engine.read([str(folder)], store=store) as engine:
        assert everything(engine) == expected
        engine.keep(*keeping.KEPT)
        assert everything(engine) == expected


def test_few_spans_and_memory_keep_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database in memory is gone before anyone asks again."""
    with Engine.read([str(folder)]) as engine:
        engine.keep(*keeping.KEPT)
        assert views(engine) == sorted(keeping.KEPT)
    monkeypatch.setattr(keeping, "_WORTH_SPANS", 1_000)
    with Engine.read([str(folder)], store=tmp_path / "store") as engine:
        engine.keep(*keeping.KEPT)
        assert views(engine) == sorted(keeping.KEPT)


def test_a_store_without_room_still_answers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, stays as it was, and leaves nothing behind."""
    store = tmp_path / "store"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with Engine.read([str(folder)], store=store) as engine:
        expected = everything(engine)
        monkeypatch.setattr(building, "put_in_place", full)
        engine.keep(*keeping.KEPT)
        assert list(engine.notices) == ["answers are not kept: [Errno 28] No space left on device"]
        assert everything(engine) == expected
    assert [path.name for path in store.rglob("*.new*")] == []


def test_two_who_keep_at_once(folder: Path, tmp_path: Path) -> None:
    """The second finds the tables of the first, and leaves them."""
    store = tmp_path / "store"
    with Engine.read([str(folder)], store=store) as engine:
        expected = everything(engine)
    (path,) = store.rglob("*.duckdb")
    for _ in range(2):
        keeping.keep(path, keeping.KEPT, spill=str(tmp_path / "spill"), memory_limit=None)
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.execute(KINDS, {"kept": list(keeping.KEPT)}).fetchall() == []
    with Engine.read([str(folder)], store=store) as engine:
        assert everything(engine) == expected
