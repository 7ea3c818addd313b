"""`reconstruct sql`: what it prints is enough for the plain shell."""

import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

RELATIONS = (
    *("spans", "traces", "rollouts", "span_tree", "self_time", "service_edges", "log_records"),
    *("metric_points", "processes", "instances", "findings", "model_calls"),
)


@pytest.mark.skipif(shutil.which("duckdb") is None, reason="needs the duckdb shell on the PATH")
def test_the_shell_gives_the_rows_that_the_program_gives(logs, run):
    """The shell may be older than the library: the bundle suits both."""
    logs["agent"].span(0xB0, 1, None, "open", 100, None)
    logs["agent"].span(0xB0, 2, 3, "orphan", 100, 200, attributes={"error.type": "x"})
    Path("relations.sql").write_text(run("sql", "--logs", "logs/*.log").out)
    columns = run("query", "SELECT table_name, column_name FROM duckdb_columns()", "logs", "--json")
    queries = {}
    for relation in RELATIONS:
        names = {row["column_name"] for row in columns.json if row["table_name"] == relation}
        names -= {"file", "line", "rowid"}  # where lines lie
        queries[relation] = f"SELECT {', '.join(sorted(names))} FROM {relation} ORDER BY ALL"
    asked = [word for query in queries.values() for word in ("-c", query, "-c", ".print")]
    done = subprocess.run(
        ["duckdb", "-jsonlines", "-c", ".read relations.sql", *asked],
        capture_output=True,
        text=True,
        check=True,
    )
    answers = dict(zip(RELATIONS, done.stdout.split("\n\n"), strict=False))
    for relation, query in queries.items():
        rows = [json.loads(line) for line in answers[relation].splitlines() if line]
        assert rows == run("query", query, "logs", "--json").json, relation
    assert rows == []  # no calls were captured


@pytest.mark.parametrize("name", ["logs", "it's"])
def test_logs_chooses_the_files(name, write_logs, run):
    log = write_logs(name)["agent"]
    log.span(1, 1, None, "root", 0, 10)
    with duckdb.connect() as shell:
        shell.execute(run("sql", "--logs", f"{name}/*.log").out)
        assert shell.execute("SELECT name FROM spans").fetchall() == [("root",)]


def test_the_reference_names_each_relation(run):
    done = run("sql", "--reference")
    assert (done.code, done.err) == (0, "")
    assert "| `spans` | a span, finished or not. |" in done.out
    assert run("sql", "--reference", "--logs", "x").code == 2
