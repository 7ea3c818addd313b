"""stdout is data, stderr is words; a terminal gets colour and cut tables, a pipe all of it."""

import csv
import io
import json
import os
import re
import subprocess
import sys

import pytest

from reconstruct.console import PIPE_COLUMNS, Column, Console
from reconstruct.errors import DestinationError
from reconstruct.render.text import Part

COLUMNS = [
    Column("name", "NAME"),
    Column("spans", "SPANS", "count"),
    Column("duration_ns", "DURATION", "duration"),
    Column("start", "START", "instant"),
    Column("share", "SHARE", "share"),
]
ROWS = [
    {"name": "a\x1b[31m", "spans": 12_345, "duration_ns": 1_500_000, "start": 0, "share": 0.25},
    {"name": "long name", "spans": 0, "duration_ns": None, "start": None, "share": None},
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def console(out, **environ):
    return Console(out, io.StringIO(), environ=environ)


def test_a_table_in_a_pipe_is_aligned_complete_and_inert():
    out = io.StringIO()
    console(out, COLUMNS="20").table(COLUMNS, ROWS)
    assert out.getvalue() == (
        "NAME        SPANS  DURATION  START                     SHARE\n"
        "a\\x1b[31m  12,345   1.50 ms  1970-01-01T00:00:00.000Z   25 %\n"
        "long name       0         -  -                             -\n"
    )


def test_on_a_terminal_long_text_is_cut_and_nothing_else():
    out = Terminal()
    rows = [{"name": "n" * 200, "spans": 12_345, "trace": "4bf92f3577b34da6a3ce929d0e0e4736"}]
    columns = [Column("trace", "TRACE"), Column("name", "NAME"), Column("spans", "SPANS", "count")]
    console(out, COLUMNS="70", NO_COLOR="1").table(columns, rows)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 70
    assert lines[1].split()[0] == rows[0]["trace"]
    assert lines[1].split()[1].startswith("nnnnnnnnnnnnnnn")
    assert lines[1].split()[1].endswith("…")
    assert lines[1].split()[2] == "12,345"


def test_a_terminal_too_narrow_for_the_numbers_still_gets_them():
    out = Terminal()
    console(out, COLUMNS="30", NO_COLOR="1").table(COLUMNS, ROWS)
    assert out.getvalue().splitlines()[1].split() == [
        *("a\\x1b[31m", "12,345", "1.50", "ms"),
        *("1970-01-01T00:00:00.000Z", "25", "%"),
    ]


@pytest.mark.parametrize(
    ("color", "environ", "out", "expected"),
    [
        ("auto", {"TERM": "xterm"}, Terminal, True),
        ("auto", {"TERM": "xterm", "NO_COLOR": "1"}, Terminal, False),
        ("auto", {"TERM": "xterm", "NO_COLOR": ""}, Terminal, True),
        ("auto", {"TERM": "dumb"}, Terminal, False),
        ("auto", {"TERM": "xterm"}, io.StringIO, False),
        ("always", {"NO_COLOR": "1"}, io.StringIO, True),
        ("never", {"TERM": "xterm"}, Terminal, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(color, environ, out, expected):
    stream = out()
    Console(stream, io.StringIO(), color=color, environ=environ).lines([(Part("x", "error"),)])
    assert ("\x1b[" in stream.getvalue()) is expected
    assert "x" in stream.getvalue()


def test_styled_text_is_not_markup():
    out = io.StringIO()
    Console(out, color="always", environ={}).lines([(Part("[red]:smile:", "title"),)])
    assert "[red]:smile:" in out.getvalue()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({"COLUMNS": "72"}, 72), ({"COLUMNS": "wide"}, PIPE_COLUMNS), ({}, PIPE_COLUMNS)],
)
def test_columns_come_from_the_environment_else_are_fixed_in_a_pipe(environ, expected):
    assert Console(io.StringIO(), environ=environ).columns == expected


def test_say_writes_one_inert_line_to_stderr_and_never_raises():
    err = io.StringIO()
    Console(io.StringIO(), err).say("a\nb\x1b[2J")
    assert err.getvalue() == "a\\nb\\x1b[2J\n"
    err.close()
    Console(io.StringIO(), err).say("nobody hears")


def test_records_are_the_same_data_in_every_format():
    names, rows = ["name", "n", "n"], [("a,b", 2**60, None), ("=c\x1b", 1.0, {"k": True})]
    written = {}
    for form in ("json", "jsonl", "csv", "table"):
        out = io.StringIO()
        console(out).records(names, rows, form)
        written[form] = out.getvalue()
    objects = [
        {"name": "a,b", "n": 2**60, "n_2": None},
        {"name": "=c\x1b", "n": 1.0, "n_2": {"k": True}},
    ]
    assert json.loads(written["json"]) == objects
    assert [json.loads(line) for line in written["jsonl"].splitlines()] == objects
    assert list(csv.reader(io.StringIO(written["csv"]))) == [
        ["name", "n", "n_2"],
        ["a,b", str(2**60), ""],
        ["'=c\x1b", "1.0", '{"k":true}'],
    ]
    assert written["table"].splitlines()[0].split() == ["name", "n", "n_2"]


def test_csv_is_inert_on_a_terminal():
    out = Terminal()
    console(out).records(["a"], [("\x1b[2J",)], "csv")
    assert out.getvalue() == "a\n\\x1b[2J\n"


def test_no_progress_where_nobody_looks():
    with console(io.StringIO()).progress("reading") as progress:
        assert progress is None


def test_progress_is_drawn_on_a_terminal_only_on_stderr():
    out, err = io.StringIO(), Terminal()
    with Console(out, err, environ={}).progress("reading") as progress:
        progress(1, 2)
        progress(2, 2)
    assert "reading" in err.getvalue()
    assert out.getvalue() == ""


def test_a_full_disk_is_one_clear_error():
    with open("/dev/full", "w") as full, pytest.raises(DestinationError, match="No space left"):
        Console(full).text("x" * 100_000)


def test_a_reader_who_leaves_is_obeyed_and_the_exit_code_stands():
    program = (
        "import sys; from reconstruct.console import Console\n"
        "console = Console()\n"
        "for _ in range(100_000): console.text('x' * 100 + chr(10))\n"
        "console.json([1]); sys.exit(7)\n"
    )
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=writer, stderr=subprocess.PIPE, text=True
    )
    os.close(writer)
    assert os.read(reader, 10) == b"x" * 10
    os.close(reader)
    _, words = process.communicate(timeout=60)
    assert (process.returncode, words) == (7, "")


def test_no_service_is_red_where_colours_are_few():
    """Red means an error, also on a terminal of 16 colours."""
    done = subprocess.run(
        [sys.executable, "-c", SERVICES],
        env={"TERM": "xterm", "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    colours = re.findall(r"\x1b\[(?:1;)?(\d+)mservice", done.stdout)
    assert len(colours) == len(set(colours)) == 8
    assert not {"31", "91"} & set(colours)


SERVICES = """
from reconstruct.console import Console
from reconstruct.render.text import Part
Console(color="always").lines([[Part(f"service{n}", f"service{n}")] for n in range(8)])
"""
