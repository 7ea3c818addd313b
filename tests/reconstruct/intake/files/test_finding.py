"""Which files are read, each once, and what is said to be left out."""

import inspect
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from reconstruct.errors import InputError
from reconstruct.intake import files
from reconstruct.intake.files import Lines, Skipped


def names(*paths: str | Path) -> list[str]:
    return [Path(file.name).name for file in files.find([str(path) for path in paths])]


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_a_folder_is_every_log_below_it(tmp_path: Path) -> None:
    """Hidden files, hidden folders and files that are no text by name are left out."""
    touch(tmp_path, "b.log", "a.out", "run.log.1", "odd name", "deep/er/c.jsonl", "x.log.gz")
    touch(tmp_path, "y.log.ZST", "y.log.1.xz", "z.bz2")
    touch(tmp_path, ".hidden.log", ".store/d.log", "data.parquet", "plot.PNG", "model.pt.gz")
    assert names(tmp_path) == [
        *("a.out", "b.log", "odd name", "run.log.1", "x.log.gz"),
        *("y.log.1.xz", "y.log.ZST", "z.bz2", "c.jsonl"),
    ]


def test_what_is_left_out_of_a_folder_is_said_with_its_reason(tmp_path: Path) -> None:
    """How many of each kind, and the first of them; hidden files go without saying."""
    touch(tmp_path, "a.log", ".hidden.parquet", "one.parquet", "sub/two.parquet")
    touch(tmp_path, "all.tar.gz", "all.tgz", "b.log.lz4")
    (tmp_path / "linked").symlink_to(tmp_path / "sub")
    (tmp_path / "latest.log").symlink_to("gone.log")
    (tmp_path / "loop.log").symlink_to("loop.log")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket"))
        found = files.search([str(tmp_path)])
    assert [Path(file.name).name for file in found.files] == ["a.log"]
    assert {(one.reason, one.count, Path(one.example).name) for one in found.skipped} == {
        ("an archive of files (.tar); unpack it to read it", 1, "all.tar.gz"),
        ("an archive of files (.tgz); unpack it to read it", 1, "all.tgz"),
        ("compressed in a way that is not read (.lz4); unpack it to read it", 1, "b.log.lz4"),
        ("no text by its name (.parquet)", 2, "one.parquet"),
        ("a FIFO; name it to read it", 1, "pipe"),
        ("neither a file nor a folder", 1, "socket"),
        ("a link to a folder; name it to read it", 1, "linked"),
        ("a link to nothing", 2, "latest.log"),
    }


def test_globs(tmp_path: Path) -> None:
    """`*`, `?`, `[…]` and `**` work; a file with a glob's characters in its name is itself."""
    touch(tmp_path, "a1.log", "a2.log", "b1.log", "deep/a3.log", "deep/er/a4.log", "odd[1].log")
    touch(tmp_path, ".a5.log", ".deep/a6.log")
    assert names(tmp_path / "a*.log") == ["a1.log", "a2.log"]
    assert names(tmp_path / "?1.log") == ["a1.log", "b1.log"]
    assert names(tmp_path / "[ab]1.log") == ["a1.log", "b1.log"]
    assert names(tmp_path / "*" / "a*") == ["a3.log"]
    assert names(tmp_path / "**" / "a*.log") == ["a1.log", "a2.log", "a3.log", "a4.log"]
    assert names(tmp_path / "**" / "er" / "**") == ["a4.log"]
    assert names(tmp_path / "**" / "a4.log") == ["a4.log"]
    assert names(tmp_path / "**") == names(tmp_path)
    assert names(tmp_path / "d*") == ["a3.log", "a4.log"]
    assert names(tmp_path / ".a*") == [".a5.log"]
    assert names(tmp_path / "odd[1].log") == ["odd[1].log"]


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named as they were asked for, without `./` before them."""
    monkeypatch.chdir(tmp_path)
    touch(tmp_path, "a.log", "sub/b.log")
    for path in (".", "**/*.log", "./**"):
        assert [file.name for file in files.find([path])] == ["a.log", "sub/b.log"]
    assert [file.name for file in files.find(["sub/", "./a.log"])] == ["sub/b.log", "./a.log"]


def test_a_file_reached_twice_is_read_once(tmp_path: Path) -> None:
    """By name, by folder, by link: one file, under the first name, in a folder under its own."""
    log = tmp_path / "b.log"
    log.touch()
    (tmp_path / "a-link.log").symlink_to(log)
    (tmp_path / "hard.log").hardlink_to(log)
    assert names(log, tmp_path, log) == ["b.log"]
    assert names(tmp_path) == ["b.log"]
    assert names(tmp_path / "*") == ["b.log"]


def test_copies_are_not_taken_for_one_file(tmp_path: Path) -> None:
    """Equal bytes say nothing: what is a duplicate is decided line by line."""
    for name in ("x.log", "x.log.1"):
        (tmp_path / name).write_bytes(b"same\n")
    found = files.find([str(tmp_path)])
    assert [Path(file.name).name for file in found] == ["x.log.1", "x.log"]
    assert {file.rotation_set for file in found} == {str(tmp_path / "x.log")}


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    """In folders and in globs, two of them too, where every path would double."""
    touch(tmp_path, "a.log", "sub/b.log")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "sub" / "loop").symlink_to(tmp_path)
    assert names(tmp_path) == ["a.log", "b.log"]
    assert names(tmp_path / "**" / "*.log") == ["a.log", "b.log"]
    assert names(tmp_path / "*") == ["a.log", "b.log"]
    assert names(tmp_path / "loop") == ["a.log", "b.log"]


def test_a_very_deep_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeper than a recursion may be."""
    monkeypatch.chdir(tmp_path)
    touch(Path("/".join("d" * 400)), "a.log")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 200)
    try:
        assert names(".") == ["a.log"]
        assert names("**/a.log") == ["a.log"]
    finally:
        sys.setrecursionlimit(before)


def test_odd_names(tmp_path: Path) -> None:
    """Line feeds, quotes, dashes, bytes that are no UTF-8: all are read, each has its own name."""
    folder = os.fsencode(tmp_path)
    odd = [b"new\nline.log", b"quo'te\".log", b"-", b"\xff.log", rb"\xff.log", "ü.log".encode()]
    for name in odd:
        Path(os.fsdecode(folder + b"/" + name)).write_bytes(name + b"\n")
    found = files.find([str(tmp_path)])
    shown = {Path(file.name).name: b"".join(Lines(file)) for file in found}
    assert len(shown) == len(odd)
    for name in shown:
        assert name.encode().decode() == name
    assert shown["new\nline.log"] == b"new\nline.log\n"
    assert {shown[r"\xff.log"], shown[r"\xff.log (2)"]} == {b"\xff.log\n", b"\\xff.log\n"}


def test_a_file_called_dash_is_not_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is asked for as `-`."""
    monkeypatch.chdir(tmp_path)
    Path("-").write_bytes(b"in the file\n")
    for path in (".", "*", "./-"):
        (file,) = files.find([path])
        assert (file.name, list(Lines(file))) == ("./-", [b"in the file\n"])


@pytest.mark.parametrize("path", ["none.log", "no*.log", "missing/deep.log", "**/no"])
def test_nothing_found_says_where_it_looked(tmp_path: Path, path: str) -> None:
    """The error names what was asked for, the folder looked in and what to pass."""
    touch(tmp_path, "a.log")
    asked = f"{tmp_path}/{path}"
    with pytest.raises(InputError, match="pass a folder, a glob or '-' for stdin") as error:
        files.find([str(tmp_path / "a.log"), asked])
    assert f"no log files match '{asked}' (looked in {tmp_path})" in str(error.value)


def test_nothing_but_files_to_leave_out_says_why(tmp_path: Path) -> None:
    """One reason will do."""
    touch(tmp_path, "a.parquet")
    with pytest.raises(InputError, match=re.escape("a.parquet: no text by its name (.parquet)); ")):
        files.find([str(tmp_path)])


@pytest.mark.parametrize("paths", [[], [""], ["a\0b"], ["x" * 5_000 + "*"]])
def test_paths_that_are_none(paths: list[str]) -> None:
    """An empty list, an empty name, names that no system has."""
    with pytest.raises(InputError):
        files.find(paths)


def test_what_cannot_be_read_does_not_hide_the_rest(tmp_path: Path, as_nobody: Any) -> None:
    """A file and a folder without permission are files with a problem; so is a named dead link."""
    touch(tmp_path, "logs/a.log", "logs/b.log", "logs/closed/c.log", "logs/no entry/d.log")
    (tmp_path / "logs" / "b.log").chmod(0)
    (tmp_path / "logs" / "closed").chmod(0)
    (tmp_path / "logs" / "no entry").chmod(0o400)
    (tmp_path / "dead.log").symlink_to("gone.log")
    denied = "cannot be read: Permission denied"
    with as_nobody():
        problems = {}
        for file in files.find(["logs", "dead.log", "logs/closed/c.log", "**/*.log"]):
            lines = Lines(file)
            assert list(lines) == []
            problems[file.name] = lines.problem
    assert problems == {
        "logs/a.log": None,
        "logs/b.log": denied,
        "logs/closed": denied,
        "logs/closed/c.log": denied,
        "logs/no entry/d.log": denied,
        "dead.log": "cannot be read: No such file or directory",
    }


def test_a_folder_that_cannot_be_listed_says_so(tmp_path: Path, as_nobody: Any) -> None:
    """Also where it is all that was asked for."""
    (tmp_path / "closed").mkdir(0)
    with as_nobody():
        for path in ("closed", "closed/*.log", "closed/a.log"):
            (file,) = files.find([path])
            lines = Lines(file)
            assert list(lines) == []
            assert lines.problem == "cannot be read: Permission denied"


def test_a_file_is_known_again(tmp_path: Path) -> None:
    """By device and inode, under another name too; what cannot be read twice has no identity."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one\n")
    (before,) = files.find([str(path)])
    (after,) = files.find([str(path.rename(tmp_path / "a.log.1"))])
    assert before.identity == after.identity is not None
    assert (before.size, before.mtime_ns) == (4, path.parent.joinpath("a.log.1").stat().st_mtime_ns)
    os.mkfifo(tmp_path / "pipe")
    (pipe,) = files.find([str(tmp_path / "pipe")])
    assert (pipe.identity, pipe.size) == (None, 0)
    (stdin,) = files.find(["-", "-"])
    assert (stdin.identity, stdin.name) == (None, files.STDIN)


def test_reasons_stay_few_however_much_is_left_out(tmp_path: Path) -> None:
    """A thousand files of one kind are one entry."""
    touch(tmp_path, "a.log", *(f"{number}.npy" for number in range(1_000)))
    (skipped,) = files.search([str(tmp_path)]).skipped
    assert skipped == Skipped("no text by its name (.npy)", 1_000, str(tmp_path / "0.npy"))
