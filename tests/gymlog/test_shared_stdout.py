"""Several processes on one standard output, and one that is emptied: whole lines, none lost.

Each process writes lines of 300 bytes to 60 KB, and what the host prints stands between them.
"""

import contextlib
import os
import time

import pytest

WRITE = """
    children = [pid for _ in range(int(os.environ["FORKS"])) if (pid := os.fork())]
    for number in range(40):
        for size in (50, 3_000, 20_000, 60_000):
            values = {f"k{start}": "x" * 5_000 for start in range(0, size, 5_000)}
            spans(1, "one", **(values if size > 5_000 else {"k": "x" * size}))
        os.write(1, b"what the host prints\\n")
    gymlog.shutdown_telemetry()
    for pid in children:
        os.waitpid(pid, 0)
    os._exit(0)
"""
FORKS = "3"
"""Each doubles the processes."""
PROCESSES = 8
SPANS, PRINTED = 160, 40


def told_apart(data, program):
    """Return the records, and how many lines the host printed; each must be whole."""
    lines = data.splitlines(keepends=True)
    records = [line for line in lines if line != b"what the host prints\n"]
    return program.parse(b"".join(records)), len(lines) - len(records)


def dropped(records):
    """Return how many records were dropped; with those that arrived they are all there is."""
    count = 0
    assert len(records.instances()) == PROCESSES
    for mine in records.instances().values():
        last = mine[-1]
        assert last["state"] == "stopped"
        assert len(mine) + last["records_dropped"] == last["seq"] + 1
        count += last["records_dropped"]
    return count


def test_a_pipe_with_a_reader_that_is_quick_enough(program):
    """Nothing is torn and nothing dropped, however long the lines."""
    with program(WRITE, FORKS=FORKS, GYMLOG_WRITE_WAIT_SECONDS="10") as process:
        data = process.stdout.read()
    records, printed = told_apart(data, program)
    assert dropped(records) == 0
    assert len(records.of("span")) == PROCESSES * SPANS
    assert printed == PROCESSES * PRINTED
    assert sum(len(line) > 20_000 for line in data.splitlines()) == PROCESSES * SPANS / 2


def test_a_pipe_with_a_reader_that_is_too_slow(program):
    """Lines are whole or dropped, whatever else is written to the pipe."""
    with program(WRITE, FORKS=FORKS, GYMLOG_WRITE_WAIT_SECONDS="0.1") as process:
        chunks = []
        while chunk := os.read(process.stdout.fileno(), 50_000):
            chunks.append(chunk)
            time.sleep(0.002)  # the slowness, not a wait for anything
    records, printed = told_apart(b"".join(chunks), program)
    assert dropped(records) > 0, "the reader was meant to be too slow"
    assert printed == PROCESSES * PRINTED


@pytest.mark.parametrize("mode", ["wb", "ab"], ids=[">", ">>"])
def test_a_file(program, mode, tmp_path):
    """Lines stand behind each other, however the shell opened the file."""
    log = tmp_path / "log"
    with open(log, mode) as file, program(WRITE, stdout=file, FORKS=FORKS) as process:
        assert process.wait(program.SECONDS) == 0
    records, printed = told_apart(log.read_bytes(), program)
    assert dropped(records) == 0
    assert len(records.of("span")) == PROCESSES * SPANS
    assert printed == PROCESSES * PRINTED


def test_a_file_that_each_process_opened_by_itself(program, tmp_path):
    """`> log` twice: nothing overwrites what the other wrote."""
    log = tmp_path / "log"
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(log, "wb")) for _ in range(2)]
        processes = [stack.enter_context(program(WRITE, stdout=file, FORKS="0")) for file in files]
        for process in processes:
            assert process.wait(program.SECONDS) == 0
    records, printed = told_apart(log.read_bytes(), program)
    records.no_gap_no_repeat()
    assert len(records.of("span")) == 2 * SPANS
    assert printed == 2 * PRINTED


@pytest.mark.parametrize("mode", ["wb", "ab"], ids=[">", ">>"])
def test_a_file_truncated_under_the_writer(program, mode, tmp_path):
    """As log rotation does by copying, and `> server.log`: what comes after begins the file."""
    log = tmp_path / "log"
    code = """
        spans(5, "old")
        say("written")
        sys.stdin.readline()
        spans(5, "new")
        print("what the host prints")
    """
    with open(log, mode) as file, program(code, stdout=file) as process:
        program.await_word(process)
        os.truncate(log, 0)
        process.communicate(b"\n", timeout=program.SECONDS)
    records, printed = told_apart(log.read_bytes(), program)
    assert [span["name"] for span in records.of("span")] == ["new"] * 5
    assert printed == 1


def test_a_clean_exit_finds_room_for_its_last_lines(program):
    """A pipe that was full for long has used up the wait; the end has one of its own."""
    code = """
        channel = handle.tracer_provider.service.sink.file
        while channel.lines_dropped < 20:
            spans(1, "many")
        say("dropped")
    """
    with program(code, GYMLOG_WRITE_WAIT_SECONDS="1") as process:
        while program.await_word(process) != "dropped":
            pass
        time.sleep(0.2)  # the slowness, not a wait for anything
        data = process.stdout.read()
    last = program.parse(data)[-1]
    assert last["state"] == "stopped"
    assert last["records_dropped"] >= 20
