"""What the demo's rollouts spent their time on, as their logs say."""

import json
import subprocess
import sys
from typing import Any

import pytest

KINDS = (
    "model_ns",
    "tool_ns",
    "verify_ns",
    "sandbox_ns",
    "agent_ns",
    "queue_ns",
    "client_overhead_ns",
    "event_loop_lag_ns",
    "retry_ns",
    "unaccounted_ns",
)


def shares(run: Any) -> list[dict[str, Any]]:
    """Return what `rollouts --why` says of a run; its kinds of time must add up."""
    command = [sys.executable, "-m", "reconstruct.cli", "rollouts", "--why", "--json"]
    done = subprocess.run(
        [*command, "--limit", "0", str(run.folder)], capture_output=True, text=True, check=True
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    for row in rows:
        assert sum(row[kind] for kind in KINDS) == row["duration_ns"] > 0
    return rows


@pytest.mark.parametrize("fixture", ["healthy", "crowded"])
def test_a_healthy_run(fixture, request):
    """Every rollout has its turns, in models that took time; little of it is nobody's."""
    for row in shares(request.getfixturevalue(fixture)):
        assert row["outcome"] == "success"
        assert (row["turns"], row["tool_calls"], row["retries"]) == (2, 1, 0)
        assert row["slowest_tool"] == "get_weather"
        assert row["model_wall_ns"] >= row["model_ns"] > 0
        assert row["tool_ns"] > 0
        assert row["verify_ns"] > 0
        # A server may end after its caller, whom nobody waits for then.
        assert row["unaccounted_ns"] < row["duration_ns"] / 2
        assert row["agent_name"] == "agent"


def test_models_that_traces_do_not_show(faulty):
    """The agent called them past the traces; their time is not taken for its own."""
    for row in shares(faulty):
        assert row["turns"] == 2
        assert row["model_ns"] > 0


def test_a_killed_server(killed):
    """What was under way is tried again until it is given up."""
    failed = [row for row in shares(killed) if row["outcome"] == "failure"]
    assert failed
    assert any(row["retries"] and row["retry_ns"] > 400_000_000 for row in failed)
