"""Relations of a small database: made when a query names them, as if all had been there."""

from typing import Any

import pytest

from reconstruct.errors import SqlError
from reconstruct.store import relations

MADE = "SELECT count(*) AS n FROM duckdb_views() WHERE NOT internal"


def made(engine: Any) -> set[str]:
    """Ask DuckDB itself: a query of the engine's about its catalog would make them all."""
    with engine._connection.cursor() as cursor:
        rows = cursor.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    return {name for (name,) in rows}


def test_only_what_is_named_is_made(logs: Any) -> None:
    """And what that needs."""
    logs.span("a")
    with logs.engine() as engine:
        assert made(engine) == set()
        assert engine.rows("SELECT name FROM spans") == [{"name": "a"}]
        few = made(engine)
        assert "spans" in few
        assert "findings" not in few
        assert engine.rows("SELECT count(*) AS n FROM findings") == [{"n": 0}]
        assert few | {"findings", "_finding_orphan"} <= made(engine)


@pytest.mark.parametrize("name", list(filter(relations.is_made, relations.names())))
def test_each_relation_can_be_the_first(logs: Any, name: str) -> None:
    """Alone in its database, with all that it needs."""
    logs.span("a")
    with logs.engine() as engine:
        engine._opening.make_for(" ".join(relations.objects_of(name)))


@pytest.mark.parametrize(
    "sql",
    [
        MADE,
        "SHOW TABLES",
        "DESCRIBE spans",
        'SELECT * FROM query_table("roll" || "outs")',
        "SELECT 1 FROM rollout",
    ],
)
def test_what_may_be_about_any_makes_all(logs: Any, sql: str) -> None:
    """The catalog, names that are put together, and mistyped ones, which are compared with all."""
    logs.span("a")
    with logs.engine() as engine:
        engine._opening.make_for(sql)
        assert {"spans", "findings", "rollout_shares"} <= made(engine)


def test_a_mistyped_name_is_told_what_is_most_like_it(logs: Any) -> None:
    logs.span("a")
    with (
        logs.engine() as engine,
        pytest.raises(SqlError, match="rollouts"),
        engine.answer("FROM rollout"),
    ):
        pass


def test_names_of_a_query_s_own_are_not_mistyped(logs: Any) -> None:
    """Common table expressions, with columns or without."""
    logs.span("a")
    with logs.engine() as engine:
        engine.rows(
            'WITH mine AS (FROM spans), "other" (x) AS MATERIALIZED (SELECT 1) FROM mine, other'
        )
        assert "findings" not in made(engine)


def test_a_relation_may_be_named_by_a_parameter(logs: Any) -> None:
    logs.span("a")
    with logs.engine() as engine:
        rows = engine.rows("SELECT count(*) AS n FROM query_table($name)", {"name": "traces"})
    assert rows == [{"n": 1}]
