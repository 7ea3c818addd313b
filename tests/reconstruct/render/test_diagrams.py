"""The graph of calls as Mermaid and DOT: each line is a statement, whatever services are named."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.render.call_graph import Edge, graph
from reconstruct.render.diagrams import dot, mermaid
from reconstruct.render.text import clean

MERMAID_NODE = re.compile(
    r'    n\d+(?:\["([^"]*)"\]|\[\("([^"]*)"\)\]|\{\{"([^"]*)"\}\}|\(\["([^"]*)"\]\))'
)
MERMAID_EDGE = re.compile(r'    n(\d+) (?:-->|-\.->)\|"([^"]*)"\| n(\d+)')
MERMAID_STYLE = re.compile(
    r"    (?:style n\d+ stroke-dasharray:4|linkStyle \d+(?:,\d+)* stroke:#e5484d)"
)
DOT_TEXT = r'"((?:[^"\\]|\\.)*)"'
DOT_NODE = re.compile(rf"    n\d+ \[label={DOT_TEXT}, shape=\w+(?:, style=dashed)?\];")
DOT_EDGE = re.compile(
    rf'    n(\d+) -> n(\d+) \[label={DOT_TEXT}(?:, style=dashed)?(?:, color="#e5484d")?\];'
)
HOSTILE = 'a"]; --> b\n%%{init: {}}%% <b>&amp; [(x)] {{y}} |z| \\" #quot; end `c` \x1b'


def row(client: str, server: str, kind: str = "rpc", **figures: Any) -> dict[str, Any]:
    return {
        "client": client,
        "server": server,
        "kind": kind,
        "calls": 3,
        "failed_calls": 0,
        "attempts": 3,
        "failed_attempts": 0,
        "duration_p50_ns": 20_000_000,
        **figures,
    }


def mermaid_names(edges: list[Edge]) -> list[str]:
    """Read a flowchart as strictly as one can, and return what its nodes are called."""
    first, *lines = mermaid(edges)
    assert first == "flowchart LR"
    names = []
    for line in lines:
        if node := MERMAID_NODE.fullmatch(line):
            text = next(group for group in node.groups() if group is not None)
            assert not re.search(r"[^\w ,./:@+#;-]", text, re.ASCII)
            names.append(re.sub(r"#(\d+);", lambda match: chr(int(match[1])), text))
        else:
            assert MERMAID_EDGE.fullmatch(line) or MERMAID_STYLE.fullmatch(line), line
    return names


def dot_names(edges: list[Edge]) -> list[str]:
    """Read a digraph likewise."""
    lines = list(dot(edges))
    assert (lines[:2], lines[-1]) == (["digraph services {", "    rankdir=LR;"], "}")
    names = []
    for line in lines[2:-1]:
        if node := DOT_NODE.fullmatch(line):
            names.append(re.sub(r"\\(.)", r"\1", node[1]))
        else:
            assert DOT_EDGE.fullmatch(line), line
    return names


def test_a_flowchart() -> None:
    edges = graph(
        [
            row("gym/agent", "gym/model", failed_calls=1, attempts=5, failed_attempts=2),
            row("gym/agent", "pg1", "database"),
            row("gym/agent", "unknown", "unpaired", duration_p50_ns=None),
            row("entry", "gym/agent", "entry", calls=1, attempts=1),
        ]
    )
    assert list(mermaid(edges)) == [
        "flowchart LR",
        '    n0(["entry"])',
        '    n1["agent"]',
        '    n2[("pg1 #40;database#41;")]',
        '    n3["model"]',
        '    n4(["unknown"])',
        '    n0 -.->|"1 call, p50 20.0 ms"| n1',
        '    n1 -->|"3 calls, p50 20.0 ms"| n2',
        '    n1 -->|"3 calls, 1 failed, 5 attempts, 2 attempts failed, p50 20.0 ms"| n3',
        '    n1 -->|"3 calls"| n4',
        "    style n4 stroke-dasharray:4",
        "    linkStyle 2 stroke:#e5484d",
    ]


def test_a_digraph() -> None:
    edges = graph([row("a", "b", failed_calls=1), row("a", "x.org:80", "external")])
    assert list(dot(edges)) == [
        "digraph services {",
        "    rankdir=LR;",
        '    n0 [label="a", shape=box];',
        '    n1 [label="x.org:80 (external)", shape=hexagon];',
        '    n2 [label="b", shape=box];',
        '    n0 -> n1 [label="3 calls, p50 20.0 ms"];',
        '    n0 -> n2 [label="3 calls, 1 failed, p50 20.0 ms", color="#e5484d"];',
        "}",
    ]


@pytest.mark.parametrize("names", [mermaid_names, dot_names])
def test_hostile_names(names: Any) -> None:
    """They end no string and begin no statement, and are read as they are, less controls."""
    found = names(graph([row(HOSTILE, "b"), row("b", HOSTILE, "queue")]))
    assert sorted(found) == sorted([clean(HOSTILE), "b"])


@given(names=st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=4))
def test_any_names(names: list[tuple[str, str]]) -> None:
    """Both diagrams are valid, and each node keeps its name."""
    kinds = ("rpc", "external", "database", "internal")
    edges = graph(row(*ends, kinds[index]) for index, ends in enumerate(names))
    assert len(mermaid_names(edges)) == len({node for edge in edges for node in edge.ends})
    assert mermaid_names(edges) == dot_names(edges)


def test_the_order_of_rows_changes_nothing() -> None:
    rows = [row("a", "b"), row("a", "c"), row("c", "b"), row("entry", "a", "entry")]
    assert list(mermaid(graph(rows))) == list(mermaid(graph(rows[::-1])))
    assert list(dot(graph(rows))) == list(dot(graph(rows[::-1])))
