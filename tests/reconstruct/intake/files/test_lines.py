"""The lines of one input, whatever happens to the file between finding and reading it."""

import bz2
import functools
import gzip
import io
import lzma
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.intake import files
from reconstruct.intake.files import MAX_LINE_BYTES, Lines, LogFile, OddLine

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PACK = {
    None: bytes,
    "gzip": gzip.compress,
    "zstd": zstd.compress,
    "xz": functools.partial(lzma.compress, preset=0),
    "bzip2": bz2.compress,
}
MANY = b"".join(b"line %d\n" % number for number in range(300_000))  # more than two chunks


def found(path: Path) -> LogFile:
    (file,) = files.find([str(path)])
    return file


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.binary(max_size=60) | st.sampled_from([b"\n", b"\0\0", b"{}\n"]), max_size=8),
    st.sampled_from(list(PACK)),
    st.data(),
)
def test_lines_put_together_are_the_file(
    tmp_path: Path, parts: list[bytes], name: str | None, data: Any
) -> None:
    """Whatever packed it, as one member or as many; and from any whole line on."""
    path = tmp_path / "any"
    text = b"{}\n" + b"".join(parts)
    path.write_bytes(PACK[name](b"{}\n") + b"".join(map(PACK[name], parts)))
    lines = Lines(found(path))
    read = list(lines)
    physical = io.BytesIO(text).readlines()
    assert [bytes(line) for line in read] == [line.lstrip(b"\0") for line in physical]
    assert (lines.problem, lines.pending, lines.compression) == (None, 0, name)
    start = data.draw(st.integers(0, len(physical)))
    offset = sum(map(len, physical[:start]))
    assert list(Lines(LogFile(str(path), 0, start_offset=offset, start_line=start))) == read[start:]


@pytest.mark.parametrize("name", PACK)
def test_a_file_of_many_chunks(log: Path, name: str | None) -> None:
    """Cut wherever the chunks end."""
    log.write_bytes(PACK[name](MANY))
    assert list(Lines(found(log))) == io.BytesIO(MANY).readlines()


def test_the_name_says_nothing_about_the_compression(tmp_path: Path) -> None:
    """The first bytes do, and they may be few."""
    for name, data in (("a.gz", b"text\n"), ("b.log", gzip.compress(b"text\n")), ("c.xz", b"t")):
        (tmp_path / name).write_bytes(data)
    assert [list(Lines(file)) for file in files.find([str(tmp_path)])] == [
        [b"text\n"],
        [b"text\n"],
        [b"t"],
    ]


@pytest.mark.parametrize("name", PACK)
def test_nothing_in_it(log: Path, name: str | None) -> None:
    """An empty file and an empty archive have no lines and no problem."""
    log.write_bytes(PACK[name](b""))
    lines = Lines(found(log))
    assert (list(lines), lines.problem) == ([], None)


def test_a_cut_archive_keeps_its_lines_and_is_named(log: Path) -> None:
    """The piece of a line before the cut is a line too."""
    log.write_bytes(gzip.compress(MANY)[:-2_000])
    lines = Lines(found(log))
    read = b"".join(lines)
    assert MANY.startswith(read)
    assert len(read) > len(MANY) / 2
    assert lines.problem == "gzip data ends early; what is there was read"


def test_a_line_of_forty_mebibytes(log: Path) -> None:
    """Is a line."""
    long = b"x" * (40 << 20) + b"\n"
    log.write_bytes(b"a\n" + long + b"b\n")
    assert [len(line) for line in Lines(found(log))] == [2, len(long), 2]


def test_a_line_over_the_limit_is_cut(log: Path) -> None:
    """The lines after it are whole."""
    with log.open("wb") as file:
        for _ in range(65):
            file.write(b"x" * (1 << 20))
        file.write(b"\nb\n")
    first, second = Lines(found(log))
    assert isinstance(first, OddLine)
    assert (first.length, first.is_cut) == ((65 << 20) + 1, True)
    assert len(first) < MAX_LINE_BYTES
    assert second == b"b\n"


def test_a_hole_that_a_truncation_left(log: Path) -> None:
    """A writer that keeps its place makes one, of as many NUL bytes as the file had."""
    with log.open("wb") as writer:
        writer.write(MANY)
        writer.flush()
        os.truncate(log, 0)
        writer.write(b"{}\n")
    (line,) = Lines(found(log))
    assert isinstance(line, OddLine)
    assert (line, line.nul_bytes, line.length) == (b"{}\n", len(MANY), len(MANY) + 3)


class Writer:
    """A process that writes into a file what it is told, and says when it has."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITE, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def write(self, data: bytes) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(data.hex().encode() + b"\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def close(self) -> None:
        self._process.communicate(timeout=20)


WRITE = """
import sys
with open(sys.argv[1], "ab", buffering=0) as file:
    for line in sys.stdin:
        file.write(bytes.fromhex(line))
        print(flush=True)
"""


@pytest.fixture
def writer(log: Path) -> Iterator[Writer]:
    process = Writer(log)
    yield process
    process.close()


def test_the_last_line_of_a_file_that_grows_is_pending(log: Path, writer: Writer) -> None:
    """Someone is writing it; when nobody does any more, it is a line like any other."""
    writer.write(b"one\ntw")
    file = found(log)
    assert list(Lines(file)) == [b"one\n", b"tw"]
    writer.write(b"o\nthr")
    lines = Lines(file)
    assert list(lines) == [b"one\n", b"two\n"]
    assert (lines.pending, lines.problem) == (3, None)
    lines = Lines(found(log))
    assert list(lines) == [b"one\n", b"two\n", b"thr"]
    assert lines.pending == 0


def test_an_archive_that_grows_is_not_cut(log: Path, writer: Writer) -> None:
    """Its end is not there yet; once it stands still without one, it is."""
    packed = gzip.compress(MANY)
    writer.write(packed[:200_000])
    file = found(log)
    writer.write(packed[200_000:-2_000])
    lines = Lines(file)
    assert all(line.endswith(b"\n") for line in lines)
    assert lines.problem is None
    assert lines.pending
    lines = Lines(found(log))
    assert not list(lines)[-1].endswith(b"\n")
    assert lines.problem == "gzip data ends early; what is there was read"
    writer.write(packed[-2_000:])
    lines = Lines(found(log))
    assert (b"".join(lines), lines.problem) == (MANY, None)


def test_a_reader_does_not_chase_a_writer(log: Path, writer: Writer) -> None:
    """What is written while it reads is left for the next time, and so is the line it is in."""
    writer.write(MANY + b"beg")
    lines = Lines(found(log))
    iterator = iter(lines)
    first = next(iterator)
    writer.write(b"un\n" + MANY)
    assert [first, *iterator] == io.BytesIO(MANY).readlines()
    assert (lines.pending, lines.problem) == (3, None)


def test_a_file_that_is_truncated_while_it_is_read(log: Path) -> None:
    """What is gone is gone, and is named."""
    log.write_bytes(MANY)
    lines = Lines(found(log))
    iterator = iter(lines)
    first = next(iterator)
    os.truncate(log, 10)
    read = [first, *iterator]
    assert MANY.startswith(b"".join(read))
    assert lines.problem == f"was truncated while it was read: 10 of {len(MANY):,} bytes were left"


def test_a_file_that_is_truncated_before_it_is_read(log: Path) -> None:
    """The same, found at once."""
    log.write_bytes(b"one\ntwo\n")
    file = found(log)
    os.truncate(log, 4)
    lines = Lines(file)
    assert list(lines) == [b"one\n"]
    assert lines.problem == "was truncated while it was read: 4 of 8 bytes were left"


def test_a_rotation_between_finding_and_reading(tmp_path: Path, log: Path) -> None:
    """Each file is read once, under its new name."""
    log.write_bytes(b"old\n")
    (tmp_path / "a.log.1").write_bytes(b"older\n")
    before = files.find([str(tmp_path)])
    subprocess.run(["mv", "a.log.1", "a.log.2"], cwd=tmp_path, check=True)
    subprocess.run(["mv", "a.log", "a.log.1"], cwd=tmp_path, check=True)
    log.write_bytes(b"new\n")
    assert [list(Lines(file)) for file in before] == [[b"older\n"], [b"old\n"]]
    log.unlink()
    assert [list(Lines(file)) for file in before] == [[b"older\n"], [b"old\n"]]


def test_a_file_that_was_replaced(tmp_path: Path, log: Path) -> None:
    """What has the name now is what was asked for."""
    log.write_bytes(b"old\n")
    file = found(log)
    (tmp_path / "other").write_bytes(b"new\n")
    (tmp_path / "other").replace(log)
    lines = Lines(file)
    assert (list(lines), lines.problem) == ([b"new\n"], None)
    lines = Lines(replace(file, start_offset=2, start_line=1))
    assert (list(lines), lines.problem) == ([], "cannot be read: another file has its name now")


def test_a_file_that_vanished_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    """It gives no lines and a problem."""
    for name in ("a.log", "b.log", "c.log"):
        (tmp_path / name).write_bytes(b"one\n")
    before = files.find([str(tmp_path)])
    subprocess.run(["rm", "b.log"], cwd=tmp_path, check=True)
    read = [(lines, list(lines)) for lines in map(Lines, before)]
    assert [of_one for _, of_one in read] == [[b"one\n"], [], [b"one\n"]]
    assert [lines.problem for lines, _ in read] == [
        None,
        "cannot be read: No such file or directory",
        None,
    ]


def test_a_folder_in_the_place_of_a_file(log: Path) -> None:
    """Has no lines, and a problem."""
    log.write_bytes(b"one\n")
    file = found(log)
    log.unlink()
    log.mkdir()
    lines = Lines(file)
    assert (list(lines), lines.problem) == ([], "cannot be read: Is a directory")


@pytest.mark.parametrize("name", PACK)
def test_a_fifo_is_read_to_its_end(tmp_path: Path, name: str | None) -> None:
    """From several writes of another process, packed or not."""
    fifo, data = tmp_path / "pipe", tmp_path / "data"
    os.mkfifo(fifo)
    data.write_bytes(PACK[name](b"one\ntwo\nthree"))
    with subprocess.Popen(["dd", "bs=1", "status=none", f"if={data}", f"of={fifo}"]):
        lines = Lines(found(fifo))
        assert list(lines) == [b"one\n", b"two\n", b"three"]
    assert (lines.problem, lines.pending) == (None, 0)


def test_the_output_of_another_command(tmp_path: Path) -> None:
    """`reconstruct <(command)` of a shell gives a name below /dev/fd."""
    reader, writer = os.pipe()
    os.write(writer, b"one\ntwo\n")
    os.close(writer)
    lines = list(Lines(found(Path(f"/dev/fd/{reader}"))))
    os.close(reader)
    assert lines == [b"one\n", b"two\n"]


@pytest.mark.parametrize("name", PACK)
def test_standard_input(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    """`-`, packed or not."""
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(PACK[name](b"one\ntwo\n"))))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert list(Lines(*files.find(["-"]))) == [b"one\n", b"two\n"]


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is a problem like any other."""
    monkeypatch.setattr(sys, "stdin", None)
    lines = Lines(*files.find(["-"]))
    assert (list(lines), lines.problem) == ([], "cannot be read: standard input is closed")


def test_files_are_open_one_at_a_time(tmp_path: Path) -> None:
    """However many there are, read to their end or left in the middle."""
    for number in range(200):
        (tmp_path / f"{number}.log").write_bytes(b"one\ntwo\n")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())  # some below may be free
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 8, before[1]))
    try:
        read = [list(Lines(file)) for file in files.find([str(tmp_path)])]
        firsts = [next(iter(Lines(file))) for file in files.find([str(tmp_path)])]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert read == [[b"one\n", b"two\n"]] * 200
    assert firsts == [b"one\n"] * 200
