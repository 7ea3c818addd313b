"""Figures per group of spans: counts, errors, durations, self time and blame."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine
from tests.reconstruct.conftest import BASE, SECOND, LogBuilder

QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def by(engine: Engine, *keys: str, relation: str = "spans") -> dict[tuple[Any, ...], Any]:
    """Return the rows of `stats_by` by their key values."""
    rows = engine.rows(f"FROM stats_by({list(keys)}, relation := '{relation}') ORDER BY key_values")
    return {tuple(row.pop("key_values")): row for row in rows}


def test_counts_and_sums(logs: Any) -> None:
    """Self time and blame add up to the root; what is unfinished counts, but has no duration.

    run (a) 0-100 ── call (a) 10-60, ERROR ── serve (b) 20-50
                  └─ open (a) 70-
    """
    logs.process("started", 0)
    logs.span("run", None, 0, 100)
    logs.span("call", "run", 10, 60, status="ERROR")
    logs.span("serve", "call", 20, 50, service="b")
    logs.span("open", "run", 70, None)
    logs.process("stopped", 90)
    with logs.engine() as engine:
        rows = {row["name"]: row for row in engine.rows("FROM stats")}
    figures = ("span_count", "error_count", "open_count", "duration_total_ns", "duration_max_ns")
    assert {name: tuple(row[key] for key in figures) for name, row in rows.items()} == {
        "run": (1, 0, 0, 100, 100),
        "call": (1, 1, 0, 50, 50),
        "serve": (1, 0, 0, 30, 30),
        "open": (1, 0, 1, None, None),
    }
    assert {name: row["self_time_ns"] for name, row in rows.items()} == {
        "run": 20,
        "call": 20,
        "serve": 30,
        "open": None,
    }
    assert {name: row["blame_ns"] for name, row in rows.items()} == {
        "run": 20,
        "call": 20,
        "serve": 30,
        "open": 30,
    }
    assert rows["call"]["error_share"] == 1
    assert rows["serve"]["service_name"] == "b"


SPANS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from(["x", "y"]),
        st.integers(0, 10**6),
        st.none() | st.integers(0, 10**12),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


def test_quantiles_are_those_of_numpy(logs: Any) -> None:
    """In each group, under any keys: linear between the nearest two, rounded to ns."""
    folder = logs.folder

    @settings(max_examples=8, deadline=None)
    @given(SPANS)
    def check(spans: list[Any]) -> None:
        logs = LogBuilder(folder)
        members = []
        for number, (service, name, start, length, has_failed) in enumerate(spans):
            end = None if length is None else start + length
            status = "ERROR" if has_failed else "UNSET"
            facts = {"name": name, "service": service, "status": status, "trace": f"{number}"}
            logs.span("one", None, start, end, file="a.log", **facts)
            code = None if end is None else status
            members.append(({"service_name": service, "name": name, "status_code": code}, length))
        with logs.engine() as engine:
            for keys in (["service_name", "name"], ["name"], ["status_code", "service_name"]):
                rows = by(engine, *keys)
                assert set(rows) == {tuple(said[key] for key in keys) for said, _ in members}
                for group, row in rows.items():
                    compare(row, [m for m in members if group == tuple(m[0][k] for k in keys)])

    check()


def compare(row: dict[str, Any], members: list[tuple[dict[str, Any], int | None]]) -> None:
    """Compare the figures of a group with those of its members."""
    lengths = [length for _, length in members if length is not None]
    assert row["span_count"] == len(members)
    assert row["open_count"] == len(members) - len(lengths)
    assert row["error_count"] == sum(said["status_code"] == "ERROR" for said, _ in members)
    assert row["duration_total_ns"] == row["self_time_ns"] == (sum(lengths) if lengths else None)
    assert row["duration_max_ns"] == max(lengths, default=None)
    for name, quantile in QUANTILES.items():
        found = row[f"duration_{name}_ns"]
        if lengths:
            assert abs(found - np.quantile(lengths, quantile)) <= 0.501
        else:
            assert found is None


def test_self_time_and_blame_are_the_sums_over_spans(logs: Any) -> None:
    """Whatever the trees look like, nothing is lost or counted twice by grouping."""
    folder = logs.folder
    spans = st.tuples(st.integers(0, 8), st.integers(0, 40), st.integers(0, 40))
    forests = st.lists(st.lists(spans, min_size=1, max_size=9), min_size=5, max_size=20)

    @settings(max_examples=5, deadline=None)
    @given(forests)
    def check(forest: list[list[tuple[int, int, int]]]) -> None:
        logs = LogBuilder(folder)
        for tree, works in enumerate(forest):
            for number, (parent, start, length) in enumerate(works):
                above = f"{parent % number}" if number else None
                name = "xyz"[(number + tree) % 3]
                logs.span(f"{number}", above, start, start + length, name=name, trace=f"{tree}")
        with logs.engine() as engine:
            rows = engine.rows(
                """
                SELECT
                    name,
                    sum(self_time_ns)::BIGINT AS self_time_ns,
                    coalesce(sum(blame_ns), 0)::BIGINT AS blame_ns
                FROM spans
                LEFT JOIN self_time USING (trace_id, span_id, occurrence)
                LEFT JOIN blame USING (trace_id, span_id, occurrence)
                GROUP BY name
                """
            )
            found = by(engine, "name")
        for row in rows:
            assert {key: found[(row["name"],)].get(key, row["name"]) for key in row} == row
        roots = sum(works[0][2] for works in forest)
        assert sum(row["blame_ns"] for row in found.values()) == roots

    check()


def test_keys_are_columns_routes_outcomes_and_attributes(logs: Any) -> None:
    """Several at once; what has no value is a group of its own."""
    logs.span("a", attributes={"http.route": "/a", "tool": 1}, trace="1", kind="SERVER")
    logs.span("b", attributes={"http.route": "/a", "tool": "x"}, trace="2", instance="a-2")
    logs.span("c", attributes={"$odd": True, "/odd": "y", 'q"': 2}, trace="3", service="b")
    with logs.engine() as engine:
        assert set(by(engine, "route", "tool")) == {("/a", "1"), ("/a", "x"), (None, None)}
        assert set(by(engine, "$odd", "/odd", 'q"')) == {(None,) * 3, ("true", "y", "2")}
        assert set(by(engine, "kind")) == {("SERVER",), ("INTERNAL",)}
        assert set(by(engine, "instance")) == {("a#a-1",), ("a#a-2",), ("b#b-1",)}
        assert set(by(engine)) == {()}


def test_outcomes(logs: Any) -> None:
    """The status and what made it so: error.type, else the HTTP status or its class; else the
    state."""
    http = "http.response.status_code"
    cases: list[tuple[str, str, dict[str, Any]]] = [
        ("ok", "UNSET", {}),
        ("ok", "OK", {"error.type": "GeneratorExit"}),
        ("ok 2xx", "UNSET", {http: 204}),
        ("ok 4xx", "UNSET", {"http.status_code": 404}),
        ("error", "ERROR", {}),
        ("error 502", "ERROR", {http: 502}),
        ("error KeyError", "ERROR", {http: 500, "error.type": "KeyError"}),
        ("cancelled", "ERROR", {"error.type": "CancelledError", "gymlog.cancelled": True}),
    ]
    for number, (outcome, status, attributes) in enumerate(cases):
        logs.span(outcome, trace=f"{number}", status=status, attributes=attributes)
    logs.process("started", 0)
    logs.process("alive", 10 * SECOND)
    logs.span("open", end=None, trace="open")
    logs.process("started", 0, service="b")
    logs.span("lost", end=None, service="b", trace="lost")
    logs.process("stopped", 10, service="b")
    with logs.engine() as engine:
        rows = by(engine, "name", "outcome")
    names = {outcome for outcome, _, _ in cases} | {"open", "lost"}
    assert set(rows) == {(name, name) for name in names}


def test_any_query_may_stand_for_the_spans(logs: Any) -> None:
    """Named before, by its name."""
    logs.span("x", service="a")
    logs.span("y", service="b", trace="u")
    query = """
        WITH chosen AS (
            SELECT *
            FROM spans
            WHERE service_name = 'b'
        )
        SELECT key_values
        FROM stats_by(['name'], relation := 'chosen')
    """
    with logs.engine() as engine:
        assert engine.rows(query) == [{"key_values": ["y"]}]


def test_rates_are_per_second_of_the_range(logs: Any) -> None:
    """From the first start to the last end counted, or as asked, as far as the logs go."""
    logs.span("early", start=0, end=SECOND, trace="0")
    logs.span("one", start=2 * SECOND, end=3 * SECOND, trace="1", service="b")
    logs.span("two", start=3 * SECOND, end=10 * SECOND, trace="2", service="b")
    query = """
        WITH chosen AS (SELECT * FROM spans WHERE service_name = 'b')
        FROM stats_by(['service_name'], relation := 'chosen', since := $since, until := $until)
    """
    cases = [
        (None, None, 8),
        (BASE + 4 * SECOND, None, 6),
        (BASE + 4 * SECOND, BASE + 5 * SECOND, 1),
        (0, 2**62, 10),
    ]
    with logs.engine() as engine:
        for since, until, seconds in cases:
            (row,) = engine.rows(query, {"since": since, "until": until})
            assert row["range_ns"] == seconds * SECOND
            assert row["spans_per_second"] == 2 / seconds


def test_no_time_is_no_rate(logs: Any) -> None:
    """Rather than one without bound."""
    logs.span("instant", start=0, end=0)
    with logs.engine() as engine:
        (row,) = by(engine, "name").values()
    assert (row["range_ns"], row["spans_per_second"]) == (0, None)


def test_nothing_read_gives_no_groups(tmp_path: Path) -> None:
    """Not even of no keys."""
    (tmp_path / "empty.log").touch()
    with Engine.read([str(tmp_path)]) as engine:
        assert by(engine) == by(engine, "name") == {}
