"""From lines to records and classes: nothing is lost, nothing is made up, nothing raises."""

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from reconstruct.intake import files, reader, tables

Span = Callable[..., dict[str, Any]]
Line = Callable[..., bytes]

TRACE = "0123456789abcdef" * 2

PRETTY = json.dumps(
    {
        "name": "pretty",
        "context": {"trace_id": "0x" + TRACE, "span_id": "0x00000000000000aa", "trace_state": "[]"},
        "kind": "SpanKind.SERVER",
        "parent_id": None,
        "start_time": "2026-11-30T02:40:55.480353Z",
        "end_time": "2026-11-30T02:40:55.880838Z",
        "status": {"status_code": "UNSET"},
        "attributes": {"odd": '}\n{ "name": "no span"'},
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "b"}},
    },
    indent=4,
).encode()


class Result:
    """What reading one file gave."""

    def __init__(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)
        rows: dict[str, list[dict[str, Any]]] = {name: [] for name in tables.TABLES}
        for name, batch in reader.read(files.find([str(path)])):
            rows[name].extend(batch.to_pylist())
        self.spans = sorted(rows[tables.SPAN_LINES], key=lambda row: (row["file"], row["line"]))
        self.owners = rows[tables.OWNERS]
        self.rejected = rows[tables.REJECTED_LINES]
        self.classes = Counter({row["class"]: row["lines"] for row in rows[tables.CLASS_COUNTS]})
        self.lines = rows[tables.FILES][0]["lines"]

    @property
    def names(self) -> list[str]:
        return [row["name"] for row in self.spans]

    def reason(self, number: int) -> str:
        return next(row["reason"] for row in self.rejected if row["line"] == number)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "a.log"


@pytest.fixture(scope="session")
def line(span: Span) -> Line:
    """The line of a record of ours, by name and number."""
    return lambda *names, **more: json.dumps(span(*names, **more), separators=(",", ":")).encode()


def test_records_text_json_and_blank_lines(log: Path, line: Line) -> None:
    """Ordinary lines between records have classes of their own, and are no damage."""
    data = b"\n".join(
        [
            line("one"),
            b"INFO: started {fast}",
            b"",
            b"   ",
            b'{"no":"record"}',
            b"[1,2]",
            b"null",
            b"{'a': 1}",
            b'"text"',
            line("two", 2),
        ]
    )
    result = Result(log, data)
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "text": 2, "blank": 2, "json": 4}
    assert [(row["line"], row["byte_offset"]) for row in result.spans] == [
        (1, 0),
        (10, data.rindex(b'{"record_type"')),
    ]


@pytest.mark.parametrize(
    "before",
    [
        b"(agent) ",
        b"(agent) (resources) ",
        b"\x1b[36m(agent)\x1b[0m ",
        b"\xef\xbb\xbf",
        b"  \t",
        b"",
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"", b"  \n", b"\x1b[0m\n"])
def test_wrappers_do_not_matter(log: Path, line: Line, before: bytes, end: bytes) -> None:
    """Prefixes, colours, byte order mark and line ends leave the record clean."""
    if end.startswith(b"\x1b") and b"\x1b" not in before:
        before = b"\x1b[1m" + before.removeprefix(b"\xef\xbb\xbf")
    result = Result(log, before + line("one") + end)
    assert result.names == ["one"]
    assert result.classes == {"span": 1}


def test_the_nearest_prefix_names_the_server(log: Path, line: Line) -> None:
    """The name next to the record is its server's, when the record itself has none."""
    result = Result(log, b"(agent) (resources) " + line("one"))
    assert result.owners[0]["server_name"] == "resources"


def test_several_records_and_text_on_one_line(log: Path, line: Line) -> None:
    """All whole records are found; the line counts once, as recovered."""
    data = b"10%|##  |\r" + line("one") + line("two", 2) + b" <- done\n" + line("three", 3)
    result = Result(log, data)
    assert result.names == ["one", "two", "three"]
    assert result.classes == {"recovered": 1, "span": 1}
    assert [row["recovered"] for row in result.spans] == [True, True, False]
    assert result.reason(1) == "2 records found among other things"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_record_cut_by_another_is_not_mixed_with_it(
    log: Path, line: Line, data: st.DataObject
) -> None:
    """Wherever the first is cut: the second is whole, or nothing of either is taken for a span."""
    torn = line("torn")
    cut = data.draw(st.integers(1, len(torn) - 1))
    result = Result(log, torn[:cut] + line("whole", 2) + b"\n" + torn[cut:] + b"\n")
    found = {
        (row["name"], row["span_id"], json.loads(row["attributes"])["secret"])
        for row in result.spans
    }
    assert found == {("whole", f"{2:016x}", "whole")}
    assert sum(result.classes.values()) == 2


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_unfinished_last_line_is_torn(log: Path, line: Line, data: st.DataObject) -> None:
    """The tail that a killed writer leaves gives no span, and says where it is."""
    torn = line("torn")
    cut = data.draw(st.integers(40, len(torn) - 1))
    result = Result(log, line("one") + b"\n" + torn[:cut])
    assert result.names == ["one"]
    assert result.classes == {"span": 1, "torn": 1}
    assert result.rejected[0]["line"] == 2
    assert result.rejected[0]["byte_offset"] == len(line("one")) + 1
    assert result.rejected[0]["sample"].startswith('{"record_type":"span"')


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda good: good.replace(b'"x"', rb'"C:\program"'), "escape"),
        (lambda good: good[:-1] + b",}", "property name|trailing comma"),
        (lambda good: repr(json.loads(good)).encode(), "no JSON object"),
    ],
    ids=["bad escape", "trailing comma", "repr"],
)
def test_a_malformed_record_is_damage_with_a_reason(
    log: Path, line: Line, spoil: Callable[[bytes], bytes], reason: str
) -> None:
    """Bad escapes, trailing commas and Python's repr are no text: a record is missing."""
    result = Result(log, line("one") + b"\n" + spoil(line("x")) + b"\n" + line("two", 2))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "torn": 1}
    assert re.search(reason, result.reason(2))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trace_id", "0" * 32),
        ("trace_id", "xyz"),
        ("span_id", None),
        ("span_id", 12),
        ("parent_span_id", "short"),
        ("name", None),
        ("start_time_unix_nano", "soon"),
        ("end_time_unix_nano", 2**63),
        ("end_time_unix_nano", 1.5),
    ],
)
def test_a_record_that_breaks_the_contract_is_invalid(
    log: Path, span: Span, field: str, value: object
) -> None:
    """It gives no row; the reason names the field."""
    result = Result(log, json.dumps(span("x") | {field: value}).encode())
    assert result.spans == []
    assert result.classes == {"invalid": 1}
    assert field in result.reason(1)


def test_ids_in_other_writings_are_the_same_ids(log: Path, line: Line) -> None:
    """Upper case, 0x and 64-bit trace ids are written as W3C writes them."""
    data = b"\n".join(
        [
            line("upper", trace_id=TRACE.upper(), parent_span_id="0xAB" + "0" * 14),
            line("short", trace_id=TRACE[:16], parent_span_id="0" * 16),
        ]
    )
    upper, short = Result(log, data).spans
    assert (upper["trace_id"], upper["parent_span_id"]) == (TRACE, "ab" + "0" * 14)
    assert (short["trace_id"], short["parent_span_id"]) == ("0" * 16 + TRACE[:16], None)


def test_numbers_in_attributes_are_kept(log: Path, line: Line) -> None:
    """Integers beyond 64 bits, floats and NaN come through as they are on the line."""
    attributes = '{"big":12345678901234567890123,"half":0.5,"whole":1.0,"large":1e300,"nan":NaN}'
    data = line("x").replace(b'{"secret":"x"}', attributes.encode())
    (row,) = Result(log, data).spans
    assert json.loads(row["attributes"]) == {
        "big": 12345678901234567890123,
        "half": 0.5,
        "whole": 1.0,
        "large": 1e300,
        "nan": "NaN",
    }
    assert '"whole":1.0' in row["attributes"]


def test_bytes_that_are_not_utf8(log: Path, line: Line) -> None:
    """Inside a record they are shown as U+FFFD and told; elsewhere the line is bad encoding."""
    result = Result(log, line("caf?").replace(b"?", b"\xe9") + b"\ncaf\xe9\n")
    assert result.names == ["caf\ufffd"]
    assert result.classes == {"recovered": 1, "bad_encoding": 1}
    assert result.reason(1) == "bytes that are not UTF-8 were read as U+FFFD"


def test_a_record_over_several_lines(log: Path, line: Line) -> None:
    """Its first line is the span, the others belong to it; text may stand between."""
    pieces = PRETTY.split(b"\n")
    data = b"\n".join([*pieces[:5], b"INFO: hello", line("one"), *pieces[5:], b"done"])
    result = Result(log, data)
    assert sorted(result.names) == ["one", "pretty"]
    assert result.classes == {"span": 2, "joined": len(pieces) - 1, "text": 2}
    (pretty,) = [row for row in result.spans if row["name"] == "pretty"]
    assert (pretty["line"], pretty["kind"], pretty["trace_id"]) == (1, "SERVER", TRACE)
    assert pretty["start_time_unix_nano"] % 10**9 == 480_353_000


def test_two_servers_print_over_several_lines_at_once(log: Path) -> None:
    """Lines are put together per prefix, however they interleave."""
    first = [b"(x) " + piece for piece in PRETTY.replace(b"pretty", b"from x").split(b"\n")]
    second = [b"(y) " + piece for piece in PRETTY.replace(b"pretty", b"from y").split(b"\n")]
    both = [piece for pair in zip(first, second, strict=True) for piece in pair]
    result = Result(log, b"\n".join(both))
    assert sorted(result.names) == ["from x", "from y"]
    assert result.classes == {"span": 2, "joined": 2 * len(first) - 2}


@pytest.mark.parametrize("keep", [1, 5, 20])
def test_a_record_over_several_lines_that_never_ends(log: Path, line: Line, keep: int) -> None:
    """Each of its lines has a class of its own, and what follows is read."""
    pieces = PRETTY.split(b"\n")[:keep]
    result = Result(log, b"\n".join([*pieces, line("one")]))
    assert result.names == ["one"]
    assert sum(result.classes.values()) == keep + 1
    assert result.classes["joined"] == 0


def test_a_long_line(log: Path, line: Line) -> None:
    """A record of some megabytes is a record; torn, it is one torn line, in linear time."""
    long = line("long", attributes={"text": "x" * 4_000_000})
    result = Result(log, long + b"\n" + long[:-9] + b"\n" + b'{"a":' * 200_000)
    assert result.names == ["long"]
    assert result.classes == {"span": 1, "torn": 1, "text": 1}
    assert all(len(row["sample"]) <= 200 for row in result.rejected)


def test_a_record_over_several_lines_goes_on_in_the_next_file_of_a_rotation(
    tmp_path: Path, line: Line
) -> None:
    """It lies in the older file; each file's lines add up."""
    pieces = PRETTY.split(b"\n")
    (tmp_path / "a.log").write_bytes(b"\n".join([*pieces[4:], line("one")]))
    (tmp_path / "a.log.1").write_bytes(b"".join(piece + b"\n" for piece in pieces[:4]))
    (tmp_path / "b.log").write_bytes(b"text\n")
    counts: dict[tuple[str, str], int] = Counter()
    spans: list[tuple[str, str, int]] = []
    for name, batch in reader.read(files.find([str(tmp_path)])):
        for row in batch.to_pylist():
            if name == tables.CLASS_COUNTS:
                counts[Path(row["file"]).name, row["class"]] += row["lines"]
            elif name == tables.SPAN_LINES:
                spans.append((row["name"], Path(row["file"]).name, row["line"]))
    assert sorted(spans) == [("one", "a.log", len(pieces) - 3), ("pretty", "a.log.1", 1)]
    assert counts == {
        ("a.log.1", "span"): 1,
        ("a.log.1", "joined"): 3,
        ("a.log", "joined"): len(pieces) - 4,
        ("a.log", "span"): 1,
        ("b.log", "text"): 1,
    }


def test_a_line_that_is_too_long_is_counted_with_its_length(
    log: Path, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read, be it a record; the lines around it are, where they lie."""
    monkeypatch.setattr(reader, "Lines", partial(files.Lines, max_line_bytes=1_000))
    long = line("long", attributes={"text": "x" * 1_000})
    result = Result(log, line("one") + b"\n" + long + b"\n" + line("two", 2))
    assert result.names == ["one", "two"]
    assert result.classes == {"span": 2, "oversize": 1}
    assert f"{len(long) + 1:,} bytes" in result.reason(2)
    assert result.spans[1]["byte_offset"] == len(line("one")) + len(long) + 2


def test_a_record_behind_a_hole_in_the_file(log: Path, line: Line) -> None:
    """NUL bytes, as a truncation under a writer leaves them, are told; lines stay in place."""
    result = Result(log, b"\0" * 500 + line("one") + b"\n" + line("two", 2))
    assert result.names == ["one", "two"]
    assert result.classes == {"recovered": 1, "span": 1}
    assert "500 NUL bytes" in result.reason(1)
    assert result.spans[1]["byte_offset"] == 501 + len(line("one"))


def test_only_what_was_read_of_a_file_is_counted(log: Path, line: Line) -> None:
    """From the offset on; places are those in the whole file."""
    first = line("one") + b"\n"
    log.write_bytes(first + line("two", 2) + b"\n")
    (found,) = files.find([str(log)])
    rows = {
        name: batch.to_pylist()
        for name, batch in reader.read([replace(found, start_offset=len(first), start_line=1)])
    }
    assert [(r["name"], r["line"], r["byte_offset"]) for r in rows[tables.SPAN_LINES]] == [
        ("two", 2, len(first))
    ]
    assert [(r["bytes"], r["lines"]) for r in rows[tables.FILES]] == [(len(line("two", 2)) + 1, 1)]


def test_a_bar_before_the_first_line_of_a_record(log: Path) -> None:
    """A carriage return does not hide that a record over several lines begins."""
    result = Result(log, b" 31%|###  |\r" + PRETTY)
    assert result.names == ["pretty"]
    assert result.classes == {"span": 1, "joined": PRETTY.count(b"\n")}


# A text stands for our lines, or for a part of one.
PIECES = st.sampled_from(
    [
        "p",
        "q",
        "the head of p",
        "the tail of p",
        *PRETTY.split(b"\n"),
        b"{",
        b"}",
        b"{}",
        b"(x) ",
        b"\x1b[0m",
        b"\r",
        b"\n",
        b"\n",
        b"\n",
        b"text ",
        b'{"',
        b'"trace_id":',
        b"\xff",
        b"[1]",
    ]
) | st.binary(max_size=20)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pieces=st.lists(PIECES, max_size=30))
@example(pieces=[b"{", b"\n", b' "a": 1', b"\n", b"}"])
def test_the_classes_add_up_to_the_lines(log: Path, line: Line, pieces: list[bytes | str]) -> None:
    """Whatever the bytes: nothing raises, and each physical line has exactly one class."""
    p, q = line("p"), line("q", 2)
    records = {"p": p, "q": q, "the head of p": p[:90], "the tail of p": p[90:]}
    data = b"".join(records[each] if isinstance(each, str) else each for each in pieces)
    if data.startswith(b"\x1f\x8b"):
        return
    result = Result(log, data)
    lines = data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    assert result.lines == lines
    assert sum(result.classes.values()) == lines
    places = [row["line"] for row in result.rejected]
    assert len(places) == len(set(places))
    assert set(places).isdisjoint(row["line"] for row in result.spans if not row["recovered"])
    assert len(places) == sum(
        count for name, count in result.classes.items() if name not in {"span", "joined"}
    )


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    value=st.dictionaries(
        st.sampled_from(
            [
                "record_type",
                "seq",
                "trace_id",
                "span_id",
                "name",
                "kind",
                "attributes",
                "events",
                "links",
                "status",
                "scope",
                "resource",
                "context",
                "start_time",
                "end_time",
                "severity_number",
                "body",
                "timestamp",
                "resource_metrics",
                "time_unix_nano",
                "start_time_unix_nano",
                "state",
            ]
        ),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(max_size=5)
            | st.sampled_from(
                ["span", "log", "metric", "process", TRACE, TRACE[:16], "2026-01-01T00:00:00Z"]
            ),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            "attributes",
                            "trace_id",
                            "scope_metrics",
                            "metrics",
                            "data",
                            "data_points",
                        ]
                    ),
                    inner,
                )
            ),
            max_leaves=8,
        ),
    )
)
def test_no_object_makes_a_format_raise(log: Path, value: dict[str, Any]) -> None:
    """Fields of any type in any record are a row, an invalid line, or other JSON."""
    result = Result(log, json.dumps(value).encode())
    assert sum(result.classes.values()) == 1


def test_progress_ends_at_the_size_of_all_files(tmp_path: Path, line: Line) -> None:
    """The last word is everything of everything, and it never goes back."""
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_bytes((line("x") + b"\n") * 3_000)
    told: list[tuple[int, int]] = []
    found = files.find([str(tmp_path)])
    for _ in reader.read(found, progress=lambda done, total: told.append((done, total))):
        pass
    total = sum(file.size for file in found)
    assert told[-1] == (total, total)
    assert told == sorted(told)
    assert len(told) > 4
