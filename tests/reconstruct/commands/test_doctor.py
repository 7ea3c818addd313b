"""`reconstruct doctor`: what is wrong, where, what to do; exit code 1 when anything is."""

import pytest


@pytest.fixture
def broken(logs):
    """A trace whose parents are in no log, in several places."""
    for number in range(5):
        logs["model"].span(0xB0, 0xB01 + number, 0xBAD, "gym.model.call", 200 + number, 300)
    return logs


def test_healthy_logs_are_fine(logs, run):
    done = run("doctor", "logs")
    assert (done.code, done.err) == (0, "")
    assert done.out == "Nothing is broken in 9 spans: 0 errors, 0 warnings, 0 notes.\n"
    assert run("doctor", "logs", "--json").json == []


def test_what_is_broken_is_said_with_its_place_and_a_hint(broken, run):
    done = run("doctor", "logs")
    assert done.code == 1
    text = done.out
    assert text.startswith("error    orphan")
    assert "logs/model.log:6" in text
    assert f"trace {0xB0:032x}" in text
    assert "→ " in text
    assert text.splitlines()[-1].startswith("Broken: ")


def test_json_has_every_finding_with_the_relations_columns(broken, run):
    done = run("doctor", "logs", "--json")
    assert done.code == 1
    rows = done.json
    relation = run("query", "FROM findings", "logs", "--json").json
    assert len(rows) == len(relation)
    assert set(rows[0]) == set(relation[0])
    assert {row["code"] for row in rows} == {row["code"] for row in relation}


def test_examples_are_limited_and_the_rest_is_counted(write_logs, run):
    logs = write_logs()
    for number in range(5):
        logs["model"].span(0xB0 + number, 0xB01 + number, 0xBAD, "gym.model.call", 200, 300)
    short = run("doctor", "logs", "--examples", "2").out
    assert "orphan ×5" in short
    assert "… 3 more; --examples 0 shows all" in short
    full = run("doctor", "logs", "--examples", "0").out
    assert "more; --examples" not in full
    assert all(f"trace {0xB0 + number:032x}" in full for number in range(5))


def test_words_are_wrapped_to_the_width(broken, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    words = [line for line in run("doctor", "logs").out.splitlines() if line.startswith(" " * 9)]
    assert words
    assert all(len(line) <= 60 or "trace " in line for line in words)


def test_no_spans_are_nothing_to_judge(tmp_path, run):
    (tmp_path / "a.log").write_text("text\n")
    done = run("doctor", tmp_path)
    assert (done.code, done.out) == (0, "Nothing to judge: no spans in these logs.\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("error", 1),
        ("warning", 1),
        ("note", 1),
        ("never", 0),
        ("orphan", 1),
        ("cycle, orphan", 1),
        ("unknown", 1),
        ("cycle,clock", 0),
    ],
)
def test_fail_on_says_what_counts(broken, run, words, code):
    """Severities and what is worse, codes, causes."""
    done = run("doctor", "logs", "--fail-on", words)
    assert done.code == code
    assert done.out == run("doctor", "logs").out


def test_fail_on_note(logs, run):
    """A note alone ends with 0 unless it is asked for."""
    logs["model"].write(logs["model"].path.read_text().splitlines()[1] + "\n")
    assert run("doctor", "logs").code == 0
    assert run("doctor", "logs", "--fail-on", "error").code == 0
    assert run("doctor", "logs", "--fail-on", "note").code == 1


def test_fail_on_knows_its_words(broken, run):
    """A near one is suggested, and nothing is read."""
    done = run("doctor", "nowhere", "--fail-on", "orfan")
    assert done.code == 2
    assert "--fail-on knows no 'orfan'; did you mean orphan?" in done.err


def test_the_cause_is_said_with_how_sure_it_is(broken, run):
    assert "         cause: unknown, 30 % sure\n" in run("doctor", "logs").out


def test_the_sql_gives_the_same_findings(broken, run):
    """One run or all, in the order of files."""
    for options in ((), ("--run", "run-1"), ("--service", "model")):
        text = run("doctor", "logs", "--sql", *options).out
        rows = run("query", text.removesuffix(";\n"), "logs", "--format", "json").json
        found = run("doctor", "logs", "--json", *options).json
        key = ("code", "trace_id", "span_id", "message")
        by_key = [
            sorted([row[name] or "" for name in key] for row in each) for each in (rows, found)
        ]
        assert by_key[0] == by_key[1]
        assert found
