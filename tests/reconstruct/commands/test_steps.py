"""`reconstruct steps`: how a step went, and which rollouts held it up."""

import pytest


def test_a_step_reads_well(logs, run, monkeypatch):
    """Rollouts 0-0, 1-0, 2-0 from 0, 100 and 200 ms on, for 10, 50 and 30 ms."""
    monkeypatch.setenv("COLUMNS", "60")
    done = run("steps", "logs")
    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == """\
step 1   run run-1   2025-11-30T03:58:52.000Z
took        230 ms, 3 rollouts; 13 finished per second
rollouts    median 30.0 ms, p99 50.0 ms, longest 50.0 ms
had ended   half after 150 ms, 90 % after 230 ms, 99 % after
            230 ms, all after 230 ms
tail        the last one held it up for 80.0 ms (35 %)

AT WORK                             0         100 ms
rollouts    most 1, mean 0.391      █▁        ▅████▆    ▂███

STRAGGLERS   1 of 3 took longer than one and a half times the median
1-0         50.0 ms, 20.0 ms more than the median; 1 ended
            later
            gym.model.call in gym/model#model-run-1: 46.0 ms
            on its critical path, usually 26.0 ms
2-0         30.0 ms; ended last, held the step up for
            80.0 ms
            began 200 ms after the step
"""
    )


@pytest.fixture
def two_steps(write_logs):
    """A job of 30 rollouts, 8 of them with a slow model process; and a shorter one."""
    logs = write_logs()
    for job, start, length in ((1, 0, 500), (2, 1_000, 300)):
        logs["driver"].span(job, job, None, "gym.job", start, start + length)
    for number in range(30):
        slow, first = number < 8, 0x1000 + 16 * number
        rollout, end = f"{number}-0", 400 if slow else 100
        logs["driver"].span(1, first, 1, "gym.rollout", 10, 10 + end, rollout=rollout)
        log = logs["agent" if slow else "model"]
        log.span(1, first + 1, first, "serve", 20, end, rollout=rollout, kind="SERVER")
    logs["driver"].span(2, 0x2000, 2, "gym.rollout", 1_010, 1_100, rollout="0-0")
    for log in logs.values():
        log.process("stopped", 2_000)
    return logs


def test_the_longest_of_several_steps_is_told_more_of(two_steps, run):
    done = run("steps", "logs", "--limit", "1")
    lines = done.out.splitlines()
    headings = "STEP RUN START DURATION ROLLOUTS FAILED UNFINISHED AT ONCE MEDIAN P99 TAIL"
    assert " ".join(lines[0].split()) == headings
    assert lines[1].split()[:2] == ["1", "run-1"]
    assert lines[3].startswith("step 1   run run-1")
    assert "gym.job 0000000000000001" in lines[3]
    assert "… 7 more; --limit 0 shows all" in lines
    assert done.err == "… 1 more step; --limit 0 shows all\n"
    (_, common) = done.out.split("WHAT SLOW ONES HAVE IN COMMON\n")
    first, second, *_ = common.splitlines()
    assert first.startswith(
        "instance    gym/agent#agent-run-1: 8 of the 8 that met it are slow, 0 of"
    )
    assert second.endswith(" once in 975,487")


def test_another_step_can_be_asked_for(two_steps, run):
    assert "\nstep 2   run run-1" in run("steps", "logs", "--step", "2").out
    done = run("steps", "logs", "--step", "3")
    assert (done.code, done.out) == (1, "")
    assert "no step 3 in these logs; there are 2 steps" in done.err


def test_json_has_the_rows_of_all_relations(two_steps, run):
    answer = run("steps", "logs", "--json").json
    assert list(answer) == ["steps", "stragglers", "causes", "concurrency"]
    assert [step["rollout_count"] for step in answer["steps"]] == [30, 1]
    assert {row["cause_value"] for row in answer["stragglers"]} == {"gym/agent#agent-run-1"}
    assert answer["causes"][0]["is_cause"] is True
    rollouts = [row for row in answer["concurrency"] if row["counted"] == "rollouts"]
    assert max(row["max_running"] for row in rollouts) == 30


def test_logs_without_steps_are_told(write_logs, run):
    logs = write_logs()
    logs["driver"].span(1, 1, None, "work", 0, 10)
    done = run("steps", "logs")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no steps: no rollouts and no gym.job in these logs\n"
    assert run("steps", "logs", "--run", "other", "--json").json["steps"] == []
