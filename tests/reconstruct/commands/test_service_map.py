"""`reconstruct map`: the graph of calls, drawn or as rows, and the halves that lack another."""

import pytest


@pytest.fixture
def calls(write_logs):
    """driver ── agent ── model, of which one call failed, and a call of a database."""
    logs = write_logs()
    call, serve = {"kind": "CLIENT"}, {"kind": "SERVER"}
    error = {"status": {"code": "ERROR"}}
    logs["driver"].span(1, 1, None, "POST", 0, 100, **call)
    logs["agent"].span(1, 2, 1, "POST /run", 10, 90, **serve)
    logs["agent"].span(1, 3, 2, "POST", 20, 50, **call)
    logs["model"].span(1, 4, 3, "POST /v1", 25, 45, **serve)
    logs["agent"].span(1, 5, 2, "POST", 50, 80, **call, **error)
    logs["model"].span(1, 6, 5, "POST /v1", 55, 70, **serve, **error)
    logs["model"].span(1, 7, 6, "SELECT", 60, 65, attributes={"db.system": "redis"}, **call)
    logs["agent"].span(2, 8, None, "GET /health", 0, 1, **serve)
    return logs


def test_the_map_reads_well(calls, run, monkeypatch):
    """Cut to the terminal's width, with a word on what is left out."""
    monkeypatch.setenv("COLUMNS", "80")
    done = run("map", "logs")
    assert done.code == 0
    assert done.out.splitlines() == [
        "3 services, 5 calls, 1 failed",
        "",
        "                         CALLS  FAILED      P50      P95      GAP",
        "● driver",
        "└╴● agent                    1       0   100 ms   100 ms  20.0 ms",
        "  └╴● model                  2       1  30.0 ms  30.0 ms  10.0 ms",
        "    └╴◆ redis  database      1       0  5.00 ms  5.00 ms        -",
        "○ entry  callers outside these logs",
        "└╴● agent ↑                  1       0  1.00 ms  1.00 ms        -",
        "",
        "↑ drawn above, with what it calls",
        "GAP median time between client and server: network and waiting",
        "1 call has one half only; --unpaired says why",
    ]


def test_rows(calls, run):
    """JSON has the columns of the relation, between services and between processes."""
    rows = run("map", "logs", "--json").json
    assert [(row["client"], row["server"], row["calls"]) for row in rows] == [
        ("entry", "gym/agent", 1),
        ("gym/agent", "gym/model", 2),
        ("gym/driver", "gym/agent", 1),
        ("gym/model", "redis", 1),
    ]
    assert rows[1]["failed_attempts"] == 1
    instances = run("map", "logs", "--json", "--instances").json
    assert instances[1]["server_instance"] == "gym/model#model-run-1"
    for words in (["--instances"], ["--unpaired"], ["--run", "run-1"], []):
        sql = run("map", "logs", "--sql", *words).out
        answer = run("query", sql, "logs", "--format", "json").json
        assert answer == run("map", "logs", "--json", *words).json
        assert set(answer[0]) <= {row["column"] for row in run("map", "--explain", "--json").json}


def test_processes_have_their_names(calls, run):
    assert "└╴● agent#agent-run-1 ↑" in run("map", "logs", "--instances").out


def test_only_what_is_chosen(calls, run):
    """One trace, or none of them."""
    rows = run("map", "logs", "--trace", f"{2:032x}", "--json").json
    assert [(row["client"], row["calls"]) for row in rows] == [("entry", 1)]
    nothing = run("map", "logs", "--until", "2000-01-01")
    assert (nothing.code, nothing.out) == (0, "")
    assert nothing.err.strip() == "no calls between services"


def test_halves_by_their_reason(calls, run):
    """Most frequent first; JSON has them in rows."""
    done = run("map", "logs", "--unpaired")
    assert done.out.splitlines() == [
        "1 client half: it called a database, which writes no spans here",
        "  1  SELECT in gym/model to redis  trace 00000000",
        "",
        "1 server half: it has no parent: called from outside, or without a trace context",
        "  1  GET /health in gym/agent      trace 00000000",
        "",
    ]
    assert [row["halves"] for row in run("map", "logs", "--unpaired", "--json").json] == [1, 1]


def test_every_call_has_both_halves(write_logs, run):
    logs = write_logs()
    logs["driver"].span(1, 1, None, "POST", 0, 100, kind="CLIENT")
    logs["agent"].span(1, 2, 1, "POST /run", 10, 90, kind="SERVER")
    done = run("map", "logs", "--unpaired")
    assert (done.out, done.err.strip()) == ("", "every call has both halves")
    assert "--unpaired" not in run("map", "logs").out


@pytest.mark.parametrize(
    ("form", "first"), [("mermaid", "flowchart LR"), ("dot", "digraph services {")]
)
def test_diagrams(form, first, calls, run):
    """As text on stdout; rows and halves are no diagram."""
    done = run("map", "logs", "--format", form)
    assert (done.code, done.out.splitlines()[0], done.err) == (0, first, "")
    for words in (["--json"], ["--unpaired"]):
        done = run("map", "logs", "--format", form, *words)
        assert (done.code, done.out) == (2, "")
        assert "--format draws the map" in done.err
