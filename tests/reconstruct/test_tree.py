"""Nested spans: what stands under what, and what stands for what is missing."""

from typing import Any

import pytest

from reconstruct.tree import MISSING, Trace, rollout_traces, trace_tree


def outline(trace: Trace) -> list[str]:
    return [f"{'  ' * span.depth}{span.name}" for span in trace.walk()]


def test_a_trace(logs: Any) -> None:
    """Children stand under their parents in order of start, with attributes decoded."""
    logs.span("root", start=0, end=100, attributes={"n": 12345678901234567890123, "x": 1.0})
    logs.span("b", "root", 50, 60, status="ERROR", service="s2")
    logs.span("a", "root", 10, 40)
    logs.span("leaf", "a", 20, 30)
    with logs.engine() as engine:
        (row,) = engine.rows("SELECT trace_id FROM traces")
        trace = trace_tree(engine, row["trace_id"])
    assert outline(trace) == ["root", "  a", "    leaf", "  b"]
    assert (trace.span_count, trace.duration_ns) == (4, 100)
    (root,) = trace.roots
    assert root.attributes == {"n": 12345678901234567890123, "x": 1.0}
    assert (root.self_time_ns, root.children[1].status_code) == (60, "ERROR")


def test_a_missing_parent_is_one_span(logs: Any) -> None:
    """All its children stand below it; it covers them, and is no span of the trace."""
    logs.span("first", "gone", 10, 40)
    logs.span("second", "gone", 20, 90)
    logs.span("leaf", "second", 30, 40)
    logs.span("root", start=50, end=60)
    with logs.engine() as engine:
        trace = trace_tree(engine, engine.rows("FROM traces")[0]["trace_id"])
    assert outline(trace) == ["(missing span)", "  first", "  second", "    leaf", "root"]
    missing = trace.roots[0]
    assert (missing.state, missing.open_ns, trace.span_count) == (MISSING, 80, 4)
    assert missing.span_id == missing.children[0].parent_span_id


def test_unfinished_spans(logs: Any) -> None:
    """They reach as far as they were seen, and so does their trace."""
    logs.process("started", 0)
    logs.span("open", start=10, end=None)
    logs.process("alive", 500)
    with logs.engine() as engine:
        trace = trace_tree(engine, engine.rows("FROM traces")[0]["trace_id"])
    (span,) = trace.roots
    assert (span.state, span.end_time_unix_nano, span.open_ns) == ("open", None, 490)
    assert trace.duration_ns == 490
    assert span.seen_until_unix_nano == trace.end_time_unix_nano


def test_a_rollout_is_its_part_of_each_trace(logs: Any) -> None:
    """What stands above it or belongs to another one is left out, and no link is made up."""
    logs.span("job", start=0, end=90)
    logs.span("mine", "job", 1, 50, rollout="0-0")
    logs.span("below", "mine", 2, 40)
    logs.span("other", "job", 3, 60, rollout="0-1")
    logs.span("later", start=70, end=80, rollout="0-0", trace="u")
    with logs.engine() as engine:
        first, second = rollout_traces(engine, "0-0")
        assert outline(first) == ["mine", "  below"]
        assert outline(second) == ["later"]
        assert not first.roots[0].orphan
        assert first.rollout_id == "0-0"


def test_a_rollout_of_one_run(logs: Any) -> None:
    """Ids repeat from run to run; the run tells them apart."""
    for run in ("one", "two"):
        logs.process("started", 0, service=run, run=run)
        logs.span(f"work {run}", rollout="0-0", service=run, trace=run)
    with logs.engine() as engine:
        assert len(rollout_traces(engine, "0-0")) == 2
        (trace,) = rollout_traces(engine, "0-0", "two")
        assert outline(trace) == ["work two"]


def test_what_is_not_there(logs: Any) -> None:
    """Unknown ids are a KeyError."""
    logs.span("root")
    with logs.engine() as engine:
        with pytest.raises(KeyError):
            trace_tree(engine, "f" * 32)
        with pytest.raises(KeyError):
            rollout_traces(engine, "9-9")


def test_a_deep_trace(logs: Any) -> None:
    """Nothing recurses: 3,000 levels are nested and walked."""
    for number in range(3_000):
        logs.span(f"{number}", f"{number - 1}" if number else None, number, 10_000 - number)
    with logs.engine() as engine:
        trace = trace_tree(engine, engine.rows("FROM traces")[0]["trace_id"])
    assert [span.depth for span in trace.walk()] == list(range(3_000))
    assert repr(trace)
