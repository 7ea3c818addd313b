"""Which files are read, each once, and their lines."""

import gzip
import io
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.errors import InputError
from reconstruct.intake import files
from reconstruct.intake.files import Lines, LogFile


def names(*paths: str | Path) -> list[str]:
    return [Path(file.name).name for file in files.find([str(path) for path in paths])]


def test_a_folder_is_every_log_below_it(tmp_path: Path) -> None:
    """Hidden files, hidden folders and files that are no text by name are left out."""
    for name in ("b.log", "a.out", "run.log.1", "odd name", "deep/er/c.jsonl", "x.log.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in (".hidden.log", ".store/d.log", "data.parquet", "plot.PNG"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert names(tmp_path) == ["a.out", "b.log", "odd name", "run.log.1", "x.log.gz", "c.jsonl"]


def test_globs(tmp_path: Path) -> None:
    """`*`, `?`, `[…]` and `**` work; a file with a glob's characters in its name is itself."""
    for name in ("a1.log", "a2.log", "b1.log", "deep/a3.log", "odd[1].log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert names(tmp_path / "a*.log") == ["a1.log", "a2.log"]
    assert names(tmp_path / "?1.log") == ["a1.log", "b1.log"]
    assert names(tmp_path / "[ab]1.log") == ["a1.log", "b1.log"]
    assert names(tmp_path / "**" / "a*.log") == ["a1.log", "a2.log", "a3.log"]
    assert names(tmp_path / "odd[1].log") == ["odd[1].log"]


def test_a_file_reached_twice_is_read_once(tmp_path: Path) -> None:
    """By name, by folder, by link: one file."""
    log = tmp_path / "a.log"
    log.touch()
    (tmp_path / "link.log").symlink_to(log)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert names(log, tmp_path, log) == ["a.log"]


@pytest.mark.parametrize("path", ["none.log", "no*.log", "missing/deep.log"])
def test_nothing_found_says_where_it_looked(tmp_path: Path, path: str) -> None:
    """The error names what was asked for, the folder looked in and what to pass."""
    with pytest.raises(InputError, match="pass a folder, a glob or '-' for stdin") as error:
        files.find([str(tmp_path / path)])
    assert f"no log files match '{tmp_path / path}' (looked in {tmp_path})" in str(error.value)


def test_no_path_at_all() -> None:
    """An empty list is an error of the input, too."""
    with pytest.raises(InputError, match="nothing to read"):
        files.find([])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), packed=st.booleans())
def test_lines_put_together_are_the_file(tmp_path: Path, data: bytes, packed: bool) -> None:
    """No byte is lost or added, plain or gzip; every line but the last ends in a line feed."""
    path = tmp_path / "any"
    path.write_bytes(gzip.compress(data) if packed else data)
    lines = list(Lines(LogFile(str(path), 0)))
    if packed or not data.startswith(b"\x1f\x8b"):
        assert b"".join(lines) == data
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines[:-1])


def test_several_gzip_members(tmp_path: Path) -> None:
    """Archives written one after the other are one file, whatever the name says."""
    path = tmp_path / "a.log"
    path.write_bytes(gzip.compress(b"one\ntw") + gzip.compress(b"o\nthree"))
    assert list(Lines(LogFile(str(path), 0))) == [b"one\n", b"two\n", b"three"]


def test_a_cut_archive_keeps_its_lines_and_is_named(tmp_path: Path) -> None:
    """What was unpacked before the cut is read; the problem says what happened."""
    path = tmp_path / "a.log.gz"
    text = b"".join(b"line %d %d\n" % (number, number * 7919) for number in range(5_000))
    path.write_bytes(gzip.compress(text)[:-2_000])
    lines = Lines(LogFile(str(path), 0))
    read = b"".join(lines)
    assert read
    assert text.startswith(read)
    assert lines.problem is not None
    assert "gzip data ends early" in lines.problem


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    """A file that cannot be opened gives no lines and a problem."""
    lines = Lines(LogFile(str(tmp_path / "gone.log"), 0))
    assert list(lines) == []
    assert lines.problem == "cannot be read: No such file or directory"


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` is standard input, gzip or not."""
    for data in (b"one\ntwo\n", gzip.compress(b"one\ntwo\n")):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
        monkeypatch.setattr(sys, "stdin", stdin)
        (file,) = files.find(["-"])
        assert list(Lines(file)) == [b"one\n", b"two\n"]
