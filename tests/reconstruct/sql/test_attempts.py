"""The halves of calls: found as one would by walking up and down the tree, span by span."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PROCESSES = ("a-1", "a-2", "b-1")
CALLERS = ("CLIENT", "PRODUCER")
CALLED = ("SERVER", "CONSUMER")
ATTEMPTS = """
    SELECT
        client.name AS client,
        server.name AS server,
        coalesce(client.trace_id, server.trace_id) AS trace_id,
        attempt.kind
    FROM _attempts AS attempt
    LEFT JOIN spans AS client ON client.rowid = attempt.client_node
    LEFT JOIN spans AS server ON server.rowid = attempt.server_node
"""

Attempt = tuple[str | None, str | None, str]


@dataclass(frozen=True)
class Work:
    """A span: its number is its name; `parent` is None for a root, -1 where it was never read."""

    parent: int | None
    process: str
    kind: str


@st.composite
def traces(draw: st.DrawFn) -> list[Work]:
    """Spans of any kind in any process, each below an earlier one, or below none."""
    works = []
    for number in range(draw(st.integers(1, 12))):
        parents = st.sampled_from([*range(max(0, number - 3), number), number - 1, None, -1])
        works.append(
            Work(
                draw(parents) if number else None,
                draw(st.sampled_from(PROCESSES)),
                draw(st.sampled_from(["INTERNAL", "INTERNAL", *CALLERS, *CALLED])),
            )
        )
    return works


def above(works: Sequence[Work], number: int) -> int | None:
    """The parent, where it was read."""
    parent = works[number].parent
    return None if parent == -1 else parent


def is_inside(works: Sequence[Work], number: int) -> bool:
    """Its parent is of the same process."""
    parent = above(works, number)
    return parent is not None and works[parent].process == works[number].process


def top(works: Sequence[Work], number: int) -> int:
    """The first span, from this one up, that is not INTERNAL or came from elsewhere."""
    while works[number].kind == "INTERNAL" and is_inside(works, number):
        number = works[number].parent or 0
    return number


def walked(works: Sequence[Work]) -> Iterator[Attempt]:
    """The attempts of a trace, as (client half, server half, kind)."""
    inner = [
        (top(works, work.parent or 0), number)
        for number, work in enumerate(works)
        if work.kind != "INTERNAL" and is_inside(works, number)
    ]
    busy = {outer for outer, _ in inner}
    for number, work in enumerate(works):
        parent = above(works, number)
        if parent is None or is_inside(works, number):
            continue
        client = top(works, parent)
        client = client if works[client].kind in CALLERS else parent
        busy.add(client)
        below = [
            half
            for outer, half in inner
            if outer == number and work.kind == "INTERNAL" and works[half].kind in CALLED
        ]
        for server in below or [number]:
            yield str(client), str(server), kind_of(works[client].kind, works[server].kind)
    for number, work in enumerate(works):
        if work.kind in CALLERS and number not in busy:
            yield str(number), None, "unpaired"
        if work.kind in CALLED and above(works, number) is None:
            yield None, str(number), "entry" if work.parent is None else "missing"


def kind_of(client: str, server: str) -> str:
    if client == "PRODUCER" or server == "CONSUMER":
        return "queue"
    return "rpc" if client == "CLIENT" or server == "SERVER" else "internal"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attempts")


def test_as_one_would_walk(logs: Any, folder: Path) -> None:
    """Many traces at once."""

    @settings(max_examples=5, deadline=None)
    @given(st.lists(traces(), min_size=40, max_size=80))
    def check(forest: list[list[Work]]) -> None:
        logs.folder, logs.files = folder, {}
        expected = []
        for trace, works in enumerate(forest):
            for number, work in enumerate(works):
                record = logs.span(
                    str(number),
                    None if work.parent is None else str(work.parent),
                    trace=str(trace),
                    service=work.process[0],
                    instance=work.process,
                    kind=work.kind,
                    file="all.log",
                )
            expected += [(record["trace_id"], *attempt) for attempt in walked(works)]
        with logs.engine() as engine:
            rows = engine.rows(ATTEMPTS)
        found = [(row["trace_id"], row["client"], row["server"], row["kind"]) for row in rows]
        assert sorted(found, key=str) == sorted(expected, key=str)

    check()


def test_a_wide_trace(logs: Any) -> None:
    """Each of its calls is found, and no two of them are compared."""
    count = 20_000
    logs.span("root", start=0, end=count)
    for number in range(count):
        logs.span(f"c{number}", "root", number, number + 5, kind="CLIENT")
        logs.span(f"s{number}", f"c{number}", number + 1, number + 3, kind="SERVER", service="b")
    with logs.engine() as engine:
        assert engine.rows("SELECT calls, attempts, gap_p95_ns FROM service_edges") == [
            {"calls": count, "attempts": count, "gap_p95_ns": 3}
        ]
