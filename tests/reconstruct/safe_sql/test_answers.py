"""What may be asked, and what an answer says: every digit, type, column and mistake."""

import pyarrow as pa
import pytest

from reconstruct.errors import SqlError


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
def test_whatever_reads_is_answered(ask, sql, expected):
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
def test_questions_about_the_database_are_answered(ask, sql):
    """Its relations, its plans, its settings."""
    assert ask(sql)


def test_parameters_are_bound(ask):
    """Nobody needs to paste values into SQL."""
    assert ask("SELECT name FROM spans WHERE name = $1", "span 1") == [("span 1",)]
    assert ask("SELECT name FROM spans WHERE name = ?", "x' OR 1=1 --") == []


def test_values_lose_no_digit(ask):
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


def test_times_as_text_keep_the_order_of_rows(ask):
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


def test_arrow_keeps_types(ask):
    """JSON is JSON, times stay times."""
    with ask.open("SELECT *, make_timestamp_ns(duration_ns) AS t FROM spans ORDER BY name") as it:
        table = it.arrow().read_all()
    assert table.schema.field("attributes").type == pa.json_()
    assert table.schema.field("t").type == pa.timestamp("ns")
    assert table.column("attributes").to_pylist() == ['{"a.b":1}'] * 3
    assert table.column("duration_ns").to_pylist() == [0, 1, 2]


def test_an_empty_answer_still_has_columns(ask):
    """In Arrow as well."""
    with ask.open("FROM spans WHERE FALSE") as it:
        assert it.arrow().read_all().schema.names == ["name", "duration_ns", "attributes"]


def test_an_error_on_the_way_is_told_as_one_at_the_start(ask):
    """A row in the middle may be what is wrong."""
    sql = "SELECT CASE WHEN i = 90000 THEN error('row 90000') ELSE i END FROM range(100000) t(i)"
    with ask.open(sql) as it, pytest.raises(SqlError, match=r"^SQL: .*row 90000"):
        list(it.rows())
    with ask.open(sql) as it, pytest.raises(SqlError, match=r"^SQL: .*row 90000"):
        it.arrow().read_all()


def test_a_mistake_is_shown_in_its_place(ask):
    """Line, caret, and names that are near."""
    with pytest.raises(SqlError) as wrong:
        ask("SELECT\n  nme\nFROM spans")
    assert str(wrong.value).startswith("SQL: line 2: ")
    assert 'Candidate bindings: "name"' in str(wrong.value)
    assert wrong.value.excerpt == ("  nme", "  ^^^")
    with pytest.raises(SqlError, match='Did you mean "spans"'):
        ask("FROM span")


def test_a_plan_says_that_it_is_one(ask):
    """Its second column is a drawing of many lines."""
    with ask.open("EXPLAIN FROM spans") as it:
        assert it.is_plan
        assert "\n" in next(it.rows())[1]
