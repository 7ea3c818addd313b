"""Facts of a span, the formats to write them in, and all rows that reading files gives."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconstruct.intake import files, tables

Fact = dict[str, Any]
Write = Callable[[Fact], Any]

TRACE = "0af7651916cd43dd8448eb211c80319c"
KINDS = ("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
BEGIN_US = 1_800_000_000_000_000
RECORDS = {"span", "span_start", "log", "metric", "process", "model_call", "joined"}


def iso(microseconds: int) -> str:
    seconds, rest = divmod(BEGIN_US + microseconds, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:06}Z"


def nano(microseconds: int) -> int:
    return (BEGIN_US + microseconds) * 1000


def ours(fact: Fact) -> Any:
    return {
        "record_type": "span",
        "seq": fact["number"],
        "trace_id": TRACE,
        "span_id": fact["span_id"],
        "parent_span_id": fact["parent"],
        "name": fact["name"],
        "kind": fact["kind"],
        "start_time_unix_nano": nano(fact["start"]),
        "end_time_unix_nano": nano(fact["end"]),
        "flags": 257,
        "status": {"code": fact["status"]},
        "attributes": fact["attributes"],
        "resource": {"attributes": {"service.name": "s"}},
    }


def plain(fact: Fact) -> Any:
    names = ("record_type", "seq", "flags", "start_time_unix_nano", "end_time_unix_nano")
    record = {name: value for name, value in ours(fact).items() if name not in names}
    return record | {"start_time": iso(fact["start"]), "end_time": iso(fact["end"])}


def console(fact: Fact) -> Any:
    parent = fact["parent"]
    return {
        "name": fact["name"],
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{fact['span_id']}"},
        "kind": f"SpanKind.{fact['kind']}",
        "parent_id": None if parent is None else f"0x{parent}",
        "start_time": iso(fact["start"]),
        "end_time": iso(fact["end"]),
        "status": {"status_code": fact["status"]},
        "attributes": fact["attributes"],
        "resource": {"attributes": {"service.name": "s"}},
    }


def otlp(fact: Fact) -> Any:
    span = {
        "traceId": TRACE,
        "spanId": fact["span_id"],
        "parentSpanId": fact["parent"] or "",
        "name": fact["name"],
        "kind": KINDS.index(fact["kind"]) + 1,
        "startTimeUnixNano": str(nano(fact["start"])),
        "endTimeUnixNano": str(nano(fact["end"])),
        "status": {"code": ("UNSET", "OK", "ERROR").index(fact["status"])},
        "attributes": [
            {"key": key, "value": {"stringValue": value}}
            for key, value in fact["attributes"].items()
        ],
    }
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]}


def go(fact: Fact) -> Any:
    return {
        "Name": fact["name"],
        "SpanContext": {"TraceID": TRACE, "SpanID": fact["span_id"], "TraceFlags": "01"},
        "Parent": {"TraceID": TRACE, "SpanID": fact["parent"] or "0" * 16, "Remote": False},
        "SpanKind": KINDS.index(fact["kind"]) + 1,
        "StartTime": iso(fact["start"]),
        "EndTime": iso(fact["end"]),
        "Attributes": [
            {"Key": key, "Value": {"Type": "STRING", "Value": value}}
            for key, value in fact["attributes"].items()
        ],
        "Status": {"Code": fact["status"].capitalize()},
        "Resource": [{"Key": "service.name", "Value": {"Type": "STRING", "Value": "s"}}],
    }


def zipkin(fact: Fact) -> Any:
    kind = {} if fact["kind"] == "INTERNAL" else {"kind": fact["kind"]}
    status = {} if fact["status"] == "UNSET" else {"otel.status_code": fact["status"]}
    return {
        "traceId": TRACE,
        "id": fact["span_id"],
        "parentId": fact["parent"],
        "name": fact["name"],
        "timestamp": BEGIN_US + fact["start"],
        "duration": fact["end"] - fact["start"],
        "localEndpoint": {"serviceName": "s"},
        "tags": fact["attributes"] | status,
    } | kind


def jaeger(fact: Fact) -> Any:
    tags = fact["attributes"] | {"span.kind": fact["kind"].lower()}
    if fact["status"] != "UNSET":
        tags |= {"otel.status_code": fact["status"]}
    parent = {"refType": "CHILD_OF", "traceID": TRACE, "spanID": fact["parent"]}
    return {
        "traceID": TRACE,
        "spanID": fact["span_id"].lstrip("0"),
        "operationName": fact["name"],
        "references": [] if fact["parent"] is None else [parent],
        "startTime": BEGIN_US + fact["start"],
        "duration": fact["end"] - fact["start"],
        "tags": [{"key": key, "type": "string", "value": value} for key, value in tags.items()],
        "process": {"serviceName": "s", "tags": []},
    }


FORMATS: dict[str, Write] = {
    write.__name__: write for write in (ours, plain, console, otlp, go, zipkin, jaeger)
}


@pytest.fixture(scope="session")
def formats() -> dict[str, Write]:
    """How each format writes a span, by the format's name."""
    return FORMATS


DOCUMENTS: dict[str, Callable[[list[Fact]], Any]] = {
    "zipkin": lambda facts: [zipkin(fact) for fact in facts],
    "zipkin traces": lambda facts: [[zipkin(fact)] for fact in facts],
    "jaeger": lambda facts: {
        "data": [
            {"traceID": TRACE, "spans": [jaeger(fact) for fact in facts], "processes": {}},
            {"traceID": TRACE, "spans": [], "processes": {}},
        ],
        "total": 0,
    },
    "otlp": lambda facts: {
        "resourceSpans": [each for fact in facts for each in otlp(fact)["resourceSpans"]]
    },
    "a list of otlp": lambda facts: [otlp(fact) for fact in facts],
    "a list of ours": lambda facts: [ours(fact) for fact in facts],
    "a list of console": lambda facts: [console(fact) for fact in facts],
    "trace events": lambda facts: {
        "displayTimeUnit": "ms",
        "traceEvents": [
            {
                "ph": "X",
                "name": fact["name"],
                "pid": 1,
                "tid": fact["number"],
                "ts": BEGIN_US + fact["start"],
                "dur": fact["end"] - fact["start"],
                "args": fact["attributes"],
            }
            for fact in facts
        ],
    },
}


@pytest.fixture(scope="session")
def documents() -> dict[str, Callable[[list[Fact]], Any]]:
    """How spans are written into one JSON value, by what that is."""
    return DOCUMENTS


class Result:
    """All rows of some files; reading checks that every line and byte is accounted for."""

    def __init__(
        self, contents: Mapping[str, bytes], rows: dict[str, list[dict[str, Any]]]
    ) -> None:
        self.rows = rows
        for row in (row for rows in self.rows.values() for row in rows):
            row["file"] = Path(row["file"]).name
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in contents}
        for row in self.rows[tables.CLASS_COUNTS]:
            self.counts[row["file"]][row["class"]] += row["lines"]

    @property
    def classes(self) -> Counter[str]:
        return sum(self.counts.values(), Counter())

    def facts(self) -> list[tuple[Any, ...]]:
        """What each format can say of a span, wherever it lies."""
        return sorted(
            (
                row["trace_id"],
                row["span_id"],
                row["parent_span_id"] or "",
                row["name"],
                row["kind"],
                row["start_time_unix_nano"],
                row["end_time_unix_nano"],
                row["status_code"],
                row["service_name"],
                json.dumps(json.loads(row["attributes"]), sort_keys=True),
            )
            for row in self.rows[tables.SPAN_LINES]
        )

    def everything(self) -> dict[str, list[str]]:
        rows = {name: sorted(map(repr, rows)) for name, rows in self.rows.items()}
        return rows | {tables.CLASS_COUNTS: sorted(map(repr, self.counts.items()))}


def facts_of(spans: Sequence[Fact]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            TRACE,
            fact["span_id"],
            fact["parent"] or "",
            fact["name"],
            fact["kind"],
            nano(fact["start"]),
            nano(fact["end"]),
            fact["status"],
            "s",
            json.dumps(fact["attributes"], sort_keys=True),
        )
        for fact in spans
    )


def check_ledger(result: Result, contents: Mapping[str, bytes]) -> None:
    """Each physical line of each file has exactly one class; lines and bytes add up."""
    assert {row["file"] for row in result.rows[tables.FILES]} == {*contents}
    for row in result.rows[tables.FILES]:
        data = contents[row["file"]]
        lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
        assert (row["lines"], row["bytes"], row["pending_bytes"]) == (lines, len(data), 0)
        assert result.counts[row["file"]].total() == lines
    rejected = [(row["file"], row["line"]) for row in result.rows[tables.REJECTED_LINES]]
    assert len(rejected) == len(set(rejected))
    for name, counts in result.counts.items():
        others = sum(lines for each, lines in counts.items() if each not in RECORDS)
        assert others == sum(file == name for file, _ in rejected)
    for name, rows in result.rows.items():
        if name in (tables.FILES, tables.CLASS_COUNTS):
            continue
        for row in rows:
            pieces = contents[row["file"]].split(b"\n")
            assert 1 <= row["line"] <= len(pieces)
            if name == tables.REJECTED_LINES:
                begin = sum(len(piece) + 1 for piece in pieces[: row["line"] - 1])
                assert row["byte_offset"] == begin
            elif not row["recovered"]:
                assert (row["file"], row["line"]) not in rejected


@pytest.fixture(scope="module")
def read(
    tmp_path_factory: pytest.TempPathFactory, read_rows: Callable[..., Any]
) -> Callable[..., Result]:
    """Write files, one by its bytes alone, read them, check the ledger.

    `stored` is how the one file's bytes lie on disk, when that is not what reading it gives.
    """
    folder = tmp_path_factory.mktemp("properties")

    def read_them(
        data: bytes | Mapping[str, bytes], *, stored: bytes | None = None, **options: Any
    ) -> Result:
        contents = {"a.log": data} if isinstance(data, bytes) else data
        on_disk = contents if stored is None else {"a.log": stored}
        for name, content in on_disk.items():
            (folder / name).write_bytes(content)
        paths = [str(folder / name) for name in on_disk]
        result = Result(on_disk, read_rows(files.find(paths), **options))
        check_ledger(result, contents)
        return result

    return read_them


@pytest.fixture(scope="session")
def expected() -> Callable[[Sequence[Fact]], list[tuple[Any, ...]]]:
    """What `Result.facts` should be for spans written in any format."""
    return facts_of
