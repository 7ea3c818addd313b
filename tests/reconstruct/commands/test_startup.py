"""`reconstruct startup`: each start of the fleet, the latest first."""

import pytest


def write_start(logs, trace, start, *, outcome="ready"):
    """driver: gym.startup ── gym.startup.server ── agent: gym.server.startup, with a stage."""
    status = {"status": {"code": "UNSET" if outcome == "ready" else "ERROR"}}
    ended = {"nemo.gym.startup.outcome": outcome}
    server = {"nemo.gym.server.name": "agent"}
    stage = {"nemo.gym.startup.stage": "load"}
    first, driver, agent = trace * 16, logs["driver"], logs["agent"]
    driver.span(trace, first, None, "gym.startup", start, start + 100, attributes=ended, **status)
    driver.span(
        trace, first + 1, first, "gym.startup.server", start, start + 90,
        attributes=server | ended, **status,
    )  # fmt: skip
    agent.span(
        trace, first + 2, first + 1, "gym.server.startup", start + 10, start + 80,
        attributes=server | ended, **status,
    )  # fmt: skip
    agent.span(
        trace, first + 3, first + 2, "gym.server.startup.load", start + 10, start + 80,
        attributes=server | stage | (ended if outcome != "ready" else {}), **status,
    )  # fmt: skip


@pytest.fixture
def starts(write_logs):
    """One that failed, then one that got ready."""
    logs = write_logs()
    write_start(logs, 1, 0, outcome="failed")
    write_start(logs, 2, 1_000)
    return logs


def test_starts_read_well(starts, run):
    done = run("startup", "logs")
    assert done.code == 0
    assert "start ready after 100 ms   1 of 1 server ready" in done.out
    assert "start failed after 100 ms   0 of 1 server ready" in done.out
    assert done.out.index("ready after") < done.out.index("failed after")
    assert "agent failed after 90.0 ms, in load" in done.out


def test_rows(starts, run):
    """JSON nests servers in starts, and stages in servers."""
    latest, failed = run("startup", "logs", "--json").json
    assert (latest["outcome"], latest["held_up_by"]) == ("ready", ["agent"])
    (server,) = failed["servers"]
    assert (server["outcome"], server["stage"]) == ("failed", "load")
    assert [stage["stage"] for stage in server["stages"]] == ["load"]
    explained = {row["column"] for row in run("startup", "--explain", "--json").json}
    assert set(latest) <= explained
    assert {f"startup_servers.{key}" for key in server if key != "stages"} <= explained
    assert {f"startup_stages.{key}" for key in server["stages"][0]} <= explained


def test_what_is_left_out_is_said(starts, run):
    done = run("startup", "logs", "--limit", "1")
    assert done.out.count("start ") == 1
    assert done.err.strip() == "… 1 earlier start; --limit 0 shows all"
    assert [
        row["trace_id"] for row in run("startup", "logs", "--trace", f"{1:032x}", "--json").json
    ] == [f"{1:032x}"]


def test_logs_without_a_start(logs, run):
    done = run("startup", "logs")
    assert (done.code, done.out) == (0, "")
    assert "no start in these logs" in done.err
