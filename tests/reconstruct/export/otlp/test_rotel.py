"""Logs to a collector that nobody here wrote: what it prints is what the lines say."""

import json
import random
import re

import pytest

from reconstruct.cli import main

START = 1_764_475_132_123_456_789
SPANS = 60
RESOURCE = {"service.name": "gym/agent", "service.instance.id": "agent-1"}
PROCESS = {**RESOURCE, "process.pid": 4242, "host.name": "node-1", "nemo.run.id": "run-1"}
TEXTS = ("plain", "日本 ✗ é", "a, b: Str(c)", "", "x" * 2_000)


def made_lines(*, has_null):
    """Write a process record and spans of every kind, status and type of value."""
    chance = random.Random(7)

    def value():
        return chance.choice(
            [
                chance.randrange(-(2**63), 2**63),
                chance.choice([True, False]),
                chance.choice(TEXTS),
                chance.choice([0.0, 1.0, 1.5, -2.25, 1e-7, 3.141592653589793]),
                [1, 2.0, "x", True, *([None] if has_null else [])],
                [],
                ["a", "b"],
            ]
        )

    def attributes():
        return {f"key.{number}": value() for number in range(chance.randrange(4))}

    lines = [
        {
            "record_type": "process",
            "seq": 0,
            "state": "started",
            "schema": 1,
            "time_unix_nano": START,
            "spans_written": 0,
            "records_dropped": 0,
            "open_spans": 0,
            "resource": {"attributes": PROCESS},
        }
    ]
    for number in range(1, SPANS + 1):
        start = START + chance.randrange(10**9)
        line = {
            "record_type": "span",
            "seq": number,
            "trace_id": f"{number % 5 + 1:032x}",
            "span_id": f"{chance.getrandbits(60) * 16 + 1:016x}",
            "parent_span_id": chance.choice([None, f"{number:016x}"]),
            "name": f"span {number} {chance.choice(TEXTS)}",
            "kind": chance.choice(["INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]),
            "start_time_unix_nano": start,
            "end_time_unix_nano": start + chance.randrange(10**12),
            "flags": chance.choice([1, 257, 0x303]),
            "status": chance.choice(
                [{"code": "UNSET"}, {"code": "OK"}, {"code": "ERROR", "message": "boom"}]
            ),
            "attributes": attributes(),
            "resource": {"attributes": RESOURCE},
        }
        if chance.random() < 0.3:
            line["trace_state"] = "vendor=1,other=2"
        if chance.random() < 0.3:
            line["events"] = [
                {"time_unix_nano": start + at, "name": f"event {at}", "attributes": attributes()}
                for at in (1, 2)
            ]
        if chance.random() < 0.3:
            link = {"trace_id": f"{99:032x}", "span_id": f"{number:016x}"}
            line["links"] = [{**link, "attributes": attributes()}]
        if chance.random() < 0.5:
            line["scope"] = {"name": "lib.of.someone", "version": "1.2"}
        lines.append(line)
    return lines


def shown(value):
    """Write a value as rotel prints it."""
    if value is None:
        return "Empty"
    if isinstance(value, bool):
        return f"Bool({str(value).lower()})"
    if isinstance(value, int):
        return f"Int({value})"
    if isinstance(value, float):
        digits = f"{value:.20f}".rstrip("0").rstrip(".") if abs(value) < 1e-5 else f"{value:g}"
        return f"Double({digits if float(digits) == value else repr(value)})"
    if isinstance(value, str):
        return f"Str({value})"
    return f"Slice({', '.join(map(shown, value))})"


def facts(attributes):
    return {key: shown(value) for key, value in attributes.items()}


def expected(line):
    scope = line.get("scope", {"name": "", "version": ""})
    return {
        "resource": facts(PROCESS),
        "scope": f"{scope['name']} {scope['version']}",
        "Trace ID": line["trace_id"],
        "Parent ID": line["parent_span_id"] or "",
        "ID": line["span_id"],
        "Name": line["name"].rstrip(),
        "Kind": f"SPAN_KIND_{line['kind']}",
        "TraceState": line.get("trace_state", ""),
        "Start time": str(line["start_time_unix_nano"]),
        "End time": str(line["end_time_unix_nano"]),
        "Status code": f"STATUS_CODE_{line['status']['code']}",
        "Status message": line["status"].get("message", ""),
        "attributes": facts(line["attributes"]),
        "events": [
            (event["name"], str(event["time_unix_nano"]), facts(event["attributes"]))
            for event in line.get("events", [])
        ],
        "links": [
            (link["trace_id"], link["span_id"], facts(link["attributes"]))
            for link in line.get("links", [])
        ],
    }


def pairs(lines):
    """Read `-> key: value` lines."""
    found = {}
    for line in lines:
        if match := re.fullmatch(r"\s*-> (.*?): (.*)", line):
            found[match[1]] = match[2]
    return found


def read_span(text, resource, scope):
    head, *details = re.split(r"\n(Attributes|Events|Links):\n", "\n" + text)
    parts = dict(zip(details[::2], details[1::2], strict=True))
    span = {"resource": resource, "scope": scope, "TraceState": "", "events": [], "links": []}
    for line in head.strip("\n").splitlines():
        key, _, value = line.strip().partition(":")
        span[key.strip()] = value.strip()
    span["attributes"] = pairs(parts.get("Attributes", "").splitlines())
    for part in re.split(r"SpanEvent #\d+\n", parts.get("Events", ""))[1:]:
        event, _, attributes = part.partition("     -> Attributes::\n")
        found = pairs(event.splitlines())
        span["events"].append((found["Name"], found["Timestamp"], pairs(attributes.splitlines())))
    for part in re.split(r"SpanLink #\d+\n", parts.get("Links", ""))[1:]:
        link, _, attributes = part.partition("     -> Attributes::\n")
        found = pairs(link.splitlines())
        span["links"].append((found["Trace ID"], found["ID"], pairs(attributes.splitlines())))
    return span


def read_printed(text):
    """Read all spans out of what rotel printed, each with its resource and scope."""
    for resource_part in re.split(r"^ResourceSpans #\d+\n", text, flags=re.MULTILINE)[1:]:
        resource_part = re.sub(r"^.*\x1b\[.*\n", "", resource_part, flags=re.MULTILINE)
        head, *scopes = re.split(r"^ScopeSpans #\d+\n", resource_part, flags=re.MULTILINE)
        resource = pairs(head.splitlines())
        for scope_part in scopes:
            head, *spans = re.split(r"^Span #\d+\n", scope_part, flags=re.MULTILINE)
            scope = re.search(r"InstrumentationScope (.*)", head)[1]
            for span in spans:
                yield read_span(span, resource, scope)


@pytest.mark.parametrize(
    ("protocol", "compression"),
    [
        ("grpc", "none"),
        ("grpc", "gzip"),
        ("http/protobuf", "none"),
        ("http/protobuf", "gzip"),
        ("http/json", "gzip"),
    ],
)
def test_a_collector_receives_exactly_the_spans_of_the_lines(
    protocol, compression, rotel, tmp_path, capsys
):
    # rotel takes an empty value for no JSON of OTLP's, though it is.
    lines = made_lines(has_null=protocol != "http/json")
    log = tmp_path / "agent.log"
    log.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    endpoint = f"http://127.0.0.1:{rotel.ports['grpc' if protocol == 'grpc' else 'http/protobuf']}"
    arguments = ["--endpoint", endpoint, "--protocol", protocol, "--compression", compression]
    code = main(["export", "otlp", str(log), *arguments])
    out, err = capsys.readouterr()
    assert (code, out) == (0, "")
    assert err.startswith(f"exported {SPANS} spans in 1 batch to ")
    assert err.endswith("; held back 0 unfinished\n")
    received = {span["ID"]: span for span in read_printed(rotel.printed())}
    assert len(received) == SPANS
    for line in lines[1:]:
        assert received[line["span_id"]] == expected(line)
