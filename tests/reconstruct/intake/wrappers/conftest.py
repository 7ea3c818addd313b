"""Payload lines to wrap, and what reading files full of them gives."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconstruct.intake import files, tables

TRACE = "0123456789abcdef" * 2


class Result:
    """The rows of all files, their classes, and what each file is wrapped in."""

    def __init__(self, folder: Path, rows: dict[str, list[dict[str, Any]]]) -> None:
        for row in (row for name in rows for row in rows[name]):
            row["file"] = row["file"].removeprefix(f"{folder}/")
        self.spans = sorted(rows[tables.SPAN_LINES], key=lambda row: (row["file"], row["line"]))
        self.rejected = rows[tables.REJECTED_LINES]
        self.classes: Counter[str] = Counter()
        self.by_file: dict[str, Counter[str]] = {}
        for row in rows[tables.CLASS_COUNTS]:
            self.classes[row["class"]] += row["lines"]
            self.by_file.setdefault(row["file"], Counter())[row["class"]] += row["lines"]
        self.wrappers = {row["file"]: row["wrapper"] for row in rows[tables.FILES]}
        for row in rows[tables.FILES]:
            assert sum(self.by_file.get(row["file"], Counter()).values()) == row["lines"]

    @property
    def names(self) -> list[str]:
        return [row["name"] for row in self.spans]

    @property
    def wrapper(self) -> str | None:
        (wrapper,) = self.wrappers.values()
        return wrapper

    def reason(self, number: int) -> str:
        return next(row["reason"] for row in self.rejected if row["line"] == number)


class Payloads:
    """Records as lines: ours, and those of a writer that says nothing of its process."""

    def __init__(self, span: Callable[..., dict[str, Any]]) -> None:
        self._span = span

    def ours(self, name: str, number: int = 1, **more: Any) -> bytes:
        return self.compact(self._span(name, number, **more))

    def bare(self, name: str, number: int = 1, **more: Any) -> bytes:
        return self.compact(self._bare(name, number, **more))

    def pretty(self, name: str, number: int = 1, **more: Any) -> list[bytes]:
        return json.dumps(self._bare(name, number, **more), indent=4).encode().split(b"\n")

    def _bare(self, name: str, number: int, **more: Any) -> dict[str, Any]:
        return {
            "name": name,
            "trace_id": TRACE,
            "span_id": f"{number:016x}",
            "start_time": "2026-11-30T02:40:55.480353Z",
            "end_time": "2026-11-30T02:40:55.880838Z",
            "attributes": {"deep": {"list": [1, 2]}},
            **more,
        }

    @staticmethod
    def compact(value: object) -> bytes:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.fixture
def payloads(span: Callable[..., dict[str, Any]]) -> Payloads:
    """Records to put into wrappers."""
    return Payloads(span)


@pytest.fixture
def read(tmp_path: Path, read_rows: Callable[..., Any]) -> Callable[..., Result]:
    """Write lines, or whole files by name, and read them; `wrapper` as on the command line."""

    def read_them(data: bytes | Mapping[str, bytes], wrapper: str | None = None) -> Result:
        contents = {"a.log": data} if isinstance(data, bytes) else data
        for name, content in contents.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        paths = [str(tmp_path / name) for name in contents]
        return Result(tmp_path, read_rows(files.find(paths), wrapper=wrapper))

    return read_them


@pytest.fixture
def origin_of() -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What a row tells of its writer: server, host, pid."""
    return lambda row: (row["server_name"], row["host_name"], row["process_pid"])
