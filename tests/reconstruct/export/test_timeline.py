"""The timeline: what is drawn, where it stands, and what it leaves out."""

import json
import random

import pytest

from reconstruct.engine import Engine
from reconstruct.errors import ReconstructError
from reconstruct.export.timeline import Timeline

BASE = 1_800_000_000_000_000_000


def fill(logs):
    """agent: run ── call (CLIENT) ~~> model: answer, and a span that never ended."""
    logs.process("started", 0, service="agent", pid=7)
    logs.process("started", 0, service="model", pid=7)
    logs.span("run", None, 0, 1_000, service="agent", rollout="1-0")
    logs.span("call", "run", 100, 900, service="agent", kind="CLIENT", rollout="1-0")
    logs.span("answer", "call", 200, 800, service="model", kind="SERVER", status="ERROR")
    logs.span("stuck", "answer", 300, None, service="model")
    logs.span("other", None, 0, 50, trace="u", service="agent")
    linked = logs.span("linked", None, 2_000, 2_100, trace="v", service="agent")
    logs.files["agent.log"].pop()
    linked["links"] = [{"trace_id": "0" * 31 + "1", "span_id": "0" * 16}]
    first = logs.span("x", None, 0, 1, trace="w", service="agent")
    linked["links"].append({"trace_id": first["trace_id"], "span_id": first["span_id"]})
    logs.raw(json.dumps(linked), "agent.log")
    logs._record(
        "log", "model", None,
        {"time_unix_nano": BASE + 350, "severity_number": 17, "severity_text": "ERROR",
         "body": "no answer\x1b[0m", "attributes": {}, "trace_id": first["trace_id"],
         "span_id": first["span_id"]}, None,
    )  # fmt: skip
    for time, value in ((400, 2.0), (600, 3.0)):
        logs._record(
            "metric", "model", None,
            {"name": "calls", "unit": "1", "type": "sum", "is_monotonic": True,
             "aggregation_temporality": "DELTA", "start_time_unix_nano": BASE + time - 100,
             "time_unix_nano": BASE + time, "attributes": {"a": 1}, "value": value}, None,
        )  # fmt: skip
        logs._record(
            "metric", "model", None,
            {"name": "lag", "unit": "ms", "type": "histogram", "aggregation_temporality": "DELTA",
             "start_time_unix_nano": BASE + time - 100, "time_unix_nano": BASE + time,
             "attributes": {}, "count": 2, "sum": value, "min": 0.0, "max": value,
             "bucket_counts": [2], "explicit_bounds": []}, None,
        )  # fmt: skip


def seen(timeline):
    """Return all that is drawn."""
    return (
        dict(timeline.figures), timeline.first_time, list(timeline.processes.values()),
        list(timeline.slices()), list(timeline.instants()), list(timeline.readings()),
    )  # fmt: skip


def test_every_span_is_drawn_once_and_unfinished_ones_as_far_as_they_were_seen(logs):
    fill(logs)
    with logs.engine() as engine:
        timeline = Timeline(engine)
        spans = {span.name: (span, lane) for span, lane in timeline.slices()}
        assert timeline.figures["spans"] == len(spans) == 7
        assert timeline.figures["unfinished"] == 1
        stuck = spans["stuck"][0]
        assert (stuck.state, stuck.start, stuck.end) == ("open", BASE + 300, BASE + 2_100)
        # `other` and `x` run beside `run`, `call` below it.
        assert [spans[name][1] for name in ("run", "call", "answer")] == [0, 0, 0]
        assert {spans[name][1] for name in ("other", "x")} == {1, 2}


def test_calls_to_other_processes_and_links_are_arrows(logs):
    """From the earlier to the later; a link to a span that is not there is none."""
    fill(logs)
    with logs.engine() as engine:
        spans = {span.name: span for span, _ in Timeline(engine).slices()}
        begun = {name: span.begun for name, span in spans.items() if span.begun}
        ended = {name: span.ended for name, span in spans.items() if span.ended}
    assert {name: [arrow["kind"] for arrow in arrows] for name, arrows in begun.items()} == {
        "call": ["call"], "x": ["link"],
    }  # fmt: skip
    assert ended == {"answer": begun["call"], "linked": begun["x"]}


def test_processes_of_one_pid_are_told_apart(logs):
    fill(logs)
    with logs.engine() as engine:
        pids = [process.pid for process in Timeline(engine).processes.values()]
    assert len(set(pids)) == 2
    assert all(pid > 2**22 for pid in pids)


def test_counters_are_totals_and_histograms_lie_over_their_interval(logs):
    fill(logs)
    with logs.engine() as engine:
        readings = list(Timeline(engine).readings())
    assert [
        (reading.name, reading.time - BASE, reading.value) for reading in readings
    ] == [
        ("calls a=1", 400, 2.0), ("calls a=1", 600, 5.0),
        ("lag max", 300, 2.0), ("lag max", 400, 0.0), ("lag max", 500, 3.0), ("lag max", 600, 0.0),
        ("lag mean", 300, 1.0), ("lag mean", 400, 0.0), ("lag mean", 500, 1.5),
        ("lag mean", 600, 0.0),
    ]  # fmt: skip


def test_a_choice_takes_what_went_on_beside_it(logs):
    """Counters of its processes while it lasted; log records too, or only its spans'."""
    fill(logs)
    with logs.engine() as engine:
        asked = {"condition": "span.name = $name", "parameters": {"name": "answer"}}
        wide, narrow = Timeline(engine, **asked), Timeline(engine, **asked, is_narrow=True)
        assert list(wide.processes) == ["model#model-1"]
        assert len(list(wide.instants())) == 1
        assert list(narrow.instants()) == []
        assert len(list(wide.readings())) == 10
        with pytest.raises(ReconstructError, match="what the options choose"):
            _ = Timeline(engine, "FALSE").figures


def test_the_order_of_lines_and_files_changes_nothing(logs, tmp_path):
    fill(logs)
    with logs.engine() as engine:
        expected = seen(Timeline(engine))
    shuffled = tmp_path / "shuffled"
    shuffled.mkdir()
    lines = [line for file in logs.files.values() for line in file]
    random.Random(1).shuffle(lines)
    (shuffled / "all.log").write_text("".join(f"{line}\n" for line in lines))
    with Engine.read([str(shuffled)]) as engine:
        assert seen(Timeline(engine)) == expected


def test_spans_of_equal_times_come_parents_first(logs):
    for number in range(20):
        logs.span(f"s{number}", f"s{number - 1}" if number else None, 5, 10)
    with logs.engine() as engine:
        drawn = list(Timeline(engine).slices())
    assert [span.name for span, _ in drawn] == [f"s{number}" for number in range(20)]
    assert {lane for _, lane in drawn} == {0}


def test_what_no_counter_can_show_is_counted(logs):
    """A point that is infinite, beside one that is drawn."""
    logs.span("a", None, 0, 10, service="a")
    for time, value in ((1, 5.0), (2, "Infinity")):
        logs._record(
            "metric", "a", None,
            {"name": "load", "unit": "1", "type": "gauge", "time_unix_nano": BASE + time,
             "attributes": {}, "value": value}, None,
        )  # fmt: skip
    with logs.engine() as engine:
        if not engine.rows("SELECT 1 FROM metric_points WHERE NOT isfinite(value)"):
            pytest.fail("the reader took no infinite point")
        timeline = Timeline(engine)
        assert [reading.value for reading in timeline.readings()] == [5.0]
        assert timeline.unreadable == 1
