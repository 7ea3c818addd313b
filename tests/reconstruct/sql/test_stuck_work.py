"""Stuck work: where it hangs, for how long beside its kind, who it waits for, who it died with."""

import math
from typing import Any

import pytest

from tests.reconstruct.conftest import BASE, SECOND

MS = 1_000_000


def stuck(engine: Any, instant: int | None = None) -> dict[str, dict[str, Any]]:
    """Return what has no end, by its name."""
    rows = engine.rows(
        "FROM stuck_work_at($instant)",
        {"instant": None if instant is None else BASE + instant},
    )
    assert len({row["name"] for row in rows}) == len(rows)
    return {row["name"]: row for row in rows}


def finished(logs: Any, lengths: list[int], **facts: Any) -> None:
    """Write spans named search that finished, `lengths` ns long."""
    for number, length in enumerate(lengths):
        facts = {"name": "search", "service": "tools", "trace": f"done {number}"} | facts
        logs.span(f"done {number}", None, number, number + length, **facts)


@pytest.mark.parametrize("count", [9, 10, 100, 101, 250])
def test_the_99th_percentile_is_that_of_its_kind(logs: Any, count: int) -> None:
    """Of its service and name; 99 % took at most so long. Of fewer than 10 it is unknown."""
    lengths = [(number * 7_919) % 1_000 for number in range(count)]
    finished(logs, lengths)
    logs.span("other", None, 0, 9_999, name="search", service="elsewhere", trace="e")
    logs.span("hangs", None, 0, None, name="search", service="tools", trace="h")
    logs.span("late", None, 5_000, 5_001, trace="late")
    with logs.engine() as engine:
        row = stuck(engine)["search"]
    p99 = sorted(lengths)[math.ceil(count * 99 / 100) - 1]
    assert row["kind_p99_ns"] == (p99 if count >= 10 else None)
    assert row["is_stuck"] is (True if count >= 10 else None)
    assert (row["finished_peers"], row["longest_peer_ns"]) == (count, max(lengths))


def test_a_route_is_a_kind_of_its_own(logs: Any) -> None:
    """Of a server its route, of a client the path it called; all of them where it is unknown."""
    for number in range(10):
        for route, length in (("search", 50), ("fetch", 500)):
            facts = {"trace": f"{route} {number}", "kind": "CLIENT", "name": "HTTP POST"}
            url = f"http://10.0.0.1:80/ng-rollout/{number}-0/{route}"
            logs.span("call", None, 0, length, attributes={"url.full": url}, **facts)
    here = {"url.full": "http://10.0.0.1:80/search"}
    logs.span("a", None, 0, None, name="HTTP POST", kind="CLIENT", attributes=here, trace="x")
    logs.span("b", None, 0, None, name="HTTP POST", kind="CLIENT", trace="y")
    logs.span("end", None, 0, 100, trace="z")
    with logs.engine() as engine:
        rows = engine.rows("FROM stuck_work ORDER BY route")
    assert [
        (row["route"], row["finished_peers"], row["kind_p99_ns"], row["is_stuck"]) for row in rows
    ] == [("/search", 10, 50, True), (None, 20, 500, False)]


def test_it_hangs_in_the_innermost(logs: Any) -> None:
    """Those above wait for what is below them, in words."""
    logs.span("run", None, 0, None, rollout="7-0")
    logs.span("first", "run", 5, None, service="b")
    logs.span("second", "run", 6, None, service="c")
    logs.span("done", "run", 1, 4)
    logs.span("end", None, 0, 100, trace="z")
    with logs.engine() as engine:
        rows = stuck(engine)
    assert {name: (row["is_innermost"], row["waits_for"]) for name, row in rows.items()} == {
        "run": (False, "first in b and 1 more"),
        "first": (True, "its own work"),
        "second": (True, "its own work"),
    }
    assert {row["rollout_id"] for row in rows.values()} == {"7-0"}
    assert rows["first"]["waited_ns"] == 95


def test_who_answers_at_an_address_is_known_from_other_calls(logs: Any) -> None:
    """With whether that process is gone; of an address that nobody answered at, nothing is."""
    here, there = {"server.address": "10.0.0.1", "server.port": 80}, {"server.address": "far.org"}
    logs.process("started", 0, service="agent")
    logs.process("started", 0, service="tools", pid=8)
    logs.span("ask", None, 0, 90, kind="CLIENT", service="agent", attributes=here, trace="a")
    logs.span("serve", "ask", 10, 80, kind="SERVER", service="tools", trace="a")
    logs.span("to tools", None, 100, None, kind="CLIENT", service="agent", attributes=here)
    logs.span("abroad", None, 100, None, kind="CLIENT", service="agent", attributes=there)
    logs.span("blind", None, 100, None, kind="CLIENT", service="agent")
    logs.process("alive", 100 * SECOND, service="agent")
    with logs.engine() as engine:
        assert {name: row["waits_for"] for name, row in stuck(engine).items()} == {
            "to tools": "tools at 10.0.0.1:80, whose process is gone",
            "abroad": "far.org, of which these logs know nothing",
            "blind": "an unknown address, of which these logs know nothing",
        }
        assert stuck(engine, 5)["ask"]["waits_for"] == "tools at 10.0.0.1:80"
        assert (
            stuck(engine, 85)["ask"]["waits_for"] == "the answer of serve in tools, which has ended"
        )


def test_lost_work_names_the_process_it_died_with(logs: Any) -> None:
    """Its state, when it was last heard of, and where its last line lies."""
    logs.process("started", 0, service="agent")
    logs.process("started", 0, service="tools", pid=99)
    logs.span("serve", None, 10, None, service="tools")
    logs.span("other", None, 20, 30, service="tools", trace="u")
    logs.process("stopped", 100 * SECOND, service="agent")
    with logs.engine() as engine:
        row = stuck(engine)["serve"]
    assert (row["ending"], row["open_ns"]) == ("lost", 20)
    assert (row["process_state"], row["process_pid"], row["host_name"]) == ("dead", 99, "node-1")
    assert row["last_sign_of_life_unix_nano"] == BASE + 30
    assert (row["last_file"].rpartition("/")[2], row["last_line"]) == ("tools.log", 3)


def test_work_that_was_ended_for_it_has_no_end_of_its_own(logs: Any) -> None:
    """By a shutdown, or by being cancelled; what finished is not among its peers."""
    for name, key in (
        ("shut", "gymlog.unfinished"),
        ("truncated", "nemo.span.truncated"),
        ("cancelled", "gymlog.cancelled"),
        ("fine", "other"),
    ):
        logs.span(name, None, 0, 50, attributes={key: True}, trace=name)
    logs.span("untrue", None, 0, 50, attributes={"gymlog.cancelled": False}, trace="untrue")
    with logs.engine() as engine:
        rows = stuck(engine)
    assert {name: (row["ending"], row["finished_peers"]) for name, row in rows.items()} == {
        "shut": ("shutdown", 0),
        "truncated": ("shutdown", 0),
        "cancelled": ("cancelled", 0),
    }
    assert {row["open_ns"] for row in rows.values()} == {50}


def test_at_an_instant_it_is_what_had_not_ended(logs: Any) -> None:
    """Also what ended later; what was lost before is still waited for."""
    logs.process("started", 0, service="agent")
    logs.process("started", 0, service="tools", pid=8)
    logs.span("run", None, 0, 90, service="agent")
    logs.span("ask", "run", 10, 60, service="agent")
    logs.span("serve", "ask", 20, None, service="tools")
    logs.process("alive", 40, service="tools", pid=8)
    logs.process("stopped", 100 * SECOND, service="agent")
    with logs.engine() as engine:
        at_30, at_50, at_70 = (stuck(engine, time) for time in (30, 50, 70))
    facts = {
        name: (row["ending"], row["open_ns"], row["is_innermost"]) for name, row in at_30.items()
    }
    assert facts == {
        "run": ("open", 30, False),
        "ask": ("open", 20, False),
        "serve": ("open", 10, True),
    }
    assert (at_50["serve"]["ending"], at_50["serve"]["open_ns"]) == ("lost", 20)
    assert (at_50["ask"]["ending"], at_50["ask"]["open_ns"]) == ("open", 40)
    assert set(at_70) == {"run", "serve"}


def test_a_wide_trace_is_no_trouble(logs: Any) -> None:
    """Two thousand siblings that hang, and a chain as deep."""
    logs.span("root", None, 0, None)
    for number in range(2_000):
        logs.span(f"leaf {number}", "root", number, None, name="leaf")
        logs.span(
            f"link {number}", f"link {number - 1}" if number else None, number, None, trace="u"
        )
    with logs.engine() as engine:
        (row,) = engine.rows(
            "SELECT count(*) AS n, count(*) FILTER (is_innermost) AS innermost FROM stuck_work"
        )
    assert (row["n"], row["innermost"]) == (4_001, 2_001)
