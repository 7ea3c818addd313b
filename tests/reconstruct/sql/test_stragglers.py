"""Stragglers: which rollouts held a step up, and what explains them, if not chance."""

import tempfile
from math import comb
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reconstruct.conftest import LogBuilder


def rollout(
    logs: Any, name: str, length: int, *, start: int = 0, model: str = "m-0", route: str = "/run"
) -> None:
    """Write run (agent) ── serve (model), which takes all but 10 of `length` ns."""
    facts = {"trace": name, "rollout": name}
    logs.span("run", None, start, start + length, service="agent", **facts)
    logs.span(
        "serve",
        "run",
        start + 5,
        start + length - 5,
        service="model",
        instance=model,
        name=f"POST {route}",
        kind="SERVER",
        **facts,
    )


def causes(engine: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = engine.rows("FROM straggler_causes ORDER BY chance, aspect, value")
    return rows


def test_a_slow_instance_explains_what_met_it(logs: Any) -> None:
    """Eight of forty rollouts went to m-7; seven of these, and one other, are slow."""
    for number in range(40):
        model = "m-7" if number % 5 == 0 else f"m-{number % 2}"
        slow = (model == "m-7" and number != 35) or number == 1
        rollout(logs, f"{number}-0", 400 if slow else 100, model=model)
    with logs.engine() as engine:
        best, *others = causes(engine)
        rows = engine.rows("FROM stragglers ORDER BY rank")
    assert (best["aspect"], best["value"], best["is_cause"]) == ("instance", "model#m-7", True)
    counts = ("rollouts_with", "slow_with", "rollouts_without", "slow_without")
    assert [best[name] for name in counts] == [8, 7, 32, 1]
    assert best["lift"] == (7 / 8) / (1 / 32)
    exact = sum(comb(8, hits) * comb(32, 8 - hits) for hits in (7, 8)) / comb(40, 8)
    assert best["chance"] == pytest.approx(exact * (1 + len(others)), rel=1e-6)
    assert not any(row["is_cause"] for row in others)
    by_rollout = {row["rollout_id"]: row["cause_value"] for row in rows if row["is_slow"]}
    assert by_rollout == {
        "1-0": None,
        **{f"{number}-0": "model#m-7" for number in range(0, 35, 5)},
    }


def test_the_span_that_took_most_beyond_the_usual_is_named(logs: Any) -> None:
    """On the critical path of that rollout, beside the median of its kind."""
    for number in range(9):
        rollout(logs, f"{number}-0", 100)
    rollout(logs, "9-0", 1_000)
    with logs.engine() as engine:
        (row,) = engine.rows("FROM stragglers")
    assert (row["rollout_id"], row["duration_ns"], row["excess_ns"]) == ("9-0", 1_000, 900)
    assert (row["name"], row["instance"]) == ("POST /run", "model#m-0")
    assert (row["blame_ns"], row["usual_blame_ns"]) == (990, 90)
    assert (row["nth_from_last"], row["held_up_ns"]) == (1, 900)


def test_the_last_is_a_straggler_even_if_it_only_began_late(logs: Any) -> None:
    """It says when it began, and no cause is looked for."""
    for number in range(5):
        rollout(logs, f"{number}-0", 100)
    rollout(logs, "5-0", 100, start=70)
    with logs.engine() as engine:
        (row,) = engine.rows("FROM stragglers")
    assert (row["rollout_id"], row["is_slow"], row["began_after_ns"]) == ("5-0", False, 70)
    assert (row["name"], row["cause_value"], row["held_up_ns"]) == (None, None, 70)


def test_slow_ones_come_first_and_then_the_last_to_end(logs: Any) -> None:
    """The longest first; of those that are not slow, the last."""
    for number in range(200):
        rollout(logs, f"{number}-0", 100, start=number)
    rollout(logs, "slow-0", 160)
    rollout(logs, "slow-1", 170)
    with logs.engine() as engine:
        rows = engine.rows("SELECT rollout_id, is_slow FROM stragglers ORDER BY rank")
    assert [row["rollout_id"] for row in rows] == ["slow-1", "slow-0", "199-0", "198-0"]


def test_every_aspect_may_explain(logs: Any) -> None:
    """A route, and the attempt in the rollout's id."""
    for number in range(30):
        slow = number < 8
        name = f"{number}-0" + ("-a2" if slow else "")
        rollout(logs, name, 400 if slow else 100, route="/search" if slow else "/run")
    with logs.engine() as engine:
        found = {(row["aspect"], row["value"]) for row in causes(engine) if row["is_cause"]}
    assert found == {("attempt", "2"), ("route", "POST /search in model")}


def test_servers_have_roles(logs: Any) -> None:
    """An agent or resources server is an environment, another one a service."""
    services = ("driver", "tools", "judge")
    for service in services:
        logs.process("started", 0, service=service)
    for record in (logs.files["driver.log"], logs.files["judge.log"]):
        record[0] = record[0].replace("resources_servers", "other")
    for number in range(30):
        facts = {"trace": f"{number}", "rollout": f"{number}-0"}
        logs.span("run", None, 0, 400 if number < 8 else 100, service="driver", **facts)
        for service in services[1:] if number < 8 else ():
            logs.span("work", "run", 10, 20, service=service, **facts)
    with logs.engine() as engine:
        found = {(row["aspect"], row["value"]) for row in causes(engine) if row["is_cause"]}
    assert found >= {("environment", "tools"), ("service", "judge")}


def test_few_are_no_cause(logs: Any) -> None:
    """Two rollouts that met something are too few, and so is one that did not."""
    for number in range(30):
        rollout(logs, f"{number}-0", 400 if number < 2 else 100, model=f"m-{int(number > 1)}")
    with logs.engine() as engine:
        assert causes(engine) == []
        assert {row["cause_value"] for row in engine.rows("FROM stragglers")} == {None}


@settings(max_examples=5, deadline=None)
@given(
    met=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=6, max_size=60),
)
def test_chance_is_exact(met: list[tuple[bool, bool]]) -> None:
    """Of drawing so many slow ones at random, times the values compared; the median is not slow."""
    with tempfile.TemporaryDirectory() as folder:
        logs = LogBuilder(Path(folder))
        for number, (is_slow, has_met) in enumerate(met):
            length = 400 if is_slow else 100
            rollout(logs, f"{number}-0", length, model="m-1" if has_met else "m-0")
        with logs.engine() as engine:
            rows = {row["value"]: row for row in causes(engine)}
            slow = {row["rollout_id"] for row in engine.rows("FROM step_rollouts WHERE is_slow")}
    is_slow_of = [f"{number}-0" in slow for number in range(len(met))]
    total, all_slow = len(met), sum(is_slow_of)
    with_it = sum(has_met for _, has_met in met)
    if min(with_it, total - with_it) < 3:
        assert rows == {}
        return
    row = rows["model#m-1"]
    hits = sum(slow and has_met for slow, (_, has_met) in zip(is_slow_of, met, strict=True))
    assert (row["rollouts_with"], row["slow_with"]) == (with_it, hits)
    chance = 1.0
    if hits * (total - with_it) > (all_slow - hits) * with_it:
        ways = [
            comb(all_slow, k) * comb(total - all_slow, with_it - k)
            for k in range(hits, min(all_slow, with_it) + 1)
        ]
        chance = min(2 * sum(ways) / comb(total, with_it), 1.0)
    assert row["chance"] == pytest.approx(chance, rel=1e-6)
    assert row["is_cause"] == (chance < 0.01)
