"""Hostile logs from a seed: lines in all formats and wrappers, damaged at random.

Bits are flipped, pieces cut, repeated, moved and spliced from another log, odd bytes and numbers
put in; some logs are one JSON document, some are compressed, and cut. The same seed gives the same
bytes.
"""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["hostile_log"]

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
BEGIN = 1_800_000_000_000_000_000
MANY_LINES = 400

Wrap = Callable[[bytes], bytes]


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def ours(record_type: str, number: int, **fields: object) -> bytes:
    resource = {"attributes": {"service.name": "s", "service.instance.id": f"s-{number % 3}"}}
    return compact(
        {"record_type": record_type, "seq": number, **fields, "attributes": {"a": number, "b": "é"}}
        | {"resource": resource}
    )


def span(number: int) -> bytes:
    return ours(
        "span",
        number,
        trace_id=TRACE,
        span_id=f"{number + 1:016x}",
        parent_span_id=None if number % 2 else SPAN,
        name="POST /run",
        kind="SERVER",
        start_time_unix_nano=BEGIN + number,
        end_time_unix_nano=BEGIN + number + 5,
        flags=257,
        status={"code": "UNSET"},
    )


def console(number: int) -> dict[str, Any]:  # Any: JSON
    return {
        "name": "env.step",
        "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{number + 1:016x}"},
        "kind": "SpanKind.SERVER",
        "parent_id": None,
        "start_time": "2026-11-30T02:40:55.480353Z",
        "end_time": "2026-11-30T02:40:55.880838Z",
        "status": {"status_code": "ERROR", "description": "}\n{"},
        "attributes": {"n": number},
        "events": [{"name": "e", "timestamp": "2026-11-30T02:40:55.5Z", "attributes": {}}],
        "links": [],
        "resource": {"attributes": {"service.name": "a", "process.pid": 7}},
    }


def otlp(number: int) -> dict[str, Any]:  # Any: JSON
    record = {
        "traceId": TRACE,
        "spanId": f"{number + 1:016x}",
        "name": "n",
        "kind": 2,
        "startTimeUnixNano": str(BEGIN + number),
        "endTimeUnixNano": str(BEGIN + number + 1),
        "attributes": [{"key": "k", "value": {"intValue": "3"}}],
    }
    scope = {"scope": {"name": "s"}, "spans": [record]}
    return {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}


def jaeger(number: int) -> dict[str, Any]:  # Any: JSON
    one = {"traceID": TRACE, "spanID": f"{number + 1:x}", "operationName": "o", "startTime": BEGIN}
    one |= {"startTime": BEGIN // 1000, "duration": 5, "tags": [], "processID": "p1"}
    trace = {"traceID": TRACE, "spans": [one], "processes": {"p1": {"serviceName": "j"}}}
    return {"data": [trace, trace | {"traceID": TRACE[::-1]}]}


OBJECTS: tuple[Callable[[int], Any], ...] = (  # Any: JSON
    console,
    otlp,
    jaeger,
    lambda n: {"traceId": TRACE, "id": f"{n + 1:x}", "timestamp": 9, "duration": 1, "shared": True},
    lambda n: [{"traceId": TRACE, "id": f"{n + 1:x}", "timestamp": 9, "duration": 1, "name": "z"}],
    lambda n: {
        "Name": "g",
        "SpanContext": {"TraceID": TRACE, "SpanID": f"{n + 1:016x}", "TraceFlags": "01"},
        "Parent": {"TraceID": "0" * 32, "SpanID": "0" * 16, "Remote": True},
        "SpanKind": 2,
        "StartTime": "2025-06-15T15:06:40.05Z",
        "EndTime": "2025-06-15T15:06:41+02:00",
        "Attributes": [{"Key": "n", "Value": {"Type": "FLOAT64", "Value": 3}}],
    },
    lambda n: [[{"trace_id": 7, "span_id": n + 1, "start": BEGIN, "duration": 1, "name": "d"}]],
    lambda n: {"traceEvents": [{"ph": "X", "name": "c", "pid": 1, "tid": 1, "ts": n, "dur": 2}]},
    lambda n: {"trace_id": TRACE, "span_id": SPAN, "name": "p", "start_time": 1.75e9 + n},
    lambda n: {"message": "m", "level": "info", "trace.id": TRACE, "time": "2025-06-15T15:06:40Z"},
    lambda n: {"message": "SPAN_CLOSED", "span_name": "r", "trace_id": TRACE, "span_id": SPAN},
    lambda n: {"model_call_id": str(n), "request": {}, "started_at": 1.75e9, "latency_ms": 2.5},
    lambda n: {"resource_metrics": [{"scope_metrics": [{"metrics": [{"name": "m"}]}]}]},
    lambda n: {"just": "json", "n": n},
)
TEXTS = (
    b"INFO: ready",
    b"",
    b"   ",
    b"2025-06-15 15:06:40 [info] step trace_id=" + TRACE.encode() + b" span_id=" + SPAN.encode(),
    b"  traceId: '" + TRACE.encode() + b"',",
    b"{'trace_id': 1}",
    b" 31%|###  | 4/9\r",
    b"[",
    b"]",
    b"{",
    b"}",
    b'  "a": 1,',
)


def prefix(text: bytes) -> Wrap:
    return lambda line: text + line


def an_object(key: str, end: str, **others: str) -> Wrap:
    return lambda line: compact({key: line.decode("utf-8", "replace") + end} | others)


WRAPS: tuple[Wrap, ...] = (
    prefix(b"(agent) "),
    prefix(b"(a) (b) "),
    prefix(b"\x1b[36m(EnvActor pid=77, ip=10.0.0.3)\x1b[0m "),
    lambda line: b"(W pid=7) " + line + b" [repeated 3x across cluster]",
    prefix(b"2025-06-15T15:06:40.050123456Z stdout F "),
    prefix(b"2025-06-15T15:06:40.050123456Z stderr P "),
    prefix(b"[pod/env-0/env] "),
    prefix(b"<14>Jun 15 15:06:40 n1 env[77]: @cee: "),
    prefix(b"<14>1 2025-06-15T15:06:40.05Z n1 env 77 - - "),
    prefix(b"2025-06-15T15:06:40.05Z "),
    prefix(b"[1,3]<stdout>:"),
    prefix(b"[default3]:"),
    prefix(b"15:06:40 env.1 | "),
    prefix(b"env-1  | "),
    prefix(b"3: "),
    prefix(b"n1: "),
    prefix(b"env-3\t"),
    prefix(b"env-0 env "),
    an_object("log", "\n", stream="stdout", time="t"),
    an_object("log", "", stream="stderr", time="t"),
    an_object("message", "\n", podName="p", containerName="c"),
    an_object("MESSAGE", "", __CURSOR="s=1", _PID="7"),
    an_object("MESSAGE", "", __CURSOR="s=1", CONTAINER_PARTIAL_MESSAGE="true"),
    lambda line: compact({"MESSAGE": list(line), "_BOOT_ID": "1"}),
)
ODD: tuple[bytes, ...] = (
    b"\0",
    b"\0" * 40,
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\x1b[0m",
    b"\x1b]0;x\x07",
    b"\xff",
    b"\xc3",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\\ud83d",
    b"\\u0000",
    b"\\",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"NaN",
    b"1e999",
    b"-0",
    b"1" * 30,
    b"1" * 5_000,
    b"[" * 1_000 + b"]" * 1_000,
    b'{"a":' * 400 + b"1" + b"}" * 400,
    b'{"trace_id":',
    b"(agent) ",
    b"#012",
    b" [repeated 2x across cluster]",
    b"\xed\xa0\x80",
)


def a_line(rng: random.Random, number: int) -> bytes:
    kind = rng.random()
    if kind < 0.35:
        return span(number)
    if kind < 0.42:
        return ours("log", number, time_unix_nano=BEGIN, severity_number=9, body="hello")
    if kind < 0.47:
        return ours("metric", number, name="m", type="gauge", time_unix_nano=BEGIN, value=0.5)
    if kind < 0.5:
        return ours("process", number, state="alive", schema=1, time_unix_nano=BEGIN)
    if kind < 0.85:
        value = rng.choice(OBJECTS)(number)
        if rng.random() < 0.2:
            return json.dumps(value, indent=rng.choice((1, 4)), ensure_ascii=False).encode()
        return compact(value)
    return rng.choice(TEXTS)


def a_document(rng: random.Random) -> bytes:
    """Make a file that is one JSON value, or several, on few lines or many."""
    make = rng.choice(OBJECTS)
    items = [make(number) for number in range(rng.randrange(1, 12))]
    key = rng.choice(("traceEvents", "data", "resourceSpans", "batches", "other"))
    inner = [each for item in items if isinstance(item, dict) for each in item.get(key, ())]
    value = rng.choice((items, {key: items}, {"x": [1], key: inner, "y": {"z": "]}"}}, [items]))
    text = json.dumps(value, indent=rng.choice((None, 1, 4)), ensure_ascii=False).encode()
    return rng.choice(
        (text, text + b"\n", text + b"\n" + text, b"\xef\xbb\xbf" + text, span(0) + text)
    )


def a_log(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Make a log, most of them short, before it is damaged."""
    if seeds and rng.random() < 0.3:
        lines = rng.choice(seeds).splitlines(keepends=True)
        begin = rng.randrange(len(lines) or 1)
        return b"".join(lines[begin : begin + rng.randrange(1, 40)])
    if rng.random() < 0.12:
        return a_document(rng)
    number = MANY_LINES if rng.random() < 0.03 else rng.choice((1, 2, 3, 5, 8, 13, 21, 34))
    pool = [a_line(rng, each) for each in range(rng.randrange(1, 6))]
    wraps = rng.choices(WRAPS, k=rng.choice((0, 0, 1, 1, 2, 3)))
    made: list[bytes] = []
    for each in range(number):
        line = rng.choice(pool) if rng.random() < 0.3 else a_line(rng, each)
        for piece in line.split(b"\n"):
            wrapped = piece
            for wrap in wraps if rng.random() < 0.9 else (rng.choice(WRAPS),):
                wrapped = wrap(wrapped)
            made.append(wrapped)
    return b"\n".join(made) + rng.choice((b"\n", b"\n", b"", b"\r\n"))


def damaged(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Do one thing to a log."""
    begin = rng.randrange(len(data) + 1)
    end = min(len(data), begin + rng.choice((1, 2, 10, 100, 1_000)))
    elsewhere = rng.randrange(len(data) + 1)
    match rng.randrange(9):
        case 0 if begin < len(data):
            return data[:begin] + bytes([data[begin] ^ 1 << rng.randrange(8)]) + data[begin + 1 :]
        case 1:
            return data[:begin] + data[end:]
        case 2:
            return data[:elsewhere] + data[begin:end] + data[elsewhere:]
        case 3:
            return data[:begin] + other[rng.randrange(len(other) + 1) :]
        case 4:
            middle = rng.randrange(len(other) + 1)
            return data[:begin] + other[middle : middle + (end - begin)] + data[begin:]
        case 5:
            return data[:begin]
        case 6:
            lines = data.split(b"\n")
            rng.shuffle(lines)
            return b"\n".join(lines)
        case _:
            return data[:begin] + rng.choice(ODD) + data[begin:]


def packed(rng: random.Random, data: bytes) -> bytes:
    """Compress a log, and maybe damage that."""
    compress = rng.choice((gzip.compress, bz2.compress, lzma.compress))
    data = compress(data)
    return damaged(rng, data, data) if rng.random() < 0.7 else data


def hostile_log(seed: int, seeds: Sequence[bytes]) -> bytes:
    """Return the log of a seed: always the same one, given the same seeds."""
    rng = random.Random(seed)
    data, other = a_log(rng, seeds), a_log(rng, seeds)
    for _ in range(rng.choice((0, 1, 1, 2, 4, 8))):
        data = damaged(rng, data, other)
    return packed(rng, data) if rng.random() < 0.05 else data
