"""Who calls whom, as a graph: nodes and edges of the rows of service_edges or instance_edges."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reconstruct.render.text import clean, short_names

__all__ = ["Edge", "Node", "Row", "graph", "labels"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds

_NODES: Final = {"database": "database", "external": "external", "unpaired": "unknown"}
"""What an edge of a kind leads to, where that is no service."""
_STAND_INS: Final = {"entry", "missing", "unknown"}
"""Nodes that stand for what the logs do not show."""


@dataclass(frozen=True, slots=True, order=True)
class Node:
    """A caller or callee; `kind` is service, database, external, entry, missing or unknown."""

    kind: str
    name: str
    instance: str = ""

    @property
    def is_real(self) -> bool:
        """It does not stand for what the logs do not show."""
        return self.kind not in _STAND_INS


@dataclass(frozen=True, slots=True)
class Edge:
    """All calls of one kind between two nodes, with the figures of their row."""

    client: Node
    server: Node
    row: Row

    @property
    def kind(self) -> str:
        """Kind of the calls, as in service_edges."""
        return str(self.row["kind"])

    @property
    def ends(self) -> tuple[Node, Node]:
        """Caller and callee."""
        return self.client, self.server

    @property
    def has_failed(self) -> bool:
        """Some call or attempt has."""
        return bool(self.row["failed_calls"] or self.row["failed_attempts"])


def graph(rows: Iterable[Row]) -> list[Edge]:
    """Make edges of rows of service_edges or instance_edges, in order of their ends."""
    edges = [Edge(_client(row), _server(row), row) for row in rows]
    return sorted(edges, key=lambda edge: (edge.client, edge.server, edge.kind))


def labels(edges: Iterable[Edge]) -> dict[Node, str]:
    """Give each node its short name: services without what all of them start with."""
    nodes = list(dict.fromkeys(node for edge in edges for node in edge.ends))
    short = short_names(node.name for node in nodes if node.kind == "service")
    return {
        node: short[node.name] + clean(node.instance.removeprefix(node.name))
        if node.kind == "service"
        else clean(node.name)
        for node in nodes
    }


def _client(row: Row) -> Node:
    if row["kind"] in {"entry", "missing"}:
        return Node(row["kind"], row["kind"])
    return Node("service", row["client"] or "", row.get("client_instance") or "")


def _server(row: Row) -> Node:
    kind = _NODES.get(row["kind"], "service")
    return Node(kind, row["server"] or "", row.get("server_instance") or "")
