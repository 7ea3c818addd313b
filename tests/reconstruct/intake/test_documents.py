"""Files that are JSON documents: every element is read, every line has one class."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine
from reconstruct.intake import documents, files, reader, tables

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


class Result:
    """What reading one file gave."""

    def __init__(self, folder: Path, data: bytes | str) -> None:
        path = folder / "file.json"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in tables.TABLES}
        for name, batch in reader.read(files.find([str(path)])):
            rows[name].extend(batch.to_pylist())
        self.spans = rows[tables.SPAN_LINES]
        self.owners = rows[tables.OWNERS]
        self.rejected = rows[tables.REJECTED_LINES]
        self.classes = Counter[str]()
        for row in rows[tables.CLASS_COUNTS]:
            self.classes[row["class"]] += row["lines"]
        (file,) = rows[tables.FILES]
        self.problem = file["problem"]
        self.lines = file["lines"]
        assert self.classes.total() == file["lines"]
        assert file["bytes"] == path.stat().st_size

    @property
    def names(self) -> list[str]:
        return [row["name"] for row in self.spans]

    @property
    def facts(self) -> list[tuple[Any, ...]]:
        """The rows without their places."""
        return [tuple(row.values())[4:] for row in self.spans]

    def reasons(self) -> dict[int, tuple[str, str]]:
        return {row["line"]: (row["class"], row["reason"]) for row in self.rejected}


def zipkin(name: str, number: int = 1, **more: Any) -> dict[str, Any]:
    span = {"traceId": TRACE_ID, "id": f"{number:016x}", "name": name}
    return span | {"timestamp": 1_750_000_000_000_000, "duration": 5, "tags": {"a": '}{"]['}} | more


def jaeger(*names: str) -> dict[str, Any]:
    spans = [
        {
            "traceID": TRACE_ID,
            "spanID": f"{number:x}",
            "operationName": name,
            "references": [],
            "startTime": 1_750_000_000_000_000,
            "duration": 5,
            "tags": [{"key": "n", "type": "int64", "value": number}],
            "logs": [],
            "processID": "p1",
        }
        for number, name in enumerate(names, 1)
    ]
    return {"traceID": TRACE_ID, "spans": spans, "processes": {"p1": {"serviceName": "env"}}}


def datadog(name: str, number: int, **meta: str) -> dict[str, Any]:
    ids = {"trace_id": int(TRACE_ID[16:], 16), "span_id": number, "parent_id": 0}
    return ids | {"name": name, "service": "env", "start": 5, "duration": 5, "meta": meta}


def otlp(*names: str) -> dict[str, Any]:
    spans = [
        {
            "traceId": TRACE_ID,
            "spanId": f"{number:016x}",
            "name": name,
            "startTimeUnixNano": "5",
            "endTimeUnixNano": "6",
        }
        for number, name in enumerate(names, 1)
    ]
    return {"scopeSpans": [{"spans": spans}]}


def chrome(name: str, ts: int) -> dict[str, Any]:
    return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 1}


OURS = {
    "record_type": "span",
    "seq": 1,
    "trace_id": TRACE_ID,
    "span_id": "00000000000000aa",
    "parent_span_id": None,
    "name": "ours",
    "kind": "INTERNAL",
    "start_time_unix_nano": 5,
    "end_time_unix_nano": 6,
    "status": {"code": "UNSET"},
}
LINE = json.dumps(OURS)

DOCUMENTS = {
    "jaeger": ({"data": [jaeger("a", "b"), jaeger("c")], "total": 0}, ["a", "b", "c"]),
    "zipkin": ([zipkin("a", 1), zipkin("b", 2), zipkin("c", 3)], ["a", "b", "c"]),
    "zipkin traces": ([[zipkin("a", 1)], [zipkin("b", 2)]], ["a", "b"]),
    "datadog": ([[datadog("a", 1), datadog("b", 2)], [datadog("c", 3)]], ["a", "b", "c"]),
    "otlp": ({"resourceSpans": [otlp("a", "b"), otlp("c")]}, ["a", "b", "c"]),
    "otlp requests": ([{"resourceSpans": [otlp("a")]}, {"resourceSpans": [otlp("b")]}], ["a", "b"]),
    "tempo": ({"batches": [otlp("a"), otlp("b")]}, ["a", "b"]),
    "chrome": (
        {"otherData": {"v": "1"}, "traceEvents": [chrome("a", 1), chrome("b", 5)]},
        ["a", "b"],
    ),
    "chrome list": ([chrome("a", 1), chrome("b", 5)], ["a", "b"]),
    "ours": ([OURS, OURS | {"name": "b", "span_id": "00000000000000bb"}], ["ours", "b"]),
}


@pytest.mark.parametrize("indent", [0, 2, "\t"])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_over_many_lines_and_on_one(tmp_path: Path, name: str, indent: int | str) -> None:
    """The same spans; the first line is a span line, the others belong to it."""
    document, names = DOCUMENTS[name]
    pretty = json.dumps(document, indent=indent)
    one, many = Result(tmp_path, json.dumps(document)), Result(tmp_path, pretty + "\n")
    assert many.names == one.names == names
    assert many.facts == one.facts
    assert many.problem is one.problem is None
    assert many.classes == {"span": 1, "joined": pretty.count("\n")}
    assert one.classes == {"span": 1}
    assert not many.rejected


@pytest.mark.parametrize("name", DOCUMENTS)
def test_on_one_line_that_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Read in slices, it gives the same."""
    document, _ = DOCUMENTS[name]
    short = Result(tmp_path, json.dumps(document))
    monkeypatch.setattr(documents, "_LONG_BYTES", 1)
    monkeypatch.setattr(documents, "_SLICE_BYTES", 7)
    long = Result(tmp_path, json.dumps(document))
    assert long.facts == short.facts
    assert (long.classes, long.problem) == (short.classes, None)


@pytest.mark.parametrize("tail", ["", "\n", f"\n{LINE}\n"])
def test_on_one_line_that_is_too_long_to_be_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tail: str
) -> None:
    """It is read in parts, and what follows is read too; the first line of a log is not."""
    monkeypatch.setattr(files.Lines.__init__, "__kwdefaults__", {"max_line_bytes": 500})
    document = {"data": [jaeger("a", "b"), jaeger("c")]}
    result = Result(tmp_path, json.dumps(document) + tail)
    assert result.names == ["a", "b", "c"] + ["ours"] * (LINE in tail)
    assert result.classes == {"span": 1 + (LINE in tail)}
    result = Result(tmp_path, "[" + "x" * 600 + tail)
    assert result.classes["oversize"] == 1
    result = Result(tmp_path, "[\n" + json.dumps(document) + ",\n" + LINE)
    assert result.classes == {"text": 1, "oversize": 1, "span": 1}


def test_each_row_knows_its_line(tmp_path: Path) -> None:
    """Line and byte offset of the element."""
    text = "[\n" + ",\n".join(json.dumps(zipkin(name)) for name in "abc") + "\n]\n"
    result = Result(tmp_path, text)
    assert [(row["line"], row["byte_offset"]) for row in result.spans] == [
        (number, text.index(json.dumps(zipkin(name)))) for number, name in enumerate("abc", 2)
    ]
    assert [row["recovered"] for row in result.spans] == [True] * 3


def test_events_without_an_end(tmp_path: Path) -> None:
    """Chrome may leave the closing bracket out, and the last comma in."""
    for tail in ("", ",", ",\n", "\n"):
        text = "[\n" + ",\n".join(json.dumps(chrome(name, 5)) for name in "ab") + tail
        result = Result(tmp_path, text)
        assert sorted(result.names) == ["a", "b"]
        assert (result.problem, result.rejected) == (None, [])
    text = '{"traceEvents":[' + json.dumps(chrome("a", 1)) + ",\n"
    assert Result(tmp_path, text).names == ["a"]


def test_the_half_of_an_id_that_one_span_has(tmp_path: Path) -> None:
    """Also when the spans of a trace come one by one."""
    spans = [datadog("a", 1, **{"_dd.p.tid": TRACE_ID[:16]}), datadog("b", 2)]
    result = Result(tmp_path, json.dumps(spans, indent=1))
    assert [row["trace_id"] for row in result.spans] == [TRACE_ID, TRACE_ID]


def test_a_cut_document(tmp_path: Path) -> None:
    """All whole elements; the cut one and the file say so."""
    whole = json.dumps([zipkin(name) for name in "abc"], indent=2)
    result = Result(tmp_path, whole[: whole.index('"c"') + 20])
    assert result.names == ["a", "b"]
    line = whole[: whole.index('"c"')].count("\n") - 2
    assert result.reasons() == {line: ("torn", "the document ends inside this element")}
    assert result.problem == f"the JSON document has no end: it was cut at line {line + 4}"
    one = Result(tmp_path, json.dumps({"data": [jaeger("a")]})[:-2])
    assert (one.names, one.classes) == (["a"], {"span": 1})
    assert one.problem == "the JSON document has no end: it was cut at line 1"


def test_the_spans_of_a_cut_trace(tmp_path: Path) -> None:
    """Jaeger's page saves one trace, its services last: the spans are worth reading without."""
    whole = json.dumps({"data": [jaeger("a", "b", "c")]}, indent=1)
    result = Result(tmp_path, whole[: whole.index('"c"')])
    assert result.names == ["a", "b"]
    assert {row["service_name"] for row in result.owners} == {None}
    assert result.classes == {"span": 1, "torn": 1, "joined": result.lines - 2}
    assert result.reasons() == {3: ("torn", "the document ends inside this element")}
    whole = json.dumps({"data": [jaeger("a", "b")]})
    one = Result(tmp_path, whole[: whole.index('"processes"')])
    assert one.names == ["a", "b"]
    assert one.classes == {"recovered": 1}


def test_a_cut_document_on_one_line(tmp_path: Path) -> None:
    """The line says how many were read, and that something is missing."""
    text = json.dumps([zipkin(name) for name in "abc"])
    result = Result(tmp_path, text[:-20])
    assert result.names == ["a", "b"]
    reason = "2 records read; not read: the document ends inside this element"
    assert result.reasons() == {1: ("recovered", reason)}


def test_a_cut_document_with_lines_behind_it(tmp_path: Path) -> None:
    """They are read as lines, be the cut inside an element or between two."""
    whole = json.dumps([zipkin(name) for name in "ab"], indent=2)
    cuts = {
        whole[: whole.index('"b"')]: "no end",
        whole[: whole.rindex(",\n  {")] + "\n": "breaks off: , or ] is missing",
        whole[:-2] + "\n": "breaks off",
    }
    for text, problem in cuts.items():
        result = Result(tmp_path, f"{text}\n{LINE}\njust text\n{LINE}")
        assert result.names.count("ours") == 2
        assert result.names[0] == "a"
        assert result.classes["text"] >= 1
        assert problem in result.problem


def test_a_bad_element(tmp_path: Path) -> None:
    """Its line says why; so does the only line, with how many were read."""
    elements = [zipkin("a"), zipkin("b", timestamp="x"), {"other": 1}, zipkin("c")]
    lines = [json.dumps(element) for element in elements]
    lines[3:3] = ['{"trailing": 1,}']
    many = Result(tmp_path, "[\n" + ",\n".join(lines) + "\n]")
    assert many.names == ["a", "c"]
    reasons = many.reasons()
    assert reasons.keys() == {3, 4, 5}
    assert reasons[3] == ("invalid", 'timestamp is missing or not µs: "x"')
    assert reasons[4] == ("json", "1 element is of no known format")
    assert reasons[5][0] == "invalid"
    one = Result(tmp_path, "[" + ",".join(lines[:3]) + "\n]")
    assert one.names == ["a"]
    reason = '1 record read; not read: timestamp is missing or not µs: "x"; '
    assert one.reasons()[1] == ("recovered", reason + "1 element is of no known format")


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    """Read all the same, and named."""
    text = json.dumps([zipkin("a"), zipkin("b")], indent=1).encode()
    result = Result(tmp_path, text.replace(b'"name": "b"', b'"name": "\xff"'))
    assert result.names == ["a", "\ufffd"]
    (reason,) = result.reasons().values()
    assert reason == (
        "recovered",
        "1 record read; not read: " + "bytes that are not UTF-8 were read as U+FFFD",
    )


def test_an_element_of_no_format_on_the_first_line(tmp_path: Path) -> None:
    """It does not vanish behind the others."""
    result = Result(tmp_path, '[{"meta": 1},\n' + json.dumps(zipkin("a")) + "\n]")
    assert result.names == ["a"]
    assert result.reasons() == {1: ("json", "1 element is of no known format")}


def test_many_bad_elements(tmp_path: Path) -> None:
    """The first are named, the others counted."""
    result = Result(tmp_path, "[\n" + ",".join(['{"a",}'] * 99 + [json.dumps(zipkin("a"))]) + "\n]")
    (reason,) = result.reasons().values()
    assert reason[0] == "recovered"
    assert reason[1].endswith("; and 96 more")


def test_a_document_of_something_else(tmp_path: Path) -> None:
    """JSON over many lines, no record in it."""
    result = Result(tmp_path, json.dumps([{"a": 1}, {"b": [2]}], indent=1))
    assert result.classes == {"json": 3, "joined": 7}
    assert result.problem is None
    result = Result(tmp_path, "[\n1,\n2\n]")
    assert result.classes.keys() <= {"json", "text"}


def test_lines_and_documents_behind_a_document(tmp_path: Path) -> None:
    """What follows is read for what it is."""
    pretty = json.dumps([zipkin("a")], indent=1)
    result = Result(tmp_path, f"{pretty}\n{pretty}\n{LINE}\ntext\n")
    assert result.names == ["a", "a", "ours"]
    assert (result.classes["span"], result.classes["text"]) == (3, 1)
    result = Result(tmp_path, pretty + " and more\n" + LINE)
    assert result.names == ["a", "ours"]
    (reason,) = result.reasons().values()
    assert reason == ("invalid", "more text follows the JSON document on its last line")


@pytest.mark.parametrize(
    "first",
    [
        '{"record_type":"span","trace_id":"torn',
        '[{"a":1',
        '{"a":{"b":1,',
        "[",
        "{",
        "[INFO] text",
        "[1,2] text",
        "[2025-06-15 15:06:40] text",
        '{"a":1} text',
        "{'a': 1}",
    ],
)
def test_a_log_that_begins_like_a_document(tmp_path: Path, first: str) -> None:
    """No record behind a broken first line is lost."""
    result = Result(tmp_path, f"{first}\n" + f"{LINE}\n" * 20)
    assert result.names == ["ours"] * 20


def test_a_byte_order_mark_and_line_ends_of_windows(tmp_path: Path) -> None:
    """Neither is damage."""
    text = json.dumps([zipkin("a"), zipkin("b")], indent=1).replace("\n", "\r\n")
    result = Result(tmp_path, b"\xef\xbb\xbf" + text.encode())
    assert result.names == ["a", "b"]
    assert not result.rejected


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(sorted(DOCUMENTS)),
    indent=st.sampled_from([None, 0, 1]),
    damage=st.lists(st.tuples(st.integers(0, 2000), st.binary(max_size=3)), max_size=3),
    cut=st.integers(0, 3000),
    tail=st.sampled_from(["", "\n", f"\n{LINE}\n", "\ntext\n"]),
)
def test_any_damage_leaves_a_ledger_that_adds_up(
    tmp_path: Path,
    name: str,
    indent: int | None,
    damage: list[tuple[int, bytes]],
    cut: int,
    tail: str,
) -> None:
    """Bytes changed, the end cut off, lines behind it: `Result` counts; our line is found."""
    data = bytearray(json.dumps(DOCUMENTS[name][0], indent=indent).encode()[:cut])
    for at, change in damage:
        data[at : at + len(change)] = change
    result = Result(tmp_path, bytes(data) + tail.encode())
    if LINE in tail:
        assert "ours" in result.names


def test_a_document_read_twice(tmp_path: Path) -> None:
    """Its spans count once, and its lines still add up."""
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps({"data": [jaeger("a", "b")]}, indent=1))
    with Engine.read([str(tmp_path)]) as engine:
        assert [row["name"] for row in engine.rows("SELECT name FROM spans ORDER BY ALL")] == [
            "a",
            "b",
        ]
        rows = engine.rows("SELECT class, sum(lines)::BIGINT AS lines FROM line_classes GROUP BY 1")
        lines = engine.rows("SELECT sum(lines)::BIGINT AS lines FROM _files")[0]["lines"]
        assert sum(row["lines"] for row in rows) == lines
