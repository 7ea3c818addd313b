"""Spans, traces, rollouts: states, copies, collisions, whose they are."""

import json
from typing import Any

SECOND = 1_000_000_000


def test_a_start_line_and_its_span_are_one(logs: Any) -> None:
    """The span_start line counts only while there is no span line."""
    logs.span("work", start=0, end=None)
    logs.span("work", start=0, end=500)
    with logs.engine() as engine:
        (span,) = engine.rows("SELECT state, duration_ns, open_ns, duplicates FROM spans")
        assert span == {"state": "finished", "duration_ns": 500, "open_ns": None, "duplicates": 0}


def test_an_open_span_of_a_living_process(logs: Any) -> None:
    """It is open, as long as the run was seen to last, and has no duration."""
    logs.process("started", 0)
    logs.span("work", start=0, end=None)
    logs.process("alive", 3 * SECOND)
    with logs.engine() as engine:
        (span,) = engine.rows("SELECT state, end_time_unix_nano, duration_ns, open_ns FROM spans")
        assert span == {
            "state": "open",
            "end_time_unix_nano": None,
            "duration_ns": None,
            "open_ns": 3 * SECOND,
        }


def test_an_open_span_of_a_process_that_stopped(logs: Any) -> None:
    """It is lost, and was open until the process stopped."""
    logs.process("started", 0)
    logs.span("work", start=0, end=None)
    logs.process("stopped", 2 * SECOND)
    logs.span("later", start=9 * SECOND, end=9 * SECOND, service="b")
    with logs.engine() as engine:
        (span,) = engine.rows("SELECT state, open_ns FROM spans WHERE name = 'work'")
        assert span == {"state": "lost", "open_ns": 2 * SECOND}


def state_of_b(logs: Any) -> str:
    with logs.engine() as engine:
        (row,) = engine.rows("SELECT state FROM instances WHERE service_name = 'b'")
        state = row["state"]
        assert isinstance(state, str)
        return state


def test_a_process_is_dead_when_its_run_is_over(logs: Any) -> None:
    """The last line of the run is another one's stop: nobody is left who could still write."""
    logs.process("started", 0, service="a")
    logs.process("started", 0, service="b")
    logs.process("stopped", 5 * SECOND, service="a")
    assert state_of_b(logs) == "dead"


def test_a_process_is_alive_while_another_one_has_stopped_earlier(logs: Any) -> None:
    """One server that is taken down says nothing of those that go on."""
    logs.process("started", 0, service="a")
    logs.process("stopped", 5 * SECOND, service="a")
    logs.process("alive", 6 * SECOND, service="b")
    assert state_of_b(logs) == "alive"


def test_a_process_is_dead_after_two_intervals_of_silence(logs: Any) -> None:
    """Process records come every 30 s; more than 60 s without any is death, 60 s is not."""
    logs.process("started", 0, service="b")
    logs.process("alive", 60 * SECOND, service="a")
    assert state_of_b(logs) == "alive"
    logs.process("alive", 60 * SECOND + 1, service="a")
    assert state_of_b(logs) == "dead"


def test_silence_means_nothing_without_process_records(logs: Any) -> None:
    """Other writers have no heartbeat, so their open spans stay open, by the last time of all."""
    logs.span("work", start=0, end=None, service="b")
    logs.span("later", start=300 * SECOND, end=310 * SECOND, service="a")
    assert state_of_b(logs) == "unknown"
    with logs.engine() as engine:
        (span,) = engine.rows("SELECT state, open_ns FROM spans WHERE name = 'work'")
        assert span == {"state": "open", "open_ns": 310 * SECOND}


def test_what_the_process_record_says_holds_for_its_spans(logs: Any) -> None:
    """Run, server, host, pid and the whole resource come from any process record."""
    logs.span("work")
    logs.process("alive", 10, pid=42)
    with logs.engine() as engine:
        (span,) = engine.rows(
            "SELECT run_id, server_name, host_name, process_pid, resource FROM spans"
        )
        resource = json.loads(span.pop("resource"))["attributes"]
        assert span == {
            "run_id": "run-1",
            "server_name": "a",
            "host_name": "node-1",
            "process_pid": 42,
        }
        assert (resource["service.name"], resource["process.pid"]) == ("a", 42)


def test_equal_copies_are_one_span(logs: Any) -> None:
    """However many, they count once, and the row says how many more there were."""
    logs.span("work")
    line = logs.files["a.log"][0]
    logs.raw(line, "b.log")
    logs.raw(line, "b.log")
    with logs.engine() as engine:
        (span,) = engine.rows("SELECT duplicates, occurrence, file FROM spans")
        assert (span["duplicates"], span["occurrence"]) == (2, 1)
        assert span["file"].endswith("a.log")


def test_two_copies_on_one_line(logs: Any) -> None:
    """The place does not tell copies apart, and none may take the other with it."""
    logs.span("work")
    (line,) = logs.files.pop("a.log")
    logs.raw(line + line)
    with logs.engine() as engine:
        assert engine.rows("SELECT name, duplicates FROM spans") == [
            {"name": "work", "duplicates": 1}
        ]


def test_one_id_with_two_contents(logs: Any) -> None:
    """Both stay, numbered; children stand under the first only."""
    logs.span("twin", start=10, end=20, name="first")
    logs.span("twin", start=11, end=20, name="second")
    logs.span("child", "twin", 12, 13)
    with logs.engine() as engine:
        spans = engine.rows("SELECT name, occurrence FROM spans ORDER BY start_time_unix_nano")
        assert spans[:2] == [
            {"name": "first", "occurrence": 1},
            {"name": "second", "occurrence": 2},
        ]
        tree = engine.rows("SELECT occurrence, subtree_span_count FROM span_tree WHERE depth = 0")
        assert sorted(tuple(row.values()) for row in tree) == [(1, 2), (2, 1)]


def test_a_trace(logs: Any) -> None:
    """Root, counts, times and ids of all its spans."""
    logs.span("root", start=0, end=100, rollout="0-0")
    logs.span("call", "root", 10, 150, service="b", status="ERROR")
    logs.span("open", "root", 20, None, service="b")
    with logs.engine() as engine:
        (trace,) = engine.rows(
            """
            SELECT
                root_name, service_count, span_count, error_count, open_count, duration_ns,
                rollout_id
            FROM traces
            """
        )
        assert trace == {
            "root_name": "root",
            "service_count": 2,
            "span_count": 3,
            "error_count": 1,
            "open_count": 1,
            "duration_ns": 150,
            "rollout_id": "0-0",
        }


def test_a_rollout_over_traces_and_a_trace_of_rollouts(logs: Any) -> None:
    """A span without an id goes with its nearest ancestor, else with the only one of its trace.

    job ── r1 (0-0) ── x          other trace: y (0-0) ── z
        └─ r2 (0-1) ── w
    """
    logs.span("job", start=0, end=90)
    logs.span("r1", "job", 1, 50, rollout="0-0")
    logs.span("x", "r1", 2, 40)
    logs.span("r2", "job", 3, 60, rollout="0-1")
    logs.span("w", "r2", 4, 30)
    logs.span("y", start=70, end=80, rollout="0-0", trace="u")
    logs.span("z", "y", 71, 75, trace="u")
    with logs.engine() as engine:
        rows = engine.rows(
            "SELECT rollout_id, trace_count, span_count, duration_ns FROM rollouts ORDER BY ALL"
        )
        assert [tuple(row.values()) for row in rows] == [("0-0", 2, 4, 79), ("0-1", 1, 2, 57)]


def test_rollouts_of_different_runs_are_different(logs: Any) -> None:
    """Ids repeat from run to run."""
    for run in ("one", "two"):
        logs.process("started", 0, service=run, run=run)
        logs.span("work", rollout="0-0", service=run, trace=run)
    with logs.engine() as engine:
        rows = engine.rows("SELECT run_id, span_count FROM rollouts ORDER BY run_id")
        assert [tuple(row.values()) for row in rows] == [("one", 1), ("two", 1)]
