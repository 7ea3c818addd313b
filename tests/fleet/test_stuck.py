"""`reconstruct stuck` and `steps` on the logs of real runs: they name the place and the process."""

from tests.fleet.test_doctor import reconstruct


def test_a_hanging_call_is_where_everything_waits(hung):
    """The innermost unfinished span, stuck, in the model that had to be killed."""
    exit_code, rows = reconstruct("stuck", str(hung.folder))
    assert exit_code == 0
    assert {row["span_id"] for row in rows if row["ending"] == "lost"} == {
        span["span_id"] for span in hung.unfinished
    }
    (place,) = (row for row in rows if row["is_innermost"])
    assert (place["service_name"], place["name"]) == ("gym/model", "gym.model.responses")
    assert place["is_stuck"]
    assert place["process_state"] == "dead"
    (instance,) = hung.instances_of("gym/model")
    assert place["instance"] == f"gym/model#{instance}"
    assert place["last_file"].endswith("model.log")


def test_the_hanging_rollout_held_the_step_up(hung):
    """It is the last, and its time is the hung call's: the model's while that was heard of, then
    that of the agent, which waited."""
    _, answer = reconstruct("steps", str(hung.folder))
    (step,) = answer["steps"]
    assert (step["rollout_count"], step["failed_count"]) == (8, 1)
    first = answer["stragglers"][0]
    assert first["nth_from_last"] == 1
    assert first["name"] in ("gym.model.responses", "HTTP POST")
    assert first["held_up_ns"] == step["tail_ns"] > step["duration_ns"] // 2


def test_what_a_killed_server_had_open_is_told_with_it(killed):
    """All of it, and nothing else; its own last line is where to look."""
    _, rows = reconstruct("stuck", str(killed.folder))
    lost = [row for row in rows if row["ending"] == "lost"]
    assert {row["span_id"] for row in lost} == {span["span_id"] for span in killed.unfinished}
    (instance,) = killed.instances_of("gym/agent")
    assert {row["instance"] for row in lost} == {f"gym/agent#{instance}"}
    lines = (killed.folder / "agent.log").read_bytes().splitlines()
    assert {row["last_line"] for row in lost} == {len(lines)}


def test_what_ran_when_it_was_killed_ran_in_other_servers_too(killed):
    """At its last sign of life: spans of the agent, and of those who called it."""
    _, rows = reconstruct("stuck", str(killed.folder))
    last = max(row["last_sign_of_life_unix_nano"] for row in rows if row["ending"] == "lost")
    _, then = reconstruct("stuck", str(killed.folder), "--at", str(last))
    assert {"gym/agent", "gym/environment", "gym/driver"} <= {row["service_name"] for row in then}
    assert {row["ending"] for row in then} == {"open"}


def test_a_healthy_run_has_nothing_stuck(healthy):
    _, rows = reconstruct("stuck", str(healthy.folder))
    assert rows == []
