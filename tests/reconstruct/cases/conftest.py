"""Span lines of a home-made writer and of ours, log files of them, and what the reader finds."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconstruct.cli import main
from reconstruct.engine import Engine

Record = dict[str, Any]

TRACE = "0123456789abcdef" * 2
MS = 1_000_000
NOON = 1_748_779_200_000 * MS  # 2025-06-01T12:00:00Z


def time_text(milliseconds: int) -> str:
    return datetime.fromtimestamp(1_748_779_200 + milliseconds / 1000, UTC).isoformat()


def plain_span(number: int, parent: int | None = None, **more: Any) -> Record:
    return {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": None if parent is None else f"{parent:016x}",
        "name": f"span {number}",
        "kind": "INTERNAL",
        "start_time": "2025-06-01T12:00:00.000000000Z",
        "end_time": "2025-06-01T12:00:00.001000000Z",
        "status": {"status_code": "UNSET"},
        "attributes": {},
        "resource": {"attributes": {"service.name": "gym/model"}},
    } | more


def compact(record: Record) -> bytes:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode()


def plain_line(number: int, parent: int | None = None, **more: Any) -> bytes:
    return compact(plain_span(number, parent, **more))


def our_line(number: int, attributes: Record) -> bytes:
    return compact(
        {
            "record_type": "span",
            "seq": number,
            "trace_id": TRACE,
            "span_id": f"{number:016x}",
            "parent_span_id": None,
            "name": f"span {number}",
            "kind": "INTERNAL",
            "start_time_unix_nano": NOON,
            "end_time_unix_nano": NOON + MS,
            "flags": 257,
            "status": {"code": "UNSET"},
            "attributes": attributes,
            "resource": {"attributes": {"service.name": "gym/model", "service.instance.id": "m-1"}},
        }
    )


@pytest.fixture(scope="session")
def at() -> Callable[[int], str]:
    """The text of a time in ms after noon."""
    return time_text


@pytest.fixture(scope="session")
def span() -> Callable[..., Record]:
    """A record as home-made writers have it; it lasts a millisecond from noon on."""
    return plain_span


@pytest.fixture(scope="session")
def line() -> Callable[..., bytes]:
    """The line of such a record."""
    return plain_line


@pytest.fixture(scope="session")
def ours() -> Callable[..., bytes]:
    """The same as `gymlog` writes it."""
    return our_line


@pytest.fixture(scope="session")
def joined() -> Callable[..., bytes]:
    """The contents of a file of lines."""
    return lambda *lines: b"".join(each + b"\n" for each in lines)


class Done(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str


@pytest.fixture
def reconstruct(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """Run a command in the folder with the logs."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = main(list(arguments))
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, bytes]], Path]:
    """Write files by their names below the current folder; return that folder."""
    monkeypatch.chdir(tmp_path)

    def write_files(files: dict[str, bytes]) -> Path:
        for name, data in files.items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_bytes(data)
        return tmp_path

    return write_files


class Found:
    """What reading the logs gave."""

    def __init__(self, engine: Engine) -> None:
        self.rows = engine.rows

    def names(self) -> list[str]:
        return [row["name"] for row in self.rows("SELECT name FROM spans ORDER BY ALL")]

    def classes(self) -> Counter[str]:
        rows = self.rows("SELECT class, sum(lines)::BIGINT AS n FROM line_classes GROUP BY class")
        return Counter({row["class"]: row["n"] for row in rows})

    def rejected(self, *of: str) -> list[tuple[str, int, str]]:
        """Return class, line and reason; of these classes, or of all."""
        rows = self.rows("SELECT * FROM rejected_lines ORDER BY file, line")
        return [(r["class"], r["line"], r["reason"]) for r in rows if not of or r["class"] in of]

    def findings(self, code: str) -> list[Record]:
        return self.rows("SELECT * FROM findings WHERE code = $1 ORDER BY message", [code])


@pytest.fixture(scope="session")
def read() -> Callable[..., AbstractContextManager[Found]]:
    """Read the current folder, or the files named."""

    @contextmanager
    def read_them(*paths: str) -> Iterator[Found]:
        with Engine.read(paths or ["."]) as engine:
            yield Found(engine)

    return read_them
