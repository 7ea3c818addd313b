"""The options that choose: since, until, trace, rollout, service, run.

The logs of `logs`: rollouts 0-0, 1-0, 2-0, each a trace of its own (a0, a1, a2), from 0, 100 and
200 ms on, for 10, 50 and 30 ms; the last line is of 1 s. Each has a span of driver, agent, model.
"""

import pytest

FIRST = "2025-11-30T03:58:52"


def chosen(run, *options):
    """Return the rollouts that `rollouts` lists."""
    done = run("rollouts", "logs", "--sort", "start", "--json", *options)
    assert done.code == 0, done
    return [row["rollout_id"] for row in done.json]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["0-0", "1-0", "2-0"]),
        (["--since", f"{FIRST}.100Z"], ["1-0", "2-0"]),
        (["--since", f"{FIRST}.150Z"], ["1-0", "2-0"]),
        (["--since", f"{FIRST}.150000001Z"], ["2-0"]),
        (["--until", f"{FIRST}.100Z"], ["0-0"]),
        (["--until", f"{FIRST}.100000001Z"], ["0-0", "1-0"]),
        (["--since", f"{FIRST}.011Z", "--until", f"{FIRST}.200Z"], ["1-0"]),
        (["--since", "2025-11-30T04:58:52.150000001+01:00"], ["2-0"]),
        (["--since", f"{FIRST}.150000001"], ["2-0"]),
        (["--since", "1764475132150000001"], ["2-0"]),
        (["--since", "1764475132.150000001"], ["2-0"]),
        (["--since", "1764475132151"], ["2-0"]),
        (["--since", "800ms"], ["2-0"]),
        (["--since", "0.85s"], ["1-0", "2-0"]),
        (["--since", "-1m"], ["0-0", "1-0", "2-0"]),
        (["--until", "0.9s"], ["0-0"]),
        (["--since", "2025-11-30"], ["0-0", "1-0", "2-0"]),
        (["--until", "2025-11-30 03:58"], []),
        (["--since", "2025-12-01"], []),
        (["--rollout", "1-0"], ["1-0"]),
        (["--trace", f"{0xA1:032x}"], ["1-0"]),
        (["--trace", f"00-{0xA1:032x}-{1:016x}-01"], ["1-0"]),
        (["--run", "run-1"], ["0-0", "1-0", "2-0"]),
        (["--run", "run-2"], []),
        (["--service", "model"], ["0-0", "1-0", "2-0"]),
        (["--service", "gym/model", "--rollout", "2-0"], ["2-0"]),
        (["--rollout", "1-0", "--trace", f"{0xA2:032x}"], []),
    ],
)
def test_what_is_chosen(options, expected, logs, run):
    """Times count to the nanosecond; whatever lasts at a time belongs to it."""
    assert chosen(run, *options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["0-0", "1-0", "2-0"]),
        (["--since", "900ms", "--until", "0.8s"], ["1-0"]),
        (["--rollout", "1-0", "--service", "model", "--run", "run-1"], ["1-0"]),
        (["--trace", f"{0xA1:032x}"], ["1-0"]),
    ],
)
def test_all_commands_choose_the_same(options, expected, logs, run):
    """A list of traces, the summary and the doctor."""
    assert chosen(run, *options) == expected
    traces = run("traces", "logs", "--sort", "start", "--json", *options).json
    assert [row["rollout_id"] for row in traces] == expected
    facts = run("summary", "logs", "--json", *options).json
    assert (facts["rollout_count"], facts["trace_count"]) == (len(expected), len(expected))
    assert {row["rollout_id"] for row in facts["slowest"]} == set(expected)
    spans = sum(row["span_count"] for row in facts["slowest"])
    if "--service" not in options:
        assert facts["span_count"] == sum(row["span_count"] for row in facts["names"]) == spans
    assert run("doctor", "logs", *options).code == 0


def test_a_service_chooses_what_it_took_part_in(write_logs, write, run):
    """A rollout that never met the judge is not one of the judge's."""
    logs = write_logs()
    write(logs, 0xA0, "0-0", 0, 10)
    logs["driver"].span(0xB0, 1, None, "gym.rollout", 20, 30, rollout="1-0")
    for log in logs.values():
        log.process("stopped", 1_000)
    assert chosen(run, "--service", "model") == ["0-0"]
    assert chosen(run, "--service", "driver") == ["0-0", "1-0"]
    facts = run("summary", "logs", "--json", "--service", "model").json
    assert (facts["span_count"], [row["name"] for row in facts["names"]]) == (1, ["gym.model.call"])


def test_findings_of_other_traces_are_left_out(write_logs, write, run):
    """What is wrong with one rollout is not with another; lost lines concern all."""
    logs = write_logs()
    write(logs, 0xA0, "0-0", 0, 10)
    logs["driver"].span(0xB0, 1, 2, "lonely", 20, 30, rollout="1-0")
    for log in logs.values():
        log.process("stopped", 1_000)
    assert run("doctor", "logs").code == 1
    assert run("doctor", "logs", "--rollout", "0-0").code == 0
    done = run("doctor", "logs", "--rollout", "1-0")
    assert (done.code, "orphan" in done.out) == (1, True)
    assert run("summary", "logs", "--json", "--rollout", "0-0").json["first_findings"] == []


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--since", "yesterday"], 2, "--since 'yesterday' is no time; write 2026-01-31T"),
        (["--until", "2025-13-01"], 2, "--until '2025-13-01' is no time"),
        (["--since", "1s", "--until", "2s"], 2, "--until 2s is not after --since 1s"),
        (["--service", "modl"], 2, "no service 'modl' in these logs; there is model"),
        (["--rollout", "9-9"], 1, "no rollout or trace '9-9' in these logs; most like it"),
        (["--trace", "ff"], 1, "no rollout or trace 'ff' in these logs; most like it"),
        (["--trace", "0"], 2, "3 traces start with '0'"),
    ],
)
def test_what_means_nothing_is_told(options, code, words, logs, run):
    """In one line that says what would."""
    done = run("traces", "logs", *options)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert len(done.err.splitlines()) == 1
