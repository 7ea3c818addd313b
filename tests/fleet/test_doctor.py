"""`reconstruct` on the logs of real runs: nothing wrong on a healthy one, each fault by name."""

import json
import subprocess
import sys
from typing import Any

import pytest


def reconstruct(*arguments: str) -> tuple[int, Any]:
    """Return the exit code and the JSON of a command."""
    done = subprocess.run(
        [sys.executable, "-m", "reconstruct.cli", *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def findings(run, code: str) -> list[dict[str, Any]]:
    """Return the findings of a code; `doctor` must say that the run is broken."""
    exit_code, found = reconstruct("doctor", str(run.folder))
    assert exit_code == 1
    return [finding for finding in found if finding["code"] == code]


@pytest.mark.parametrize("fixture", ["healthy", "crowded"])
def test_a_healthy_run_has_no_finding(fixture, request):
    """No false alarm, with one process per server and with several."""
    exit_code, found = reconstruct("doctor", str(request.getfixturevalue(fixture).folder))
    assert (exit_code, found) == (0, [])


def test_every_line_is_accounted_for(healthy):
    """The classes of the ledger add up to the lines, and all of them are records."""
    exit_code, lines = reconstruct("lines", str(healthy.folder))
    assert exit_code == 0
    counts = {}
    for line in lines:
        counts[line["class"]] = counts.get(line["class"], 0) + line["lines"]
    assert sum(counts.values()) == len(healthy.lines)
    assert counts["span"] == len(healthy.spans)
    assert set(counts) <= {"span", "span_start", "process", "metric"}


def test_each_rollout_is_one_trace(healthy):
    """As the relations say it: 8 rollouts, 8 traces, at least 4 services in each."""
    _, traces = reconstruct("traces", str(healthy.folder))
    _, rollouts = reconstruct("rollouts", str(healthy.folder))
    assert {trace["rollout_id"] for trace in traces} == {row["rollout_id"] for row in rollouts}
    assert len(traces) == len(rollouts) == 8
    assert min(trace["service_count"] for trace in traces) >= 4
    assert {row["trace_count"] for row in rollouts} == {1}


def test_an_erroring_tool_is_named(faulty):
    """Which route of which server, and where to look."""
    (finding,) = [f for f in findings(faulty, "errors") if "get_weather" in f["message"]]
    assert "POST /get_weather in gym/resources failed 5 of 16 times" in finding["message"]
    assert finding["file"].endswith("resources.log")
    assert finding["line"] > 0


def test_a_slow_instance_is_named(faulty):
    """The second model server's process."""
    (finding,) = findings(faulty, "slow_instance")
    assert finding["file"].endswith("model-2.log")
    assert "gym.model.responses" in finding["message"]


def test_what_blocks_an_event_loop_is_named(faulty):
    """The function, the span that it was called in, and what it did: it waited."""
    (blocked,) = findings(faulty, "stalled_event_loop")
    assert blocked["place"] == "_wait_without_await in gym/resources"
    assert "in 4 stalls, in _wait_without_await at " in blocked["message"]
    assert "the longest within gym.verify, rollout " in blocked["message"]
    assert blocked["hint"].startswith("it waited there")
    assert blocked["file"].endswith("resources.log")


def test_broken_propagation_is_named_at_both_ends(faulty):
    """Who called, who began a trace of its own: 2 calls in each of 16 rollouts."""
    broken = findings(faulty, "split_trace")
    assert len(broken) == 32
    for finding in broken:
        assert finding["file"].endswith(("model.log", "model-2.log"))
        assert "agent.log" in finding["message"]
        assert "gymlog.request()" in finding["hint"]


def test_a_hanging_call_is_named(hung):
    """What all others waited for, unfinished, in a process that had to be killed."""
    (stuck,) = findings(hung, "stuck")
    assert "gym.model.responses in gym/model" in stuck["message"]
    assert {finding["span_id"] for finding in findings(hung, "unfinished")} == {
        span["span_id"] for span in hung.unfinished
    }
    (died,) = findings(hung, "process_died")
    assert died["file"].endswith("model.log")


def test_a_killed_server_and_all_it_had_open_are_named(killed):
    """Its finished spans are there, its open ones are lost ones with the process they died with."""
    (died,) = findings(killed, "process_died")
    assert "gym/agent" in died["message"]
    unfinished = findings(killed, "unfinished")
    assert {finding["span_id"] for finding in unfinished} == {
        span["span_id"] for span in killed.unfinished
    }
    (instance,) = killed.instances_of("gym/agent")
    assert all(instance in finding["message"] for finding in unfinished)
    assert findings(killed, "orphan") == []
    _, spans = reconstruct(
        "query",
        "SELECT count(*) FILTER (state = 'finished') AS finished, "
        "count(*) FILTER (state = 'lost') AS lost FROM spans",
        str(killed.folder),
    )
    assert spans == [{"finished": len(killed.spans), "lost": len(killed.unfinished)}]
