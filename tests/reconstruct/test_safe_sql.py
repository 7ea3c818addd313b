"""SQL of others: what it may ask, what it may not do, and the limits of each answer.

Every promise holds for both kinds of connection: a database in memory, as an `Engine` has, and a
database file opened by `connect_read_only`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.errors import InputError, SqlError
from reconstruct.safe_sql import Answer, Limits, answer, connect_read_only

SECRET = "what lies beside the store"


class Asker:
    """Asks a database of one kind; knows what must not change."""

    def __init__(self, connect: Callable[[], duckdb.DuckDBPyConnection], folder: Path) -> None:
        self.connect = connect
        self.folder = folder
        self.before = self.state()

    def open(self, sql: str, *parameters: object, **limits: Any) -> AbstractContextManager[Answer]:
        limits = {"timeout_seconds": 30.0, **limits}
        return answer(self.connect, sql, parameters or None, limits=Limits(**limits))

    def __call__(self, sql: str, *parameters: object, **limits: Any) -> list[tuple[Any, ...]]:
        with self.open(sql, *parameters, **limits) as it:
            return list(it.rows())

    def state(self) -> tuple[object, ...]:
        """Return the files there are with their contents, and what the tables hold."""
        files = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        with self.connect() as connection:
            rows = connection.execute("FROM spans ORDER BY ALL").fetchall()
            return files, rows, connection.execute("SHOW ALL TABLES").fetchall()


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        """
        CREATE TABLE spans AS
        SELECT 'span ' || i AS name, i AS duration_ns, '{"a.b":1}'::JSON AS attributes
        FROM range(3) AS t(i)
        """
    )


@pytest.fixture(scope="module", params=["memory", "file"])
def ask(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    """One database of each kind for all: nothing that is asked here changes it."""
    tmp_path = tmp_path_factory.mktemp("store")
    (tmp_path / "secret.csv").write_text(SECRET)
    spill = tmp_path / "spill"
    spill.mkdir()
    if request.param == "memory":
        config: dict[str, Any] = {
            "temp_directory": str(spill),
            "memory_limit": "200MB",
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        owner = duckdb.connect(config=config)
        fill(owner)
        owner.execute("SET enable_external_access = false")
        owner.execute("SET lock_configuration = true")
        yield Asker(owner.cursor, tmp_path)
        owner.close()
    else:
        store = tmp_path / "store.db"
        with duckdb.connect(str(store)) as owner:
            fill(owner)

        def connect() -> duckdb.DuckDBPyConnection:
            return connect_read_only(str(store), spill=str(spill), memory_limit="200MB")

        with connect():  # the same instance for all who come
            yield Asker(connect, tmp_path)


# What may be asked.


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT name FROM spans ORDER BY 1 LIMIT 1", [("span 0",)]),
        ("FROM spans SELECT count(*)", [(3,)]),
        ("TABLE spans LIMIT 0", []),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("WITH a AS (FROM spans) SELECT count(*) FROM a", [(3,)]),
        ("SELECT 1 UNION ALL SELECT 2", [(1,), (2,)]),
        ("WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) FROM r",
         [(1,), (2,), (3,)]),
        ("WITH a AS MATERIALIZED (SELECT 1) FROM a", [(1,)]),
        ("PIVOT spans ON name IN ('span 1') USING sum(duration_ns) GROUP BY attributes",
         [('{"a.b":1}', 1)]),
        ("SELECT attributes->>'a.b' FROM spans LIMIT 1", [("1",)]),
        ("SELECT 1 -- a remark; DROP TABLE spans", [(1,)]),
        ("/* first; */ SELECT 1;", [(1,)]),
        ("SELECT ';', 'DELETE_QUERY_NODE' AS type", [(";", "DELETE_QUERY_NODE")]),
        ("SELECT date '2026-01-01' AS d -- the last word", [("2026-01-01",)]),
    ],
)  # fmt: skip
def test_whatever_reads_is_answered(ask: Asker, sql: str, expected: list[object]) -> None:
    """In every form that DuckDB has for a query."""
    assert ask(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "DESCRIBE spans",
        "SHOW TABLES",
        "SUMMARIZE spans",
        "EXPLAIN FROM spans",
        "EXPLAIN ANALYZE SELECT * FROM spans",
        "/* é */ explain -- é\n analyze (SELECT 1)",
        "EXPLAIN (SELECT 1)",
        "FROM duckdb_settings() LIMIT 1",
    ],
)
def test_questions_about_the_database_are_answered(ask: Asker, sql: str) -> None:
    """Its relations, its plans, its settings."""
    assert ask(sql)


def test_parameters_are_bound(ask: Asker) -> None:
    """Nobody needs to paste values into SQL."""
    assert ask("SELECT name FROM spans WHERE name = $1", "span 1") == [("span 1",)]
    assert ask("SELECT name FROM spans WHERE name = ?", "x' OR 1=1 --") == []


# What may not be done.

WRITES = [
    "INSERT INTO spans VALUES ('x', 1, NULL)",
    "DELETE FROM spans",
    "TRUNCATE spans",
    "UPDATE spans SET name = 'x'",
    "MERGE INTO spans USING spans AS s ON FALSE WHEN NOT MATCHED THEN INSERT",
    "DROP TABLE spans",
    "ALTER TABLE spans RENAME TO gone",
    "COMMENT ON TABLE spans IS 'x'",
    "CREATE TABLE t AS SELECT 1",
    "CREATE TEMP TABLE spans AS SELECT 1",
    "CREATE TEMP VIEW spans AS SELECT 1",
    "CREATE OR REPLACE VIEW spans AS SELECT 1",
    "CREATE MACRO count(x) AS 42",
    "CREATE TEMP MACRO f() AS TABLE SELECT 1",
    "CREATE SEQUENCE s",
    "CREATE SCHEMA s",
    "CREATE INDEX i ON spans (name)",
    "CREATE TYPE mood AS ENUM ('x')",
    "WITH x AS (DELETE FROM spans RETURNING name) FROM x",
    "WITH x AS (TRUNCATE spans) SELECT 1",
    "WITH x AS (INSERT INTO spans VALUES ('x', 1, NULL) RETURNING name) FROM x",
    "WITH x AS (UPDATE spans SET name = 'x' RETURNING name) FROM x",
    "WITH a AS (SELECT 1), x AS (DELETE FROM spans RETURNING name) SELECT (SELECT 1 FROM a)",
    "EXPLAIN ANALYZE DELETE FROM spans",
    "EXPLAIN ANALYZE INSERT INTO spans VALUES ('x', 1, NULL)",
    "EXPLAIN (ANALYZE) DELETE FROM spans",
    "EXPLAIN (ANALYZE, FORMAT json) INSERT INTO spans VALUES ('x', 1, NULL)",
    "EXPLAIN ANALYZE WITH x AS (DELETE FROM spans RETURNING name) FROM x",
    "SELECT 1; DELETE FROM spans",
    "SELECT 1;\u00a0DELETE FROM spans",
    "SELECT 1 /* ; */; DELETE FROM spans -- '",
    "ＤＥＬＥＴＥ FROM spans",
    "DELETE/**/FROM/**/spans",
    "\ufeffDELETE FROM spans",
    "PREPARE p AS DELETE FROM spans",
    "EXECUTE p",
    "FROM query('DELETE FROM spans')",
    "FROM query('WITH x AS (DELETE FROM spans RETURNING name) FROM x')",
    "SELECT (DELETE FROM spans RETURNING name)",
    "VACUUM",
    "CHECKPOINT",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "PIVOT spans ON name USING sum(duration_ns)",
    "IMPORT DATABASE '{here}'",
]
FILES = [
    "COPY spans TO '{here}/stolen.csv'",
    "COPY spans TO '{here}/spill/stolen.csv'",
    "COPY (SELECT 1) TO '{here}/secret.csv'",
    "COPY spans FROM '{here}/secret.csv'",
    "WITH x AS (COPY spans TO '{here}/stolen.csv') SELECT 1",
    "WITH x AS (COPY spans TO '{here}/spill/stolen.csv') SELECT 1",
    "EXPLAIN ANALYZE COPY spans TO '{here}/spill/stolen.csv'",
    "EXPLAIN ANALYZE WITH x AS (COPY spans TO '{here}/spill/stolen.csv') SELECT 1",
    "EXPORT DATABASE '{here}/stolen'",
    "FROM '{here}/secret.csv'",
    "FROM read_text('{here}/secret.csv')",
    "FROM read_blob('{here}/secret.csv')",
    "FROM read_blob('{here}/spill/../secret.csv')",
    "FROM read_csv('{here}/*.csv')",
    "FROM read_json('{here}/secret.csv')",
    "FROM read_parquet('{here}/secret.csv')",
    "FROM read_duckdb('{here}/secret.csv')",
    "FROM sniff_csv('{here}/secret.csv')",
    "FROM glob('{here}/*')",
    "FROM glob('/etc/*')",
    "FROM parquet_metadata('{here}/secret.csv')",
    "FROM query_table('{here}/secret.csv')",
    "FROM query('FROM read_text(''{here}/secret.csv'')')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''{here}/secret.csv'')'))",
    "ATTACH '{here}/stolen.db'",
    "ATTACH ':memory:' AS other",
    "DETACH store",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{here}/secret.csv'",
    "FROM read_parquet('https://localhost/x.parquet')",
    "FROM read_csv('s3://bucket/x.csv')",
    "CREATE SECRET s (TYPE s3)",
    "FROM duckdb_secrets()",
    "FROM which_secret('s3://x', 's3')",
    "SELECT getenv('HOME')",
]
SETTINGS = [
    "SET enable_external_access = true",
    "SET GLOBAL lock_configuration = false",
    "RESET enable_external_access",
    "SET memory_limit = '1TB'",
    "SET threads = 64",
    "SET VARIABLE name = 'x'",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "PRAGMA memory_limit = '1TB'",
    "CALL enable_logging()",
    "CALL pragma_version()",
    "FROM enable_logging()",
    "FROM enable_profiling()",
]
WRONG = ["", ";", "-- nothing", "SELEC 1", "FROM nowhere", "SELECT 1; SELECT 2", "\x00", "SELECT '"]


@pytest.mark.parametrize("sql", WRITES + FILES + SETTINGS + WRONG)
def test_whatever_does_more_is_refused(ask: Asker, sql: str) -> None:
    """In one clear line; no file appears or changes, no table either, nothing is given away."""
    with pytest.raises(SqlError, match=r"^SQL: [^\n]+$") as refused:
        ask(sql.format(here=ask.folder))
    assert SECRET not in str(refused.value)
    assert ask.state() == ask.before


@pytest.mark.parametrize(
    "sqls",
    [
        ["DELETE FROM spans"],
        ["DROP TABLE spans"],
        ["WITH x AS (DELETE FROM spans RETURNING name) FROM x"],
        ["EXPLAIN ANALYZE INSERT INTO spans VALUES ('x', 1, NULL)"],
        ["ATTACH '{here}/store.db' AS w", "INSERT INTO w.spans VALUES ('x', 1, NULL)"],
        ["ATTACH ':memory:' AS m", "USE m", "DETACH store", "ATTACH '{here}/store.db' AS w",
         "INSERT INTO w.spans VALUES ('x', 1, NULL)"],
        ["ATTACH '{here}/new.db' AS n", "CREATE TABLE n.t AS SELECT 1"],
        ["USE temp", "DETACH store"],
        ["COPY spans TO '{here}/store.db'"],
        ["COPY spans TO '{here}/store.db.wal'"],
        ["COPY spans TO '{here}/stolen.csv'"],
        ["WITH x AS (COPY spans TO '{here}/store.db') SELECT 1"],
        ["EXPORT DATABASE '{here}/stolen'"],
        ["FROM read_text('{here}/secret.csv')"],
        ["SET enable_external_access = true"],
        ["SET lock_configuration = false"],
        ["SET allowed_directories = ['/']"],
        ["INSTALL httpfs"],
    ],
)  # fmt: skip
def test_a_read_only_file_stays_so_without_the_parser(tmp_path: Path, sqls: list[str]) -> None:
    """The connection alone keeps its file and everything beside it, detached and attached again."""
    store, spill = tmp_path / "store.db", tmp_path / "spill"
    (tmp_path / "secret.csv").write_text(SECRET)
    with duckdb.connect(str(store)) as owner:
        fill(owner)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    *ways, attack = [sql.format(here=tmp_path) for sql in sqls]
    with connect_read_only(str(store), spill=str(spill)) as connection:
        for sql in ways:
            with suppress(duckdb.Error):
                connection.execute(sql)
        with pytest.raises(duckdb.Error):
            connection.execute(attack).fetchall()
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path != spill} == before


def test_what_one_query_leaves_is_gone_in_the_next(ask: Asker) -> None:
    """Each has a connection of its own, so nothing can shadow `spans` for whoever comes next."""
    with ask.connect() as rogue:
        rogue.execute("CREATE TEMP VIEW spans AS SELECT 42 AS name")
        rogue.execute("SET VARIABLE name = 'x'")
        assert ask("SELECT count(*), getvariable('name') FROM spans") == [(3, None)]


WORDS = (
    *("WITH", "x", "AS", "(", ")", "SELECT", "1", "FROM", "spans", "DELETE", "EXPLAIN", "ANALYZE"),
    *("COPY", "TO", "'f'", "RETURNING", "*", ";", ",", "--", "/*", "*/"),
)


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=12))
def test_no_text_raises_anything_else(ask: Asker, words: list[str]) -> None:
    """Words in any order are answered or refused, and change nothing."""
    try:
        ask(" ".join(words), max_rows=10)
    except SqlError as error:
        assert "\n" not in str(error)  # noqa: PT017  # most texts are wrong, some are not
    assert ask("SELECT count(*) FROM spans") == [(3,)]
    assert not (Path.cwd() / "f").exists()


@settings(max_examples=60, deadline=None)
@given(sql=st.text(max_size=40))
def test_any_text_is_answered_or_refused(ask: Asker, sql: str) -> None:
    """Lone surrogates, NUL, whatever."""
    try:
        ask(sql, max_rows=10)
    except SqlError as error:
        assert "\n" not in str(error)  # noqa: PT017  # most texts are wrong, some are not


# Limits.


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000000) a, range(1000000000) b",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL FROM r) SELECT count(*) FROM r",
        "SELECT * FROM range(1000000000000)",
        "EXPLAIN ANALYZE SELECT count(*) FROM range(1000000000) a, range(1000000000) b",
        "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))",
    ],
)
def test_a_query_without_an_end_is_stopped(ask: Asker, sql: str) -> None:
    """The limit is named, and the next query is answered."""
    with pytest.raises(SqlError, match=r"^SQL: stopped after 0\.2 s; "):
        for _ in ask(sql, timeout_seconds=0.2):
            pass
    assert ask("SELECT 1") == [(1,)]


def test_time_passes_only_while_duckdb_works(ask: Asker) -> None:
    """Whoever reads page by page is not cut off."""
    with ask.open("FROM range(10000)", timeout_seconds=0.5) as it:
        rows = it.rows()
        assert next(rows) == (0,)
        threading.Event().wait(0.6)
        assert sum(1 for _ in rows) == 9_999


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT list(repeat('x', 1000) || i) FROM range(10000000) t(i)",
        "SELECT length(string_agg(repeat('x', 1000000), '')) FROM range(10000)",
    ],
)
def test_a_query_that_needs_too_much_memory_fails(ask: Asker, sql: str) -> None:
    """In one line that says so; the next query is answered."""
    with pytest.raises(SqlError, match=r"^SQL: out of memory; .* memory limit \(.+\)$"):
        ask(sql)
    assert ask("SELECT 1") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "rows", "is_cut"),
    [
        ("FROM range(5)", 5, False),
        ("FROM range(6)", 5, True),
        ("FROM range(100000)", 5, True),
        ("FROM range(0)", 0, False),
    ],
)
def test_rows_beyond_the_limit_are_left_out_and_it_says_so(
    ask: Asker, sql: str, rows: int, is_cut: bool
) -> None:
    """As rows and as Arrow."""
    with ask.open(sql, max_rows=5) as it:
        assert (len(list(it.rows())), it.is_cut) == (rows, is_cut)
    with ask.open(sql, max_rows=5) as it:
        assert (it.arrow().read_all().num_rows, it.is_cut) == (rows, is_cut)


def test_limits_that_fall_on_the_edge_of_a_batch(ask: Asker) -> None:
    """DuckDB makes 2,048 rows at once; neither more nor fewer are counted there."""
    for size in (2_047, 2_048, 2_049, 4_096):
        for most in (2_047, 2_048, 2_049, 4_096):
            with ask.open(f"FROM range({size})", max_rows=most) as it:
                assert (len(list(it.rows())), it.is_cut) == (min(size, most), size > most)


def test_deep_nesting_is_refused(ask: Asker) -> None:
    """The parser's own limit holds; nothing overflows."""
    for sql in ("SELECT " + "(" * 50_000 + "1" + ")" * 50_000, "SELECT 1" + " + 1" * 50_000):
        with pytest.raises(SqlError):
            ask(sql)


# Answers.


def test_values_lose_no_digit(ask: Asker) -> None:
    """Where Python's types hold less than DuckDB's, the answer is text."""
    with ask.open(
        """
        SELECT
            make_timestamp_ns(1764475132123456789) AS t,
            9223372036854775807 AS big,
            170141183460469231731687303715884105727::HUGEINT AS huge,
            INTERVAL 14 MONTH AS months,
            'infinity'::TIMESTAMP AS never,
            DATE '20000-01-01' AS far,
            '{"a":1}'::JSON AS json
        """
    ) as it:
        assert it.names == ("t", "big", "huge", "months", "never", "far", "json")
        assert it.types[:2] == ("TIMESTAMP_NS", "BIGINT")
        assert list(it.rows()) == [
            (
                "2025-11-30 03:58:52.123456789",
                2**63 - 1,
                2**127 - 1,
                "1 year 2 months",
                "infinity",
                "20000-01-01",
                '{"a":1}',
            )
        ]


def test_times_as_text_keep_the_order_of_rows(ask: Asker) -> None:
    """The query is wrapped for them, but sorted inside."""
    rows = ask(
        """
        SELECT make_timestamp_ns(i) AS t, i, i AS i
        FROM range(200000) AS r(i)
        ORDER BY hash(i) -- in no other order
        """
    )
    plain = ask("SELECT i FROM range(200000) AS r(i) ORDER BY hash(i)")
    assert [row[1] for row in rows] == [row[0] for row in plain]
    assert rows[0][1] == rows[0][2]


def test_arrow_keeps_types(ask: Asker) -> None:
    """JSON is JSON, times stay times."""
    with ask.open("SELECT *, make_timestamp_ns(duration_ns) AS t FROM spans ORDER BY name") as it:
        table = it.arrow().read_all()
    assert table.schema.field("attributes").type == pa.json_()
    assert table.schema.field("t").type == pa.timestamp("ns")
    assert table.column("attributes").to_pylist() == ['{"a.b":1}'] * 3
    assert table.column("duration_ns").to_pylist() == [0, 1, 2]


def test_an_empty_answer_still_has_columns(ask: Asker) -> None:
    """In Arrow as well."""
    with ask.open("FROM spans WHERE FALSE") as it:
        assert it.arrow().read_all().schema.names == ["name", "duration_ns", "attributes"]


def test_an_error_on_the_way_is_told_as_one_at_the_start(ask: Asker) -> None:
    """A row in the middle may be what is wrong."""
    sql = "SELECT CASE WHEN i = 90000 THEN error('row 90000') ELSE i END FROM range(100000) t(i)"
    with ask.open(sql) as it, pytest.raises(SqlError, match=r"^SQL: .*row 90000"):
        list(it.rows())
    with ask.open(sql) as it, pytest.raises(SqlError, match=r"^SQL: .*row 90000"):
        it.arrow().read_all()


def test_a_mistake_is_shown_in_its_place(ask: Asker) -> None:
    """Line, caret, and names that are near."""
    with pytest.raises(SqlError) as wrong:
        ask("SELECT\n  nme\nFROM spans")
    assert str(wrong.value).startswith("SQL: line 2: ")
    assert 'Candidate bindings: "name"' in str(wrong.value)
    assert wrong.value.excerpt == ("  nme", "  ^^^")
    with pytest.raises(SqlError, match='Did you mean "spans"'):
        ask("FROM span")


def test_a_plan_says_that_it_is_one(ask: Asker) -> None:
    """Its second column is a drawing of many lines."""
    with ask.open("EXPLAIN FROM spans") as it:
        assert it.is_plan
        assert "\n" in next(it.rows())[1]


def test_questions_from_several_threads(ask: Asker) -> None:
    """Each has its own connection, so they do not wait for or disturb each other."""
    found: list[object] = []

    def work(number: int) -> None:
        found.append(ask(f"SELECT sum(i) + {number} FROM range(100000) t(i)")[0][0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [4_999_950_000 + number for number in range(8)]


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """Is named, in one line."""
    (tmp_path / "x.db").write_text("no database" * 1_000)
    with pytest.raises(InputError, match=r"x\.db: [^\n]+$"):
        connect_read_only(str(tmp_path / "x.db"), spill=str(tmp_path))
