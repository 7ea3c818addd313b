"""The channel: whole lines, bounded waiting, and a count of what did not get through."""

import contextlib
import errno
import fcntl
import gc
import os
import select
import signal
import socket
import threading
import time

import pytest

from gymlog import notices
from gymlog.channel import Channel

WAIT = 0.1


@pytest.fixture(autouse=True)
def _fresh():
    notices.reset()
    yield
    notices.reset()


@pytest.fixture
def pipe():
    """A pipe's two ends; the test may close either."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


@pytest.fixture
def small_pipe(pipe, monkeypatch):
    """A pipe of 16 KiB that cannot be made larger: a line may have to go through in parts."""
    fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, 16_384)
    monkeypatch.setattr("gymlog.pipe._LINES_OF_ROOM", 0)
    return pipe


@pytest.fixture(params=["own fd", "polled"])
def way(request, monkeypatch):
    """Whether the pipe can be opened a second time (not: no /proc, or another user's pipe)."""
    if request.param == "polled":
        real = os.open

        def refuse(path, *arguments, **options):
            if str(path).startswith("/proc/self/fd/"):
                raise PermissionError(errno.EACCES, "Permission denied")
            return real(path, *arguments, **options)

        monkeypatch.setattr(os, "open", refuse)
    return request.param


def line_of(number, size):
    """Return a line that tells a torn one: its number, then one letter, then the line's end."""
    return f"{number:06d}".encode() + b"x" * (size - 7) + b"\n"


def drain(fd):
    """Return what a pipe holds now."""
    data = b""
    os.set_blocking(fd, False)
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(fd, 1 << 20):
            data += chunk
    return data


def fill(fd):
    """Fill a pipe; return how much it took."""
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    os.set_blocking(fd, False)
    count = 0
    for size in (4096, 1):
        with contextlib.suppress(BlockingIOError):
            while True:
                count += os.write(fd, b"f" * size)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags)
    return count


def test_a_file_takes_every_line(tmp_path):
    """In order, whole, none counted as dropped."""
    with open(tmp_path / "log", "wb", buffering=0) as file:
        channel = Channel(file.fileno())
        for number in range(100):
            channel.write(line_of(number, 50 + number * 10))
    lines = (tmp_path / "log").read_bytes().splitlines(keepends=True)
    assert lines == [line_of(number, 50 + number * 10) for number in range(100)]
    assert channel.lines_dropped == 0


def test_the_hosts_descriptor_keeps_its_mode(pipe):
    """What the host prints itself still blocks; a host that made it non-blocking keeps that."""
    channel = Channel(pipe[1])
    assert os.get_blocking(pipe[1])
    channel.write(b"line\n")
    assert os.get_blocking(pipe[1])
    os.set_blocking(pipe[1], False)
    channel.write(b"line\n")
    assert not os.get_blocking(pipe[1])
    assert drain(pipe[0]) == b"line\n" * 2


def test_a_full_pipe_costs_a_bounded_wait_and_counts(pipe, way, capfd):
    """All waiting together is at most the budget at once; then lines go at once."""
    fill(pipe[1])
    channel = Channel(pipe[1], wait_seconds=WAIT)
    start = time.monotonic()
    for number in range(20):
        channel.write(line_of(number, 1000))
    elapsed = time.monotonic() - start
    assert WAIT * 0.9 <= elapsed < WAIT * 4
    assert channel.lines_dropped == 20
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert f"fd {pipe[1]} is full" in error


def test_in_the_long_run_waiting_takes_a_quarter_of_the_time(pipe):
    """A host that writes all the time to a pipe nobody reads keeps three quarters of its time."""
    fill(pipe[1])
    channel = Channel(pipe[1], wait_seconds=0.02)
    start = time.monotonic()
    waited = 0.0
    while (now := time.monotonic()) - start < 0.6:
        channel.write(b"line\n")
        waited += time.monotonic() - now
        select.select([], [], [], 0.005)
    assert waited < 0.6 * 0.45


def test_lines_pass_again_when_the_reader_is_back(pipe, way):
    """Dropping ends as soon as there is room; the count says how many are missing."""
    filling = fill(pipe[1])
    channel = Channel(pipe[1], wait_seconds=0.01)
    for number in range(5):
        channel.write(line_of(number, 100))
    assert len(drain(pipe[0])) == filling
    for number in range(5, 10):
        channel.write(line_of(number, 100))
    assert drain(pipe[0]) == b"".join(line_of(number, 100) for number in range(5, 10))
    assert channel.lines_dropped == 5


def test_a_line_that_got_through_in_part_is_finished_first(small_pipe, way):
    """The next lines wait or are dropped whole; none stands inside another.

    pipe: [filling][line 0, first part] full · reader takes it · [rest of line 0][line 2]
    """
    reader, writer = small_pipe
    filling = fill(writer)
    os.read(reader, 8192)
    channel = Channel(writer, wait_seconds=0.01)
    channel.write(line_of(0, 20_000))
    channel.write(line_of(1, 100))
    assert channel.lines_dropped == 1
    first = drain(reader)
    channel.write(line_of(2, 100))
    assert first[filling - 8192 :] + drain(reader) == line_of(0, 20_000) + line_of(2, 100)
    assert channel.lines_dropped == 1


def test_a_long_line_that_has_no_room_is_not_begun(pipe):
    """The pipe is made larger, once; then the line waits for its room, or is dropped whole."""
    filling = fill(pipe[1])
    channel = Channel(pipe[1], wait_seconds=0.01)
    channel.write(line_of(0, 60_000))
    assert fcntl.fcntl(pipe[1], fcntl.F_GETPIPE_SZ) > 60_000 * 4
    assert len(drain(pipe[0])) == filling + 60_000
    for number in range(20):
        channel.write(line_of(number, 60_000))
    assert 0 < channel.lines_dropped < 20
    assert drain(pipe[0]).count(b"\n") == 20 - channel.lines_dropped


def test_a_slow_reader_gets_whole_lines_only(pipe, way):
    """Whatever arrives is whole; what arrives and what was dropped are all there is."""
    channel = Channel(pipe[1], wait_seconds=0.05)
    received = bytearray()

    def read():
        while chunk := os.read(pipe[0], 30_000):
            received.extend(chunk)
            select.select([], [], [], 0.004)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(60):
        channel.write(line_of(number, 50_000))
    os.close(pipe[1])
    channel.close()
    reader.join()
    # The last line may be cut: nothing came after it that would have finished it.
    lines = bytes(received).splitlines(keepends=True)
    whole = lines if lines[-1].endswith(b"\n") else lines[:-1]
    numbers = [int(line[:6]) for line in whole]
    assert [line_of(number, 50_000) for number in numbers] == whole
    assert numbers == sorted(set(numbers))
    assert len(lines) + channel.lines_dropped == 60
    assert channel.lines_dropped > 0, "the reader was meant to be too slow"


def test_a_reader_that_left_is_no_failure(pipe, way, capfd):
    """Every line counts as dropped, one notice."""
    os.close(pipe[0])
    channel = Channel(pipe[1])
    for number in range(10):
        channel.write(line_of(number, 100))
    assert channel.lines_dropped == 10
    assert capfd.readouterr().err.count("\n") == 1


def test_a_reader_that_leaves_meanwhile_is_no_failure(pipe, way):
    """Lines before it left are read, those after are counted."""
    channel = Channel(pipe[1])
    channel.write(b"first\n")
    assert os.read(pipe[0], 100) == b"first\n"
    os.close(pipe[0])
    channel.write(b"second\n")
    assert channel.lines_dropped == 1


def test_a_full_disk_is_no_failure(capfd):
    """/dev/full: counted, told once with the system's words."""
    fd = os.open("/dev/full", os.O_WRONLY)
    channel = Channel(fd)
    for _ in range(3):
        channel.write(b"line\n")
    os.close(fd)
    assert channel.lines_dropped == 3
    assert "No space left on device" in capfd.readouterr().err


def test_a_disk_that_fills_up_in_a_line_is_gone_on_with(tmp_path):
    """The part of a line that found room is finished when there is room again.

    A limit on the file's size is the disk here.
    """
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open(tmp_path / "log", "wb", buffering=0) as file:
        channel = Channel(file.fileno())
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (150, limits[1]))
            for number in range(3):
                channel.write(line_of(number, 100))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert channel.lines_dropped == 1, "line 1 is begun, line 2 found no room"
        channel.write(line_of(3, 100))
    expected = b"".join(line_of(number, 100) for number in (0, 1, 3))
    assert (tmp_path / "log").read_bytes() == expected


def test_a_closed_descriptor_is_no_failure(capfd):
    """Counted, told once."""
    fd = os.open("/dev/null", os.O_WRONLY)
    os.close(fd)
    channel = Channel(fd)
    channel.write(b"line\n")
    channel.write(b"line\n")
    assert channel.lines_dropped == 2
    assert "Bad file descriptor" in capfd.readouterr().err


def opened_without_descriptors(fd, monkeypatch, **options):
    """Return a channel for which nothing could be opened."""

    def refuse(*arguments, **options):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        patch.setattr(os, "dup", refuse)
        return Channel(fd, **options)


def test_out_of_descriptors_lines_still_pass(pipe, monkeypatch, capfd):
    """Neither the pipe nor the file can be opened again: the host's own fd is used."""
    channel = opened_without_descriptors(pipe[1], monkeypatch)
    channel.write(line_of(0, 20_000))
    assert drain(pipe[0]) == line_of(0, 20_000)
    assert "Too many open files" in capfd.readouterr().err


def test_out_of_descriptors_waiting_is_bounded_all_the_same(monkeypatch):
    """Also on a socket, which the host made blocking."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = opened_without_descriptors(ours.fileno(), monkeypatch, wait_seconds=0.02)
        for number in range(10_000):
            channel.write(line_of(number, 1000))
            if channel.lines_dropped > 3:
                break
        assert channel.lines_dropped > 3


def test_a_socket_is_bounded_too(capfd):
    """stdout may be a socket; a peer that does not read, or left, costs no more than a pipe."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        channel = Channel(ours.fileno(), wait_seconds=0.02)
        for number in range(10_000):
            channel.write(line_of(number, 1000))
            if channel.lines_dropped > 3:
                break
        assert channel.lines_dropped > 3
        received = theirs.recv(4000)
        assert received == b"".join(line_of(number, 1000) for number in range(4))
        assert ours.getblocking()
        theirs.close()
        channel.write(b"line\n")
        assert channel.lines_dropped > 4
        channel.close()


def test_another_file_on_the_descriptor_is_followed(tmp_path):
    """A daemon puts its log on fd 1 after it started: lines go there after the next look."""
    with open(tmp_path / "a", "wb") as a, open(tmp_path / "b", "wb") as b:
        fd = os.dup(a.fileno())
        channel = Channel(fd)
        channel.write(b"to a\n")
        os.dup2(b.fileno(), fd)
        channel.refresh()
        channel.write(b"to b\n")
        channel.refresh()
        channel.write(b"to b\n")
        os.close(fd)
    assert (tmp_path / "a").read_bytes() == b"to a\n"
    assert (tmp_path / "b").read_bytes() == b"to b\n" * 2
    assert channel.lines_dropped == 0


@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_a_host_that_closes_every_descriptor_it_does_not_know(kind, pipe, tmp_path):
    """As a daemon does; what it opens next may get the number, and gets no line."""
    with open(tmp_path / "log", "wb") as log:
        channel = Channel(log.fileno() if kind == "file" else pipe[1])
        channel.write(b"before\n")
        os.close(channel._own_fd)
        data = os.open(tmp_path / "data", os.O_WRONLY | os.O_CREAT)
        assert data == channel._own_fd
        channel.refresh()
        channel.write(b"after\n")
        del channel
        os.write(data, b"data")
        os.close(data)
    lines = (tmp_path / "log").read_bytes() if kind == "file" else drain(pipe[0])
    assert lines == b"before\nafter\n"
    assert (tmp_path / "data").read_bytes() == b"data"


def test_the_rest_of_a_line_does_not_go_to_another_file(small_pipe, tmp_path):
    """It belongs to the old one; the line counts as dropped."""
    reader, writer = small_pipe
    fill(writer)
    os.read(reader, 8192)
    channel = Channel(writer, wait_seconds=0)
    channel.write(line_of(0, 20_000))
    with open(tmp_path / "b", "wb") as b:
        os.dup2(b.fileno(), writer)
        channel.refresh()
        channel.write(b"to b\n")
    assert (tmp_path / "b").read_bytes() == b"to b\n"
    assert channel.lines_dropped == 1


@pytest.mark.parametrize("is_begun", [True, False], ids=["begun", "not begun"])
def test_an_exception_of_a_signal_handler_tears_no_line(small_pipe, is_begun):
    """Ctrl-C while a line waits: it is written before the next one, or counted.

    The handler raises inside the wait, as Python's own does for SIGINT.
    """
    reader, writer = small_pipe
    size = 20_000 if is_begun else 12_000
    filling = fill(writer)
    os.read(reader, 8192)
    channel = Channel(writer, wait_seconds=10)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            channel.write(line_of(0, size))
    finally:
        signal.signal(signal.SIGALRM, before)
    first = drain(reader)
    channel.write(line_of(1, 100))
    assert first[filling - 8192 :] + drain(reader) == line_of(0, size) + line_of(1, 100)
    assert channel.lines_dropped == 0


def test_a_channel_that_is_given_up_leaves_no_descriptor_open(pipe):
    """A reader sees the end when the host closed its fd: a forked child's old channel goes."""
    channel = Channel(pipe[1])
    channel.write(b"line\n")
    os.close(pipe[1])
    del channel
    gc.collect()
    assert os.read(pipe[0], 100) == b"line\n"
    assert os.read(pipe[0], 100) == b""
