"""What ran at an instant: what had begun and not ended, how deep, and under what."""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reconstruct.conftest import BASE, LogBuilder


def running(engine: Any, instant: int | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.rows(
        "FROM running_at($instant) ORDER BY start_time_unix_nano, name",
        {"instant": None if instant is None else BASE + instant},
    )
    return rows


def call(logs: Any) -> None:
    """run (agent) ── ask (agent, CLIENT) ── serve (model, SERVER) ── think (model, unfinished)."""
    logs.process("started", 0, service="agent")
    logs.process("started", 0, service="model", pid=8)
    logs.span("run", None, 0, 100, service="agent", rollout="0-0")
    logs.span("ask", "run", 10, 90, service="agent", kind="CLIENT")
    logs.span("serve", "ask", 20, 80, service="model", kind="SERVER")
    logs.span("think", "serve", 30, None, service="model")
    logs.process("alive", 60, service="model", pid=8)


def test_a_path_names_what_is_above_in_words(logs: Any) -> None:
    """From the outermost; a service stands once, after the last of its spans in a row."""
    call(logs)
    with logs.engine() as engine:
        rows = running(engine, 40)
    assert [(row["name"], row["running_ns"], row["is_innermost"]) for row in rows] == [
        ("run", 40, False),
        ("ask", 30, False),
        ("serve", 20, False),
        ("think", 10, True),
    ]
    assert rows[-1]["path"] == "run → ask in agent → serve → think in model"
    assert {row["rollout_id"] for row in rows} == {"0-0"}


def test_a_span_runs_from_its_start_until_its_end(logs: Any) -> None:
    """At its start it does, at its end it does not."""
    logs.span("a", None, 10, 20)
    with logs.engine() as engine:
        assert [len(running(engine, time)) for time in (9, 10, 19, 20)] == [0, 1, 1, 0]


def test_what_was_lost_ran_until_its_process_was_last_heard_of(logs: Any) -> None:
    """At that instant it did; so that is when to ask what a process died with."""
    logs.process("started", 0, service="other", instance="o")
    logs.process("started", 0, service="a")
    logs.span("a", None, 10, None)
    logs.process("alive", 50, service="a")
    logs.process("stopped", 90, service="other", instance="o")
    with logs.engine() as engine:
        assert [len(running(engine, time)) for time in (9, 10, 50, 51)] == [0, 1, 1, 0]
        assert running(engine, None) == []


def test_without_an_instant_it_is_when_the_logs_end(logs: Any) -> None:
    """What is open then, for as long as it was by then."""
    call(logs)
    with logs.engine() as engine:
        assert [(row["name"], row["running_ns"]) for row in running(engine, None)] == [
            ("think", 70)
        ]


def test_long_paths_are_cut_at_their_beginning(logs: Any) -> None:
    """And say so; texts do not grow with the depth of the tree."""
    for depth in range(400):
        parent = f"s{depth - 1}" if depth else None
        logs.span(f"s{depth}", parent, depth, 2_000 - depth)
    with logs.engine() as engine:
        rows = running(engine, 1_000)
    assert len(rows) == 400
    assert rows[-1]["path"] == "… → " + " → ".join(f"s{n}" for n in range(384, 400)) + " in a"


@settings(max_examples=4, deadline=None)
@given(
    spans=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 20), st.one_of(st.none(), st.integers(0, 20))),
        min_size=1,
        max_size=10,
    ),
    instant=st.integers(0, 45),
)
def test_it_is_what_began_and_did_not_end(
    spans: list[tuple[int, int, int | None]], instant: int
) -> None:
    """Each span has an earlier one as its parent; those that run have none running below when they
    are innermost."""
    with tempfile.TemporaryDirectory() as folder:
        logs = LogBuilder(Path(folder))
        parents = {}
        for number, (above, start, length) in enumerate(spans):
            parents[number] = above % number if number else None
            parent = None if parents[number] is None else f"s{parents[number]}"
            logs.span(f"s{number}", parent, start, None if length is None else start + length)
        with logs.engine() as engine:
            rows = running(engine, instant)
    expected = {
        number
        for number, (_, start, length) in enumerate(spans)
        if start <= instant and (length is None or start + length > instant)
    }
    assert {int(row["name"][1:]) for row in rows} == expected
    above = {parents[number] for number in expected}
    assert {int(row["name"][1:]) for row in rows if row["is_innermost"]} == expected - above
