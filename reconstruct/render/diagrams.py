"""Who calls whom, as text that other programs draw: Mermaid and Graphviz's DOT.

Nodes have numbers for names, in order, and stand in quotes as what they are called: whatever a
service is named, it ends no string and begins no statement. Shapes tell kinds of nodes apart, and
words where a shape would not.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reconstruct.render.call_graph import Edge, Node, labels
from reconstruct.render.text import clean, count, duration, plural

__all__ = ["dot", "mermaid"]

_MERMAID_SHAPES: Final = {
    "service": ("[", "]"),
    "database": ("[(", ")]"),
    "external": ("{{", "}}"),
    "entry": ("([", "])"),
    "missing": ("([", "])"),
    "unknown": ("([", "])"),
}
_DOT_SHAPES: Final = {
    "service": "shape=box",
    "database": "shape=cylinder",
    "external": "shape=hexagon",
    "entry": "shape=oval",
    "missing": "shape=oval, style=dashed",
    "unknown": "shape=oval, style=dashed",
}
_DOTTED: Final = {"queue", "internal", "entry", "missing"}
_MERMAID_UNSAFE: Final = re.compile(r"[^\w ,./:@+-]", re.ASCII)
"""Written as numbers: `#` and `;` are Mermaid's own, `<` and `&` HTML's, `%%` a comment's."""


def mermaid(edges: Sequence[Edge]) -> Iterator[str]:
    """Write a Mermaid flowchart, line by line."""
    yield "flowchart LR"
    nodes = _numbers(edges)
    for node, name in labels(edges).items():
        begin, end = _MERMAID_SHAPES[node.kind]
        yield f'    n{nodes[node]}{begin}"{_mermaid_text(_title(node, name))}"{end}'
    for edge in edges:
        arrow = "-.->" if edge.kind in _DOTTED else "-->"
        ends = (f"n{nodes[node]}" for node in edge.ends)
        yield "    " + f' {arrow}|"{_mermaid_text(_figures(edge))}"| '.join(ends)
    for node, number in nodes.items():
        if node.kind in {"missing", "unknown"}:
            yield f"    style n{number} stroke-dasharray:4"
    failed = [str(number) for number, edge in enumerate(edges) if edge.has_failed]
    if failed:
        yield f"    linkStyle {','.join(failed)} stroke:#e5484d"


def dot(edges: Sequence[Edge]) -> Iterator[str]:
    """Write a directed graph for Graphviz, line by line."""
    yield "digraph services {"
    yield "    rankdir=LR;"
    nodes = _numbers(edges)
    for node, name in labels(edges).items():
        title = _dot_text(_title(node, name))
        yield f"    n{nodes[node]} [label={title}, {_DOT_SHAPES[node.kind]}];"
    for edge in edges:
        client, server = (nodes[node] for node in edge.ends)
        facts = [f"label={_dot_text(_figures(edge))}"]
        facts += ["style=dashed"] if edge.kind in _DOTTED else []
        facts += ['color="#e5484d"'] if edge.has_failed else []
        yield f"    n{client} -> n{server} [{', '.join(facts)}];"
    yield "}"


def _numbers(edges: Sequence[Edge]) -> dict[Node, int]:
    return {node: number for number, node in enumerate(labels(edges))}


def _title(node: Node, name: str) -> str:
    return f"{name} ({node.kind})" if node.kind in {"database", "external"} else name or "-"


def _figures(edge: Edge) -> str:
    row = edge.row
    words = [plural(row["calls"], "call")]
    if row["failed_calls"]:
        words.append(f"{count(row['failed_calls'])} failed")
    if row["attempts"] > row["calls"]:
        words.append(plural(row["attempts"], "attempt"))
    if row["failed_attempts"] > row["failed_calls"]:
        words.append(f"{plural(row['failed_attempts'], 'attempt')} failed")
    if row["duration_p50_ns"] is not None:
        words.append(f"p50 {duration(row['duration_p50_ns'])}")
    return ", ".join(words)


def _mermaid_text(text: str) -> str:
    return _MERMAID_UNSAFE.sub(lambda match: f"#{ord(match[0])};", clean(text))


def _dot_text(text: str) -> str:
    inert = clean(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inert}"'
