"""Spans whose id was shared by client and server hang together as they ran."""

import json
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


def zipkin(
    name: str, number: int, parent: int | None, service: str, kind: str = "", **more: Any
) -> dict[str, Any]:
    span = {
        "traceId": TRACE_ID,
        "id": f"{number:016x}",
        "name": name,
        "timestamp": 1_750_000_000_000_000 + number,
        "duration": 100,
        "localEndpoint": {"serviceName": service},
    }
    if parent is not None:
        span["parentId"] = f"{parent:016x}"
    if kind:
        span["kind"] = kind
    return span | more


ROOT = zipkin("root", 1, None, "agent")
CALL = zipkin("call", 2, 1, "agent", "CLIENT")
SERVE = zipkin("serve", 2, 1, "env", "SERVER", shared=True)
WORK = zipkin("work", 3, 2, "env")
DEEPER = zipkin("deeper", 4, 3, "env")
FALLBACK = zipkin("serve too", 2, 1, "spare", "SERVER", shared=True)
SPARE_WORK = zipkin("spare work", 5, 2, "spare")


def parents(folder: Path, *files: list[dict[str, Any]]) -> dict[str, str | None]:
    """Each span's name and that of its parent, the spans read from line files."""
    for number, spans in enumerate(files):
        (folder / f"{number}.log").write_text("".join(json.dumps(span) + "\n" for span in spans))
    with Engine.read([str(folder)]) as engine:
        rows = engine.rows(
            """
            SELECT child.name, coalesce(parent.name, child.parent_span_id) AS parent
            FROM spans AS child
            LEFT JOIN spans AS parent
                ON parent.trace_id = child.trace_id AND parent.span_id = child.parent_span_id
            """
        )
    return {row["name"]: row["parent"] for row in rows}


EXPECTED = {"root": None, "call": "root", "serve": "call", "work": "serve", "deeper": "work"}


@pytest.mark.parametrize(
    "files",
    [
        [[ROOT, CALL, SERVE, WORK, DEEPER]],
        [[DEEPER, WORK, SERVE, CALL, ROOT]],
        [[ROOT, CALL], [WORK, DEEPER, SERVE]],
        [[DEEPER, WORK], [SERVE], [CALL, ROOT], [SERVE]],
    ],
)
def test_the_server_stands_between(tmp_path: Path, files: list[list[dict[str, Any]]]) -> None:
    """In one file or in several, in any order, read twice."""
    assert parents(tmp_path, *files) == EXPECTED


def test_two_servers_of_one_call(tmp_path: Path) -> None:
    """Each has what ran in its own service."""
    spans = [ROOT, CALL, SERVE, WORK, FALLBACK, SPARE_WORK]
    expected = {name: parent for name, parent in EXPECTED.items() if name != "deeper"}
    expected |= {"serve too": "call", "spare work": "serve too"}
    assert parents(tmp_path, spans) == expected


def test_a_client_that_wrote_nothing(tmp_path: Path) -> None:
    """Its server hangs where it would have hung."""
    assert parents(tmp_path, [ROOT, SERVE, WORK]) == {
        "root": None,
        "serve": "root",
        "work": "serve",
    }


def test_it_is_a_finding(tmp_path: Path) -> None:
    """Ids that are not in the file are named."""
    (tmp_path / "a.log").write_text(json.dumps([ROOT, CALL, SERVE, WORK]) + "\n")
    with Engine.read([str(tmp_path)]) as engine:
        (finding,) = engine.rows("FROM findings WHERE code = 'shared_id'")
        (server,) = engine.rows("SELECT span_id FROM spans WHERE name = 'serve'")
        collisions = engine.rows("FROM findings WHERE code = 'id_collision'")
    assert finding["severity"] == "note"
    assert finding["span_id"] == server["span_id"]
    assert finding["message"].startswith("1 span of env had the id of the caller's span")
    assert json.loads(finding["evidence"]) == {"spans": 1, "shared_span_id": f"{2:016x}"}
    assert collisions == []
