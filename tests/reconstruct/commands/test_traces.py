"""`reconstruct traces` and `reconstruct rollouts`: one row each, the longest first."""

import pytest

from reconstruct.commands.logs import SORTS


@pytest.mark.parametrize(("command", "key"), [("traces", "root_name"), ("rollouts", "rollout_id")])
def test_the_longest_comes_first(command, key, logs, run):
    done = run(command, "logs", "--json")
    assert done.code == 0
    assert [row["duration_ns"] for row in done.json] == [50_000_000, 30_000_000, 10_000_000]
    expected = {"root_name": ["gym.rollout"] * 3, "rollout_id": ["1-0", "2-0", "0-0"]}
    assert [row[key] for row in done.json] == expected[key]


def test_a_table_reads_well(logs, run):
    done = run("rollouts", "logs", "--limit", "1")
    assert done.out.splitlines() == [
        "ROLLOUT  RUN    START                     DURATION  TRACES  SPANS  ERRORS  UNFINISHED",
        "1-0      run-1  2025-11-30T03:58:52.100Z   50.0 ms       1      3       0           0",
    ]
    assert done.err == "… 2 more rollouts; --limit 0 shows all\n"


@pytest.mark.parametrize("command", ["traces", "rollouts"])
@pytest.mark.parametrize("sort", list(SORTS))
def test_every_order_is_an_order_of_the_same_rows(command, sort, logs, run):
    rows = run(command, "logs", "--json", "--sort", sort).json
    assert len({row["start_time_unix_nano"] for row in rows}) == 3
    if sort == "start":
        assert rows == sorted(rows, key=lambda row: row["start_time_unix_nano"])


@pytest.mark.parametrize("command", ["traces", "rollouts"])
def test_a_run_is_chosen_by_its_id(command, logs, run):
    assert len(run(command, "logs", "--run", "run-1", "--json").json) == 3
    none = run(command, "logs", "--run", "run-2")
    assert (none.code, none.out, none.err) == (0, "", f"no {command}\n")
    assert run(command, "logs", "--run", "run-2", "--json").json == []


def test_a_limit_cuts_json_too_and_says_so(logs, run):
    done = run("traces", "logs", "--json", "--limit", "2")
    assert len(done.json) == 2
    assert done.err == "… 1 more trace; --limit 0 shows all\n"
    assert run("traces", "logs", "--limit", "0", "--json").err == ""
