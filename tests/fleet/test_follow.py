"""`reconstruct follow` beside a demo that runs: it ends with it, and has missed nothing."""

import json
import subprocess
import sys

import pytest

from reconstruct.engine import Engine


@pytest.mark.parametrize("preset", ["per_rollout", "default"])
def test_follow_sees_a_whole_run(tmp_path, command, environment, preset):
    """Started before the fleet, with an empty folder; at the end it says what the relations say.

    With the preset `default` the whole run is one trace.
    """
    follow = [sys.executable, "-m", "reconstruct.cli", "follow", str(tmp_path)]
    with subprocess.Popen(
        [*follow, "--json", "--interval", "0.1", "--exit-when-stopped"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as following:
        assert json.loads(following.stdout.readline())["event"] == "past"
        demo = subprocess.run(
            [
                *command,
                f"--out={tmp_path}",
                "--rollouts=8",
                "--latency-scale=0.3",
                "--fault=error-tool",
                f"--span-groups={preset}",
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
        )
        assert demo.returncode == 0, demo.stderr
        events = [json.loads(line) for line in following.stdout]
    assert following.returncode == 1  # there were errors, as planned
    summary = events.pop()
    with Engine.read([str(tmp_path)]) as engine:
        [counted] = engine.rows(
            """
            SELECT count(*) AS spans, count(*) FILTER (status_code = 'ERROR') AS errors
            FROM spans WHERE state = 'finished'
            """
        )
        rollouts = engine.rows("SELECT rollout_id, duration_ns, span_count FROM rollouts")
        instances = engine.rows("SELECT instance FROM instances")
    assert (summary["event"], summary["open_count"], summary["lost_count"]) == ("summary", 0, 0)
    assert (summary["span_count"], summary["error_count"]) == (counted["spans"], counted["errors"])
    facts = ("rollout_id", "duration_ns", "span_count")
    assert sorted(tuple(it[fact] for fact in facts) for it in summary["slowest"]) == sorted(
        tuple(it[fact] for fact in facts) for it in rollouts
    )
    kinds = [event["event"] for event in events]
    assert kinds.count("rollout_finished") == 8
    assert kinds.count("error") == counted["errors"] > 0
    assert kinds.count("process_stopped") == len(instances)
    assert {it["state"] for it in summary["processes"]} == {"stopped"}
