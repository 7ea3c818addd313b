"""What is new is read once, whatever becomes of the files."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.errors import InputError, UsageError
from reconstruct.live.tail import Tail


@pytest.fixture
def folder(tmp_path):
    return tmp_path


@pytest.fixture
def append(folder, span_line):
    """Append the lines of spans to a file."""

    def write(name, *numbers):
        with (folder / name).open("a") as file:
            file.write("".join(map(span_line, numbers)))

    return write


def test_a_look_finds_what_is_new_and_nothing_else(folder, append, numbers):
    """Lines appended to a file; nothing when there are none."""
    append("a.log", 1, 2)
    tail = Tail([str(folder)])
    assert numbers(tail.past()) == [1, 2]
    assert numbers(tail.look()) == []
    append("a.log", 3)
    assert numbers(tail.look()) == [3]
    [place] = tail.positions
    assert place.start_offset == (folder / "a.log").stat().st_size
    assert place.start_line == 3


def test_a_new_file_is_found(folder, append, numbers):
    """In a folder, or where a glob fits, also when there was none before."""
    tail = Tail([str(folder / "*" / "*.log")])
    assert numbers(tail.past()) == []
    [notice] = tail.notices()
    assert "yet; waiting" in notice
    (folder / "run").mkdir()
    append("run/a.log", 1)
    append("run/a.txt", 2)
    assert numbers(tail.look()) == [1]
    append("run/b.log", 3)
    append("run/a.log", 4)
    assert sorted(numbers(tail.look())) == [3, 4]
    assert tail.notices() == []


def test_a_line_waits_for_its_end(folder, append, span_line, numbers, classes):
    """However many pieces it comes in, it is one record; one without an end is read at the end."""
    line = span_line(1)
    tail = Tail([str(folder)])
    path = folder / "a.log"
    with path.open("a") as file:
        for piece in (line[:7], line[7:300], line[300:-1]):
            file.write(piece)
            file.flush()
            batches = list(tail.look())
            assert numbers(batches) == []
            assert classes(batches) == {}
        assert tail.bytes_left == len(line) - 1
        file.write("\n" + span_line(2)[:-1])
    batches = list(tail.look())
    assert (numbers(batches), classes(batches)) == ([1], {"span": 1})
    assert numbers(tail.close()) == [2]


def test_a_record_over_many_lines_is_put_together_from_several_looks(folder, numbers, classes):
    """OpenTelemetry's console exporter prints a span over many lines."""
    span = {
        "name": "work",
        "context": {"trace_id": f"0x{7:032x}", "span_id": f"0x{7:016x}", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "parent_id": None,
        "start_time": "2027-01-15T08:00:00.000000Z",
        "end_time": "2027-01-15T08:00:01.000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {},
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "a"}, "schema_url": ""},
    }
    lines = (json.dumps(span, indent=4) + "\n").splitlines(keepends=True)
    path = folder / "a.log"
    path.write_text("ready\n")
    tail = Tail([str(folder)])
    found = list(tail.past())
    for line in lines:
        with path.open("a") as file:
            file.write(line)
        found += tail.look()
    found += tail.close()
    assert numbers(found) == [6]
    assert classes(found) == {"text": 1, "span": 1, "joined": len(lines) - 1}


def test_a_rotated_file_is_read_to_its_end_and_then_the_new_one(folder, append, numbers):
    """`mv a.log a.log.1`, whose writer goes on for a while, and a new `a.log`."""
    append("a.log", 1)
    tail = Tail([str(folder)])
    assert numbers(tail.past()) == [1]
    append("a.log", 2)
    (folder / "a.log").rename(folder / "a.log.1")
    append("a.log.1", 3)
    append("a.log", 4)
    assert numbers(tail.look()) == [2, 3, 4]
    append("a.log.1", 5)
    append("a.log", 6)
    assert numbers(tail.look()) == [5, 6]
    assert tail.notices() == []


@pytest.mark.parametrize("pattern", ["*.log", "a.log"])
def test_a_file_is_read_to_its_end_when_its_new_name_is_not_asked_for(
    folder, append, numbers, pattern
):
    """The pattern means only `a.log`."""
    append("a.log", 1)
    tail = Tail([str(folder / pattern)])
    assert numbers(tail.past()) == [1]
    append("a.log", 2)
    (folder / "a.log").rename(folder / "a.log.1")
    append("a.log", 3)
    assert numbers(tail.look()) == [2, 3]
    append("a.log.1", 4)
    assert numbers(tail.look()) == [4]


def test_a_file_that_was_copied_and_truncated_is_read_on_in_the_copy(folder, append, numbers):
    """`cp a.log a.log.1; : > a.log`: what was not read yet is only in the copy."""
    append("a.log", 1)
    tail = Tail([str(folder)])
    assert numbers(tail.past()) == [1]
    append("a.log", 2)
    shutil.copy(folder / "a.log", folder / "a.log.1")
    os.truncate(folder / "a.log", 0)
    append("a.log", 3)
    assert numbers(tail.look()) == [2, 3]
    append("a.log", 4)
    assert numbers(tail.look()) == [4]


def test_a_rotated_file_that_is_packed_is_not_read_again(folder, append, numbers):
    """`a.log.1` becomes `a.log.2.gz`; so may `a.log` at once, with what was not read yet."""
    append("a.log", 1)
    tail = Tail([str(folder)])
    assert numbers(tail.past()) == [1]
    append("a.log", 2)
    (folder / "a.log.1.gz").write_bytes(gzip.compress((folder / "a.log").read_bytes()))
    (folder / "a.log").unlink()
    append("a.log", 3)
    assert numbers(tail.look()) == [2, 3]
    (folder / "a.log.1.gz").rename(folder / "a.log.2.gz")
    append("a.log", 4)
    assert numbers(tail.look()) == [4]


def test_a_packed_file_is_read_once(folder, append, span_line, numbers):
    """Also when another one of its log appears."""
    (folder / "a.log.1.gz").write_bytes(gzip.compress((span_line(1) + span_line(2)).encode()))
    append("a.log", 3)
    tail = Tail([str(folder)])
    assert numbers(tail.past()) == [1, 2, 3]
    assert numbers(tail.look()) == []


@pytest.mark.parametrize("rest", [(4,), (4, 5, 6, 7)], ids=["shorter", "longer"])
def test_a_file_that_was_written_anew_is_read_from_its_start(folder, append, numbers, rest):
    """And said so, even when it has grown past its former size."""
    append("a.log", 1, 2)
    tail = Tail([str(folder)])
    assert numbers(tail.past()) == [1, 2]
    os.truncate(folder / "a.log", 0)
    append("a.log", *rest)
    assert numbers(tail.look()) == list(rest)
    [notice] = tail.notices()
    assert "truncated or written anew" in notice


def test_a_file_that_is_gone_is_left(folder, append, span_line, numbers):
    """What was seen of it and never read is said."""
    append("a.log", 1)
    append("b.log", 2)
    tail = Tail([str(folder)])
    assert sorted(numbers(tail.past())) == [1, 2]
    with (folder / "a.log").open("a") as file:
        file.write(span_line(3)[:100])
    assert numbers(tail.look()) == []
    (folder / "a.log").unlink()
    (folder / "b.log").unlink()
    assert numbers(tail.look()) == []
    [notice] = tail.notices()
    assert "a.log is gone; 100 bytes" in notice
    assert tail.file_count == 0


def test_the_past_can_be_left_out(folder, append, span_line, numbers):
    """A file that appears later is read from its start."""
    append("a.log", 1, 2)
    with (folder / "a.log").open("a") as file:
        file.write(span_line(3)[:50])
    tail = Tail([str(folder)], since_now=True)
    assert numbers(tail.past()) == []
    with (folder / "a.log").open("a") as file:
        file.write(span_line(3)[50:])
    append("b.log", 4)
    assert sorted(numbers(tail.look())) == [3, 4]


def test_a_forced_wrapper_is_the_only_one(folder, span_line, numbers):
    """As for every command; a wrong name is refused at once."""
    (folder / "a.log").write_text(f"2027-01-15T08:00:00.000000Z stdout F {span_line(1)}")
    tail = Tail([str(folder)], wrapper="cri")
    assert numbers(tail.past()) == [1]
    with pytest.raises(UsageError, match="no wrapper 'crj'"):
        Tail([str(folder)], wrapper="crj")
    with pytest.raises(InputError):
        Tail([])


def test_files_are_read_side_by_side_in_the_order_of_their_times(folder, append, numbers):
    """So that a span meets its parent soon, however long the past is."""
    append("a.log", *range(0, 12_000, 2))
    append("b.log", *range(1, 12_000, 2))
    read = numbers(Tail([str(folder)]).past())
    assert sorted(read) == list(range(12_000))
    assert max(abs(place - number) for place, number in enumerate(read)) <= 3_000


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="tells how many bytes were read")
def test_a_look_reads_little_more_than_what_is_new(folder, append, numbers):
    """However large the past is."""
    append("a.log", *range(10_000))
    tail = Tail([str(folder)])
    assert len(numbers(tail.past())) == 10_000

    def bytes_read():
        return int(Path("/proc/self/io").read_text().split()[1])

    before = bytes_read()
    append("a.log", 10_000)
    assert numbers(tail.look()) == [10_000]
    assert bytes_read() - before < 50_000


def test_a_fifo_is_read_as_it_comes(folder, span_line, numbers):
    """A reader that waits is woken; the end of the only stream is the end."""
    path = folder / "fifo"
    os.mkfifo(path)
    tail = Tail([str(path)])
    assert numbers(tail.past()) == []
    with path.open("w", buffering=1) as fifo:
        for number in range(3):
            fifo.write(span_line(number)[:60])
            fifo.flush()
            fifo.write(span_line(number)[60:])
            found = []
            while not found:
                tail.wait(10)
                found = numbers(tail.look())
            assert found == [number]
            assert not tail.is_over
        fifo.write(span_line(3)[:-1])
    found = []
    while not tail.is_over:
        tail.wait(10)
        found += numbers(tail.look())
    assert found + numbers(tail.close()) == [3]


WRITER = """
import sys
line = sys.argv[2]
with open(sys.argv[1], "a") as log:
    for _ in sys.stdin:
        log.write(line)
        log.flush()
        print("written", flush=True)
"""


def test_lines_of_a_process_appear_at_the_next_look(folder, span_line, numbers):
    """Each as soon as it is written."""
    arguments = [sys.executable, "-c", WRITER, str(folder / "a.log"), span_line(1)]
    tail = Tail([str(folder)])
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as writer:
        for _ in range(5):
            writer.stdin.write("go\n")
            assert writer.stdout.readline() == "written\n"
            assert numbers(tail.look()) == [1]
        writer.stdin.close()
    assert writer.returncode == 0


OPERATIONS = st.lists(
    st.sampled_from(
        ["whole line", "piece of a line", "rename", "copy", "pack", "new file", "look", "look"]
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(OPERATIONS, st.randoms(use_true_random=False))
def test_every_line_is_read_once(span_line, numbers, operations, pick):
    """Whatever is done with the files between the looks; a copy leaves the writer no time."""
    with tempfile.TemporaryDirectory() as name:
        _Scenario(Path(name), pick, span_line, numbers).play(operations)


class _Scenario:
    """A log that is written and rotated; every line is known."""

    def __init__(self, folder, pick, span_line, numbers):
        self.span_line = span_line
        self.numbers = numbers
        self.folder = folder
        self.current = folder / "a.log"
        self.current.touch()
        self.pick = pick
        self.written = 0
        self.rest = b""
        self.rotations = 0
        self.tail = Tail([str(folder)])
        self.read = []

    def play(self, operations):
        from_operation = {
            "whole line": lambda: self.write(1.0),
            "piece of a line": lambda: self.write(self.pick.random()),
            "rename": self.rename,
            "copy": self.copy,
            "pack": self.pack,
            "new file": self.new_file,
            "look": self.look,
        }
        for operation in operations:
            from_operation[operation]()
        self.write(1.0)
        self.look()
        self.read += self.numbers(self.tail.close())
        assert sorted(self.read) == list(range(self.written))

    def write(self, share):
        if not self.rest:
            self.rest = self.span_line(self.written).encode()
            self.written += 1
        size = max(1, int(len(self.rest) * share))
        with self.current.open("ab") as log:
            log.write(self.rest[:size])
        self.rest = self.rest[size:]

    def finish_line(self):
        if self.rest:
            self.write(1.0)

    def shift(self):
        """Make room for a new `a.log.1`, as logrotate does."""
        self.finish_line()
        for number in range(self.rotations, 0, -1):
            for suffix in ("", ".gz"):
                old = self.folder / f"a.log.{number}{suffix}"
                if old.exists():
                    old.rename(self.folder / f"a.log.{number + 1}{suffix}")
        self.rotations += 1
        return self.folder / "a.log.1"

    def rename(self):
        self.current.rename(self.shift())
        self.current.touch()

    def copy(self):
        shutil.copy(self.current, self.shift())
        os.truncate(self.current, 0)

    def pack(self):
        if self.rotations:
            plain = self.folder / f"a.log.{self.rotations}"
            if plain.exists():
                Path(f"{plain}.gz").write_bytes(gzip.compress(plain.read_bytes()))
                plain.unlink()

    def new_file(self):
        self.finish_line()
        with (self.folder / f"other-{self.written}.log").open("w") as log:
            log.write(self.span_line(self.written))
        self.written += 1

    def look(self):
        self.read += self.numbers(self.tail.look())


def test_a_stream_is_taken_in_portions(folder, span_line, numbers):
    """However fast its writer is: memory holds a few MiB of it at a time."""
    path = folder / "fifo"
    os.mkfifo(path)
    count = 40_000
    writer = subprocess.Popen(
        [sys.executable, "-c", FLOOD, str(path), span_line(1), str(count)],
    )
    tail = Tail([str(path)])
    list(tail.past())
    looks = []
    while not tail.is_over:
        looks.append(len(numbers(tail.look())))
        tail.wait(0 if tail.is_over else 10)
    assert writer.wait() == 0
    assert sum(looks) == count
    assert max(looks) * len(span_line(1)) <= 9 << 20


FLOOD = """
import sys
with open(sys.argv[1], "w") as fifo:
    fifo.write(sys.argv[2] * int(sys.argv[3]))
"""
