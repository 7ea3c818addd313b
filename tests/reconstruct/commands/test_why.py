"""`reconstruct rollouts --why`: what the time of rollouts went to."""

import sys

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

LEFT_OUT = ("TOOL", "VERIFY", "SANDBOX", "QUEUE", "CLIENT", "LAG", "RETRY", "NOBODY")


@pytest.fixture
def terminal(monkeypatch):
    """Return a function that makes stdout a terminal of so many columns."""

    def of(columns):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")

    return of


def test_the_list(logs, run):
    """What rounds to 0 % everywhere has no column, and that is said."""
    done = run("rollouts", "logs", "--why", "--limit", "2")
    assert done.out.splitlines() == [
        "ROLLOUT  DURATION  TURNS  MODEL   OWN  WHY",
        "1-0       50.0 ms      1   92 %   8 %  model +20.0 ms",
        "2-0       30.0 ms      1   87 %  13 %  -",
    ]
    assert done.err.splitlines() == [
        f"left out, as it rounds to 0 % everywhere: {', '.join(LEFT_OUT)}",
        "… 1 more rollout; --limit 0 shows all",
    ]


def test_reasons_stand_below_where_there_is_no_room_beside(logs, run, terminal):
    """A terminal of 80 columns has room for these, one of 50 has not."""
    terminal(80)
    wide = run("rollouts", "logs", "--why").out.splitlines()
    assert wide[1].endswith("  model +20.0 ms")
    terminal(50)
    narrow = run("rollouts", "logs", "--why").out.splitlines()
    assert narrow[0] == "ROLLOUT  DURATION  TURNS  MODEL   OWN"
    assert narrow[2] == "  model +20.0 ms"
    assert max(map(len, narrow)) <= 50


def test_json_has_every_column(logs, run):
    """In nanoseconds, which add up."""
    rows = run("rollouts", "logs", "--why", "--json").json
    assert [row["rollout_id"] for row in rows] == ["1-0", "2-0", "0-0"]
    for row in rows:
        assert sum(row[kind] for kind in KINDS) == row["duration_ns"]
    assert rows[0]["why"] == "model +20.0 ms"


def test_one_in_detail(logs, run):
    """Its kinds of time beside those of the median rollout, and its longest stretches."""
    done = run("rollouts", "logs", "--why", "--rollout", "1-0")
    assert done.out.splitlines() == [
        "rollout 1-0   run run-1   success",
        "2025-11-30T03:58:52.100Z   50.0 ms   1 turn",
        "model call: median 46.0 ms   longest 46.0 ms",
        "",
        "SPENT ON     TIME  SHARE   MEDIAN",
        "model     46.0 ms   92 %  26.0 ms  ████████████████████████████",
        "own work  4.00 ms    8 %  4.00 ms  ██",
        "in all    50.0 ms  100 %  30.0 ms",
        "",
        "more than the median of 3 rollouts: model +20.0 ms",
        "",
        "     AT     TIME  SPENT ON  SPAN            SERVICE",
        "2.00 ms  46.0 ms  model     gym.model.call  model",
        "   0 ns  1.00 ms  own work  gym.rollout     driver",
        "1.00 ms  1.00 ms  own work  POST /run       agent",
        "48.0 ms  1.00 ms  own work  POST /run       agent",
        "49.0 ms  1.00 ms  own work  gym.rollout     driver",
    ]
    assert done.err == ""


def test_the_same_rollout_of_two_runs(write_logs, write, run):
    """One after the other, each with the median of its own run."""
    for number, name in enumerate(("one", "two")):
        logs = write_logs(name, name)
        write(logs, 0xA0 + number, "0-0", 0, 10 + 10 * number)
    done = run("rollouts", "one", "two", "--why", "--rollout", "0-0")
    heads = [line for line in done.out.splitlines() if line.startswith("rollout ")]
    assert heads == ["rollout 0-0   run two   success", "rollout 0-0   run one   success"]
    assert run("rollouts", "one", "two", "--why").out.splitlines()[0].startswith("ROLLOUT  RUN")


def test_calls_side_by_side(logs, run):
    """Their sum is not taken for time that passed."""
    for number, (start, end) in enumerate([(0, 40), (10, 50), (20, 60), (80, 90)]):
        chat = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 300}
        logs["agent"].span(0xB0, number + 2, 1, "chat", start, end, kind="CLIENT", attributes=chat)
    logs["agent"].span(0xB0, 1, None, "gym.rollout", 0, 100, rollout="9-0-a1")
    lines = run("rollouts", "logs", "--why", "--rollout", "9-0-a1").out.splitlines()
    assert lines[1:4] == [
        "2025-11-30T03:58:52.000Z   100 ms   4 turns   attempt 1",
        "model call: median 40.0 ms   longest 40.0 ms   1,200 input tokens",
        "model calls overlap: 130 ms in 70.0 ms, 1.86 at a time",
    ]


def test_ids_that_would_steer_a_terminal_are_harmless(write_logs, run):
    """Rollout, run and tool names are written by others."""
    logs = write_logs("evil", "run\x1b[2J")
    logs["agent"].span(1, 1, None, "gym.rollout", 0, 100, rollout="\x1b[31m0")
    logs["agent"].span(
        1, 2, 1, "get_\x1b[0m", 0, 90, attributes={"gen_ai.operation.name": "execute_tool"}
    )
    for more in ((), ("--rollout", "\x1b[31m0")):
        assert "\x1b" not in run("rollouts", "evil", "--why", *more).out


def test_nothing_to_say(logs, run):
    """No rollouts, no table."""
    done = run("rollouts", "logs", "--why", "--run", "run-2")
    assert (done.code, done.out, done.err) == (0, "", "no rollouts\n")


def test_the_sql_of_one_in_detail(logs, run):
    """Three questions, each of which `reconstruct query` answers."""
    text = run("rollouts", "logs", "--why", "--rollout", "1-0", "--sql").out
    statements = [statement for statement in text.split(";\n") if statement.strip()]
    assert len(statements) == 3
    for statement in statements:
        done = run("query", statement, "logs/", "--format", "json")
        assert done.code == 0, done
        assert done.json
