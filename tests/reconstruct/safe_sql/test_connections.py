"""What a connection keeps by itself: its file, its neighbours, its temporary things."""

import threading
from contextlib import suppress

import duckdb
import pytest

from reconstruct.errors import InputError
from reconstruct.safe_sql import connect_read_only


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
def test_a_read_only_file_stays_so_without_the_parser(tmp_path, store, sqls):
    """The connection alone keeps its file and everything beside it, detached and attached again."""
    spill = tmp_path / "spill"
    (tmp_path / "secret.csv").write_text("what lies beside the store")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    *ways, attack = [sql.format(here=tmp_path) for sql in sqls]
    with connect_read_only(str(store), spill=str(spill)) as connection:
        for sql in ways:
            with suppress(duckdb.Error):
                connection.execute(sql)
        with pytest.raises(duckdb.Error):
            connection.execute(attack).fetchall()
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path != spill} == before


def test_what_one_query_leaves_is_gone_in_the_next(ask):
    """Each has a connection of its own, so nothing can shadow `spans` for whoever comes next."""
    with ask.connect() as rogue:
        rogue.execute("CREATE TEMP VIEW spans AS SELECT 42 AS name")
        rogue.execute("SET VARIABLE name = 'x'")
        assert ask("SELECT count(*), getvariable('name') FROM spans") == [(3, None)]


def test_questions_from_several_threads(ask):
    """Each has its own connection, so they do not wait for or disturb each other."""
    found = []

    def work(number):
        found.append(ask(f"SELECT sum(i) + {number} FROM range(100000) t(i)")[0][0])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [4_999_950_000 + number for number in range(8)]


def test_a_file_that_is_no_database(tmp_path):
    """Is named, in one line."""
    (tmp_path / "x.db").write_text("no database" * 1_000)
    with pytest.raises(InputError, match=r"x\.db: [^\n]+$"):
        connect_read_only(str(tmp_path / "x.db"), spill=str(tmp_path))
