"""The store: what is read once is found again, and what is new is read from where it begins."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine
from reconstruct.intake import files, tables
from reconstruct.intake.files import Lines
from reconstruct.store import building, location


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Where reading began in each file, by its name; empty it to look anew."""
    begun: dict[str, list[int]] = {}
    blocks = Lines.blocks

    def counted(self: Lines) -> Iterator[bytes]:
        file = self._file
        begun.setdefault(Path(file.name).name, []).append(file.start_offset)
        return blocks(self)

    monkeypatch.setattr(Lines, "blocks", counted)
    return begun


def contents(engine: Engine) -> dict[str, list[Any]]:
    """Everything that the relations say, but for the numbers of rows."""
    relations = ("spans", "traces", "log_records", "line_classes", "rejected_lines", "findings")
    shown = {"spans": "* EXCLUDE (rowid)"}
    return {
        relation: engine.rows(f"SELECT {shown.get(relation, '*')} FROM {relation} ORDER BY ALL")
        for relation in relations
    } | {"files": engine.rows("SELECT file, bytes, lines, problem FROM _files ORDER BY ALL")}


def same_as_read_anew(folder: Path, store: Path) -> None:
    """What the store says is what the logs say."""
    with Engine.read([str(folder)], store=store) as kept, Engine.read([str(folder)]) as anew:
        assert not kept.notices
        assert contents(kept) == contents(anew)


@pytest.fixture
def folder(logs: Any) -> Path:
    """Two files: spans among text, a torn line, one read twice."""
    logs.process("started", 0)
    logs.span("root", start=0, end=100)
    logs.raw("INFO: ready")
    logs.raw('{"record_type":"span","seq":7,"trace_id":"0af7')
    logs.span("other", "root", 10, 20, service="b")
    logs.raw(logs.files["b.log"][0], "b.log")
    return logs.write()


def test_nothing_is_read_twice(folder: Path, store: Path, read_bytes: dict[str, list[int]]) -> None:
    """The second engine over the same files reads none of them, and says the same."""
    same_as_read_anew(folder, store)
    read_bytes.clear()
    with Engine.read([str(folder)], store=store) as engine:
        assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 2}]
    assert read_bytes == {}


def test_a_file_that_grew(
    folder: Path, store: Path, logs: Any, read_bytes: dict[str, list[int]]
) -> None:
    """It is read from where it ended; duplicates and parents are found across the two parts."""
    Engine.read([str(folder)], store=store).close()
    size = (folder / "a.log").stat().st_size
    before = len(logs.files["a.log"])
    logs.span("child", "other", 12, 15)
    logs.raw(logs.files["a.log"][1])
    with (folder / "a.log").open("a") as file:
        file.writelines(f"{line}\n" for line in logs.files["a.log"][before:])
    read_bytes.clear()
    Engine.read([str(folder)], store=store).close()
    assert read_bytes == {"a.log": [size]}
    same_as_read_anew(folder, store)


def test_a_file_that_ended_within_a_line(folder: Path, store: Path) -> None:
    """The line is read again when it is whole."""
    path = folder / "a.log"
    text = path.read_text()
    path.write_text(text[:-1])
    same_as_read_anew(folder, store)
    path.write_text(text + "INFO: more\n")
    same_as_read_anew(folder, store)
    lines = '{\n  "record_type": "process",\n'
    path.write_text(text + "INFO: more\n" + lines)
    same_as_read_anew(folder, store)
    path.write_text(text + "INFO: more\n" + lines + '  "seq": 9\n}\n')
    same_as_read_anew(folder, store)


def test_rotation(folder: Path, store: Path, logs: Any, read_bytes: dict[str, list[int]]) -> None:
    """A renamed file keeps its rows under the new name; the new one is read."""
    Engine.read([str(folder)], store=store).close()
    (folder / "a.log").rename(folder / "a.log.1")
    (folder / "b.log").rename(folder / "a.log")
    (folder / "b.log").write_text("INFO: new\n")
    read_bytes.clear()
    Engine.read([str(folder)], store=store).close()
    assert read_bytes == {"b.log": [0]}
    same_as_read_anew(folder, store)


def test_a_rotation_within_a_line(folder: Path, store: Path) -> None:
    """A line that a runtime has cut begins in the older file and ends in the new one."""
    stamp = "2025-06-15T15:06:40.05Z stdout"
    [line] = [line for line in (folder / "b.log").read_text().splitlines() if "other" in line][:1]
    current = folder / "pod.log"
    current.write_text(f"{stamp} F hello\n{stamp} P {line[:99]}\n")
    Engine.read([str(folder)], store=store).close()
    current.rename(folder / "pod.log.1")
    current.write_text("")
    same_as_read_anew(folder, store)
    current.write_text(f"{stamp} F {line[99:]}\n{stamp} P {line[:50]}\n")
    same_as_read_anew(folder, store)
    (folder / "pod.log.1").rename(folder / "pod.log.2")
    current.rename(folder / "pod.log.1")
    current.write_text(f"{stamp} F {line[50:]}\n")
    same_as_read_anew(folder, store)


@pytest.mark.parametrize(
    "text",
    ["", "INFO: short\n", "INFO: another beginning\n" * 1000],
    ids=["empty", "short", "long"],
)
def test_a_file_that_was_written_anew(folder: Path, store: Path, text: str) -> None:
    """Truncated, or truncated and then written past its old size: its old rows are gone."""
    Engine.read([str(folder)], store=store).close()
    with (folder / "a.log").open("r+") as file:
        file.truncate()
        file.write(text)
    same_as_read_anew(folder, store)


def test_files_that_come_and_go(folder: Path, store: Path) -> None:
    """What is not there is not in the answers."""
    Engine.read([str(folder)], store=store).close()
    (folder / "b.log").unlink()
    (folder / "c.log").write_text("INFO: c\n")
    same_as_read_anew(folder, store)


def test_a_crash_while_storing(folder: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old store stays as it was, and nothing half-done is left."""
    with Engine.read([str(folder)], store=store) as engine:
        before = contents(engine)
    (folder / "c.log").write_text("INFO: c\n")

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(building.inputs, "remember", crash)
        with pytest.raises(KeyboardInterrupt):
            Engine.read([str(folder)], store=store)
    assert [path.name for path in store.rglob("*.*")] == [".gitignore", "logs.duckdb"]
    (folder / "c.log").unlink()
    with Engine.read([str(folder)], store=store) as engine:
        assert contents(engine) == before


def test_a_killed_process_leaves_the_store(folder: Path, store: Path) -> None:
    """Killed in the middle of a write: the old one is whole and is used."""
    Engine.read([str(folder)], store=store).close()
    (folder / "c.log").write_text("INFO: c\n")
    program = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from reconstruct.engine import Engine\n"
        "from reconstruct.store import building\n"
        "building.inputs.remember = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Engine.read([sys.argv[1]], store=Path(sys.argv[2]))\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(folder), str(store)], check=False)
    assert killed.returncode == -9
    same_as_read_anew(folder, store)
    (left,) = store.rglob("*.new")
    os.utime(left, (0, 0))
    (folder / "c.log").write_text("INFO: more\n")
    same_as_read_anew(folder, store)
    assert not left.exists()


def test_a_store_that_is_none(folder: Path, store: Path) -> None:
    """Garbage in its place, or one of another version, is made anew."""
    path = location.database(store, [str(folder)], None)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"garbage")
    with Engine.read([str(folder)], store=store) as engine:
        assert engine.notices == [f"the store in {store} is of another version; made anew"]
    same_as_read_anew(folder, store)


def test_no_right_to_write(folder: Path, tmp_path: Path) -> None:
    """The answer comes without a store, and one sentence says why."""
    (tmp_path / "file").write_text("")
    with Engine.read([str(folder)], store=tmp_path / "file" / "store") as engine:
        assert engine.rows("SELECT count(*) AS n FROM spans") == [{"n": 2}]
        (notice,) = engine.notices
    assert notice.startswith(f"no store in {tmp_path / 'file' / 'store'}: ")


def test_two_at_once(folder: Path, store: Path) -> None:
    """While one engine answers from the store, another one renews it, and a third opens it."""
    with Engine.read([str(folder)], store=store) as first:
        before = contents(first)
        (folder / "c.log").write_text("INFO: c\n")
        with (
            Engine.read([str(folder)], store=store) as second,
            Engine.read([str(folder)], store=store, memory_limit="300MB") as third,
        ):
            assert contents(first) == before
            assert contents(second) == contents(third)
            assert contents(second) != before


def test_where_a_store_lies(tmp_path: Path) -> None:
    """Beside the logs, when they are large and lie below one folder."""
    (tmp_path / "below").mkdir()
    names = [tmp_path / "a.log", tmp_path / "below" / "b.log"]
    for name in names:
        with name.open("wb") as file:
            file.truncate(location.WORTH_BYTES)
    found = files.find([str(name) for name in names])
    assert location.beside(found) == tmp_path / ".reconstruct"
    assert location.beside(found[1:]) == tmp_path / "below" / ".reconstruct"
    os.truncate(names[0], 10)
    assert location.beside(files.find([str(names[0])])) is None
    (tmp_path / "other").mkdir()
    names[0].rename(tmp_path / "other" / "a.log")
    assert location.beside(files.find([str(tmp_path)])) is None


def test_a_folder_that_was_there_keeps_what_is_in_it(folder: Path, tmp_path: Path) -> None:
    """A store may be put anywhere, also where there is something else."""
    there = {
        tmp_path / ".gitignore": "*.tmp\n",
        **{tmp_path / f"mine {number}" / "logs.duckdb": "mine" for number in range(6)},
        tmp_path / "kept" / "draft.new": "mine",
    }
    for path, text in there.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (0, 0))
    Engine.read([str(folder)], store=tmp_path).close()
    assert {path: path.read_text() for path in there} == there


def test_every_base_table_names_its_file() -> None:
    """What the store deletes and renames by; owners may write into any."""
    assert {name for name, columns in tables.TABLES.items() if "file" not in dict(columns)} == {
        tables.OWNERS
    }
