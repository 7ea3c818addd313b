"""What DuckDB reads itself: the same rows as on the careful path, whatever lines there are."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymlog.record import LOG, METRIC, SPAN
from reconstruct.intake import files, reader, tables
from reconstruct.intake.owners import Owners
from reconstruct.store import relations
from reconstruct.store.vouching import Voucher

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
RESOURCE = {"attributes": {"service.name": "gym/agent", "service.instance.id": "a1"}}

SPAN_LINE: dict[str, Any] = {
    "record_type": "span",
    "seq": 3,
    "trace_id": TRACE,
    "span_id": "00f067aa0ba902b7",
    "parent_span_id": PARENT,
    "name": "POST /run",
    "kind": "SERVER",
    "start_time_unix_nano": 1_800_000_000_000_000_001,
    "end_time_unix_nano": 1_800_000_000_000_000_002,
    "flags": 259,
    "trace_state": "a=1",
    "status": {"code": "ERROR", "message": "no"},
    "attributes": {"a": 1, "nemo.gym.rollout.id": "7-0", "b": [1.5, "x"]},
    "events": [{"time_unix_nano": 1, "name": "e", "attributes": {}}],
    "links": [{"trace_id": TRACE, "span_id": PARENT, "attributes": {}}],
    "dropped_attributes_count": 1,
    "dropped_events_count": 2,
    "dropped_links_count": 3,
    "scope": {"name": "lib", "version": "1"},
    "resource": RESOURCE,
}
START_LINE = {
    name: value for name, value in SPAN_LINE.items() if name not in ("end_time_unix_nano", "status")
} | {"record_type": "span_start"}
LOG_LINE: dict[str, Any] = {
    "record_type": "log",
    "seq": 4,
    "time_unix_nano": 1_800_000_000_000_000_003,
    "severity_number": 9,
    "severity_text": "INFO",
    "body": "hello",
    "attributes": {"k": True},
    "trace_id": TRACE,
    "span_id": PARENT,
    "flags": 1,
    "dropped_attributes_count": 1,
    "scope": {"name": "logger"},
    "resource": RESOURCE,
}
METRIC_LINE: dict[str, Any] = {
    "record_type": "metric",
    "seq": 5,
    "name": "m",
    "description": "d",
    "unit": "s",
    "type": "histogram",
    "is_monotonic": True,
    "aggregation_temporality": "DELTA",
    "start_time_unix_nano": 1,
    "time_unix_nano": 2,
    "attributes": {},
    "value": 1.25,
    "count": 2,
    "sum": 2.5,
    "min": 1,
    "max": 1.5,
    "bucket_counts": [1, 1],
    "explicit_bounds": [0.005, 1],
    "exemplars": [{"value": 1.5, "trace_id": TRACE}],
    "resource": RESOURCE,
}
WHOLE = (SPAN_LINE, START_LINE, LOG_LINE, METRIC_LINE)


def compact(record: object) -> str:
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


Rows = dict[str, list[Any]]


def read(path: Path, *, quickly: bool) -> tuple[Rows, int]:
    """Return the rows of all base tables, and how many lines were vouched for."""
    vouched = 0
    with duckdb.connect() as connection:
        relations.create_base_tables(connection)
        owners = Owners()
        voucher = Voucher(connection, owners)
        voucher.open()

        def vouch(batch: Any) -> Callable[[], list[int]]:
            nonlocal vouched
            left = voucher.read(batch)
            ((counted,),) = connection.execute("SELECT sum(lines) FROM _class_counts").fetchall()
            vouched += counted or 0
            return lambda: left

        found = [files.LogFile(str(path), path.stat().st_size)]
        for table, rows in reader.read(found, vouch=vouch if quickly else None, owners=owners):
            connection.register("_rows", rows)
            connection.execute(f"INSERT INTO {table} BY NAME SELECT * FROM _rows")
            connection.unregister("_rows")
        found_rows = {
            table: connection.execute(f"{_everything(table)} ORDER BY ALL").fetchall()
            for table in tables.TABLES.keys() - {tables.OWNERS}
        }
        return found_rows, vouched


def _everything(table: str) -> str:
    """Select the rows of a table, those of owners in place of their numbers."""
    if table == tables.CLASS_COUNTS:
        return "SELECT file, class, sum(lines) FROM _class_counts GROUP BY ALL"
    if "owner" not in dict(tables.TABLES[table]):
        return f"SELECT * FROM {table}"
    return f"SELECT * EXCLUDE (owner) FROM {table} JOIN _owners USING (owner)"


def both(path: Path, data: bytes) -> int:
    """Read in both ways, which must agree; return how many lines were vouched for."""
    path.write_bytes(data)
    quick, vouched = read(path, quickly=True)
    careful, _ = read(path, quickly=False)
    for table, rows in careful.items():
        # repr: NaN is NaN here
        assert list(map(repr, quick[table])) == list(map(repr, rows)), table
    return vouched


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vouching") / "a.log"


def test_lines_of_ours_are_vouched_for(path: Path) -> None:
    """As `gymlog` writes them, the optional fields there or not; nested parts are left."""
    whole = [
        {**record, **{name: value for name, value in _FLAT.items() if name in record}}
        for record in WHOLE
    ]
    bare = [
        {
            field.name: record[field.name]
            for field in fields
            if field.name in record and field.required
        }
        for record, fields in zip(whole, (SPAN, SPAN, LOG, METRIC), strict=True)
    ]
    root = {**SPAN_LINE, "parent_span_id": None}
    records = [without(_NESTED, record) for record in (*whole, *bare, root)]
    data = "".join(f"{compact(record)}\n" for record in records)
    assert both(path, data.encode()) == len(records)


_NESTED = ("events", "links", "exemplars")


def without(names: Sequence[str], record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}


_FLAT = {"attributes": {"n": 12, "f": 0.25, "s": 'é "x" C:\\y', "l": [1, "a", None, True]}}


def test_the_owners_of_all_lines_become_known(path: Path) -> None:
    """However many processes write one file: the resource of each line is looked at."""
    lines = [
        compact(
            {name: value for name, value in LOG_LINE.items() if name != "resource"}
            | {
                "seq": n,
                "resource": {"attributes": {"service.name": "s", "service.instance.id": str(n)}},
            }
        )
        for n in range(500)
    ]
    assert both(path, "".join(f"{line}\n" for line in lines).encode()) == 500


REPLACED = [
    ('"seq":3', '"seq":1.7'),
    ('"seq":3', '"seq":"3"'),
    ('"seq":3', '"seq":3.0'),
    ('"seq":3', '"seq":3e0'),
    ('"seq":3', '"seq":9223372036854775808'),
    ('"seq":3', '"seq":-9223372036854775808'),
    ('"seq":3', '"seq":-0'),
    ('"seq":3', '"seq":null'),
    ('"seq":3', '"seq":true'),
    ('"seq":3,', ""),
    ('"seq":3', '"seq":3,"seq":4'),
    ('"seq":3', '"seq" :3'),
    ('"seq":3', '"seq":3,"new":{}'),
    (TRACE, TRACE.upper()),
    (TRACE, TRACE[:16]),
    (TRACE, "0" * 32),
    (TRACE, "g" * 32),
    (TRACE, "é" * 16),
    (TRACE, "\\u0061" + TRACE[1:]),
    (f'"{PARENT}"', '""'),
    (f'"{PARENT}"', '"0000000000000000"'),
    (f'"{PARENT}"', "7"),
    ('"POST /run"', "5"),
    ('"POST /run"', "null"),
    ('"POST /run"', '"a\\"b"'),
    ('"POST /run"', '"a\\u0000b"'),
    ('"POST /run"', '"\\ud800"'),
    ('"POST /run"', '"é 😀 \x7f"'),
    ('"SERVER"', '"WORKER"'),
    ("1800000000000000001", "-5"),
    ("1800000000000000001", "1.8e18"),
    ("1800000000000000001", '"1800000000000000001"'),
    ("1800000000000000001", "9223372036854775807"),
    ("1800000000000000001", "NaN"),
    ('{"code":"ERROR","message":"no"}', '{"code":"UNSET"}'),
    ('{"code":"ERROR","message":"no"}', '{"code":"BAD"}'),
    ('{"code":"ERROR","message":"no"}', "{}"),
    ('{"code":"ERROR","message":"no"}', '"OK"'),
    ('{"code":"ERROR","message":"no"}', '{"code":"ERROR","message":"a\\nb"}'),
    ('{"code":"ERROR","message":"no"}', '{"code":"ERROR","message":"no","x":1}'),
    ('{"code":"ERROR","message":"no"}', '{"message":"no","code":"ERROR"}'),
    ('{"code":"ERROR","message":"no"}', '{"code":"ERROR","message":5}'),
    ('"a":1,', '"a":1,"a":2,'),
    ('"a":1,', '"a":NaN,'),
    ('"a":1,', '"a":-Infinity,'),
    ('"a":1,', '"a":1e16,'),
    ('"a":1,', '"a":10000000000000000.0,'),
    ('"a":1,', '"a":1.5e22,'),
    ('"a":1,', '"a":1e400,'),
    ('"a":1,', '"a":1E400,'),
    ('"a":1,', '"a":1e+400,'),
    ('"a":1,', '"a":0.0000015,'),
    ('"a":1,', '"a":1.5e-7,'),
    ('"a":1,', '"a":1.10,'),
    ('"a":1,', '"a":-0,'),
    ('"a":1,', '"a":-0.0,'),
    ('"a":1,', '"a":18446744073709551615,'),
    ('"a":1,', '"a":18446744073709551616,'),
    ('"a":1,', '"a":-9223372036854775809,'),
    ('"a":1,', '"a":123456789012345678901234567890,'),
    ('"a":1,', f'"a":{"1" * 5000},'),
    ('"a":1,', '"a":0.1234567890123456789,'),
    ('"a":1,', '"a":9007199254740993.0,'),
    ('"a":1,', '"a":[1e16,0.0000015],'),
    ('"a":1,', '"a":[10000000000000000.0],'),
    ('"a":1,', '"a":[0.0000015],'),
    ('"a":1,', '"a":{"b":1,"b":2},'),
    ('"a":1,', '"a":[{"b":1,"b":2}],'),
    ('"a":1,', '"a":[1,{"b":1,"b":2}],'),
    ('"a":1,', f'"a":{"[" * 2000}{"]" * 2000},'),
    ('"a":1,', f'"a":[1,{"[" * 2000}{"]" * 2000}],'),
    ('"a":1,', '"a":"\\u001b[0m",'),
    ('"a":1,', '"a":"\\u001B[0m",'),
    ('"a":1,', '"a":"\\/",'),
    ('"a":1,', '"a":"\\ud83d\\ude00",'),
    ('"a":1,', '"a":"\\ud83d",'),
    ('"a":1,', '"\\u0061":1,'),
    ('"a":1,', '"":null,"$.x":1,"/y":2,'),
    ('"7-0"', "7"),
    ('"7-0"', "null"),
    ('"7-0"', "[7]"),
    ('"7-0"', "true"),
    ('"7-0"', "1.0"),
    ('{"name":"lib","version":"1"}', '{"name":"lib"}'),
    ('{"name":"lib","version":"1"}', '{"name":"lib","version":1}'),
    ('{"name":"lib","version":"1"}', '{"version":"1","name":"lib"}'),
    ('{"name":"lib","version":"1"}', '{"name":"a\\tb"}'),
    ('{"name":"lib","version":"1"}', "{}"),
    ('{"name":"lib","version":"1"}', "[]"),
    ('"gym/agent"', "5"),
    ('"gym/agent"', '"a\\u00e9"'),
    ('"service.instance.id":"a1"', '"service.instance.id":"a1","service.instance.id":"a2"'),
    ('"service.instance.id":"a1"', '"service.instance.id":"a1","process.pid":7.0'),
    ('"service.instance.id":"a1"', '"process.pid":7,"x":1e16'),
    (compact(RESOURCE), "{}"),
    (compact(RESOURCE), "[]"),
    (compact(RESOURCE), '"x"'),
    ('"dropped_links_count":3,', '"dropped_links_count":"3",'),
    ('"body":"hello"', '"body":null'),
    ('"body":"hello"', '"body":{"a":1,"a":2}'),
    ('"body":"hello"', '"body":[1,2.5,"x"]'),
    ('"body":"hello"', '"body":1.0'),
    ('"body":"hello"', '"body":1e16'),
    ('"body":"hello"', '"body":10000000000000000.0'),
    ('"body":"hello"', '"body":0.0000015'),
    ('"body":"hello"', '"body":NaN'),
    ('"body":"hello"', '"body":18446744073709551616'),
    ('"body":"hello",', ""),
    ('"body":"hello"', '"body":"a\\u001Bb"'),
    ('"value":1.25', '"value":"NaN"'),
    ('"value":1.25', '"value":NaN'),
    ('"value":1.25', '"value":true'),
    ('"value":1.25', '"value":7'),
    ('"value":1.25', '"value":1e400'),
    ('"value":1.25', '"value":1e300'),
    ('"value":1.25', '"value":9007199254740993'),
    ('"value":1.25', '"value":123456789012345678901234567890'),
    ("[1,1]", "[]"),
    ("[1,1]", "{}"),
    ("[1,1]", "[18446744073709551616]"),
    ("[0.005,1]", "[0.0000015,1]"),
    ("[0.005,1]", '["Infinity"]'),
    ("[0.005,1]", "[10000000000000000.0]"),
    ('"is_monotonic":true', '"is_monotonic":"true"'),
    ('"record_type":"span"', '"record_type":"spank"'),
    ('"record_type":"span_start"', '"record_type":"span"'),
    ('"record_type":"span"', '"record_type":"span_start"'),
    ("}}}", "}}} "),
    ("}}}", "}}}\r"),
    ("}}}", "}},}"),
    ("}}}", '}}} {"record_type":"span"}'),
    ("}}}", "}}"),
    ("}}}", "}}}\x00"),
    ('"flags":', '"flags":\x00'),
]


def test_hostile_lines(path: Path) -> None:
    """Each thing that DuckDB forgives or changes: both ways agree, and good lines between stay."""
    good = [compact(without(_NESTED, record)) for record in WHOLE]
    lines = []
    for old, new in REPLACED:
        bad = [line.replace(old, new) for line in (*good, *map(compact, WHOLE)) if old in line]
        assert bad, old
        lines += [line for each in bad for line in (good[0], each, "text")]
    vouched = both(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    assert len(lines) / 3 < vouched < len(lines) / 2  # the good ones, and bad ones that are not


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
attributes = st.dictionaries(st.text(), values, max_size=4)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A line of ours with parts of its own, in its own order or spacing, maybe damaged."""
    record = dict(draw(st.sampled_from(WHOLE)))
    record["attributes"] = draw(attributes)
    for name in draw(st.sets(st.sampled_from([*record, *_NESTED]), max_size=4)):
        record.pop(name, None)
    if draw(st.booleans()):
        record |= draw(
            st.dictionaries(st.sampled_from([*SPAN_LINE, *LOG_LINE, "x"]), values, max_size=2)
        )
    if draw(st.booleans()):
        text = compact(record)
    else:
        text = json.dumps(record, ensure_ascii=draw(st.booleans()), sort_keys=draw(st.booleans()))
    line = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(line)))
        line = line[:at] + draw(st.binary(max_size=3)) + line[at + draw(st.integers(0, 3)) :]
    return line


others = st.binary(max_size=20) | st.sampled_from([b"", b"INFO: ready", b"{", b"}", b'{"a":1}'])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mix=st.lists(lines() | others, max_size=30), is_ended=st.booleans())
def test_any_mix_of_lines(path: Path, mix: list[bytes], *, is_ended: bool) -> None:
    """Both ways give the same rows, row for row, and count the same lines."""
    both(path, b"\n".join(mix) + (b"\n" if is_ended else b""))
