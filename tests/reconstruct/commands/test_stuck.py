"""`reconstruct stuck`: what everything waits for, and who died with what."""

import pytest


@pytest.fixture
def hanging(write_logs, write):
    """Twelve rollouts went well; then three model calls hang, and the agent is killed with another
    open. The driver goes on."""
    logs = write_logs()
    for number in range(12):
        write(logs, 0xA0 + number, f"{number}-0", number * 10, 50)
    for number, start in enumerate((200, 220, 19_000)):
        trace, first = 0xF0 + number, 0xF000 + 16 * number
        rollout = f"9{number}-0"
        logs["driver"].span(trace, first, None, "gym.rollout", start, None, rollout=rollout)
        logs["model"].span(
            trace, first + 1, first, "gym.model.call", start + 10, None, rollout=rollout
        )
    logs["agent"].span(0xE0, 0xE000, None, "POST /run", 300, None, rollout="80-0")
    logs["driver"].process("alive", 20_200)
    logs["model"].process("alive", 20_200)
    logs["driver"].process("alive", 90_000)
    logs["model"].process("alive", 90_000)
    return logs


def test_places_come_with_what_is_usual_and_examples(hanging, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run("stuck", "logs", "--examples", "1")
    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == """\
2025-11-30T04:00:22.000Z   7 spans unfinished in 4 traces, 4 of them innermost

3 × gym.model.call in gym/model   stuck
    open for 1 min 11 s to 1 min 30 s; 12 others took at most 46.0 ms
    busy, or waiting for what is no span
    process gym/model#model-run-1 (pid 103, host node-1), alive
    rollout 90-0   1 min 30 s   logs/model.log:14
    trace 000000000000000000000000000000f0   span 000000000000f001
    … 2 more; --examples 0 shows all

✗ gym/agent#agent-run-1 (pid 102, host node-1) died with 1 span open
    last heard of 1 min 30 s earlier   its last line is logs/agent.log:14

1 × POST /run in gym/agent
    open for 0 ns; 12 others took at most 48.0 ms
    busy, or waiting for what is no span
    rollout 80-0   0 ns   logs/agent.log:14
    trace 000000000000000000000000000000e0   span 000000000000e000
"""
    )


@pytest.mark.parametrize("columns", [80, 120])
def test_lines_fit(columns, hanging, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run("stuck", "logs").out.splitlines()
    assert max(map(len, lines[1:])) <= columns


def test_rows_are_those_of_the_relation(hanging, run):
    rows = run("stuck", "logs", "--json").json
    assert len(rows) == 7
    assert {row["waits_for"] for row in rows if row["name"] == "gym.rollout"} == {
        "gym.model.call in gym/model"
    }
    assert [row["rollout_id"] for row in rows if row["ending"] == "lost"] == ["80-0"]


def test_what_is_asked_for_can_be_chosen(hanging, run):
    rows = run("stuck", "logs", "--json", "--rollout", "91-0", "--service", "model").json
    assert [(row["rollout_id"], row["name"]) for row in rows] == [("91-0", "gym.model.call")]


def test_at_an_instant_it_is_what_ran_then(logs, run):
    """Rollout 1-0 went from 100 to 150 ms, and the logs end at 1 s."""
    done = run("stuck", "logs", "--at", "880ms")
    head, _, place, *_ = done.out.splitlines()
    assert head == "2025-11-30T03:58:52.120Z   3 spans unfinished in 1 trace, 1 of them innermost"
    assert place == "1 × gym.model.call in gym/model"
    assert "    process gym/model#model-run-1 (pid 103, host node-1)\n" in done.out
    assert [row["open_ns"] for row in run("stuck", "logs", "--at", "880ms", "--json").json] == [
        20_000_000,
        19_000_000,
        18_000_000,
    ]


def test_nothing_is_an_answer(logs, run):
    assert run("stuck", "logs").out == "Nothing is unfinished when the logs end.\n"
    assert run("stuck", "logs", "--at", "0s").out == "Nothing is unfinished then.\n"
    assert run("stuck", "logs", "--json").json == []


def test_a_time_that_is_none_is_told(logs, run):
    done = run("stuck", "logs", "--at", "noon")
    assert (done.code, done.out) == (2, "")
    assert "--at 'noon' is no time" in done.err


def test_what_was_cancelled_counts_when_it_took_too_long(write_logs, write, run):
    logs = write_logs()
    for number in range(12):
        write(logs, 0xA0 + number, f"{number}-0", number * 10, 50)
    for span, length in ((0xE1, 20), (0xE2, 400)):
        logs["model"].span(
            0xE0, span, None, "gym.model.call", 0, length, attributes={"gymlog.cancelled": True}
        )
    for log in logs.values():
        log.process("stopped", 1_000)
    done = run("stuck", "logs")
    assert "1 × gym.model.call in gym/model   stuck\n    cancelled after 400 ms; 12 " in done.out


def test_names_are_harmless(write_logs, run):
    logs = write_logs()
    logs["model"].span(1, 1, None, "evil\x1b[2J", 0, None, rollout="a\nb")
    out = run("stuck", "logs").out
    assert "1 × evil\\x1b[2J in gym/model" in out
    assert "\x1b" not in out
