"""`reconstruct query`: SQL over the relations, rows as data."""

import csv
import io
import json

import pytest

COUNT = "SELECT name, count(*) AS n FROM spans GROUP BY name ORDER BY name"


def test_rows_come_in_the_format_asked_for(logs, run):
    expected = [
        {"name": "POST /run", "n": 3},
        {"name": "gym.model.call", "n": 3},
        {"name": "gym.rollout", "n": 3},
    ]
    assert run("query", COUNT, "logs", "--format", "json").json == expected
    assert run("query", COUNT, "logs", "--json").json == expected
    lines = run("query", COUNT, "logs", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == expected
    text = run("query", COUNT, "logs", "--format", "csv").out
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"name": row["name"], "n": str(row["n"])} for row in expected
    ]
    table = run("query", COUNT, "logs").out.splitlines()
    assert table[:2] == ["name            n", "POST /run       3"]


def test_ns_since_1970_stay_exact(logs, run):
    sql = "SELECT min(start_time_unix_nano) + 1 AS t FROM spans"
    assert run("query", sql, "logs", "--json").json == [{"t": 1_764_475_132_000_000_001}]


def test_a_limit_says_that_there_is_more(logs, run):
    done = run("query", "SELECT span_id FROM spans", "logs", "--limit", "4", "--json")
    assert len(done.json) == 4
    assert done.err == "… more than 4 rows; --limit 0 shows all\n"
    assert run("query", "SELECT span_id FROM spans", "logs", "--limit", "9").err == ""


def test_a_table_stops_at_a_thousand_rows_and_data_does_not(logs, run):
    table = run("query", "SELECT * FROM range(1500)", "logs")
    assert len(table.out.splitlines()) == 1_001
    assert table.err == "… more than 1,000 rows; --limit 0 shows all\n"
    assert len(run("query", "SELECT * FROM range(1500)", "logs", "--json").json) == 1_500


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "SELECT nothing FROM spans",
        "SELECT 1; SELECT 2",
        "DROP TABLE spans",
        "FROM 'x.csv'",
    ],
)
def test_wrong_or_unwelcome_sql_is_one_line(sql, logs, run):
    done = run("query", sql, "logs")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: SQL: ")
    assert len(done.err.splitlines()) == 1


def test_formats_do_not_contradict_each_other(logs, run):
    assert run("query", COUNT, "logs", "--json", "--format", "csv").code == 2


def test_an_endless_query_is_stopped(logs, run):
    done = run("query", "SELECT count(*) FROM range(1e12::BIGINT)", "logs", "--timeout", "0.2")
    assert done.code == 2
    assert "stopped after 0.2 s" in done.err


def test_sql_prints_relations_for_the_shell(run):
    done = run("sql")
    assert done.code == 0
    assert "CREATE TABLE spans" in done.out
