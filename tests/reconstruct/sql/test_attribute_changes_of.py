"""Cohorts of rollouts: which attributes have other values."""

from typing import Any

import pytest

from reconstruct.engine import Engine

COHORTS = """
    WITH cohort AS (
        SELECT upper(rollout_id[1]) AS cohort, run_id, rollout_id, trace_id
        FROM _rollout_traces
    )
"""


def changes(engine: Engine, options: str = "") -> list[dict[str, Any]]:
    return engine.rows(f"{COHORTS} FROM attribute_changes_of('cohort'{options}) ORDER BY ALL")


def of_key(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["key"] == key]


@pytest.fixture
def engine(logs: Any) -> Any:
    """Forty rollouts, half of them B: there calls fail in most, and have more tokens."""
    logs.process("started", 0, service="model", instance="m1", run="run-1", pid=1)
    logs.process("started", 0, service="model", instance="m2", run="run-1", pid=2)
    for number in range(40):
        is_b = number % 2
        rollout = f"{'ab'[is_b]}{number}"
        failed = is_b and number % 8 != 1
        logs.span("root", None, 0, 100, trace=rollout, rollout=rollout)
        for turn in (0, 1):
            facts = {
                "model": "big",
                "http.response.status_code": 500 if failed and turn else 200,
                "tokens": 1_000 * is_b + 10 * number + turn,
                "request.id": f"r{number}-{turn}",
                "empty": None,
            }
            logs.span(
                f"call{turn}",
                "root",
                10,
                20,
                trace=rollout,
                name="call",
                service="model",
                instance="m2" if is_b else ("m1", "m2")[number % 4 // 2],
                attributes={key: value for key, value in facts.items() if value is not None},
            )
    with logs.engine() as engine:
        yield engine


def test_shares_of_rollouts(engine: Engine) -> None:
    """A rollout has a value when one of its spans has; the sure ones are marked."""
    rows = of_key(changes(engine), "http.response.status_code")
    assert [
        (row["value"], row["share_a"], row["share_b"], row["is_real"], row["kind"]) for row in rows
    ] == [("200", 1.0, 1.0, False, "value"), ("500", 0.0, 0.75, True, "value")]
    assert {(row["service_name"], row["name"], row["scope"]) for row in rows} == {
        ("model", "call", "span")
    }
    (same,) = of_key(changes(engine), "model")
    assert (same["distance"], same["is_real"]) == (0.0, False)


def test_numbers_by_their_distribution(engine: Engine) -> None:
    """Of each rollout's mean."""
    (row,) = of_key(changes(engine), "tokens")
    assert (row["kind"], row["value"], row["distance"], row["is_real"]) == (
        "number", None, 1.0, True,
    )  # fmt: skip
    assert (row["p50_a"], row["p50_b"]) == (190.5, 1_200.5)
    assert (row["rollouts_a"], row["share_a"]) == (20, 1.0)


def test_ids_are_named_and_not_compared(engine: Engine) -> None:
    """A value for nearly every rollout."""
    for key in ("request.id", "nemo.gym.rollout.id"):
        (row,) = {row["service_name"]: row for row in of_key(changes(engine), key)}.values()
        assert (row["kind"], row["distance"], row["is_real"]) == ("id", None, None)


def test_processes_are_compared_where_cohorts_share_them(engine: Engine) -> None:
    """Which of two served a rollout says something within one run."""
    rows = of_key(changes(engine), "service.instance.id")
    rows = [row for row in rows if row["service_name"] == "model"]
    assert [(row["value"], row["share_a"], row["share_b"]) for row in rows] == [
        ("m1", 0.5, 0.0),
        ("m2", 0.5, 1.0),
    ]
    assert {(row["scope"], row["name"]) for row in rows} == {("process", None)}


def test_processes_of_two_runs_always_differ(logs: Any) -> None:
    for side, run in (("a", "run-1"), ("b", "run-2")):
        logs.process("started", 0, instance=run, run=run)
        logs.span("root", trace=side, rollout=f"{side}0", instance=run)
    with logs.engine() as engine:
        kinds = {row["key"]: row["kind"] for row in changes(engine) if row["scope"] == "process"}
    assert kinds["service.instance.id"] == kinds["nemo.run.id"] == "id"
    assert kinds["host.name"] == "value"


def test_large_cohorts_are_estimated(engine: Engine) -> None:
    """From so many rollouts of each, the same ones each time."""
    rows = changes(engine, ", most := 6")
    assert {row["rollouts_a"] for row in rows} == {row["rollouts_b"] for row in rows} == {6}
    assert rows == changes(engine, ", most := 6")


def test_few_rollouts_mark_nothing(engine: Engine) -> None:
    assert {row["is_real"] for row in changes(engine, ", most := 4")} == {None}


def test_what_is_in_one_cohort_alone_is_no_attribute(logs: Any) -> None:
    """Call paths say it."""
    for side in "ab":
        logs.span("root", trace=side, rollout=f"{side}0", attributes={"x": 1})
    logs.span("more", "root", trace="b", attributes={"y": 1})
    with logs.engine() as engine:
        assert {row["key"] for row in changes(engine)} >= {"x", "status"}
        assert of_key(changes(engine), "y") == []
