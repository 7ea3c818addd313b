"""Halves of calls whose other half is not in the input: which, on whose side, and why."""

from typing import Any

import pytest

HERE = {"server.address": "10.0.0.1", "server.port": 80}


def halves(logs: Any) -> list[tuple[Any, ...]]:
    with logs.engine() as engine:
        rows = engine.rows(
            "SELECT name, side, peer, kind, reason FROM unpaired_halves ORDER BY name"
        )
    return [tuple(row.values()) for row in rows]


def test_calls_with_both_halves_are_not_among_them(logs: Any) -> None:
    """Nor those between replicas, or within a process."""
    logs.span("call", kind="CLIENT")
    logs.span("serve", "call", 10, 90, kind="SERVER", service="b")
    logs.span("again", "serve", 20, 80, kind="CLIENT", service="b")
    logs.span("within", "again", 30, 70, kind="SERVER", service="b")
    assert halves(logs) == []


def test_server_halves(logs: Any) -> None:
    """A root was called from outside; one with a parent id has lost its caller."""
    logs.span("root", kind="SERVER")
    logs.span("half", "gone", kind="SERVER", trace="u")
    assert halves(logs) == [
        ("half", "server", None, "missing", "its parent span is not in the input"),
        (
            "root",
            "server",
            None,
            "entry",
            "it has no parent: called from outside, or without a trace context",
        ),
    ]


@pytest.mark.parametrize(
    ("attributes", "end", "status", "peer", "kind", "reason"),
    [
        ({"db.system": "redis"}, 100, "UNSET", "redis", "database", "it called a database"),
        (HERE, None, "UNSET", "b", "rpc", "it has not ended"),
        (HERE, 100, "ERROR", "b", "rpc", "it failed, and may not have arrived"),
        (HERE, 100, "UNSET", "b", "rpc", "who answers at its address has no span of it"),
        ({}, 100, "UNSET", None, "unpaired", "it names no address"),
        ({"peer.service": "mute"}, 100, "UNSET", "mute", "external", "the process that it called"),
        (
            {"url.full": "http://127.0.0.1:81/run"},
            100,
            "UNSET",
            "127.0.0.1:81",
            "external",
            "nobody in these logs answers at its address, on one of their hosts",
        ),
        (
            {"server.address": "node-1", "server.port": 9},
            100,
            "UNSET",
            "node-1:9",
            "external",
            "nobody in these logs answers at its address, on one of their hosts",
        ),
        (
            {"url.full": "https://api.x.org/v1"},
            100,
            "UNSET",
            "api.x.org",
            "external",
            "nobody in these logs answers at its address: it is outside",
        ),
    ],
)
def test_client_halves(
    logs: Any,
    attributes: dict[str, Any],
    end: int | None,
    status: str,
    peer: str | None,
    kind: str,
    reason: str,
) -> None:
    """b answers at an address; mute lives, and writes no spans."""
    logs.process("started", 0, service="mute")
    logs.span("paired", kind="CLIENT", attributes=HERE)
    logs.span("serve", "paired", 10, 90, kind="SERVER", service="b")
    logs.span("half", end=end, kind="CLIENT", attributes=attributes, status=status, trace="u")
    ((name, side, found_peer, found_kind, found_reason),) = halves(logs)
    assert (name, side, found_peer, found_kind) == ("half", "client", peer, kind)
    assert found_reason.startswith(reason)


def test_they_add_up_to_what_the_graph_says(logs: Any) -> None:
    """Of each kind as many as there are unpaired calls, and calls of entry."""
    for trace, attributes in enumerate([HERE, HERE, {}, {"db.system": "redis"}, {}]):
        logs.span("half", kind="CLIENT", attributes=attributes, trace=f"{trace}")
    logs.span("paired", kind="CLIENT", attributes=HERE)
    logs.span("serve", "paired", 10, 90, kind="SERVER", service="b")
    logs.span("root", kind="SERVER", trace="u")
    with logs.engine() as engine:
        counted, listed = (
            engine.rows(sql)
            for sql in (
                """
                SELECT kind, sum(if(kind = 'entry', calls, unpaired_calls))::BIGINT AS n
                FROM service_edges
                GROUP BY kind
                ORDER BY kind
                """,
                "SELECT kind, count(*) AS n FROM unpaired_halves GROUP BY kind ORDER BY kind",
            )
        )
    assert counted == listed
    assert {row["kind"]: row["n"] for row in listed} == {
        "database": 1,
        "entry": 1,
        "rpc": 2,
        "unpaired": 2,
    }
