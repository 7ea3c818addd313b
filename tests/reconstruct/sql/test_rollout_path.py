"""The critical path of rollouts: over several traces, or a part of one."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine


def paths(engine: Engine) -> dict[str, list[tuple[str | None, int]]]:
    """Name and duration of each section, in time order, by rollout."""
    found: dict[str, list[tuple[str | None, int]]] = {}
    for row in engine.rows(
        """
        SELECT path.rollout_id, name, path.duration_ns
        FROM rollout_path AS path
        LEFT JOIN spans USING (trace_id, span_id, occurrence)
        ORDER BY path.run_id, path.rollout_id, path.start_time_unix_nano
        """
    ):
        found.setdefault(row["rollout_id"], []).append((row["name"], row["duration_ns"]))
    return found


def test_one_trace(logs: Any) -> None:
    """As that of its root."""
    logs.span("r", None, 0, 100, rollout="0-0")
    logs.span("a", "r", 20, 50)
    with logs.engine() as engine:
        assert paths(engine) == {"0-0": [("r", 20), ("a", 30), ("r", 50)]}


def test_several_traces(logs: Any) -> None:
    """One after the other; between them nothing of it runs."""
    logs.span("run", None, 0, 100, trace="t", rollout="0-0")
    logs.span("verify", None, 130, 200, trace="u", rollout="0-0")
    logs.span("judge", "verify", 140, 190, trace="u")
    with logs.engine() as engine:
        assert paths(engine) == {
            "0-0": [("run", 100), (None, 30), ("verify", 10), ("judge", 50), ("verify", 10)]
        }


def test_part_of_a_trace(logs: Any) -> None:
    """Rollouts below one job: each has its own path, whatever the job waited for."""
    logs.span("job", None, 0, 100)
    logs.span("x", "job", 10, 40, rollout="0-0")
    logs.span("model", "x", 15, 35)
    logs.span("y", "job", 20, 90, rollout="1-0")
    with logs.engine() as engine:
        assert paths(engine) == {
            "0-0": [("x", 5), ("model", 20), ("x", 5)],
            "1-0": [("y", 70)],
        }


def test_work_after_its_root(logs: Any) -> None:
    """A rollout lasts as long as anything of it; what its root did not wait for is nobody's."""
    logs.span("r", None, 0, 100, rollout="0-0")
    logs.span("a", "r", 90, 130)
    with logs.engine() as engine:
        assert paths(engine) == {"0-0": [("r", 90), ("a", 10), (None, 30)]}


def test_the_same_id_in_two_runs(logs: Any) -> None:
    """Two rollouts."""
    for run, end in (("one", 50), ("two", 70)):
        logs.span("r", None, 0, end, trace=run, rollout="0-0", service=run)
        logs.process("started", 0, service=run, run=run)
    with logs.engine() as engine:
        rows = engine.rows("SELECT run_id, duration_ns FROM rollout_path ORDER BY run_id")
    assert [tuple(row.values()) for row in rows] == [("one", 50), ("two", 70)]


@st.composite
def forests(draw: st.DrawFn) -> list[tuple[str, str | None, str, int, int, str | None]]:
    """Spans of some traces, of rollouts here and there: label, parent, trace, times, rollout."""
    spans: list[tuple[str, str | None, str, int, int, str | None]] = []
    times = st.integers(0, 50)
    for number in range(draw(st.integers(1, 14))):
        start, end = sorted((draw(times), draw(times)))
        trace = draw(st.sampled_from(["t", "u"]))
        above = [label for label, _, other, *_ in spans if other == trace]
        parent = draw(st.sampled_from([None, *above]))
        spans.append(
            (f"s{number}", parent, trace, start, end, draw(st.sampled_from([None, "0-0", "1-0"])))
        )
    return spans


def test_sections_tile_every_rollout(logs: Any) -> None:
    """End to end, from start to end, whatever the spans; and nothing of another rollout."""

    @settings(
        max_examples=6,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(forests())
    def check(spans: list[tuple[str, str | None, str, int, int, str | None]]) -> None:
        logs.files.clear()
        for label, parent, trace, start, end, rollout in spans:
            logs.span(label, parent, start, end, trace=trace, rollout=rollout)
        with logs.engine() as engine:
            rollouts = engine.rows(
                """
                SELECT rollout_id, start_time_unix_nano AS s, end_time_unix_nano AS e
                FROM rollouts
                """
            )
            sections = engine.rows(
                """
                SELECT rollout_id, start_time_unix_nano AS s, end_time_unix_nano AS e
                FROM rollout_path
                ORDER BY ALL
                """
            )
            strange = engine.rows(
                """
                SELECT path.rollout_id
                FROM _rollout_sections AS path
                JOIN _rollout_spans AS member USING (node)
                WHERE path.rollout_id <> member.rollout_id
                """
            )
        assert strange == []
        for rollout in rollouts:
            mine = [row for row in sections if row["rollout_id"] == rollout["rollout_id"]]
            edges = [rollout["s"], *(row["e"] for row in mine)]
            assert [row["s"] for row in mine] == edges[:-1]
            assert edges[-1] == rollout["e"]

    check()
