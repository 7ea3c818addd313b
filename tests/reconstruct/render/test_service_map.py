"""The graph of calls as a terminal shows it: each node once, marks, figures, notes."""

import re
from typing import Any

import pytest

from reconstruct.render.call_graph import graph
from reconstruct.render.service_map import service_map
from reconstruct.render.text import plain, width


def edge(client: str, server: str, kind: str = "rpc", calls: int = 1, **figures: Any) -> Any:
    row = {
        "client": client,
        "server": server,
        "kind": kind,
        "calls": calls,
        "failed_calls": 0,
        "attempts": calls,
        "failed_attempts": 0,
        "unpaired_calls": 0,
        "unfinished_calls": 0,
        "duration_p50_ns": 20_000_000,
        "duration_p95_ns": 30_000_000,
        "gap_p50_ns": 1_000_000,
        "negative_gaps": 0,
    }
    return row | figures


def drawn(*rows: Any, columns: int = 80) -> list[str]:
    return plain(service_map(graph(rows), columns=columns)).splitlines()


def names(*rows: Any) -> list[str]:
    """The lines of nodes, without their figures."""
    lines = drawn(*rows)
    first = next(number for number, line in enumerate(lines) if line.endswith("GAP"))
    last = lines.index("", first) if "" in lines[first:] else len(lines)
    return [re.split(r"\s+\d+\s", line)[0] for line in lines[first + 1 : last]]


def test_callers_stand_above_those_they_call() -> None:
    """And what more often is called comes first."""
    rows = [edge("agent", "model", calls=9), edge("agent", "tools"), edge("driver", "agent")]
    assert drawn(*rows) == [
        "4 services, 11 calls",
        "",
        "                    CALLS  FAILED      P50      P95      GAP",
        "● driver",
        "└╴● agent               1       0  20.0 ms  30.0 ms  1.00 ms",
        "  ├╴● model             9       0  20.0 ms  30.0 ms  1.00 ms",
        "  └╴● tools             1       0  20.0 ms  30.0 ms  1.00 ms",
        "",
        "GAP median time between client and server: network and waiting",
    ]
    assert drawn(*rows[::-1]) == drawn(*rows)


def test_a_node_with_two_callers_is_drawn_once() -> None:
    """The other one refers to it."""
    rows = [edge("a", "shared", calls=2), edge("b", "shared"), edge("shared", "leaf")]
    assert names(*rows) == ["● a", "└╴● shared", "  └╴● leaf", "● b", "└╴● shared ↑"]
    assert "↑ drawn above, with what it calls" in drawn(*rows)[-2]


def test_calls_in_a_circle() -> None:
    """The first name begins, unless somebody calls into the circle."""
    circle = [edge("b", "a"), edge("a", "b")]
    assert names(*circle) == ["● a", "└╴● b", "  └╴● a ↑"]
    assert names(*circle, edge("entry", "b", "entry")) == [
        "○ entry  callers outside these logs",
        "└╴● b",
        "  └╴● a",
        "    └╴● b ↑",
    ]
    assert names(edge("a", "a")) == ["● a", "└╴● a ↑"]


def test_whom_outsiders_call_too_stands_below_its_own_caller() -> None:
    """Health checks of all servers do not tear the graph apart."""
    rows = [
        edge("entry", "model", "entry", calls=9),
        edge("entry", "agent", "entry"),
        edge("agent", "model"),
    ]
    assert names(*rows) == [
        "○ entry  callers outside these logs",
        "├╴● agent",
        "│ └╴● model",
        "└╴● model ↑",
    ]


def test_kinds_of_nodes_are_told_apart() -> None:
    """By a mark and a word, and never taken for a service of the same name."""
    rows = [
        edge("a", "pg1", "database", 6),
        edge("a", "x.org", "external", 5),
        edge("a", "unknown", "unpaired", 4),
        edge("a", "unknown", calls=3),
        edge("a", "jobs", "queue", 2),
        edge("a", "plain", "internal"),
        edge("missing", "a", "missing"),
    ]
    assert names(*rows) == [
        "? missing  callers whose span is not in the input",
        "└╴● a",
        "  ├╴◆ pg1  database",
        "  ├╴◇ x.org  external",
        "  ├╴? calls that name no address",
        "  ├╴● unknown",
        "  ├╴● jobs  queue",
        "  └╴● plain  internal",
    ]


def test_figures_that_are_worth_a_column() -> None:
    """Attempts where they are not what calls are, unfinished calls where there are some."""
    (heading,) = (line for line in drawn(edge("a", "b")) if "CALLS" in line)
    assert heading.split() == ["CALLS", "FAILED", "P50", "P95", "GAP"]
    rows = [edge("a", "b", calls=3, attempts=5, failed_attempts=2, unfinished_calls=1)]
    heading, line = (line for line in drawn(*rows) if "CALLS" in line or "● b" in line)
    assert heading.split()[:5] == ["CALLS", "FAILED", "UNFINISHED", "ATTEMPTS", "FAILED"]
    assert line.split()[2:7] == ["3", "0", "1", "5", "2"]


@pytest.mark.parametrize(
    ("kind", "gap", "note"),
    [
        ("queue", "clock", "in 2 queue calls clocks differ: received before sent"),
        ("rpc", "-5 ns", "in 2 calls the server worked on when its client had ended"),
    ],
)
def test_negative_gaps(kind: str, gap: str, note: str) -> None:
    """Of a queue the clocks are to blame; never 0."""
    lines = drawn(edge("a", "b", kind, gap_p50_ns=-5, negative_gaps=2))
    assert any(line.endswith(gap) for line in lines)
    assert note in "\n".join(lines)


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lines_fit(columns: int) -> None:
    """Long names and deep graphs are cut, and say so; figures are whole."""
    name = (
        "service-with-a-very-long-name-that-no-terminal-of-ours-would-ever-have-room-for-{}".format
    )
    lines = drawn(*(edge(name(n), name(n + 1)) for n in range(90)), columns=columns)
    assert max(map(width, lines)) <= columns
    assert "…" in lines[93]
    assert lines[93].startswith("⋯90 ● ")
    assert all(line.endswith("1.00 ms") for line in lines[4:94])


def test_names_obey_nobody() -> None:
    """What a terminal would obey is written as its escape."""
    text = "\n".join(drawn(edge("a\x1b[2J", "b\nc"), edge("a\x1b[2J", "d\r", "external")))
    assert "\x1b" not in text
    assert "\\x1b[2J" in text
    assert "b\\nc" in text


def test_nothing_to_draw() -> None:
    assert drawn() == []
