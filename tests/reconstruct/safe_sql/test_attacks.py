"""What may not be done: whatever writes, reaches files, changes settings, or is no SQL."""

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconstruct.errors import SqlError

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
def test_whatever_does_more_is_refused(ask, sql):
    """In one clear line; no file appears or changes, no table either, nothing is given away."""
    with pytest.raises(SqlError, match=r"^SQL: [^\n]+$") as refused:
        ask(sql.format(here=ask.folder))
    assert ask.SECRET not in str(refused.value)
    assert ask.state() == ask.before


WORDS = (
    *("WITH", "x", "AS", "(", ")", "SELECT", "1", "FROM", "spans", "DELETE", "EXPLAIN", "ANALYZE"),
    *("COPY", "TO", "'f'", "RETURNING", "*", ";", ",", "--", "/*", "*/"),
)


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(WORDS), max_size=12))
def test_no_text_raises_anything_else(ask, words):
    """Words in any order are answered or refused, and change nothing."""
    try:
        ask(" ".join(words), max_rows=10)
    except SqlError as error:
        assert "\n" not in str(error)  # noqa: PT017  # most texts are wrong, some are not
    assert ask("SELECT count(*) FROM spans") == [(3,)]
    assert not (Path.cwd() / "f").exists()


@settings(max_examples=60, deadline=None)
@given(sql=st.text(max_size=40))
@example(sql="SELECT '\udcff'")
def test_any_text_is_answered_or_refused(ask, sql):
    """NUL as well, and halves of surrogates, which an argument with odd bytes becomes."""
    try:
        ask(sql, max_rows=10)
    except SqlError as error:
        assert "\n" not in str(error)  # noqa: PT017  # most texts are wrong, some are not
