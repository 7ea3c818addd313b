"""The service graph: who called whom, how often, and which halves are missing."""

from typing import Any

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


def test_a_span_between_client_and_server(logs: Any) -> None:
    """Middleware of the callee does not hide the edge, nor make two."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a")
    logs.span("middle", "call", 10, 90, service="b")
    logs.span("serve", "middle", 20, 80, kind="SERVER", service="b")
    assert edges(logs) == [("a", "b", "rpc", 1, 0, 1, 0, 0)]


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
    assert edges(logs, "server, gap_p50_ns") == [("b", 30), ("c", -5)]


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
