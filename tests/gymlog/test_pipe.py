"""The lock of a shared pipe, and the room a long line needs."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import pipe as pipes
from gymlog.channel import Channel
from gymlog.pipe import SharedPipe

SHORT, LONG = 100, 10_000
CAPACITY = 65_536


def opened(fd):
    """Open a pipe's end anew, as each process does."""
    return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)


@pytest.fixture
def ends():
    """A pipe's two ends."""
    pair = os.pipe()
    yield pair
    for end in pair:
        with contextlib.suppress(OSError):
            os.close(end)


@pytest.fixture
def writers(ends):
    """Two writers of one pipe."""
    fds = [opened(ends[1]) for _ in range(2)]
    yield [SharedPipe(fd) for fd in fds]
    for fd in fds:
        os.close(fd)


HOLDER = """
import os, signal, sys
from gymlog.pipe import SharedPipe
pipe = os.open(f"/proc/self/fd/{sys.argv[1]}", os.O_WRONLY | os.O_NONBLOCK)
assert SharedPipe(pipe).lock(10_000)
print("locked", flush=True)
signal.pause()
"""


@pytest.fixture
def holder(ends):
    """A process that holds the lock for a long line."""
    command = [sys.executable, "-c", HOLDER, str(ends[1])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[ends[1]]) as process:
        assert process.stdout.readline() == b"locked\n"
        yield process
        process.kill()


def test_short_lines_go_side_by_side_and_long_ones_alone(writers):
    """As a lock of readers and writers has it, the other way round."""
    one, other = writers
    assert one.lock(SHORT)
    assert other.lock(SHORT)
    one.unlock()
    assert not one.lock(LONG)
    other.unlock()
    assert one.lock(LONG)
    assert not other.lock(SHORT)
    assert not other.write_short(b"line\n")
    one.unlock()
    assert other.write_short(b"line\n")


def test_a_killed_process_leaves_the_lock(holder, writers):
    """At once, whatever it was doing."""
    assert not writers[0].lock(SHORT)
    holder.kill()
    holder.wait()
    assert writers[0].lock(SHORT)


def test_a_stopped_process_holds_the_others_up_for_a_bounded_time(ends, holder, monkeypatch):
    """Lines are dropped and counted for as long as it may still be about to go on, then pass."""
    monkeypatch.setattr(pipes, "_PATIENCE_SECONDS", 0.3)
    holder.send_signal(signal.SIGSTOP)
    channel = Channel(ends[1], wait_seconds=0.05)
    start = time.monotonic()
    channel.write(b"line\n")
    assert 0.04 < time.monotonic() - start < 0.25
    assert channel.lines_dropped == 1
    os.set_blocking(ends[0], False)
    data = b""
    while not data:
        assert time.monotonic() - start < 5, "no line passes"
        channel.write(b"line\n")
        with contextlib.suppress(BlockingIOError):
            data = os.read(ends[0], 100)
    assert time.monotonic() - start > 0.3
    assert data == b"line\n"


def test_a_long_line_needs_room_for_all_of_it(ends, writers, monkeypatch):
    """Where the pipe cannot be made larger it waits for the reader."""
    monkeypatch.setattr(pipes, "_LINES_OF_ROOM", 0)
    one, _ = writers
    os.write(ends[1], b"x" * 30_000)
    assert one.lock(SHORT)
    one.unlock()
    assert not one.lock(LONG)
    os.read(ends[0], 30_000)
    assert one.lock(LONG)
    one.unlock()
    assert one.lock(CAPACITY)
    assert os.write(one._fd, b"x" * CAPACITY) == CAPACITY


def test_the_pipe_is_made_larger_once(ends, writers):
    """So far as this user may; the host's end sees it too."""
    os.write(ends[1], b"x" * 50_000)
    assert writers[0].lock(60_000)
    capacity = fcntl.fcntl(ends[1], fcntl.F_GETPIPE_SZ)
    assert capacity > CAPACITY
    os.write(writers[0]._fd, b"x" * 60_000)
    while writers[0].lock(60_000):
        assert os.write(writers[0]._fd, b"x" * 60_000) == 60_000
    assert fcntl.fcntl(ends[1], fcntl.F_GETPIPE_SZ) == capacity


@given(
    st.lists(st.integers(1, 4096) | st.integers(1, 3), max_size=40),
    st.integers(0, 70_000),
    st.integers(4_097, 60_000),
)
def test_what_is_said_to_fit_fits(sizes, read, size):
    """Whatever the writes and the reads before: the line goes through in one write."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    try:
        with contextlib.suppress(BlockingIOError):
            for one in sizes:
                os.write(writer, b"x" * one)
        with contextlib.suppress(BlockingIOError):
            os.read(reader, read)
        used = SharedPipe(writer)._used()
        if pipes._fits(size, CAPACITY, used):
            assert os.write(writer, b"x" * size) == size
    finally:
        os.close(reader)
        os.close(writer)
