"""What becomes of odd files: their lines are accounted for, and their problems are told."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from reconstruct.cli import main
from reconstruct.engine import Engine
from reconstruct.intake import files, reader, tables


def read(found: list[files.LogFile]) -> dict[str, list[dict[str, Any]]]:
    """Read files into rows of each base table."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in tables.TABLES}
    for name, batch in reader.read(found):
        rows[name].extend(batch.to_pylist())
    return rows


@pytest.fixture
def spans(logs: Any) -> list[bytes]:
    """The lines of twenty spans."""
    for number in range(20):
        logs.span(f"s{number}")
    return [f"{line}\n".encode() for line in logs.files["a.log"]]


def test_a_damaged_file_of_a_set_costs_no_other(tmp_path: Path, spans: list[bytes]) -> None:
    """Cut, empty and joined archives beside a log: what is whole is read, the cut is a finding."""
    text = b"".join(spans)
    cut = gzip.compress(text)[:-40]
    for name, data in {
        "plain.log": text,
        "good.log.gz": gzip.compress(text.replace(b'"seq":', b'"seq":1')),
        "joined.log.gz": gzip.compress(b"one\ntw") + gzip.compress(b"o\n"),
        "empty.log.gz": gzip.compress(b""),
        "zero.log.gz": b"",
        "cut.log.gz": cut,
    }.items():
        (tmp_path / name).write_bytes(data)
    with Engine.read([str(tmp_path)]) as engine:
        lines = engine.rows("SELECT file, sum(lines)::INT AS n FROM line_classes GROUP BY file")
        findings = engine.rows("SELECT file, message FROM findings WHERE code = 'damaged_file'")
        names = [row["file"] for row in engine.rows("SELECT file FROM _files ORDER BY file")]
    counted = {Path(row["file"]).name: row["n"] for row in lines}
    whole = counted.pop("cut.log.gz")
    assert 0 < whole <= 20
    assert counted == {"plain.log": 20, "good.log.gz": 20, "joined.log.gz": 2}
    assert len(names) == 6
    (finding,) = findings
    assert Path(finding["file"]).name == "cut.log.gz"
    assert f"after {whole} lines: gzip data ends early" in finding["message"]


def test_a_copy_of_a_log_adds_nothing(tmp_path: Path, spans: list[bytes]) -> None:
    """A rotation that copies leaves the same lines in two files: duplicates."""
    for name in ("a.log", "a.log.1"):
        (tmp_path / name).write_bytes(b"".join(spans))
    with Engine.read([str(tmp_path)]) as engine:
        counts = engine.rows("SELECT class, sum(lines)::INT AS n FROM line_classes GROUP BY class")
        (row,) = engine.rows("SELECT count(*) AS n FROM spans")
    assert {row["class"]: row["n"] for row in counts} == {"span": 20, "duplicate": 20}
    assert row["n"] == 20


def test_a_hole_before_a_record_is_told(tmp_path: Path, spans: list[bytes]) -> None:
    """The record is there, where it lies, and the line is none that was whole."""
    log = tmp_path / "a.log"
    log.write_bytes(bytes(5_000) + spans[0] + spans[1])
    rows = read(files.find([str(log)]))
    assert [(row["line"], row["byte_offset"]) for row in rows[tables.SPAN_LINES]] == [
        (1, 0),
        (2, 5_000 + len(spans[0])),
    ]
    (rejected,) = rows[tables.REJECTED_LINES]
    assert rejected["class"] == "recovered"
    assert "NUL bytes" in rejected["reason"]
    assert {row["class"]: row["lines"] for row in rows[tables.CLASS_COUNTS]} == {
        "recovered": 1,
        "span": 1,
    }


def test_a_line_that_is_being_written_is_left_for_the_next_time(
    tmp_path: Path, spans: list[bytes]
) -> None:
    """It is no torn line; how long it is so far is known. Reading on begins where it does."""
    log = tmp_path / "a.log"
    log.write_bytes(spans[0])
    (file,) = files.find([str(log)])
    with log.open("ab") as writer:
        writer.write(spans[1][:100])
    rows = read([file])
    (status,) = rows[tables.FILES]
    assert (status["lines"], status["bytes"], status["pending_bytes"]) == (1, len(spans[0]), 100)
    assert [row["class"] for row in rows[tables.CLASS_COUNTS]] == ["span"]
    with log.open("ab") as writer:
        writer.write(spans[1][100:])
    rest = files.LogFile(str(log), 0, start_offset=status["bytes"], start_line=status["lines"])
    rows = read([rest])
    assert [(row["line"], row["byte_offset"]) for row in rows[tables.SPAN_LINES]] == [
        (2, len(spans[0]))
    ]


def test_a_file_that_vanished_is_a_problem_of_its_own(tmp_path: Path, spans: list[bytes]) -> None:
    """The others are read."""
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes(spans[0])
    found = files.find([str(tmp_path)])
    (tmp_path / "a.log").unlink()
    rows = read(found)
    assert [(row["lines"], row["problem"]) for row in rows[tables.FILES]] == [
        (0, "cannot be read: No such file or directory"),
        (1, None),
    ]


def test_odd_names_reach_sql_and_the_terminal(
    tmp_path: Path, spans: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """As text that no terminal obeys; each file keeps a name of its own."""
    for name in (b"new\nline.log", b"\x1b[31mred.log", b"quo'te;--.log", b"\xff.log", rb"\xff.log"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"torn {\n" + spans[0])
    with Engine.read([str(tmp_path)]) as engine:
        counts = engine.rows("SELECT file, sum(lines)::INT AS n FROM line_classes GROUP BY file")
    assert sorted(Path(row["file"]).name for row in counts) == [
        "\x1b[31mred.log",
        r"\xff.log",
        r"\xff.log (2)",
        "new\nline.log",
        "quo'te;--.log",
    ]
    assert {row["n"] for row in counts} == {2}
    for command in ("summary", "lines", "doctor"):
        main([command, str(tmp_path)])
        said = "".join(capsys.readouterr())
        assert "\x1b" not in said
    main(["lines", str(tmp_path)])
    assert r"/new\nline.log " in capsys.readouterr().out


def test_what_was_left_out_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By `reconstruct lines`, a line for each reason."""
    for name in ("a.log", "b.npy", "c.npy", "d.tar.gz"):
        (tmp_path / name).touch()
    assert main(["lines", str(tmp_path)]) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[:2] == [
        f"left out 2 files, no text by its name (.npy): {tmp_path}/b.npy …",
        f"left out 1 file, an archive of files (.tar); unpack it to read it: {tmp_path}/d.tar.gz",
    ]
