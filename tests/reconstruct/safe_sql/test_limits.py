"""The limits of each answer: its time, its memory, its rows, its depth."""

import threading

import pytest

from reconstruct.errors import SqlError


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
def test_a_query_without_an_end_is_stopped(ask, sql):
    """The limit is named, and the next query is answered."""
    with pytest.raises(SqlError, match=r"^SQL: stopped after 0\.2 s; "):
        for _ in ask(sql, timeout_seconds=0.2):
            pass
    assert ask("SELECT 1") == [(1,)]


def test_time_passes_only_while_duckdb_works(ask):
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
def test_a_query_that_needs_too_much_memory_fails(ask, sql):
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
def test_rows_beyond_the_limit_are_left_out_and_it_says_so(ask, sql, rows, is_cut):
    """As rows and as Arrow."""
    with ask.open(sql, max_rows=5) as it:
        assert (len(list(it.rows())), it.is_cut) == (rows, is_cut)
    with ask.open(sql, max_rows=5) as it:
        assert (it.arrow().read_all().num_rows, it.is_cut) == (rows, is_cut)


def test_limits_that_fall_on_the_edge_of_a_batch(ask):
    """DuckDB makes 2,048 rows at once; neither more nor fewer are counted there."""
    for size in (2_047, 2_048, 2_049, 4_096):
        for most in (2_047, 2_048, 2_049, 4_096):
            with ask.open(f"FROM range({size})", max_rows=most) as it:
                assert (len(list(it.rows())), it.is_cut) == (min(size, most), size > most)


def test_deep_nesting_is_refused(ask):
    """The parser's own limit holds; nothing overflows."""
    for sql in ("SELECT " + "(" * 50_000 + "1" + ")" * 50_000, "SELECT 1" + " + 1" * 50_000):
        with pytest.raises(SqlError):
            ask(sql)
