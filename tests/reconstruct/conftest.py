"""Small logs for the reader's tests: lines in our format, times as offsets from one instant."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine

BASE = 1_800_000_000_000_000_000
MS = 1_000_000
SECOND = 1_000 * MS


def hex_id(label: str, digits: int = 16) -> str:
    """Return the id that a label stands for; the same label, the same id."""
    return hashlib.sha256(label.encode()).hexdigest()[:digits]


class LogBuilder:
    """Collects records per file and writes them; `seq` counts per service instance."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, list[str]] = {}
        self._seq: Counter[str] = Counter()

    def raw(self, line: str, file: str = "a.log") -> None:
        self.files.setdefault(file, []).append(line)

    def _record(
        self,
        record_type: str,
        service: str,
        instance: str | None,
        body: dict[str, Any],
        file: str | None,
    ) -> dict[str, Any]:
        instance = instance or f"{service}-1"
        record: dict[str, Any] = {"record_type": record_type, "seq": self._seq[instance], **body}
        self._seq[instance] += 1
        attributes = {"service.name": service, "service.instance.id": instance}
        attributes |= record.pop("resource_attributes", {})
        record["resource"] = {"attributes": attributes}
        self.raw(json.dumps(record, separators=(",", ":")), file or f"{service}.log")
        return record

    def span(
        self,
        label: str,
        parent: str | None = None,
        start: int = 0,
        end: int | None = 100,
        *,
        trace: str = "t",
        name: str | None = None,
        service: str = "a",
        instance: str | None = None,
        kind: str = "INTERNAL",
        status: str = "UNSET",
        rollout: str | None = None,
        attributes: dict[str, Any] | None = None,
        flags: int = 0x103,
        file: str | None = None,
    ) -> dict[str, Any]:
        """Add a span line; with `end=None` a span_start line. Times are ns after `BASE`."""
        body: dict[str, Any] = {
            "trace_id": hex_id(trace, 32),
            "span_id": hex_id(f"{trace}/{label}"),
            "parent_span_id": None if parent is None else hex_id(f"{trace}/{parent}"),
            "name": name or label,
            "kind": kind,
            "start_time_unix_nano": BASE + start,
        }
        if end is not None:
            body["end_time_unix_nano"] = BASE + end
        body["flags"] = flags
        if end is not None:
            body["status"] = {"code": status}
        body["attributes"] = (attributes or {}) | (
            {} if rollout is None else {"nemo.gym.rollout.id": rollout}
        )
        return self._record(
            "span" if end is not None else "span_start", service, instance, body, file
        )

    def process(
        self,
        state: str,
        time: int,
        *,
        service: str = "a",
        instance: str | None = None,
        run: str = "run-1",
        pid: int = 7,
        server_type: str = "resources_servers",
        dropped: int = 0,
        host: str = "node-1",
        boot: str | None = None,
        file: str | None = None,
    ) -> dict[str, Any]:
        """Add a process line, `time` in ns after `BASE`."""
        body = {
            "state": state,
            "schema": 1,
            "time_unix_nano": BASE + time,
            "spans_written": 0,
            "records_dropped": dropped,
            "open_spans": 0,
            "resource_attributes": {
                "process.pid": pid,
                "host.name": host,
                **({} if boot is None else {"gymlog.boot.id": boot}),
                "nemo.run.id": run,
                "nemo.gym.server.name": service,
                "nemo.gym.server.type": server_type,
            },
        }
        return self._record("process", service, instance, body, file)

    def skip(self, count: int, *, service: str = "a", instance: str | None = None) -> None:
        """Lose the next `count` lines of a process."""
        self._seq[instance or f"{service}-1"] += count

    def write(self) -> Path:
        for file, lines in self.files.items():
            (self.folder / file).write_text("".join(f"{line}\n" for line in lines))
        return self.folder

    def engine(self) -> Engine:
        """Write the files and read them."""
        return Engine.read([str(self.write())])

    def findings(self, code: str) -> list[dict[str, Any]]:
        """Write, read, and return the findings of a code, from its own view: others take time."""
        with self.engine() as engine:
            rows = engine.rows(
                f"""
                FROM (
                    FROM _finding_{code}
                    UNION ALL BY NAME
                    SELECT NULL::VARCHAR AS cause, NULL::DOUBLE AS confidence
                    WHERE FALSE
                )
                ORDER BY file, line, message
                """
            )
        for row in rows:
            row["evidence"] = json.loads(row["evidence"])
        return rows


@pytest.fixture
def logs(tmp_path: Path) -> LogBuilder:
    """An empty set of log files."""
    folder = tmp_path / "logs"
    folder.mkdir()
    return LogBuilder(folder)
