"""The engine: what it reads, what it answers, and what SQL from others cannot do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine
from reconstruct.errors import InputError, SqlError, UsageError
from reconstruct.safe_sql import Limits


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


def test_an_answer_beyond_the_memory_limit(logs: Any) -> None:
    """Is told in a line, and the next one is answered."""
    logs.span("root")
    much = "SELECT list(repeat(number::VARCHAR, 9)) AS it FROM range(100_000_000) AS t(number)"
    with Engine.read([str(logs.write())], memory_limit="200MB") as engine:
        for answer in (engine.rows, engine.arrow):
            with pytest.raises(InputError, match=r"^the answer does not fit the memory limit: .+$"):
                answer(much)
        assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 1}]


def test_progress(logs: Any) -> None:
    """It ends with everything done."""
    logs.span("root")
    told: list[tuple[int, int]] = []
    path = logs.write()
    Engine.read([str(path)], progress=lambda done, total: told.append((done, total))).close()
    size = (path / "a.log").stat().st_size
    assert told[-1] == (size, size)


def test_a_query_of_someone_elses(engine: Engine) -> None:
    """Is answered within its limits; the tests of `safe_sql` say what it cannot do."""
    with engine.answer("SELECT name FROM spans WHERE name <> $1 ORDER BY 1", ["child"]) as answer:
        assert (answer.names, list(answer.rows())) == (("name",), [("root",)])
    with engine.answer("FROM spans", limits=Limits(max_rows=1)) as answer:
        assert (len(list(answer.rows())), answer.is_cut) == (1, True)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM spans",
        "WITH x AS (DELETE FROM spans RETURNING name) FROM x",
        "WITH x AS (COPY spans TO '{here}/stolen.csv') SELECT 1",
        "COPY spans TO '{spill}/stolen.csv'",
        "FROM read_text('{here}/a.log')",
        "SET enable_external_access = true",
        "ATTACH '{here}/stolen.db'",
    ],
)
def test_what_it_may_not(engine: Engine, logs: Any, sql: str) -> None:
    """No file of the logs, nor the engine's own, is read or written; the relations stay."""
    (spill,) = engine.rows("SELECT current_setting('temp_directory') AS folder")
    before = sorted(logs.folder.iterdir())
    sql = sql.format(here=logs.folder, spill=spill["folder"])
    with pytest.raises(SqlError, match=r"^SQL: [^\n]+$"), engine.answer(sql) as answer:
        list(answer.rows())
    assert sorted(logs.folder.iterdir()) == before
    assert list(Path(spill["folder"]).iterdir()) == []
    assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 2}]


def test_an_abandoned_engine_leaves_no_files(engine: Engine) -> None:
    """Even though its connection still lives."""
    (spill,) = engine.rows("SELECT current_setting('temp_directory') AS folder")
    assert Path(spill["folder"]).is_dir()
    engine.abandon()
    assert not Path(spill["folder"]).exists()
