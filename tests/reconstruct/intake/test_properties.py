"""Whatever the bytes, however they come: the same spans, and a ledger that adds up.

Quick by default; `--hypothesis-profile=long` tries forty times as many.
"""

import bz2
import gzip
import json
import lzma
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine
from reconstruct.intake import files, reader, tables
from reconstruct.intake.files import lines as file_lines
from reconstruct.intake.wrappers import NAMES, NONE

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Fact = dict[str, Any]
Write = Callable[[Fact], Any]
Wrap = Callable[[bytes], bytes]

PROPERTY = settings(
    max_examples=settings.default.max_examples // 4,  # type: ignore[union-attr]  # always one
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
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


def prefix(text: bytes) -> Wrap:
    return lambda line: text + line


def an_object(key: str, end: str, **others: str) -> Wrap:
    return lambda line: json.dumps({key: line.decode() + end} | others).encode()


CLEAR: dict[str, Wrap] = {
    "docker": an_object("log", "\n", stream="stdout", time="2025-06-15T15:06:40.05Z"),
    "cri": prefix(b"2025-06-15T15:06:40.050123456Z stdout F "),
    "kubectl": prefix(b"[pod/env-0/env] "),
    "compose": prefix(b"env-1  | "),
    "journald": an_object("MESSAGE", "", __CURSOR="s=1", _PID="7"),
    "syslog": prefix(b"<14>Jun 15 15:06:40 n1 env[77]: "),
    "ray": prefix(b"\x1b[36m(EnvActor pid=77, ip=10.0.0.3)\x1b[0m "),
    "mpirun": prefix(b"[1,3]<stdout>:"),
    "torchrun": prefix(b"[default3]:"),
    "honcho": prefix(b"15:06:40 env.1 | "),
    "gym": prefix(b"(agent) (judge) "),
    "timestamps": prefix(b"2025-06-15T15:06:40.05Z "),
    "stern": an_object("message", "\n", podName="env-0", containerName="env"),
    "nothing": prefix(b""),
    "colour": prefix(b"\x1b[1m"),
}
VAGUE: dict[str, Wrap] = {
    "srun": prefix(b"3: "),
    "pdsh": prefix(b"n1: "),
    "parallel": prefix(b"env-3\t"),
    "stern": prefix(b"env-0 env "),
}


def test_every_wrapper_is_tried() -> None:
    assert {*CLEAR, *VAGUE} - {"nothing", "colour"} == {*NAMES} - {NONE}


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
keys = st.text("abc.é", min_size=1, max_size=4)


@st.composite
def facts(draw: st.DrawFn, number: int) -> Fact:
    start = draw(st.integers(0, 10**9))
    return {
        "number": number,
        "span_id": f"{draw(st.integers(1, 2**40)) * 1000 + number:016x}",
        "parent": draw(st.none() | st.integers(1, 2**60).map(lambda value: f"{value:016x}")),
        "name": draw(texts.filter(bool)),
        "kind": draw(st.sampled_from(KINDS)),
        "start": start,
        "end": start + draw(st.integers(0, 10**9)),
        "status": draw(st.sampled_from(("UNSET", "OK", "ERROR"))),
        "attributes": draw(st.dictionaries(keys, texts, max_size=3)),
    }


@st.composite
def several(draw: st.DrawFn, least: int = 1, most: int = 8) -> list[Fact]:
    return [draw(facts(number)) for number in range(draw(st.integers(least, most)))]


logs = st.lists(
    st.binary(max_size=30)
    | st.sampled_from(
        [
            b"\n",
            b"\r",
            b"{",
            b"}",
            b"[",
            b"]",
            b'{"',
            b'"a": 1,',
            b"\n",
            b"\n",
            b"\0",
            b"\xff",
            b"n1: ",
        ]
    )
    | st.builds(
        lambda fact, write, indent: json.dumps(write(fact), indent=indent).encode(),
        facts(1),
        st.sampled_from(list(FORMATS.values())),
        st.none() | st.just(1),
    ).flatmap(lambda line: st.just(line) | st.integers(0, len(line)).map(lambda at: line[:at])),
    max_size=14,
).map(b"".join)


class Result:
    """All rows of some files; reading checks that every line and byte is accounted for."""

    def __init__(self, folder: Path, contents: Mapping[str, bytes], **options: Any) -> None:
        for name, data in contents.items():
            (folder / name).write_bytes(data)
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in tables.TABLES}
        paths = [str(folder / name) for name in contents]
        for name, batch in reader.read(files.find(paths), **options):
            self.rows[name] += batch.to_pylist()
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


def expected(spans: Sequence[Fact]) -> list[tuple[Any, ...]]:
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
def read(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Result]:
    """Write files, one by its bytes alone, read them, check the ledger."""
    folder = tmp_path_factory.mktemp("properties")

    def read_them(data: bytes | Mapping[str, bytes], **options: Any) -> Result:
        contents = {"a.log": data} if isinstance(data, bytes) else data
        result = Result(folder, contents, **options)
        check_ledger(result, contents)
        return result

    return read_them


def is_packed(data: bytes) -> bool:
    return data.startswith((b"\x1f\x8b", b"BZ", b"\xfd7", b"\x28\xb5", b"\x50", b"\x51"))


@PROPERTY
@given(
    contents=st.dictionaries(
        st.sampled_from(["a.log", "b.log", "b.log.1", "c.jsonl", "d"]), logs, min_size=1
    ),
    wrapper=st.none() | st.sampled_from(NAMES),
)
def test_any_bytes_in_any_files(read: Any, contents: dict[str, bytes], wrapper: str | None) -> None:
    """Nothing raises; every line of every file has one class."""
    if not any(map(is_packed, contents.values())):
        read(contents, wrapper=wrapper)


@PROPERTY
@given(data=logs, size=st.integers(1, 200))
def test_any_split_into_chunks(read: Any, data: bytes, size: int) -> None:
    """However few bytes arrive at once, all rows of all tables are the same."""
    if is_packed(data):
        return
    whole = read(data)
    with mock.patch.object(file_lines, "_CHUNK_BYTES", size):
        assert read(data).everything() == whole.everything()


@PROPERTY
@given(spans=several(), names=st.data(), split=st.randoms(use_true_random=False))
def test_any_order_of_lines_and_files(read: Any, spans: list[Fact], names: Any, split: Any) -> None:
    """Lines in any order in any of several files are the same spans and classes."""
    lines = [
        json.dumps(FORMATS[names.draw(st.sampled_from(sorted(FORMATS)))](fact)).encode() + b"\n"
        for fact in spans
    ]
    lines += [b"INFO: ready\n", b"\n", b'{"no":"record"}\n', lines[0][:60] + b"\n"]
    in_order = read(b"".join(lines))
    assert in_order.facts() == expected(spans)
    split.shuffle(lines)
    files_: dict[str, bytes] = {"z.log": b"", "y.log": b"", "x.log": b""}
    for line in lines:
        files_[split.choice(sorted(files_))] += line
    shuffled = read(files_)
    assert shuffled.facts() == expected(spans)
    assert shuffled.classes == in_order.classes


@PROPERTY
@given(
    spans=several(),
    written_as=st.sampled_from(sorted(FORMATS)),
    outer=st.sampled_from([*CLEAR.items(), *VAGUE.items()]),
    inner=st.sampled_from(list(CLEAR.items())),
    is_forced=st.booleans(),
)
def test_any_wrapper_around_any_format(
    read: Any, spans: list[Fact], written_as: str, outer: Any, inner: Any, is_forced: bool
) -> None:
    """Two deep: the same spans, each line a clean one."""
    lines = [json.dumps(FORMATS[written_as](fact)).encode() for fact in spans]
    data = b"".join(outer[1](inner[1](line)) + b"\n" for line in lines)
    wrapper = outer[0] if is_forced and outer[0] in NAMES else None
    result = read(data, wrapper=wrapper)
    assert result.facts() == expected(spans)
    assert result.classes == {"span": len(spans)}


@PROPERTY
@given(
    spans=several(),
    written_as=st.sampled_from(sorted(set(FORMATS) - {"ours"})),
    wrap=st.sampled_from(list(CLEAR.values())),
    indent=st.sampled_from([1, 2, 4, "\t"]),
)
def test_records_over_several_lines(
    read: Any, spans: list[Fact], written_as: str, wrap: Wrap, indent: Any
) -> None:
    """Printed with an indent, each line wrapped by itself: the same spans."""
    lines = [
        wrap(line) + b"\n"
        for fact in spans
        for line in json.dumps(FORMATS[written_as](fact), indent=indent).encode().split(b"\n")
    ]
    result = read(b"INFO: first\n" + b"".join(lines))
    assert result.facts() == expected(spans)
    assert result.classes == Counter(
        {"span": len(spans), "joined": len(lines) - len(spans), "text": 1}
    )


@PROPERTY
@given(
    spans=several(), name=st.sampled_from(sorted(DOCUMENTS)), indent=st.sampled_from([1, 4, "\t"])
)
def test_a_document_pretty_or_compact(read: Any, spans: list[Fact], name: str, indent: Any) -> None:
    """One JSON value on one line or over many: the same rows but for their places."""

    def rows(result: Result) -> list[str]:
        place = dict.fromkeys(("line", "byte_offset", "recovered"))
        return sorted(repr(row | place) for row in result.rows[tables.SPAN_LINES])

    document = DOCUMENTS[name](spans)
    compact = read(json.dumps(document, separators=(",", ":")).encode())
    assert len(compact.rows[tables.SPAN_LINES]) == len(spans)
    if name != "trace events":
        assert compact.facts() == expected(spans)
    pretty = json.dumps(document, indent=indent).encode()
    for data in (pretty, b"\xef\xbb\xbf" + pretty + b"\r\n", pretty.replace(b"\n", b"\r\n")):
        result = read(data)
        assert rows(result) == rows(compact)
        assert not result.rows[tables.REJECTED_LINES]


@PROPERTY
@given(
    data=logs,
    pack=st.sampled_from([gzip.compress, zstd.compress, lzma.compress, bz2.compress]),
    cuts=st.lists(st.floats(0, 1), max_size=2),
)
def test_compressed_or_not(
    tmp_path_factory: Any, data: bytes, pack: Any, cuts: list[float]
) -> None:
    """Packed whole or in members cut anywhere: all rows of all tables are the same."""
    if is_packed(data):
        return
    folder = tmp_path_factory.mktemp("packed")
    plain_ = Result(folder, {"a.log": data}).everything()
    ends = sorted(int(len(data) * cut) for cut in cuts)
    pieces = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
    packed = Result(folder, {"a.log": b"".join(map(pack, pieces))})
    check_ledger(packed, {"a.log": data})
    for row in packed.rows[tables.FILES]:
        row["can_go_on"] = True
    result = packed.everything()
    for name in set(result) - {tables.FILES}:
        assert result[name] == plain_[name], name


COUNTED = (
    "spans",
    "traces",
    "rollouts",
    "log_records",
    "metric_points",
    "processes",
    "model_calls",
)


def others() -> Iterator[Any]:
    """Records that are no spans, of writers that number their lines and of some that do not."""
    for number in range(2):
        yield {"record_type": "log", "seq": number, "time_unix_nano": 5, "body": "b"}
        point = {"time_unix_nano": 7, "value": number}
        metric = {"name": f"m{number}", "data": {"data_points": [point]}}
        yield {"resource_metrics": [{"scope_metrics": [{"metrics": [metric]}]}]}
    yield {"record_type": "metric", "seq": 2, "name": "m", "time_unix_nano": 5}
    yield {"record_type": "process", "seq": 3, "state": "alive", "schema": 1, "time_unix_nano": 5}
    hello = {"message": "hello", "level": "info", "time": "2027-01-15T08:00:00Z"}
    yield hello | {"trace_id": TRACE, "span_id": TRACE[:16]}
    yield hello | {"time": "2027-01-15T08:00:00.000001Z"}
    for _ in range(3):  # as often as the other file has it
        yield {"body": "again", "severity_number": 9, "timestamp": "2027-01-15T08:00:00.123456Z"}
    yield {"model_call_id": "c1", "request": {}, "started_at": 1.8e9, "latency_ms": 2.5}


def fact(number: int) -> Fact:
    parent = None if number == 1 else f"{number - 1:016x}"
    times = {"start": number, "end": 100 - number, "status": "UNSET", "kind": "SERVER"}
    attributes = {"nemo.gym.rollout.id": "7-0"}
    ids = {"number": number, "span_id": f"{number:016x}", "parent": parent, "name": f"n{number}"}
    return ids | times | {"attributes": attributes}


def test_the_same_file_under_two_names(tmp_path: Path) -> None:
    """No relation gets a row more; each further line is `duplicate` where it is a record."""
    records = [write(fact(number)) for number, write in enumerate(FORMATS.values(), 1)]
    records += [zipkin(fact(8)) | {"shared": True}, *others()]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)

    def counts() -> tuple[dict[str, Any], Counter[str]]:
        with Engine.read([str(tmp_path)]) as engine:
            found = {
                name: engine.rows(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in COUNTED
            }
            found["shared"] = engine.rows("SELECT message FROM findings WHERE code = 'shared_id'")
            rows = engine.rows(
                "SELECT class, sum(lines)::INT AS n FROM line_classes GROUP BY class"
            )
            return found, Counter({row["class"]: row["n"] for row in rows})

    (tmp_path / "a.log").write_bytes(data + b"INFO: ready\n{}\n")
    once, classes = counts()
    assert once["spans"] == len(FORMATS) + 1
    assert once["log_records"] == 7
    (tmp_path / "b.log").write_bytes(data)
    twice, both = counts()
    assert twice == once
    assert both == classes + Counter(duplicate=len(records))


def test_two_processes_may_say_the_same(tmp_path: Path) -> None:
    """Without a number, a span, or a finer time than a millisecond nothing tells who said it."""
    record = {"message": "ready", "level": "info", "time": "2027-01-15T08:00:00.123Z"}
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(json.dumps(record) + "\n")
    with Engine.read([str(tmp_path)]) as engine:
        assert engine.rows("SELECT count(*) AS n FROM log_records") == [{"n": 2}]
