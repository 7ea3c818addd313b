"""The service graph: who called whom, how often, and which halves are missing."""

import json
from typing import Any

import pytest

COUNTS = "client, server, kind, calls, failed_calls, attempts, failed_attempts, unpaired_calls"


def edges(logs: Any, columns: str = COUNTS) -> list[tuple[Any, ...]]:
    with logs.engine() as engine:
        rows = engine.rows(f"SELECT {columns} FROM service_edges ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def test_a_call(logs: Any) -> None:
    """One client span, one server span; the gap is the time between them."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a")
    logs.span("serve", "call", 20, 70, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 1, 0, 1, 0, 0)]
    assert edges(logs, "duration_p50_ns, gap_p50_ns") == [(100, 50)]


def test_a_request_sent_again(logs: Any) -> None:
    """Two server spans are two attempts of one call, which has not failed."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a")
    logs.span("first", "call", 10, 30, kind="SERVER", service="b", status="ERROR")
    logs.span("second", "call", 40, 90, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 1, 0, 2, 1, 0)]
    assert edges(logs, "duration_p50_ns, gap_p50_ns") == [(100, 30)]


def test_attempts_that_overlap(logs: Any) -> None:
    """What they cover counts once; one that has not ended leaves no gap to tell."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a")
    for number, (start, end) in enumerate([(10, 50), (20, 30), (40, 60), (90, 120)]):
        logs.span(f"{number}", "call", start, end, kind="SERVER", service="b")
    assert edges(logs, "attempts, gap_p50_ns") == [(4, 20)]
    logs.span("4", "call", 95, None, kind="SERVER", service="b")
    assert edges(logs, "attempts, gap_p50_ns") == [(5, None)]


def test_a_span_between_client_and_server(logs: Any) -> None:
    """Middleware of the callee does not hide the edge, nor make two."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a")
    logs.span("middle", "call", 10, 90, service="b")
    logs.span("serve", "middle", 20, 80, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 1, 0, 1, 0, 0)]


@pytest.mark.parametrize("depth", [1, 2, 3, 10_000])
def test_spans_below_a_client_and_above_a_server(logs: Any, depth: int) -> None:
    """Whatever depth of INTERNAL spans lies between the halves, on both sides."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a", status="ERROR")
    for number in range(depth):
        logs.span(f"a{number}", f"a{number - 1}" if number else "call", 1, 99, service="a")
    for number in range(depth):
        parent = f"b{number - 1}" if number else f"a{depth - 1}"
        logs.span(f"b{number}", parent, 10, 90, service="b")
    logs.span("first", f"b{depth - 1}", 10, 20, kind="SERVER", service="b", status="ERROR")
    logs.span("second", f"b{depth - 1}", 30, 80, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 1, 1, 2, 1, 0)]
    assert edges(logs, "duration_p50_ns, gap_p50_ns") == [(100, 40)]


def test_a_client_around_a_client(logs: Any) -> None:
    """A library's span around the call that it makes is no call of its own."""
    logs.span("chat", start=0, end=100, kind="CLIENT", service="a")
    logs.span("prepare", "chat", 1, 99, service="a")
    logs.span("post", "prepare", 10, 90, kind="CLIENT", service="a")
    logs.span("serve", "post", 20, 80, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 1, 0, 1, 0, 0)]


def test_calls_without_client_spans(logs: Any) -> None:
    """Each server half is a call of its own, with its own duration and no gap."""
    logs.span("rollout", start=0, end=100, service="a")
    logs.span("one", "rollout", 10, 30, kind="SERVER", service="b", status="ERROR")
    logs.span("two", "rollout", 40, 80, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 2, 1, 2, 1, 0)]
    assert edges(logs, "duration_p50_ns, duration_p95_ns, gap_p50_ns") == [(20, 40, None)]


def test_two_clients_follow_each_other(logs: Any) -> None:
    """Each change of service is one call, and a leaf with an address leads outside."""
    there = {"server.address": "10.0.0.9", "server.port": 8000}
    logs.span("ask", start=0, end=100, kind="CLIENT", service="a")
    logs.span("route", "ask", 10, 90, kind="CLIENT", service="b")
    logs.span("serve", "route", 20, 80, kind="SERVER", service="c")
    logs.span("tokenize", "serve", 21, 25, service="c")
    logs.span("generate", "serve", 30, 70, kind="CLIENT", service="c", attributes=there)
    assert edges(logs) == [
        ("a", "b", "rpc", 1, 0, 1, 0, 0),
        ("b", "c", "rpc", 1, 0, 1, 0, 0),
        ("c", "10.0.0.9:8000", "external", 1, 0, 0, 0, 1),
    ]


def test_unfinished_calls(logs: Any) -> None:
    """They are counted, and have no duration."""
    logs.span("call", start=0, end=None, kind="CLIENT", service="a")
    logs.span("serve", "call", 10, 20, kind="SERVER", service="b")
    logs.span("next", start=0, end=50, kind="CLIENT", service="a", trace="u")
    logs.span("serve", "next", 10, 20, kind="SERVER", service="b", trace="u")
    assert edges(logs, "calls, unfinished_calls, duration_p95_ns, gap_p95_ns") == [(2, 1, 50, 40)]


def test_a_database(logs: Any) -> None:
    """A client span with a database system needs no server half."""
    logs.span(
        "query", kind="CLIENT", attributes={"db.system": "postgresql", "server.address": "pg1"}
    )
    assert edges(logs) == [("a", "pg1", "database", 1, 0, 0, 0, 1)]


def test_entry_and_missing(logs: Any) -> None:
    """A server root comes from outside; one whose parent is not in the input from `missing`."""
    logs.span("root", kind="SERVER", service="b")
    logs.span("half", "gone", kind="SERVER", service="b", trace="u", status="ERROR")
    assert edges(logs) == [
        ("entry", "b", "entry", 1, 0, 1, 0, 0),
        ("missing", "b", "missing", 1, 1, 1, 1, 1),
    ]


def test_queues(logs: Any) -> None:
    """Latency is from the producer's end to the consumer's start; below 0 it tells of clocks."""
    logs.span("put", start=0, end=50, kind="PRODUCER", service="a")
    logs.span("take", "put", 80, 90, kind="CONSUMER", service="b")
    assert edges(logs, "kind, gap_p50_ns") == [("queue", 30)]
    logs.span("put", start=0, end=50, kind="PRODUCER", service="a", trace="u")
    logs.span("take", "put", 45, 90, kind="CONSUMER", service="c", trace="u")
    assert edges(logs, "server, gap_p50_ns, negative_gaps") == [("b", 30, 0), ("c", -5, 1)]


def test_a_server_that_outlasts_its_client(logs: Any) -> None:
    """The gap is negative, and says so."""
    logs.span("call", start=0, end=50, kind="CLIENT", service="a", status="ERROR")
    logs.span("serve", "call", 10, 90, kind="SERVER", service="b")
    assert edges(logs, "failed_calls, gap_p50_ns, negative_gaps") == [(1, -30, 1)]


def test_replicas_of_one_service(logs: Any) -> None:
    """Calls within a service are no edge of services, nor unpaired."""
    logs.span("call", kind="CLIENT", instance="a-1")
    logs.span("serve", "call", 10, 90, kind="SERVER", instance="a-2")
    assert edges(logs) == []


def test_a_call_without_a_server_half(logs: Any) -> None:
    """It goes to who else answers at its address, else to the address, else to unknown."""
    here = {"server.address": "10.0.0.1", "server.port": 80}
    logs.span("paired", kind="CLIENT", attributes=here)
    logs.span("serve", "paired", 10, 90, kind="SERVER", service="b")
    logs.span("lost", kind="CLIENT", attributes=here, trace="u", status="ERROR")
    logs.span("abroad", kind="CLIENT", attributes={"url.full": "https://api.x.org/v1"}, trace="v")
    logs.span("blind", kind="CLIENT", trace="w")
    assert edges(logs) == [
        ("a", "api.x.org", "external", 1, 0, 0, 0, 1),
        ("a", "b", "rpc", 2, 1, 1, 0, 1),
        ("a", "unknown", "unpaired", 1, 0, 0, 0, 1),
    ]


def test_plain_spans_across_processes(logs: Any) -> None:
    """A parent in another service is an edge, whatever the kinds."""
    logs.span("outer", service="a")
    logs.span("inner", "outer", 10, 20, service="b")
    assert edges(logs) == [("a", "b", "internal", 1, 0, 1, 0, 0)]


def test_a_process_without_a_service(logs: Any) -> None:
    """It calls and is called like others, under no name."""
    logs.span("call", kind="CLIENT", service="a")
    record = logs.span("serve", "call", 10, 90, kind="SERVER", service="b")
    del record["resource"]["attributes"]["service.name"]
    logs.files["b.log"] = [json.dumps(record)]
    assert edges(logs) == [("a", None, "rpc", 1, 0, 1, 0, 0)]


def test_only_some_traces(logs: Any) -> None:
    """Of a list of trace ids, or of all when it is null; of none when it is empty."""
    for trace in ("t", "u", "v"):
        logs.span("call", kind="CLIENT", trace=trace)
        logs.span("serve", "call", 10, 90, kind="SERVER", service="b", trace=trace)
    with logs.engine() as engine:
        for ids, calls in (
            ("NULL", [3]),
            ("(SELECT list(trace_id) FROM traces LIMIT 1)", [3]),
            ("(SELECT list(trace_id ORDER BY trace_id)[:2] FROM traces)", [2]),
            ("[]", []),
        ):
            for relation in ("service_edges_of", "instance_edges_of"):
                rows = engine.rows(f"SELECT calls FROM {relation}({ids})")
                assert [row["calls"] for row in rows] == calls
