"""Relations of a small database: made when a query names them, as if all had been there."""

from typing import Any

import duckdb
import pytest

from reconstruct.errors import SqlError
from reconstruct.intake import tables
from reconstruct.store import making, relations

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
        assert engine.rows("SELECT name FROM spans ORDER BY name DESC") == [{"name": "a"}]
        few = made(engine)
        assert "spans" in few
        assert "findings" not in few
        assert engine.rows("SELECT count(*) AS n FROM findings") == [{"n": 0}]
        assert few | {"findings", "_finding_orphan"} <= made(engine)


def test_what_a_relation_needs_is_known() -> None:
    """Each can be made where there is what it needs, the views of that as tables, and no more."""
    with duckdb.connect() as connection:
        relations.create_base_tables(connection)
        making.make_all(connection)
        rows = connection.execute(
            """
            SELECT table_name, string_agg(printf('"%s" %s', column_name, data_type), ', ')
            FROM duckdb_columns()
            GROUP BY ALL
            """
        ).fetchall()
    columns = dict(rows)

    def provide(connection: duckdb.DuckDBPyConnection, name: str, there: set[str]) -> None:
        for need in relations.needs()[name]:
            views = relations.views_of(need)
            if need in there or need in tables.TABLES:
                continue
            there.add(need)
            for view in views:
                connection.execute(f"CREATE TABLE {view} ({columns[view]})")
            if len(views) < len(relations.objects_of(need)):
                provide(connection, need, there)
                for view in views:
                    connection.execute(f"DROP TABLE {view}")
                connection.execute(relations.definition_of(need))

    with duckdb.connect() as connection:
        relations.create_base_tables(connection)
        for name in relations.needs():
            connection.begin()
            provide(connection, name, set())
            connection.execute(relations.definition_of(name))
            connection.rollback()


def test_relations_are_the_same_however_they_are_made() -> None:
    """One after the other as in the plain shell, or views over stand-ins."""
    catalogs = (
        """
        SELECT table_name, column_name, data_type, comment
        FROM duckdb_columns()
        WHERE NOT internal
        ORDER BY ALL
        """,
        "SELECT view_name, sql, comment FROM duckdb_views() WHERE NOT internal ORDER BY ALL",
        "SELECT table_name, comment, estimated_size FROM duckdb_tables() ORDER BY ALL",
        """
        SELECT function_name, macro_definition, comment, parameters
        FROM duckdb_functions()
        WHERE NOT internal
        ORDER BY ALL
        """,
    )
    with duckdb.connect() as plain, duckdb.connect() as over_stand_ins:
        for connection in (plain, over_stand_ins):
            relations.create_base_tables(connection)
        making.make_again(plain, relations.needs())
        making.make_all(over_stand_ins)
        for catalog in catalogs:
            expected = plain.execute(catalog).fetchall()
            assert len(expected) > 10
            assert over_stand_ins.execute(catalog).fetchall() == expected


@pytest.mark.parametrize(
    "sql",
    [
        MADE,
        "SHOW TABLES",
        "DESCRIBE spans",
        "SELECT * FROM (SHOW TABLES)",
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
