"""The engine: what it reads, what it answers, and what SQL from others cannot do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine
from reconstruct.errors import InputError, UsageError


@pytest.fixture
def engine(logs: Any) -> Iterator[Engine]:
    logs.span("root", start=0, end=100)
    logs.span("child", "root", 10, 20)
    with logs.engine() as engine:
        yield engine


def test_rows_and_arrow(engine: Engine) -> None:
    """Answers are dicts by column, or one Arrow table; parameters are bound."""
    assert engine.rows("SELECT name FROM spans WHERE name = $1", ["child"]) == [{"name": "child"}]
    assert engine.rows("SELECT $a + 1 AS b", {"a": 1}) == [{"b": 2}]
    table = engine.arrow("SELECT duration_ns FROM spans ORDER BY ALL")
    assert table.to_pydict() == {"duration_ns": [10, 100]}


def test_nothing_to_read(tmp_path: Path) -> None:
    """A path that means nothing is an error of the input."""
    with pytest.raises(InputError, match="no log files match"):
        Engine.read([str(tmp_path / "none.log")])


def test_a_bad_memory_limit(logs: Any) -> None:
    """It is named, in one line."""
    logs.span("root")
    with pytest.raises(UsageError, match=r"^memory limit 'much': [^\n]+$"):
        Engine.read([str(logs.write())], memory_limit="much")


def test_a_small_memory_limit(logs: Any) -> None:
    """It is enough for a small log."""
    logs.span("root")
    with Engine.read([str(logs.write())], memory_limit="200MB") as engine:
        assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 1}]


def test_progress(logs: Any) -> None:
    """It ends with everything done."""
    logs.span("root")
    told: list[tuple[int, int]] = []
    path = logs.write()
    Engine.read([str(path)], progress=lambda done, total: told.append((done, total))).close()
    size = (path / "a.log").stat().st_size
    assert told[-1] == (size, size)


def test_a_users_query(engine: Engine) -> None:
    """Column names and rows, no more of them than asked for."""
    assert engine.user_sql("SELECT name FROM spans ORDER BY 1", max_rows=9, timeout_seconds=9) == (
        ["name"],
        [("child",), ("root",)],
    )
    _, rows = engine.user_sql("FROM spans", max_rows=1, timeout_seconds=9)
    assert len(rows) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE spans",
        "SHOW TABLES",
        "SUMMARIZE traces",
        "EXPLAIN FROM spans",
        "WITH a AS (FROM spans) FROM a",
    ],
)
def test_kinds_of_query(engine: Engine, sql: str) -> None:
    """Whatever only looks is allowed."""
    assert engine.user_sql(sql, max_rows=5, timeout_seconds=9)[1]


@pytest.mark.parametrize(
    "sql",
    [
        "FROM read_text('/etc/hostname')",
        "FROM read_csv('{here}/*.log')",
        "FROM glob('{here}/*')",
        "FROM '{here}/a.log'",
        "FROM read_blob('{here}/a.log')",
        "COPY spans TO '{here}/stolen.csv'",
        "WITH x AS (COPY spans TO '{here}/stolen.csv') SELECT 1",
        "EXPLAIN ANALYZE COPY spans TO '{here}/stolen.csv'",
        "EXPORT DATABASE '{here}/stolen'",
        "ATTACH '{here}/stolen.db'",
        "ATTACH ':memory:' AS other",
        "DETACH memory",
        "USE memory",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "SET memory_limit = '1TB'",
        "PRAGMA database_list; SELECT 1",
        "CREATE SECRET s (TYPE s3)",
        "FROM read_parquet('https://localhost/x.parquet')",
        "SELECT 1; SELECT 2",
        "COMMIT",
        "BEGIN",
        "DROP TABLE spans",
        "UPDATE spans SET name = 'x'",
        "CREATE TEMP TABLE spans AS SELECT 1",
        "CALL pragma_version()",
        "",
        "SELEC 1",
        "FROM nowhere",
    ],
)
def test_what_a_users_query_may_not(engine: Engine, logs: Any, sql: str) -> None:
    """Each attempt is one clear line; no file appears, and the relations stay as they are."""
    before = sorted(logs.folder.iterdir())
    with pytest.raises(UsageError, match=r"^SQL: [^\n]+$"):
        engine.user_sql(sql.format(here=logs.folder), max_rows=5, timeout_seconds=9)
    assert sorted(logs.folder.iterdir()) == before
    assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 2}]


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (DELETE FROM spans RETURNING name) FROM x",
        "WITH x AS (INSERT INTO _files VALUES ('x', 1, 1, 'x') RETURNING file) FROM x",
        "EXPLAIN ANALYZE DELETE FROM spans",
    ],
)
def test_what_a_query_changes_is_rolled_back(engine: Engine, sql: str) -> None:
    """DuckDB lets queries change data; nothing of it stays."""
    before = engine.rows("FROM spans ORDER BY ALL"), engine.rows("FROM _files")
    engine.user_sql(sql, max_rows=5, timeout_seconds=9)
    assert (engine.rows("FROM spans ORDER BY ALL"), engine.rows("FROM _files")) == before


def test_a_query_that_takes_too_long(engine: Engine) -> None:
    """It is stopped, the limit is named, and the engine goes on."""
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"
    with pytest.raises(UsageError, match=r"stopped after 0\.2 s"):
        engine.user_sql(endless, max_rows=1, timeout_seconds=0.2)
    assert engine.user_sql("SELECT 1", max_rows=1, timeout_seconds=9)[1] == [(1,)]
