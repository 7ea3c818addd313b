"""The line: what a real program writes is exactly what `gymlog.record` says, field by field."""

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import pytest

from gymlog.record import (
    RECORDS,
    SCHEMA_VERSION,
    SPAN_KINDS,
    STATUS_CODES,
    Field,
    FieldType,
    RecordType,
)

Record = dict[str, Any]  # Any: one JSON value

INT64: Final = range(-(2**63), 2**63)

SHAPES: Final[dict[FieldType, Callable[[Any], bool]]] = {  # Any: one JSON value
    FieldType.TEXT: lambda value: isinstance(value, str),
    FieldType.INT64: lambda value: type(value) is int and value in INT64,
    FieldType.FLOAT64: lambda value: type(value) in (int, float),
    FieldType.BOOL: lambda value: isinstance(value, bool),
    FieldType.NUMBER: lambda value: type(value) in (int, float),
    FieldType.OBJECT: lambda value: isinstance(value, dict),
    FieldType.LIST: lambda value: isinstance(value, list),
    FieldType.ANY: lambda value: value is not None,
}

PATTERNS: Final = {
    "trace_id": re.compile("(?!0{32})[0-9a-f]{32}"),
    "span_id": re.compile("(?!0{16})[0-9a-f]{16}"),
    "parent_span_id": re.compile("(?!0{16})[0-9a-f]{16}"),
    "kind": re.compile("|".join(SPAN_KINDS)),
    "state": re.compile("started|alive|stopped"),
    "aggregation_temporality": re.compile("DELTA|CUMULATIVE"),
}

EVENT: Final[dict[str, type]] = {"time_unix_nano": int, "name": str, "attributes": dict}
LINK: Final[dict[str, type]] = {"trace_id": str, "span_id": str, "attributes": dict}
MEASURED: Final = {"value", "count", "sum", "min", "max", "is_monotonic"}
"""Fields whose zero says something."""

OPTIONAL: Final = {"trace_state": str, "dropped_attributes_count": int}
"""What an event and a link may also have, as in OTLP."""


def faults(line: Record) -> list[str]:
    """Return what a line has that `gymlog.record` does not allow; none when it is right."""
    if line.get("record_type") not in set(RecordType):
        return [f"record_type is {line.get('record_type')!r}"]
    fields = RECORDS[RecordType(line["record_type"])]
    found = [
        f"{field.name} is missing" for field in fields if field.required and field.name not in line
    ]
    found += [
        f"{name} is no field" for name in line if name not in {field.name for field in fields}
    ]
    order = [field.name for field in fields if field.name in line]
    if not found and list(line) != order:
        found.append(f"fields are not in order: {list(line)}")
    for field in fields:
        if field.name in line:
            found += faults_of_value(field, line[field.name])
    return found


def faults_of_value(field: Field, value: Any) -> list[str]:  # Any: one JSON value
    if value is None and field.name == "parent_span_id":
        return []
    if not SHAPES[field.type](value):
        return [f"{field.name} is no {field.type}: {value!r}"]
    found = []
    if not field.required and field.name not in MEASURED and value in ([], "", {}, 0):
        found.append(f"{field.name} stands there empty")
    if field.name in PATTERNS and not PATTERNS[field.name].fullmatch(value):
        found.append(f"{field.name} is {value!r}")
    if field.name in ("events", "links"):
        shape = EVENT if field.name == "events" else LINK
        found += [fault for item in value for fault in faults_of_item(field.name, item, shape)]
    if field.name == "status":
        found += faults_of_status(value)
    if field.name == "scope" and not (
        value.keys() <= {"name", "version"} and all(isinstance(one, str) for one in value.values())
    ):
        found.append(f"scope is {value!r}")
    if field.name == "resource" and list(value) != ["attributes"]:
        found.append(f"resource is {value!r}")
    return found


def faults_of_item(name: str, item: Any, shape: dict[str, type]) -> list[str]:  # Any: JSON
    wrong = [key for key, kind in shape.items() if type(item.get(key)) is not kind]
    wrong += [key for key in item.keys() - shape.keys() if type(item[key]) is not OPTIONAL.get(key)]
    return [f"{name} has a wrong {key}: {item!r}" for key in wrong]


def faults_of_status(status: Record) -> list[str]:
    allowed = {"code", "message"} if status.get("code") == "ERROR" else {"code"}
    right = status.get("code") in STATUS_CODES and status.keys() <= allowed
    return [] if right and all(status.values()) else [f"status is {status!r}"]


PROGRAM = """
import asyncio
from opentelemetry import trace
import gymlog

handle = gymlog.init_telemetry("agent", "responses_api_agents", {"extra": 1})
library = trace.get_tracer("library", "1.0")
far = trace.NonRecordingSpan(trace.SpanContext(
    0xabc, 0xdef, True, trace.TraceFlags(1), trace.TraceState([("a", "1")])))

with gymlog.rollout_context("3-1"), gymlog.managed_span("rollout", "gym.rollout") as root:
    for kind in trace.SpanKind:
        library.start_span(kind.name, kind=kind).end()
    root.add_event("mark", {"n": 1, "long": "x" * 10_000})
    root.add_event("many", dict.fromkeys(map(str, range(200)), 1))
    root.add_link(far.get_span_context(), {"why": "retry"})
    root.add_link(root.get_span_context(), dict.fromkeys(map(str, range(200)), 1))
    root.set_attribute("values", [1, 0.5, True, "x", None, float("nan"), 2**70, b"bytes"])
    root.set_attribute("nested", {"a": {"b": [1, {"c": object}]}, 5: 6})
    root.set_attribute("text", "line\\nbreak \\u2028 \\ud83d \\U0001f600")
    with gymlog.span_cm("full") as full:
        for n in range(300):
            full.set_attribute(f"a{n}", n)
            full.add_event(f"e{n}")
            full.add_link(root.get_span_context())
    with gymlog.span_cm("huge") as huge:
        for n in range(100):
            huge.set_attribute(f"a{n}", "y" * 5_000)
    try:
        with gymlog.span_cm("failing"):
            raise ValueError("bad")
    except ValueError:
        pass
with trace.use_span(far):
    with gymlog.span_cm("continued") as span:
        span.set_status(trace.StatusCode.OK)

async def cancelled():
    async with asyncio.timeout(0):
        with gymlog.span_cm("cancelled"):
            await asyncio.Event().wait()

try:
    asyncio.run(cancelled())
except TimeoutError:
    pass
handle.meter.create_counter("counter", "1", "Counts.").add(1, {"a": [1, "x", None]})
handle.meter.create_up_down_counter("updown").add(0)
handle.meter.create_histogram("histogram", "s").record(0.5)
handle.meter.create_gauge("gauge").set(0)
still_open = library.start_span("open", links=[trace.Link(far.get_span_context())])
"""


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """What a process writes that does a bit of everything."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={"NEMO_GYM_OTEL_ENABLED": "1", "NEMO_GYM_OTEL_RUN_ID": "r"},
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == b""
    return done.stdout.splitlines(keepends=True)


@pytest.fixture(scope="module")
def records(lines: list[bytes]) -> list[Record]:
    return [json.loads(line) for line in lines]


def named(records: list[Record], name: str) -> Record:
    (found,) = [record for record in records if record.get("name") == name]
    return found


def test_every_line_is_right(records: list[Record]) -> None:
    """Fields, order, types, ids, and the shapes within."""
    assert [(record["seq"], faults(record)) for record in records] == [
        (record["seq"], []) for record in records
    ]
    assert {record["record_type"] for record in records} == {
        "span", "span_start", "metric", "process",
    }  # fmt: skip


def test_every_line_is_compact_utf8_and_ends_once(lines: list[bytes]) -> None:
    """No space after `:` or `,`, nothing before the first brace, at most 64 KiB."""
    for line in lines:
        assert line.startswith(b'{"record_type":"')
        assert line.endswith(b"}\n")
        assert len(line) <= 65_536
        text = line.decode()
        record = json.loads(text)
        assert text == json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def test_numbers_of_a_process_count_its_lines(records: list[Record]) -> None:
    """seq 0, 1, 2 … in the order of the lines, over all record types, and one instance."""
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert len({r["resource"]["attributes"]["service.instance.id"] for r in records}) == 1


def test_a_span_says_what_it_is(records: list[Record]) -> None:
    """The program's facts, as the design lists them."""
    root = named(records, "gym.rollout")
    assert root["attributes"]["nemo.gym.rollout.id"] == "3-1"
    assert root["attributes"]["values"] == [
        1, 0.5, True, "x", None, "NaN", str(2**70), "Ynl0ZXM=",
    ]  # fmt: skip
    assert root["attributes"]["nested"]["5"] == 6
    assert root["attributes"]["text"] == "line\nbreak \u2028 \ufffd \U0001f600"
    assert root["links"][0]["trace_id"] == f"{0xABC:032x}"
    assert [named(records, kind)["kind"] for kind in SPAN_KINDS] == list(SPAN_KINDS)
    assert named(records, "SERVER")["scope"] == {"name": "library", "version": "1.0"}
    assert named(records, "failing")["status"]["code"] == "ERROR"
    continued = named(records, "continued")
    assert (continued["parent_span_id"], continued["trace_state"]) == (f"{0xDEF:016x}", "a=1")
    assert continued["flags"] == 0x301
    assert named(records, "open")["record_type"] == "span_start"


def test_a_point_says_what_it_is(records: list[Record]) -> None:
    """Its type, how it adds up, and its value, 0 too."""
    counter = named(records, "counter")
    assert (counter["type"], counter["is_monotonic"], counter["value"]) == ("sum", True, 1)
    assert counter["attributes"] == {"a": [1, "x", None]}
    updown = named(records, "updown")
    assert (updown["is_monotonic"], updown["aggregation_temporality"]) == (False, "CUMULATIVE")
    histogram = named(records, "histogram")
    assert histogram["count"] == sum(histogram["bucket_counts"]) == 1
    assert len(histogram["bucket_counts"]) == len(histogram["explicit_bounds"]) + 1
    assert (named(records, "gauge")["type"], named(records, "gauge")["value"]) == ("gauge", 0)


def test_what_limits_cut_is_counted(records: list[Record]) -> None:
    """By a count, by a length, and by the size of the line."""
    full = named(records, "full")
    assert full["dropped_attributes_count"] == 301 - 128
    assert full["dropped_events_count"] == full["dropped_links_count"] == 300 - 128
    assert len(named(records, "gym.rollout")["events"][0]["attributes"]["long"]) == 8192
    assert named(records, "huge")["dropped_attributes_count"] > 0


def test_a_resource_is_whole_only_in_process_records(records: list[Record]) -> None:
    """Elsewhere it is the two keys that join the line to them."""
    for record in records:
        keys = record["resource"]["attributes"].keys()
        if record["record_type"] == "process":
            assert keys > {"service.name", "service.instance.id", "process.pid", "nemo.run.id"}
            assert record["schema"] == SCHEMA_VERSION
        else:
            assert list(keys) == ["service.name", "service.instance.id"]


def change(**changed: Any) -> Callable[[Record], Record]:  # Any: one JSON value
    return lambda line: {**line, **changed}


def drop(name: str) -> Callable[[Record], Record]:
    return lambda line: {key: value for key, value in line.items() if key != name}


BROKEN: dict[str, Callable[[Record], Record]] = {
    "unknown type": change(record_type="trace"),
    "missing field": drop("flags"),
    "missing resource": drop("resource"),
    "unknown field": change(duration=1),
    "another order": lambda line: dict(reversed(line.items())),
    "time as text": change(start_time_unix_nano="1"),
    "time as float": change(end_time_unix_nano=1.0),
    "time beyond int64": change(end_time_unix_nano=2**63),
    "upper-case id": change(trace_id="A" * 32),
    "zero id": change(span_id="0" * 16),
    "prefixed id": change(trace_id="0x" + "a" * 32),
    "no root": change(parent_span_id=""),
    "unknown kind": change(kind="SpanKind.INTERNAL"),
    "status without code": change(status={}),
    "message without error": change(status={"code": "OK", "message": "x"}),
    "event without time": change(events=[{"name": "e", "attributes": {}}]),
    "link without attributes": change(links=[{"trace_id": "a" * 32, "span_id": "b" * 16}]),
    "empty events": change(events=[]),
    "zero counter": change(dropped_links_count=0),
    "resource of attributes alone": change(resource={"service.name": "x"}),
    "scope of something else": change(scope={"name": "x", "schema": "y"}),
}


@pytest.mark.parametrize("break_line", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_line_is_found(
    records: list[Record], break_line: Callable[[Record], Record]
) -> None:
    """The check above can fail."""
    line = copy.deepcopy(named(records, "gym.rollout"))
    line |= {"dropped_links_count": 1, "scope": {"name": "x"}}
    # In the order of the contract again, but for the ones that are broken.
    names = [field.name for field in RECORDS[RecordType.SPAN]]
    line = {name: line[name] for name in names if name in line}
    assert faults(line) == []
    assert faults(break_line(line)) != []


# The contract itself.


@pytest.mark.parametrize("record_type", RecordType)
def test_a_record_type_is_well_formed(record_type: RecordType) -> None:
    """Common fields first, each field once, lower-case names, every one with its meaning."""
    fields = RECORDS[record_type]
    names = [field.name for field in fields]
    assert names[:2] == ["record_type", "seq"]
    assert names[-1] == "resource"
    assert len(names) == len(set(names))
    for field in fields:
        assert re.fullmatch("[a-z][a-z_]*", field.name)
        assert field.meaning


def test_a_span_start_is_a_span_without_its_end() -> None:
    """The same fields in the same order."""
    start, span = (list(RECORDS[one]) for one in (RecordType.SPAN_START, RecordType.SPAN))
    assert [field for field in span if field.name not in ("end_time_unix_nano", "status")] == start


def test_a_field_means_the_same_in_every_record() -> None:
    """One name, one JSON shape."""
    shapes: dict[str, set[FieldType]] = {}
    for fields in RECORDS.values():
        for field in fields:
            shapes.setdefault(field.name, set()).add(field.type)
    assert {name: types for name, types in shapes.items() if len(types) > 1} == {}
