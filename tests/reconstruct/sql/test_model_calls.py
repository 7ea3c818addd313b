"""Captured model calls find their rollout and their span, or say that they did not."""

import json
from typing import Any

from reconstruct.engine import Engine

BASE = 1_800_000_000
MS = 1_000_000


def capture(number: int, start_ms: float, end_ms: float, **more: Any) -> str:
    """A call in ms after the base of `logs`."""
    return json.dumps(
        {
            "model_call_id": f"call-{number}",
            "dialect": "responses",
            "model_ref": {"type": "responses_api_models", "name": "model"},
            "started_at": BASE + start_ms / 1e3,
            "completed_at": BASE + end_ms / 1e3,
            "latency_ms": end_ms - start_ms,
            "status_code": 200,
            "request": {},
            "response": {"id": f"resp-{number}", "model": "stub", "usage": {"input_tokens": 3}},
        }
        | more
    )


def calls(engine: Engine) -> list[dict[str, Any]]:
    return engine.rows(
        """
        SELECT call.*, span.name
        FROM model_calls AS call
        LEFT JOIN spans AS span USING (trace_id, span_id)
        ORDER BY call.file, call.line
        """
    )


def matches(engine: Engine) -> list[tuple[str | None, str | None]]:
    return [(row["name"], row["span_match"]) for row in calls(engine)]


def test_by_time(logs: Any) -> None:
    """Two calls of a rollout, each to the model span under it; another rollout's is left alone.

    rollout 0-0   agent  ####################
      serve       model    ######    ######     (SERVER)
        model call          ####      ####
        capture            =====     =====
    """
    logs.process("started", 0, service="model", run="run-7")
    logs.span("rollout", start=0, end=100 * MS, rollout="0-0")
    for number, at in ((1, 10), (2, 50)):
        logs.span(
            f"serve{number}", "rollout", at * MS, (at + 30) * MS, service="model", kind="SERVER"
        )
        logs.span(
            f"call{number}",
            f"serve{number}",
            (at + 5) * MS,
            (at + 25) * MS,
            service="model",
            name="gym.model.responses",
            rollout="0-0",
        )
    logs.span("other", None, 10 * MS, 40 * MS, trace="u", name="gym.model.chat", rollout="0-1")
    logs.raw(capture(2, 51, 79), "0-0.capture.jsonl")
    logs.raw(capture(1, 11, 39), "0-0.capture.jsonl")
    with logs.engine() as engine:
        second, first = calls(engine)
        ids = engine.rows(
            "SELECT span_id FROM spans WHERE name LIKE 'gym.model.%' AND rollout_id = '0-0' "
            "ORDER BY start_time_unix_nano"
        )
    assert [first["span_id"], second["span_id"]] == [row["span_id"] for row in ids]
    assert [first["span_match"], second["span_match"]] == ["time", "time"]
    assert [first["call_number"], second["call_number"]] == [1, 2]
    assert first["rollout_id"] == second["rollout_id"] == "0-0"
    assert first["run_id"] == "run-7"
    assert (first["model"], first["input_tokens"], first["duration_ns"]) == ("stub", 3, 28 * MS)
    assert json.loads(first["record"])["model_call_id"] == "call-1"


def test_by_id_before_time(logs: Any) -> None:
    """A span that names the answer is the one, however little it overlaps."""
    logs.span("a", start=0, end=10 * MS, name="gym.model.a", rollout="0-0")
    chat = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "resp-1"}
    logs.span("b", None, 9 * MS, 60 * MS, name="chat stub", rollout="0-0", attributes=chat)
    logs.raw(capture(1, 0, 10), "0-0.capture.jsonl")
    with logs.engine() as engine:
        assert matches(engine) == [("chat stub", "id")]


def test_the_server_span_where_there_is_no_model_span(logs: Any) -> None:
    """Of the server that the capture names, not of another one."""
    logs.process("started", 0, service="model")
    logs.process("started", 0, service="agent", pid=8)
    logs.span("serve", None, 0, 30 * MS, service="model", kind="SERVER", rollout="0-0")
    logs.span("run", None, 0, 30 * MS, service="agent", kind="SERVER", rollout="0-0")
    logs.raw(capture(1, 1, 29), "0-0.capture.jsonl")
    with logs.engine() as engine:
        assert matches(engine) == [("serve", "time")]


def test_no_span_stands_for_two_calls(logs: Any) -> None:
    """The better fit has it; the other call keeps its rollout, and no span."""
    logs.span("a", start=0, end=10 * MS, name="gym.model.a", rollout="0-0")
    logs.raw(capture(1, 0, 10), "0-0.capture.jsonl")
    logs.raw(capture(2, 2, 9), "0-0.capture.jsonl")
    with logs.engine() as engine:
        assert matches(engine) == [("gym.model.a", "time"), (None, None)]
        assert [row["rollout_id"] for row in calls(engine)] == ["0-0", "0-0"]


def test_the_run_of_that_time(logs: Any) -> None:
    """Rollout ids repeat from run to run: the one that was under way; none when none was."""
    for run, pid, at in (("run-1", 1, 0), ("run-2", 2, 1000)):
        instance = f"agent-{pid}"
        logs.process("started", at * MS, service="agent", instance=instance, run=run, pid=pid)
        logs.span(
            f"r{pid}",
            None,
            at * MS,
            (at + 50) * MS,
            trace=run,
            service="agent",
            instance=instance,
            rollout="0-0",
        )
    logs.raw(capture(1, 1010, 1020), "0-0.capture.jsonl")
    logs.raw(capture(2, 500, 510), "0-0.capture.jsonl")
    with logs.engine() as engine:
        assert [row["run_id"] for row in calls(engine)] == ["run-2", None]
        assert matches(engine) == [(None, None), (None, None)]


def test_the_rollout_in_the_name_of_the_file(logs: Any) -> None:
    """Endings of rotation and compression are no part of it; another file's name says nothing."""
    files = {"7-1-a2.capture.jsonl": "7-1-a2", "x.capture.jsonl.1": "x", "calls.log": None}
    for number, file in enumerate(files):
        logs.raw(capture(number, 0, 10), file)
    logs.raw(capture(7, 0, 10, rollout_id="9-9"), "x.capture.jsonl.1")
    with logs.engine() as engine:
        rollouts = {row["model_call_id"]: row["rollout_id"] for row in calls(engine)}
    expected = {f"call-{number}": rollout for number, rollout in enumerate(files.values())}
    assert rollouts == expected | {"call-7": "9-9"}


def test_a_call_read_twice_counts_once(logs: Any) -> None:
    """A copy of the file."""
    logs.raw(capture(1, 0, 10), "0-0.capture.jsonl")
    logs.raw(capture(1, 0, 10), "copy.capture.jsonl")
    with logs.engine() as engine:
        assert [row["rollout_id"] for row in calls(engine)] == ["0-0"]


def test_a_call_that_never_ended(logs: Any) -> None:
    """Its start is enough for a match."""
    logs.span("a", start=0, end=10 * MS, name="gym.model.a", rollout="0-0")
    logs.raw(capture(1, 5, 6, completed_at=None, latency_ms=None), "0-0.capture.jsonl")
    with logs.engine() as engine:
        (row,) = calls(engine)
    assert (row["name"], row["end_time_unix_nano"], row["duration_ns"]) == (
        "gym.model.a",
        None,
        None,
    )
