"""Notices: one line on stderr for each subject, whatever stderr is."""

import fcntl
import os
import subprocess
import sys

import pytest

from gymlog import notices


@pytest.fixture(autouse=True)
def _fresh():
    notices.reset()
    yield
    notices.reset()


def test_a_subject_is_told_once(capfd):
    """A thousand failures of one kind make one line."""
    for count in range(1000):
        notices.notice("sink", f"failure {count}")
    notices.notice("other", "another subject")
    assert capfd.readouterr().err == "gymlog: failure 0\ngymlog: another subject\n"


def test_a_notice_is_one_line_of_bounded_length(capfd):
    """Line breaks in what is quoted do not break the line; a huge value does not flood it."""
    notices.notice("a", "one\ntwo\r\nthree\x0bfour " + "x" * 100_000)
    text = capfd.readouterr().err
    assert text.startswith("gymlog: one two three four xx")
    assert text.count("\n") == 1
    assert len(text) < 4096


def test_what_is_not_utf8_is_escaped(capfd):
    """A variable's odd bytes are shown, not choked on."""
    notices.notice("a", "name is '\udcff'")
    assert capfd.readouterr().err == "gymlog: name is '\\udcff'\n"


@pytest.mark.parametrize("destination", ["closed", "full device", "reader left"])
def test_a_stderr_that_fails_is_no_failure(destination):
    """Nobody to tell: the program goes on."""
    redirect = {"closed": "2>&-", "full device": "2>/dev/full", "reader left": "2> >(exit)"}
    code = (
        "import time; from gymlog.notices import notice\n"
        "notice('a', 'text'); notice('b', 'text'); print('went on')"
    )
    script = f'{sys.executable} -c "$0" {redirect[destination]}'
    done = subprocess.run(
        ["bash", "-c", script, code], stdout=subprocess.PIPE, timeout=20, check=False
    )
    assert done.stdout == b"went on\n"


def test_a_full_stderr_that_nobody_reads_does_not_stop_the_program():
    """The notice waits for another occasion; when there is room again, it is made.

    `2>&1` into a pipe whose reader hangs is the common case: what fills stdout fills stderr.
    """
    read_end, write_end = os.pipe()
    capacity = fcntl.fcntl(write_end, fcntl.F_GETPIPE_SZ)
    os.write(write_end, b"x" * capacity)
    code = (
        "import sys; from gymlog.notices import notice\n"
        "notice('a', 'first'); print('went on', flush=True)\n"
        "sys.stdin.readline(); notice('a', 'second'); notice('a', 'third')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=write_end,
    )
    os.close(write_end)
    with process, open(read_end, "rb") as reader:
        assert process.stdout.readline() == b"went on\n"
        assert len(reader.read(capacity)) == capacity
        process.stdin.write(b"\n")
        process.stdin.close()
        assert reader.read() == b"gymlog: second\n"
    assert process.returncode == 0
