"""`reconstruct follow`: a picture on a terminal, lines in a pipe, and an end."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from reconstruct.cli import main

LOGS_BEGIN_MS = 1_764_475_132_000
SECONDS = 60
"""Enough for any machine; only a failure takes so long."""


def heed_interrupts():
    """Undo what a shell does to those whom it starts in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Follow:
    """The command as a process of its own, its stdout and stderr as they come."""

    def __init__(self, *arguments, stdin=subprocess.DEVNULL):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "reconstruct.cli", "follow", *map(str, arguments)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
            preexec_fn=heed_interrupts,
        )

    def event(self):
        """Wait for the next line of --json."""
        return json.loads(self.process.stdout.readline())

    def end(self, signal_number=None):
        """Wait for its end, maybe after a signal; return exit code, and the rest of its output."""
        if signal_number is not None:
            self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err


@pytest.fixture
def follow():
    """Start it; whatever happens, it ends with the test."""
    started = []

    def start(*arguments, **options):
        started.append(Follow(*arguments, **options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture
def now_ms():
    """Now, as the logs' times are written."""
    return time.time_ns() // 1_000_000 - LOGS_BEGIN_MS


@pytest.fixture
def living(write_logs, now_ms):
    """The logs of processes that are alive."""
    logs = write_logs()
    for log in logs.values():
        log.process("alive", now_ms)
    return logs


def test_it_ends_when_every_process_has_stopped(run, logs):
    """Exit code 0: nothing is wrong. With --json the first and the last line say how it was."""
    done = run("follow", "logs", "--exit-when-stopped", "--json")
    assert done.code == 0, done
    past, summary = map(json.loads, done.out.splitlines())
    assert (past["event"], summary["event"]) == ("past", "summary")
    assert summary["finished_count"] == 3
    assert [it["rollout_id"] for it in summary["slowest"]] == ["1-0", "2-0", "0-0"]
    assert re.search("3 finished, 0 open, 0 lost; 9 spans, 0 errors", done.err)


def test_what_was_before_is_no_event(run, logs):
    """A pipe gets one line per event, and there was none since."""
    done = run("follow", "logs", "--exit-when-stopped")
    assert (done.code, done.out) == (0, "")


def test_errors_make_the_exit_code_1(run, logs):
    """So a script can go on to ask what is wrong."""
    logs["agent"].span(0xC, 1, None, "work", 0, 1, status={"code": "ERROR", "message": "no"})
    done = run("follow", "logs", "--until-idle", "0.05")
    assert done.code == 1
    assert "1 error" in done.err


def test_a_new_line_is_told_within_a_second(follow, living, write, now_ms):
    """From the writing of a rollout's last line to the event."""
    following = follow("logs", "--json", "--exit-when-stopped")
    assert following.event()["event"] == "past"
    latencies = []
    for number in range(3):
        write(living, 0xA0 + number, f"{number}-0", now_ms, 10)
        written = time.monotonic()
        event = following.event()
        latencies.append(time.monotonic() - written)
        assert (event["event"], event["rollout_id"]) == ("rollout_finished", f"{number}-0")
        assert (event["duration_ns"], event["run_id"]) == (10_000_000, "run-1")
    assert min(latencies) < 1
    for log in living.values():
        log.process("stopped", now_ms + 1000)
    code, out, err = following.end()
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert events == ["process_stopped"] * 3 + ["summary"]
    assert code == 0, err


def test_events_are_words_without_json(follow, living, write, now_ms):
    """One line each: time, kind, what it is about."""
    following = follow("-", stdin=subprocess.PIPE)
    write(living, 0xA1, "1-0", now_ms, 10)
    living["agent"].span(
        0xB1, 9, None, "tool", 5, 6, status={"code": "ERROR", "message": "so\x1b[31m bad"}
    )
    living["agent"].process("stopped", now_ms + 1000)
    for log in living.values():
        following.process.stdin.write(log.path.read_text())
    following.process.stdin.close()
    following.process.stdin = None
    code, out, _ = following.end()
    assert code == 1
    lines = [re.fullmatch(r"(\S{24})  (\w+) +(.*)", line).groups() for line in out.splitlines()]
    assert sorted(line[1:] for line in lines) == [
        ("error", f"gym/agent tool, trace {0xB1:032x}: so\\x1b[31m bad"),
        ("process_alive", "gym/driver, pid 101"),
        ("process_alive", "gym/model, pid 103"),
        ("process_stopped", "gym/agent, pid 102"),
        ("rollout_finished", "1-0, 10.0 ms, 3 spans"),
    ]


def test_standard_input_is_followed_to_its_end(follow, logs):
    """`tail -f … | reconstruct follow -`; the end of the pipe is the end."""
    following = follow("-", "--json", stdin=subprocess.PIPE)
    assert following.event()["event"] == "past"
    for service in ("driver", "agent", "model"):
        with logs[service].path.open() as log:
            following.process.stdin.write(log.read())
    following.process.stdin.close()
    following.process.stdin = None
    code, out, err = following.end()
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert events.count("rollout_finished") == 3
    assert events[-1] == "summary"
    assert code == 0, err


def test_ctrl_c_ends_with_a_summary(follow, logs):
    """Also while it waits for standard input."""
    for path, stdin in (("logs", subprocess.DEVNULL), ("-", subprocess.PIPE)):
        following = follow(path, "--json", stdin=stdin)
        assert following.event()["event"] == "past"
        code, out, err = following.end(signal.SIGINT)
        assert code == 130
        assert json.loads(out)["event"] == "summary"
        assert re.fullmatch(r"followed 3? ?1? ?files? for .*\n", err), err


def test_it_ends_when_nobody_reads_it_any_more(follow, living, write, now_ms):
    """`| head -1`."""
    following = follow("logs", "--json")
    assert following.event()["event"] == "past"
    following.process.stdout.close()
    write(living, 0xA1, "1-0", now_ms, 10)
    assert following.process.wait(SECONDS) == 0
    following.process.stderr.close()


def test_files_that_are_not_there_yet_are_waited_for(follow, tmp_path):
    """And it says so."""
    following = follow(tmp_path / "*.log")
    assert "yet; waiting for them" in following.process.stderr.readline()
    code, out, _ = following.end(signal.SIGINT)
    assert (code, out) == (130, "")


def test_a_wrong_wrapper_is_refused(capsys, logs):
    """Before anything is read."""
    assert main(["follow", "logs", "--wrapper", "dokcer"]) == 2
    assert "did you mean 'docker'?" in capsys.readouterr().err


def test_a_terminal_gets_one_picture(logs):
    """Drawn within its size, drawn anew, harmless, and left there at the end."""
    logs["agent"].span(0xD, 77, None, "wait\x1b]0;evil\x07", 5, None, rollout="9-\x1b[2J")
    logs["agent"].process("alive", 1_001)
    screen, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "reconstruct.cli", "follow", "logs"],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
        env=os.environ | {"COLUMNS": "70", "LINES": "18", "TERM": "xterm", "NO_COLOR": "1"},
    ) as process:
        os.close(terminal)
        seen = b""
        while seen.count(b"OPEN ROLLOUTS") < 2:
            assert select.select([screen], [], [], SECONDS)[0], seen
            seen += os.read(screen, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert process.stderr.read().startswith(b"followed 3 files")
    os.close(screen)
    text = seen.decode()
    assert r"9-\x1b[2J" in text
    assert r"wait\x1b]0;evil\x07" in text
    assert "\x1b]0" not in text
    assert "\x1b[2J" not in text
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n").split("\n")
    assert max(map(len, lines)) <= 70
