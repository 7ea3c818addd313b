"""Findings about a run and its inputs: clocks, names, runs, ids, calls that nothing answers."""

import json
from typing import Any

import pytest

MS = 1_000_000
SECOND = 1_000 * MS


def call(logs: Any, number: int, begins_ns: int, ends_ns: int, *, status: str = "UNSET") -> None:
    """Write a call of 100 ms, and its request, which begins and ends so long after it began."""
    at = number * SECOND
    trace = f"t{number}"
    logs.span(
        "call", None, at, at + 100 * MS, trace=trace, service="agent", kind="CLIENT", status=status
    )
    logs.span(
        "serve", "call", at + begins_ns, at + ends_ns, trace=trace, service="model", kind="SERVER"
    )


@pytest.mark.parametrize(
    ("begins", "ends", "behind", "least", "severity"),
    [
        (-2 * MS, 60 * MS, "model", 2 * MS, "note"),
        (-50 * SECOND, -49 * SECOND, "model", 50 * SECOND, "warning"),
        (50 * SECOND, 51 * SECOND, "agent", 50 * SECOND - 100 * MS, "warning"),
        (MS, 60 * MS, None, 0, None),
        (MS, 200 * MS, None, 0, None),
    ],
)
def test_clocks_that_differ(
    logs: Any, begins: int, ends: int, behind: str | None, least: int, severity: str | None
) -> None:
    """One finding for both hosts, by the least difference that explains all; a server may go on."""
    for number in range(12):
        call(logs, number, begins + number, ends + number)
    rows = logs.findings("clock_skew")
    if behind is None:
        assert rows == []
        return
    (skew,) = rows
    assert skew["evidence"]["slow_host"].startswith(behind)
    assert abs(skew["evidence"]["least_ns"] - least) <= 12
    assert (skew["evidence"]["edges"], skew["severity"], skew["confidence"]) == (12, severity, 0.9)


def test_a_call_that_failed_tells_nothing_of_clocks(logs: Any) -> None:
    """The server may come to it when the caller has given up."""
    call(logs, 0, 300 * MS, 400 * MS, status="ERROR")
    assert logs.findings("clock_skew") == []


def test_processes_of_one_host_have_one_clock(logs: Any) -> None:
    """What is early there is a finding of its own."""
    for service in ("agent", "model"):
        logs.process("started", 0, service=service)
    call(logs, 1, -2 * MS, 60 * MS)
    assert logs.findings("clock_skew") == []
    assert [row["severity"] for row in logs.findings("outside_parent")] == ["note"]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("GET /items/{number}", "GET /items/*"),
        ("load https://host/{number}?q=1", "load *"),
        ("task {number:08x}-0000-0000-0000-00000000000a", "task *"),
        ("shard{number}", "shard*"),
    ],
)
def test_names_that_hold_ids(logs: Any, name: str, pattern: str) -> None:
    """50 names that are one; 49 may be what they are."""
    for number in range(49):
        logs.span(f"s{number}", None, number, number + 1, name=name.format(number=number))
    assert logs.findings("many_names") == []
    logs.span("s49", None, 49, 50, name=name.format(number=49))
    (many,) = logs.findings("many_names")
    assert (many["severity"], many["evidence"]["pattern"]) == ("note", pattern)
    assert many["evidence"]["names"] == 50


def test_names_that_only_differ_in_words_are_names(logs: Any) -> None:
    for first in "abcdefghij":
        for second in "klmnopqrst":
            logs.span(f"{first}{second}", name=f"{first}{first} {second}{second}")
    assert logs.findings("many_names") == []


def test_several_runs(logs: Any) -> None:
    """A note; a trace that two of them share is a warning."""
    logs.process("started", 0, service="a", run="one")
    logs.span("root", None, 0, 10)
    assert logs.findings("mixed_runs") == []
    logs.process("started", 1, service="b", run="two")
    (several,) = logs.findings("mixed_runs")
    assert (several["severity"], several["cause"]) == ("note", "several_runs")
    assert several["evidence"] == {"runs": ["one", "two"]}
    logs.span("child", "root", 1, 2, service="b")
    shared, _ = sorted(logs.findings("mixed_runs"), key=lambda row: row["severity"] == "note")
    assert (shared["severity"], shared["cause"]) == ("warning", "trace_in_two_runs")
    assert shared["message"] == "1 trace has spans of run one and of run two"


@pytest.mark.parametrize(
    ("field", "spelling", "cause", "confidence"),
    [
        ("trace_id", "0" * 32, "invalid_id", 1),
        ("span_id", "0" * 16, "invalid_id", 1),
        ("trace_id", "none", "invalid_id", 1),
        ("parent_span_id", "abc", "invalid_id", 1),
        ("trace_id", "{id:.8}-{id:.12}-{rest}", "id_format", 0.95),
        ("trace_id", "base64", "id_format", 0.95),
        ("trace_id", "decimal", "id_format", 0.95),
        ("span_id", "q83vEjRWeJA=", "id_format", 0.7),
    ],
)
def test_ids_that_are_none(
    logs: Any, field: str, spelling: str, cause: str, confidence: float
) -> None:
    """The record is not read; an id in another spelling is named as W3C has it."""
    trace_id = "7f" + "ab" * 15
    spelled = {
        "{id:.8}-{id:.12}-{rest}": "7fababab-abab-abab-abab-abababababab",
        "base64": "f6urq6urq6urq6urq6urqw==",
        "decimal": str(int(trace_id, 16)),
    }.get(spelling, spelling)
    good = logs.span("good", None, 0, 10)
    logs.files["a.log"][-1] = json.dumps(good | {"trace_id": trace_id})
    bad = logs.span("bad", None, 0, 10)
    logs.files["a.log"][-1] = json.dumps(bad | {field: spelled})
    (invalid,) = logs.findings("invalid_id")
    assert (invalid["cause"], invalid["confidence"]) == (cause, confidence)
    assert (invalid["line"], invalid["evidence"]["field"]) == (2, field)
    assert invalid["trace_id"] == (trace_id if confidence == 0.95 else None)
    assert logs.findings("torn_lines") == []


@pytest.mark.parametrize(
    ("url", "silent", "severity", "cause"),
    [
        ("http://10.0.0.7:80/ng-rollout/0-0/verify", None, "warning", "file_missing"),
        ("http://10.0.0.7:80/ng-rollout/0-0/verify", "process", "warning", "not_initialised"),
        ("http://10.0.0.7:80/ng-rollout/0-0/verify", "text", "warning", "not_initialised"),
        ("http://localhost:80/verify", None, "note", "file_missing"),
        ("http://env-3:80/verify", None, "note", "file_missing"),
        ("https://api.example.com/v1", None, None, None),
        ("http://8.8.8.8/v1", None, None, None),
    ],
)
def test_calls_that_nothing_answers(
    logs: Any, url: str, silent: str | None, severity: str | None, cause: str | None
) -> None:
    """Within the gym for sure, or maybe; what is outside it need not be in the logs."""
    for number in range(3):
        logs.span(
            f"call {number}",
            None,
            number,
            number + 1,
            trace=f"t{number}",
            kind="CLIENT",
            attributes={"url.full": url},
        )
    if silent == "process":
        logs.process("started", 0, service="env")
    elif silent == "text":
        logs.raw("INFO: ready", "env.log")
    rows = logs.findings("unanswered")
    assert [(row["severity"], row["cause"]) for row in rows] == (
        [] if severity is None else [(severity, cause)]
    )
    assert all(row["evidence"]["calls"] == 3 for row in rows)


def test_a_call_that_failed_or_is_split_off_is_not_unanswered(logs: Any) -> None:
    """The first was never answered at all; the second was, in a trace of its own."""
    url = "http://10.0.0.7:80/ng-rollout/0-0"
    facts: dict[str, Any] = {"kind": "CLIENT", "service": "agent"}
    logs.span(
        "a", None, 0, 9, trace="t", status="ERROR", attributes={"url.full": f"{url}/x"}, **facts
    )
    logs.span("b", None, 0, 9, trace="u", attributes={"url.full": f"{url}/y"}, **facts)
    logs.span("serve", None, 1, 8, trace="v", kind="SERVER", attributes={"url.path": "/y"})
    assert logs.findings("unanswered") == []


def test_what_an_exporter_lost(logs: Any) -> None:
    """By the process's own word."""
    logs.process("started", 0)
    record = logs.process("stopped", 10)
    logs.files["a.log"][-1] = json.dumps(record | {"export_dropped": 2, "export_failed": 3})
    (lost,) = logs.findings("lost_lines")
    assert (lost["severity"], lost["cause"]) == ("warning", "exports_dropped")
    assert lost["message"].endswith("could not export 5 records over OTLP")
