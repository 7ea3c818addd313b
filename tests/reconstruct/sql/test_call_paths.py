"""Call paths: what stands above a span, in services and names, from the top of its rollout."""

from typing import Any


def calls(engine: Any) -> dict[str, int]:
    return {
        row["calls"]: row["span_count"]
        for row in engine.rows("SELECT calls, span_count FROM call_paths")
    }


def test_spans_of_one_path_are_one(logs: Any) -> None:
    """Whatever their order, kind and time; a service stands before the first span in it."""
    for trace in "tu":
        logs.span("root", trace=trace, end=100)
        for label in ("one", "two"):
            logs.span(label, "root", 10, 20, trace=trace, name="call", kind="CLIENT")
            logs.span(f"in {label}", label, 11, 12, trace=trace, name="serve", service="b")
    logs.span("serve", trace="v", service="b")
    with logs.engine() as engine:
        assert calls(engine) == {
            "a: root": 2,
            "a: root > call": 4,
            "a: root > call > b: serve": 4,
            "b: serve": 1,
        }
        paths = {row["call_path"]: row for row in engine.rows("FROM call_paths")}
        for path in paths.values():
            above = paths.get(path["parent_call_path"])
            assert path["depth"] == (0 if above is None else above["depth"] + 1)
            assert path["calls"].startswith(above["calls"] if above else path["service_name"])
        keys = engine.rows("SELECT call_path, count(*) AS n FROM span_paths GROUP BY ALL")
        assert {row["call_path"]: row["n"] for row in keys} == {
            key: path["span_count"] for key, path in paths.items()
        }


def test_a_path_begins_where_its_rollout_does(logs: Any) -> None:
    """So that rollouts below one job are like those that have a trace of their own."""
    logs.span("job", trace="all")
    for rollout in ("0-0", "0-1"):
        logs.span(rollout, "job", trace="all", name="gym.rollout", rollout=rollout)
        logs.span(f"w{rollout}", rollout, trace="all", name="work")
    logs.span("alone", trace="t", name="gym.rollout", rollout="0-2")
    logs.span("w", "alone", trace="t", name="work")
    with logs.engine() as engine:
        assert calls(engine) == {"a: job": 1, "a: gym.rollout": 3, "a: gym.rollout > work": 3}


def test_a_missing_parent_is_another_beginning(logs: Any) -> None:
    logs.span("work", "nobody")
    logs.span("work", trace="u")
    with logs.engine() as engine:
        assert calls(engine) == {"a: work": 1, "(missing) > a: work": 1}


def test_a_long_path_keeps_its_end(logs: Any) -> None:
    """3,000 steps deep: each is a path, the words are cut at the front."""
    for number in range(3_000):
        logs.span(f"s{number}", f"s{number - 1}" if number else None, name=f"step{number % 7}")
    with logs.engine() as engine:
        paths = engine.rows("SELECT calls, depth FROM call_paths ORDER BY depth")
    assert [path["depth"] for path in paths] == list(range(3_000))
    assert max(len(path["calls"]) for path in paths) <= 260
    assert paths[2_999]["calls"].startswith("… > step")
    assert paths[2_999]["calls"].endswith("step1 > step2 > step3")
    assert paths[2]["calls"] == "a: step0 > step1 > step2"


def test_names_that_look_like_joints_do_not_mix(logs: Any) -> None:
    """The key is of the steps, not of the words."""
    logs.span("p > q", trace="t")
    logs.span("r", "p > q", trace="t")
    logs.span("p", trace="u")
    logs.span("q > r", "p", trace="u")
    with logs.engine() as engine:
        assert len(engine.rows("SELECT DISTINCT call_path FROM call_paths")) == 4


def test_blame_within_a_rollout(logs: Any) -> None:
    """Rollouts that run beside each other below one job are each to blame for their own time."""
    logs.span("job", trace="all", start=0, end=1_100)
    for number, end in enumerate((400, 1_000)):
        rollout = f"{number}-0"
        logs.span(rollout, "job", 0, end, trace="all", name="gym.rollout", rollout=rollout)
        logs.span(f"w{rollout}", rollout, 100, end, trace="all", name="work")
    logs.span("alone", trace="t", end=50, rollout="2-0")
    with logs.engine() as engine:
        rows = engine.rows(
            """
            SELECT member.rollout_id, span.name, blame_ns
            FROM _rollout_blames AS blamed
            JOIN spans AS span ON span.rowid = blamed.node
            LEFT JOIN _rollout_spans AS member USING (node)
            ORDER BY ALL
            """
        )
    assert [tuple(row.values()) for row in rows] == [
        ("0-0", "gym.rollout", 100),
        ("0-0", "work", 300),
        ("1-0", "gym.rollout", 100),
        ("1-0", "work", 900),
        ("2-0", "alone", 50),
        (None, "job", 100),
    ]
