"""`reconstruct diff`: A and B from what was typed, a table of what changed or a tree.

The logs of `logs`: rollouts 0-0, 1-0, 2-0 of 10, 50 and 30 ms, each a trace of its own (a0, a1,
a2); driver: gym.rollout ── agent: POST /run ── model: gym.model.call.
"""

import pytest


def write_runs(write_logs, write, lengths=((10, 20, 30, 40, 50), (30, 40, 50, 60, 70))):
    """Two runs in folders of their own, a rollout for each length in ms."""
    for number, run_lengths in enumerate(lengths, 1):
        logs = write_logs(f"logs{number}", f"run-{number}")
        for place, length in enumerate(run_lengths):
            write(logs, number << 64 | place + 1, f"{place}-0", place * 100, length)


@pytest.fixture
def runs(write_logs, write):
    write_runs(write_logs, write)


def whole(done):
    assert done.code == 0, done
    (row,) = (row for row in done.json["paths"] if row["part"] == "whole")
    return row["rollouts_a"], row["rollouts_b"], row["blame_a_ns"], row["blame_b_ns"]


@pytest.mark.parametrize(
    "words",
    [
        ["logs1", "logs2"],
        ["run-1", "run-2", "logs1", "logs2"],
        ["--where-a", "run_id = 'run-1'", "logs1", "logs2"],
        ["--where-b", "run_id = 'run-2' -- that", "logs1", "logs2"],
        ["--where-a", "run_id[-1] = '1'", "--where-b", "run_id = 'run-2'", "logs1", "logs2"],
    ],
    ids=" ".join,
)
def test_two_runs(words, runs, run):
    """Folders, ids, conditions on `rollouts`, of which one is enough."""
    assert whole(run("diff", *words, "--json")) == (5, 5, 30_000_000, 50_000_000)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--slowest", "10%"], (2, 1, 20_000_000, 50_000_000)),
        (["--slowest", "60"], (1, 2, 10_000_000, 40_000_000)),
        (["--slowest", "50%", "--since", "900ms"], (1, 1)),
        (["--where-b", "duration_ns > 2e7"], (1, 2, 10_000_000, 40_000_000)),
    ],
)
def test_cohorts_of_one_run(words, expected, logs, run):
    """What is chosen is parted; one of each is a tree."""
    done = run("diff", "logs", *words, "--json")
    if len(expected) == 4:
        assert whole(done) == expected
    else:
        compared = [side["what"] for side in done.json["compared"]]
        assert compared == ["rollout 2-0, the rest", "rollout 1-0, the slowest 50 %"]


def test_failed_ones_against_the_others(logs, run):
    for place in (1, 2):
        logs["driver"].span(
            0xC0 + place, place, None, "gym.rollout", 0, 7, rollout=f"f-{place}",
            status={"code": "ERROR"},
        )  # fmt: skip
    assert whole(run("diff", "logs", "--failed", "--json")) == (3, 2, 30_000_000, 7_000_000)


def test_traces_where_there_are_no_rollouts(write_logs, write, run):
    logs = write_logs()
    for place, length in enumerate((10, 20, 60)):
        write(logs, 0xA0 + place, None, place * 100, length)
    done = run("diff", "logs", "--where-b", "duration_ns > 3e7", "--json")
    assert done.json["compared"][0] == {"side": "A", "what": "the rest", "traces": 2}
    assert whole(done) == (2, 1, 15_000_000, 60_000_000)


def test_the_table_adds_up(runs, run, monkeypatch):
    """At 100 columns, and at 80 without the spans."""
    monkeypatch.setenv("COLUMNS", "100")
    done = run("diff", "logs1", "logs2")
    assert done.out.splitlines()[:12] == [
        "A  5 rollouts   logs1",
        "B  5 rollouts   logs2",
        "",
        "mean duration 30.0 ms → 50.0 ms   +20.0 ms, +67 %   95 % interval -3.06 ms … +43.1 ms",
        "p50 30.0 ms → 50.0 ms   p95 50.0 ms → 70.0 ms",
        "",
        "What the change is made of: time on the critical path of the mean rollout",
        "    CHANGE             INTERVAL        A        B  SPANS",
        (
            "  +20.0 ms  -12.0 ms … +52.0 ms  26.0 ms  46.0 ms  1 → 1  "
            "gym.model.call, model ‹ POST /run ‹ gym.r…"
        ),
        "      0 ns          0 ns … 0 ns  2.00 ms  2.00 ms  1 → 1  gym.rollout, driver",
        "      0 ns          0 ns … 0 ns  2.00 ms  2.00 ms  1 → 1  POST /run, agent ‹ gym.rollout",
        "  +20.0 ms  -3.06 ms … +43.1 ms  30.0 ms  50.0 ms         all of them: the whole rollout",
    ]
    assert "ids are not compared: nemo.run.id, service.instance.id" in done.out
    monkeypatch.setenv("COLUMNS", "80")
    done = run("diff", "logs1", "logs2", "--limit", "1")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "2 more paths; --limit 0" in done.out


def test_few_rollouts_say_so(logs, run):
    """Then nothing is marked, and there is no interval."""
    done = run("diff", "--slowest", "10%", "logs")
    assert "Fewer than 5 rollouts on a side tell nothing about chance" in done.out
    assert "INTERVAL" not in done.out
    assert "●" not in done.out


def test_two_rollouts_are_one_tree(logs, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    logs["model"].span(0xA1, 77, 0xA1 * 16 + 2, "retry", 150, 151, rollout="1-0")
    done = run("diff", "2-0", "1-0", "logs")
    assert done.out.splitlines() == [
        "A  rollout 2-0   2025-11-30T03:58:52.200Z   30.0 ms   3 spans",
        "B  rollout 1-0   2025-11-30T03:58:52.100Z   51.0 ms   4 spans",
        "",
        "1 added   3 slower   0 unchanged",
        "",
        "                                   A        B    CHANGE",
        "△ gym.rollout        driver  30.0 ms  50.0 ms  +20.0 ms",
        "△ └╴POST /run        agent   28.0 ms  48.0 ms  +20.0 ms",
        "▲   ├╴gym.model.call model   26.0 ms  46.0 ms  +20.0 ms",
        "+   └╴retry          model            1.00 ms",
        "",
        "  + added   ▲ slower   △ because of what is below",
    ]


def test_unchanged_spans_are_counted(logs, run):
    """Under what has changed; nothing is drawn when nothing has."""
    assert (
        "No difference: 3 spans in both."
        in run("diff", "1-0", "2-0", "logs", "--tolerance", "90%").out
    )
    logs["driver"].span(0xA1, 77, 0xA1 * 16 + 1, "more", 151, 152, rollout="1-0")
    done = run("diff", "1-0", "2-0", "logs", "--tolerance", "90%")
    assert "├╴… 2 unchanged spans" in done.out
    assert "- └╴more" in done.out


def test_rollouts_of_two_runs(runs, run):
    """By RUN/ROLLOUT, or by choosing one in each."""
    for words in (
        ["run-1/4-0", "run-2/4-0", "logs1", "logs2"],
        ["logs1", "logs2", "--rollout", "4-0"],
        [f"{1 << 64 | 5:032x}", f"{2 << 64 | 5:032x}", "logs1", "logs2"],
    ):
        done = run("diff", *words, "--json")
        assert done.code == 0, done
        (top, *_) = done.json["spans"]
        assert (top["duration_a_ns"], top["duration_b_ns"]) == (50_000_000, 70_000_000)
        assert top["changes"] == ["slower"]
        assert done.json["counts"]["slower"] == 3


def test_limits_say_what_is_left_out(logs, run):
    done = run("diff", "--slowest", "10%", "logs", "--limit", "1", "--json")
    assert len(done.json["paths"]) == 2
    assert "… 3 more paths and 0 more values; --limit 0 shows all" in done.err
    assert (
        "… 2 more spans; --limit 0 shows all"
        in run("diff", "0-0", "1-0", "logs", "--limit", "1").out
    )


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["logs"], 2, "compare what? give two runs, rollouts, traces, folders or files"),
        (["logs", "1-0"], 2, "'logs' is a path and '1-0' is none; give two paths, or two ids"),
        (["logs", "logs"], 2, "logs/agent.log is in A and in B"),
        (["logs", "logs/agent.log", "logs"], 2, "are compared, and 'logs' is a third path"),
        (["logs", "-"], 2, "stdin cannot be one of two"),
        (["1-0", "1-0", "logs"], 2, "'1-0' and '1-0' are the same"),
        (["run-1", "1-0", "logs"], 2, "'run-1' is a run and '1-0' is none"),
        (["9-9", "1-0", "logs"], 1, "no rollout or trace '9-9' in these logs; most like it"),
        (["1-0", "2-0", "logs", "--since", "1s"], 2, "A and B are chosen already"),
        (["1-0", "2-0", "logs", "--sql"], 2, "--sql is for cohorts"),
        (["1-0", "2-0", "logs", "--tolerance", "x"], 2, "--tolerance 'x' is no share"),
        (["--slowest", "0%", "logs"], 2, "--slowest '0%' is no share"),
        (["--slowest", "5%", "--failed", "logs"], 2, "take one"),
        (["--failed", "logs"], 1, "nothing to compare: no rollout is B, with an error"),
        (["--where-b", "nothing > 1", "logs"], 2, "SQL: line 2: Binder Error"),
        (["--where-b", "TRUE; SELECT 1", "logs"], 2, "SQL: "),
        (["--where-b", "TRUE) UNION (SELECT 1", "logs"], 2, "SQL: "),
        (["--where-b", "duration_ns > (SELECT count(*) FROM read_text('x'))", "logs"], 2, "SQL: "),
    ],
)
def test_what_means_nothing_or_two_things_is_told(words, code, said, logs, run):
    """In one line, and one that says where help is."""
    done = run("diff", *words)
    assert (done.code, done.out) == (code, ""), done
    assert said in done.err
    assert len(done.err.splitlines()) <= 2


def test_who_is_in_both_is_counted(logs, run):
    done = run("diff", "logs", "--where-a", "TRUE", "--where-b", "duration_ns > 2e7")
    assert "2 rollouts in A and in B: the intervals are too narrow" in done.err


def test_a_rollout_with_lines_in_both_is_refused(write_logs, write, run):
    """Copies, and runs that were mixed, cannot be told apart."""
    for folder in ("logs1", "logs2"):
        logs = write_logs(folder)
        logs["driver"].span(0xA0, int(folder[-1]), None, "gym.rollout", 0, 7, rollout="0-0")
    done = run("diff", "logs1", "logs2")
    assert (done.code, done.out) == (2, "")
    assert f"trace {0xA0:032x} has spans in logs1 and in logs2" in done.err
