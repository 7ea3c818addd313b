"""`reconstruct query`: SQL over the relations, rows as data."""

import csv
import io
import json
import os
import pty
import resource
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

COUNT = "SELECT name, count(*) AS n FROM spans GROUP BY name ORDER BY name"
ROWS = [
    {"name": "POST /run", "n": 3},
    {"name": "gym.model.call", "n": 3},
    {"name": "gym.rollout", "n": 3},
]


def test_rows_come_in_the_format_asked_for(logs, run):
    assert run("query", COUNT, "logs", "--format", "json").json == ROWS
    assert run("query", COUNT, "logs", "--json").json == ROWS
    lines = run("query", COUNT, "logs", "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == ROWS
    text = run("query", COUNT, "logs", "--format", "csv").out
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"name": row["name"], "n": str(row["n"])} for row in ROWS
    ]
    table = run("query", COUNT, "logs").out.splitlines()
    assert table[:2] == ["name            n", "POST /run       3"]


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "parquet", "arrow"])
def test_a_file_gets_the_format_of_its_name(form, logs, run):
    """And the rows of stdout, whatever the format."""
    name = f"out.{form}"
    done = run("query", COUNT, "logs", "-o", name)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert sorted(path.name for path in Path().iterdir()) == ["logs", name]
    if form in ("json", "jsonl", "csv"):
        assert Path(name).read_text() == run("query", COUNT, "logs", "--format", form).out
    elif form == "parquet":
        assert duckdb.connect().execute(f"FROM '{name}'").fetchall() == [
            tuple(row.values()) for row in ROWS
        ]
        assert pl.read_parquet(name).to_dicts() == ROWS
    else:
        assert pa.ipc.open_stream(Path(name).read_bytes()).read_all().to_pylist() == ROWS


def test_format_beats_the_name(logs, run):
    run("query", COUNT, "logs", "-o", "out.csv", "--format", "jsonl")
    assert [json.loads(line) for line in Path("out.csv").read_text().splitlines()] == ROWS
    run("query", COUNT, "logs", "-o", "out.txt")
    assert Path("out.txt").read_text() == run("query", COUNT, "logs").out


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_binary_formats_go_into_a_pipe(form, logs):
    command = [sys.executable, "-m", "reconstruct.cli", "query", COUNT, "logs", "--format", form]
    done = subprocess.run(command, capture_output=True, check=True)
    read = pl.read_parquet if form == "parquet" else pl.read_ipc_stream
    assert read(io.BytesIO(done.stdout)).to_dicts() == ROWS
    assert done.stderr == b""


def test_binary_formats_do_not_go_to_a_terminal(logs):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "reconstruct.cli", "query", "FROM spans", "logs"]
    done = subprocess.run(
        [*command, "--format", "parquet"], stdout=follower, stderr=subprocess.PIPE, check=False
    )
    os.close(follower)
    os.close(leader)
    assert done.returncode == 2
    assert b"name a file with -o" in done.stderr


def test_a_failed_query_leaves_the_file_as_it_was(logs, run):
    Path("out.csv").write_text("before")
    sql = "SELECT CASE WHEN i = 90000 THEN error('x') ELSE i END FROM range(100000) t(i)"
    assert run("query", sql, "logs", "-o", "out.csv").code == 2
    assert Path("out.csv").read_text() == "before"
    assert sorted(path.name for path in Path().iterdir()) == ["logs", "out.csv"]


def test_a_log_is_not_overwritten(logs, run):
    before = Path("logs/agent.log").read_bytes()
    Path("link.log").symlink_to("logs/agent.log")
    for name in ("logs/agent.log", "link.log"):
        done = run("query", COUNT, "logs", "-o", name)
        assert done.code == 2
        assert "is one of the logs" in done.err
    assert Path("logs/agent.log").read_bytes() == before


def test_a_file_that_cannot_be_written_is_4(logs, run):
    done = run("query", COUNT, "logs", "-o", "nowhere/out.csv")
    assert (done.code, done.err) == (
        4,
        "error: cannot write nowhere/out.csv: No such file or directory\n",
    )


def test_sql_comes_from_a_file_or_from_stdin(logs, run, monkeypatch):
    Path("count.sql").write_text(f"\ufeff-- é\n{COUNT};\n")
    assert run("query", "-f", "count.sql", "logs", "--json").json == ROWS
    monkeypatch.chdir("logs")
    assert run("query", "-f", "../count.sql", "--json").json == ROWS
    monkeypatch.setattr("sys.stdin", io.StringIO(COUNT))
    assert run("query", "-", ".", "--json").json == ROWS


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "which query?"),
        (["logs"], 2, "'logs' is a path"),
        (["-f", "none.sql", "logs"], 3, "cannot read the SQL in none.sql: No such file"),
        (["-", "-"], 2, "cannot both come from stdin"),
        ([COUNT, "logs", "--json", "--format", "csv"], 2, "contradict"),
        ([COUNT, "none"], 3, "no log files match"),
    ],
)
def test_wrong_usage_is_one_line(arguments, code, words, logs, run):
    done = run("query", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ")
    assert words in done.err


def test_ns_since_1970_stay_exact(logs, run):
    sql = "SELECT min(start_time_unix_nano) + 1 AS t, make_timestamp_ns(t) AS at FROM spans"
    row = {"t": 1_764_475_132_000_000_001, "at": "2025-11-30 03:58:52.000000001"}
    assert run("query", sql, "logs", "--json").json == [row]
    assert run("query", sql, "logs", "--format", "csv").out.splitlines()[1] == (
        "1764475132000000001,2025-11-30 03:58:52.000000001"
    )


def test_json_columns_are_json(logs, run):
    sql = (
        """SELECT '{"a": 9223372036854775807}'::JSON AS j, ['[1]'::JSON] AS l, 1.5 AS d, 'x' AS t"""
    )
    row = {"j": {"a": 2**63 - 1}, "l": [[1]], "d": 1.5, "t": "x"}
    assert run("query", sql, "logs", "--json").json == [row]
    assert json.loads(run("query", sql, "logs", "--format", "jsonl").out) == row
    text = run("query", sql, "logs", "--format", "csv").out.splitlines()[1]
    assert next(csv.reader([text])) == ['{"a": 9223372036854775807}', '["[1]"]', "1.5", "x"]


def test_no_rows_are_still_an_answer(logs, run):
    empty = "SELECT name FROM spans WHERE FALSE"
    assert run("query", empty, "logs", "--json").out == "[]\n"
    assert run("query", empty, "logs", "--format", "jsonl").out == ""
    assert run("query", empty, "logs", "--format", "csv").out == "name\n"
    assert run("query", empty, "logs", "-o", "out.parquet").code == 0
    assert pl.read_parquet("out.parquet").schema == {"name": pl.String}


def test_a_limit_says_that_there_is_more(logs, run):
    for option in ("--max-rows", "--limit"):
        done = run("query", "SELECT span_id FROM spans", "logs", option, "4", "--json")
        assert len(done.json) == 4
        assert done.err == "… more than 4 rows; --max-rows 0 shows all\n"
    assert run("query", "SELECT span_id FROM spans", "logs", "--max-rows", "9").err == ""
    done = run("query", "FROM spans", "logs", "--max-rows", "2", "-o", "out.parquet")
    assert len(pl.read_parquet("out.parquet")) == 2
    assert done.err == "… more than 2 rows; --max-rows 0 shows all\n"


def test_a_table_stops_at_a_thousand_rows_and_data_does_not(logs, run):
    table = run("query", "SELECT * FROM range(1500)", "logs")
    assert len(table.out.splitlines()) == 1_001
    assert table.err == "… more than 1,000 rows; --max-rows 0 shows all\n"
    assert len(run("query", "SELECT * FROM range(1500)", "logs", "--json").json) == 1_500


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT",
        "x" * 5_000,
        "\x00",
        "SELECT 1; SELECT 2",
        "DROP TABLE spans",
        "FROM 'x.csv'",
        "COPY spans TO 'x.csv'",
        "WITH x AS (COPY spans TO 'x.csv') SELECT 1",
    ],
)
def test_wrong_or_unwelcome_sql_is_refused(sql, logs, run):
    done = run("query", sql, "logs")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("error: SQL: ")
    assert max(map(len, done.err.splitlines())) < 600
    assert not Path("x.csv").exists()


def test_a_mistake_is_pointed_at(logs, run):
    done = run("query", "SELECT name,\n  nme\nFROM spans", "logs")
    assert done.err.splitlines()[:2] == ["    nme", "    ^^^"]
    assert "error: SQL: line 2: " in done.err
    assert '"name"' in done.err


def test_a_plan_is_drawn(logs, run):
    lines = run("query", "EXPLAIN FROM spans", "logs").out.splitlines()
    assert len(lines) > 3
    assert all("\\n" not in line for line in lines)


def test_an_endless_query_is_stopped(logs, run):
    done = run("query", "SELECT count(*) FROM range(1e12::BIGINT)", "logs", "--timeout", "0.2")
    assert done.code == 2
    assert "stopped after 0.2 s" in done.err


def test_what_heeds_no_interrupt_is_ended_with_its_process(logs):
    """Some of DuckDB's functions do not, and planning a query of many parts does so at times only:
    here nothing does."""
    program = (
        "import duckdb\n"
        "import reconstruct.safe_sql as safe\n"
        "safe._GRACE_SECONDS = 0.2\n"
        "duckdb.DuckDBPyConnection.interrupt = lambda connection: None\n"
        "from reconstruct.cli import main\n"
        "endless = 'SELECT sum(a.range) FROM range(10_000_000) AS a, range(10_000_000)'\n"
        "main(['query', endless, 'logs', '--timeout', '0.3'])\n"
        "print('not reached')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: SQL: stopped after 0.3 s")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
def test_memory_that_duckdb_does_not_count_is_limited(logs, run):
    before = resource.getrlimit(resource.RLIMIT_DATA)
    sql = "SELECT length(repeat('x', 2000000000))"
    done = run("query", sql, "logs", "--memory-limit", "200MB")
    assert done.code == 2
    assert "out of memory; ask for less or raise the memory limit (190.7 MiB)" in done.err
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_whoever_reads_only_the_head_is_obeyed(logs):
    """The query ends with its reader, in silence."""
    for form in ("csv", "arrow"):
        command = (
            f"'{sys.executable}' -m reconstruct.cli query 'FROM range(1000000000)' logs"
            f" --format {form} | head -c 20"
        )
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60, check=False)
        assert len(done.stdout) == 20
        assert done.stderr == b""
