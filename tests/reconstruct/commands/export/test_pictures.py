"""`reconstruct export perfetto`, `chrome`, `folded`, `speedscope`: files, choices, what is said."""

import gzip
import json
import sys
from pathlib import Path

import pytest

FORMS = ("perfetto", "chrome", "folded", "speedscope")


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_written_and_said_and_equal_the_next_time(form, logs, run):
    """Packed where its name ends in .gz, and then it holds the same."""
    for name in ("one", "two", "three.gz"):
        done = run("export", form, "logs", "-o", name)
        assert (done.code, done.out) == (0, "")
        assert done.err.startswith("exported 9 spans in ")
        assert done.err.endswith(f" to {name}\n")
    assert Path("one").read_bytes() == Path("two").read_bytes()
    assert gzip.decompress(Path("three.gz").read_bytes()) == Path("one").read_bytes()


@pytest.mark.parametrize("form", FORMS)
def test_only_what_is_chosen_is_written(form, logs, run):
    done = run(
        "export", form, "logs", "--rollout", "1-0", "--service", "agent", "-o", "x", "--json"
    )
    assert done.json["spans"] == 1
    assert done.json["output"] == "x"


@pytest.mark.parametrize("form", FORMS)
def test_nothing_chosen_is_an_answer_and_no_file(form, logs, run):
    done = run("export", form, "logs", "--run", "none", "-o", "x")
    assert (done.code, done.out) == (1, "")
    assert "no span in these logs is what the options choose" in done.err
    assert not Path("x").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_log_is_never_overwritten(form, logs, run):
    before = Path("logs/agent.log").read_bytes()
    done = run("export", form, "logs", "-o", "logs/agent.log")
    assert done.code == 2
    assert "'logs/agent.log' is one of the logs" in done.err
    assert Path("logs/agent.log").read_bytes() == before


@pytest.mark.parametrize("form", FORMS)
def test_json_needs_a_file(form, logs, run):
    """What was written would stand in the middle of it."""
    done = run("export", form, "logs", "--json")
    assert done.code == 2
    assert "name a file with -o" in done.err


def test_a_binary_trace_is_not_put_on_a_terminal(logs, run, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    done = run("export", "perfetto", "logs")
    assert done.code == 2
    assert "name a file with -o" in done.err


def test_a_folder_that_is_not_there_is_a_destination_error(logs, run):
    done = run("export", "folded", "logs", "-o", "none/x")
    assert (done.code, done.out) == (4, "")
    assert "cannot write none/x" in done.err


def test_unfinished_spans_are_counted(write_logs, run):
    logs = write_logs()
    logs["agent"].span(0xA, 1, None, "stuck", 0, None)
    logs["agent"].span(0xA, 2, 1, "done", 1, 5)
    done = run("export", "chrome", "logs", "-o", "x")
    assert "1 span unfinished: drawn as far as known to be open" in done.err
    done = run("export", "folded", "logs")
    assert "1 span unfinished: without self weight" in done.err
    assert done.out == "gym/agent:stuck;gym/agent:done 4000000\n"


def test_spans_that_end_before_they_begin_are_counted(write_logs, run):
    logs = write_logs()
    logs["agent"].span(0xA, 1, None, "back", 5, 1)
    done = run("export", "perfetto", "logs", "-o", "x")
    assert "1 span that end before they begin: drawn without length" in done.err


def test_aligned_spans_lie_where_they_belong(two_hosts, run):
    """`node-b` is 3.5 s behind: its span 110-190 lies within the call 100-200 again."""

    def times():
        events = json.loads(Path("x").read_text())["traceEvents"]
        found = {event["name"]: event for event in events if event["ph"] == "X"}
        inner, outer = found["POST /v1/responses"], found["model call"]
        return inner["ts"] - outer["ts"], inner["dur"], outer["dur"]

    run("export", "chrome", "logs", "-o", "x")
    after, inner, outer = times()
    assert after < 0
    run("export", "chrome", "logs", "--align", "-o", "x")
    after, *lengths = times()
    assert 0 <= after <= outer - inner
    assert lengths == [inner, outer]


def test_without_its_package_perfetto_says_what_to_install(logs, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    done = run("export", "perfetto", "logs", "-o", "x")
    assert done.code == 2
    assert "pip install 'gymlog[perfetto]'" in done.err
    assert not Path("x").exists()
