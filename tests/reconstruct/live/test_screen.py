"""The picture: what there is room for, what was left out, nothing that a terminal would obey."""

import io
from dataclasses import replace

import pytest

from reconstruct.console import Console
from reconstruct.live.screen import screen
from reconstruct.live.snapshot import (
    FailureKind,
    FinishedRollout,
    OpenRollout,
    ProcessNow,
    Snapshot,
)
from reconstruct.render.text import plain

NOW = 1_800_000_000_000_000_000
SECOND = 1_000_000_000


def ago(seconds):
    return NOW - int(seconds * SECOND)


def rollout(number, span_name, after=None, service="gym/agent"):
    return OpenRollout(
        run_id="run-1",
        rollout_id=f"{number}-0",
        start_time_unix_nano=ago(20 - number),
        span_name=span_name,
        service_name=service if span_name else None,
        after=after,
        span_count=number,
        open_count=1,
        error_count=number % 2,
    )


SNAPSHOT = Snapshot(
    time_unix_nano=NOW,
    newest_time_unix_nano=ago(0.25),
    open_count=14,
    finished_count=1234,
    lost_count=1,
    finished_in_10_s=20,
    finished_in_60_s=130,
    error_count=3,
    span_count=20_000,
    line_classes={"span": 20_000, "torn": 2},
    open=tuple(
        rollout(number, *(("gym.model.call",) if number % 3 else (None, "POST /run")))
        for number in range(1, 13)
    ),
    slowest=(FinishedRollout("run-1", "7-1", ago(90), 65 * SECOND, 22, 0),),
    failures=(
        FailureKind("gym/resources", "/verify", 3, ago(2.5), "no \x1b[31mred\n", "ab" * 16, "7-1"),
    ),
    processes=tuple(
        ProcessNow(
            instance=f"gym/{name}#1",
            service_name=f"gym/{name}",
            run_id="run-1",
            host_name="node-1",
            process_pid=100 + number,
            state=state,
            last_time_unix_nano=ago(number + 0.25),
            spans_read=1000 * number,
            spans_written=10,
            records_dropped=0,
            open_spans=number,
            lag_ms=lag,
        )
        for number, (name, state, lag) in enumerate(
            [("agent", "alive", 1.5), ("model", "silent", None), ("resources", "stopped", 40.0)]
        )
    ),
    process_count=3,
    alive_count=1,
    died_count=1,
    events=(),
    events_left_out=0,
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def drawn(columns, rows, snapshot=SNAPSHOT, **facts):
    environ = {"COLUMNS": str(columns), "LINES": str(rows), "TERM": "xterm"}
    console = Console(Terminal(), Terminal(), environ=environ)
    facts = {"file_count": 3, "bytes_left": 0} | facts
    return plain(screen(snapshot, console, **facts))


def test_a_large_terminal_shows_everything_there_is():
    """Open rollouts by age, errors, processes, the slowest rollouts."""
    assert drawn(100, 50, bytes_left=2_500_000, notices=["a.log was truncated"]) == LARGE


def test_a_small_terminal_shows_what_fits():
    """And says how much it leaves out."""
    assert drawn(80, 20) == SMALL


@pytest.mark.parametrize("rows", range(6, 40))
def test_it_never_takes_more_rows_than_there_are(rows):
    """One row stays for the cursor."""
    lines = drawn(60, rows, notices=["one", "two"] if rows > 7 else []).splitlines()
    assert len(lines) <= max(rows - 1, 5)


def test_runs_are_named_when_there_are_several():
    """Rollout ids repeat from run to run."""
    other = replace(SNAPSHOT.open[0], run_id="run-2")
    assert "RUN" not in drawn(100, 50)
    picture = drawn(100, 50, replace(SNAPSHOT, open=(*SNAPSHOT.open, other)))
    assert "run-2" in picture


def test_what_logs_say_is_made_harmless():
    """Control characters become their escapes."""
    picture = drawn(100, 50, notices=["odd\x1b]0;title\x07"])
    assert r"no \x1b[31mred\n" in picture
    assert r"odd\x1b]0;title\x07" in picture
    assert all(character.isprintable() or character == "\n" for character in picture)


def test_before_the_first_line_there_is_only_the_overview():
    """No empty tables."""
    empty = replace(
        SNAPSHOT,
        newest_time_unix_nano=None,
        open=(),
        slowest=(),
        failures=(),
        processes=(),
        open_count=0,
        lost_count=0,
        error_count=0,
        died_count=0,
        line_classes={},
    )
    lines = drawn(100, 50, empty, file_count=1).splitlines()
    assert lines[0] == "read      1 file, no records yet"
    assert lines[2] == "wrong     nothing"
    assert len(lines) == 3


BELOW = """\
  LAST  ERRORS   SERVICE    COUNT  LAST MESSAGE
2.50 s  /verify  resources      3  no \\x1b[31mred\\n

  SEEN  PROCESSES  PID  STATE    SPANS  OPEN  DROPPED      LAG  HOST
250 ms  agent      100  alive        0     0        0  1.50 ms  node-1
1.25 s  model      101  silent   1,000     1        0        -  node-1
2.25 s  resources  102  stopped  2,000     2        0  40.0 ms  node-1

     TOOK  SLOWEST  SPANS  ERRORS
1 min 5 s  7-1         22       0
"""

LARGE = f"""\
read      3 files, the latest record is 250 ms old, 2.50 MB to be read
rollouts  14 open, 1,234 finished (20 in 10 s, 130 in 60 s)
wrong     1 lost rollout, 3 errors, 1 dead or silent process, 2 damaged lines

   AGE  OPEN ROLLOUTS  NOW              SERVICE  SPANS  ERRORS
19.0 s  1-0            gym.model.call   agent        1       1
18.0 s  2-0            gym.model.call   agent        2       0
17.0 s  3-0            after POST /run  -            3       1
16.0 s  4-0            gym.model.call   agent        4       0
15.0 s  5-0            gym.model.call   agent        5       1
14.0 s  6-0            after POST /run  -            6       0
13.0 s  7-0            gym.model.call   agent        7       1
12.0 s  8-0            gym.model.call   agent        8       0
11.0 s  9-0            after POST /run  -            9       1
10.0 s  10-0           gym.model.call   agent       10       0
9.00 s  11-0           gym.model.call   agent       11       1
8.00 s  12-0           after POST /run  -           12       0
… 2 more

{BELOW}a.log was truncated
"""

SMALL = f"""\
read      3 files, the latest record is 250 ms old
rollouts  14 open, 1,234 finished (20 in 10 s, 130 in 60 s)
wrong     1 lost rollout, 3 errors, 1 dead or silent process, 2 damaged lines

   AGE  OPEN ROLLOUTS  NOW             SERVICE  SPANS  ERRORS
19.0 s  1-0            gym.model.call  agent        1       1
18.0 s  2-0            gym.model.call  agent        2       0
… 12 more

{BELOW}"""
