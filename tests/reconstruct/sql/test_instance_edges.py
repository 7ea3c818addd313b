"""The service graph between processes: replicas apart, and their calls of each other."""

from typing import Any

COLUMNS = """
    client_instance, server, server_instance, kind, calls, attempts, failed_attempts, unpaired_calls
"""


def edges(logs: Any) -> list[tuple[Any, ...]]:
    with logs.engine() as engine:
        rows = engine.rows(f"SELECT {COLUMNS} FROM instance_edges ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def test_replicas_of_one_service(logs: Any) -> None:
    """a-1 ── a-2: hidden between services, an edge between processes."""
    logs.span("call", kind="CLIENT", instance="a-1")
    logs.span("serve", "call", 10, 90, kind="SERVER", instance="a-2")
    assert edges(logs) == [("a#a-1", "a", "a#a-2", "rpc", 1, 1, 0, 0)]


def test_a_request_sent_again_to_another_replica(logs: Any) -> None:
    """One call of each, with one attempt; between services one call with two."""
    logs.span("call", start=0, end=100, kind="CLIENT")
    logs.span("no", "call", 10, 30, kind="SERVER", service="b", instance="b-1", status="ERROR")
    logs.span("yes", "call", 40, 90, kind="SERVER", service="b", instance="b-2")
    assert edges(logs) == [
        ("a#a-1", "b", "b#b-1", "rpc", 1, 1, 1, 0),
        ("a#a-1", "b", "b#b-2", "rpc", 1, 1, 0, 0),
    ]
    with logs.engine() as engine:
        assert engine.rows("SELECT calls, attempts FROM service_edges") == [
            {"calls": 1, "attempts": 2}
        ]


def test_calls_within_a_process_are_no_edge(logs: Any) -> None:
    """Nor are their halves unpaired."""
    logs.span("call", kind="CLIENT")
    logs.span("serve", "call", 10, 90, kind="SERVER")
    assert edges(logs) == []


def test_who_answers_at_an_address(logs: Any) -> None:
    """A process when only one ever did, else no more than its service."""
    here = {"server.address": "10.0.0.1", "server.port": 80}
    logs.span("paired", kind="CLIENT", attributes=here)
    logs.span("serve", "paired", 10, 90, kind="SERVER", service="b", instance="b-1")
    logs.span("lost", kind="CLIENT", attributes=here, trace="u")
    assert edges(logs) == [("a#a-1", "b", "b#b-1", "rpc", 2, 1, 0, 1)]
    logs.span("paired", kind="CLIENT", attributes=here, trace="v")
    logs.span("serve", "paired", 10, 90, kind="SERVER", service="b", instance="b-2", trace="v")
    assert edges(logs) == [
        ("a#a-1", "b", "b#b-1", "rpc", 1, 1, 0, 0),
        ("a#a-1", "b", "b#b-2", "rpc", 1, 1, 0, 0),
        ("a#a-1", "b", None, "rpc", 1, 0, 0, 1),
    ]


def test_what_is_no_process(logs: Any) -> None:
    """Entry, missing, databases and addresses have no instance."""
    logs.span("root", kind="SERVER")
    logs.span("half", "gone", kind="SERVER", trace="u")
    logs.span("query", kind="CLIENT", attributes={"db.system": "redis"}, trace="v")
    logs.span("get", kind="CLIENT", attributes={"server.address": "x.org"}, trace="w")
    assert edges(logs) == [
        ("a#a-1", "redis", None, "database", 1, 0, 0, 1),
        ("a#a-1", "x.org", None, "external", 1, 0, 0, 1),
        (None, "a", "a#a-1", "entry", 1, 1, 0, 0),
        (None, "a", "a#a-1", "missing", 1, 1, 0, 1),
    ]
