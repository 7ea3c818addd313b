"""Why propagation broke: each of the causes from the evidence that tells it, with its advice."""

import json
from typing import Any

import pytest

MS = 1_000_000
SECOND = 1_000 * MS


def why(logs: Any, code: str) -> list[tuple[str, float]]:
    """Return cause and confidence of each finding of a code."""
    return [(row["cause"], row["confidence"]) for row in logs.findings(code)]


def remote(logs: Any, label: str, parent: str | None, **facts: Any) -> dict[str, Any]:
    """Write a request to the model whose parent is elsewhere."""
    facts = {"service": "model", "kind": "SERVER", "flags": 0x303, **facts}
    record: dict[str, Any] = logs.span(
        label, parent, facts.pop("start", 10 * MS), facts.pop("end", 20 * MS), **facts
    )
    return record


def usual_call(logs: Any) -> None:
    """agent: call ── model: serve, so that it is known who calls the model."""
    logs.span("call", None, 0, 9 * MS, trace="usual", service="agent", kind="CLIENT")
    remote(logs, "serve", "call", trace="usual", start=MS, end=8 * MS)


def test_a_parent_of_which_nothing_is_known(logs: Any) -> None:
    """OR1: one root, and no file of what calls the service."""
    remote(logs, "served", "gone")
    (orphan,) = logs.findings("orphan")
    assert (orphan["cause"], orphan["confidence"]) == ("file_missing", 0.8)
    assert orphan["hint"] == "no log of what calls model is among the inputs: add it"


def test_a_cycle_and_a_span_that_is_its_own_parent(logs: Any) -> None:
    """OR2 and OR3: each is told once, beside a healthy tree."""
    logs.span("root", None, 0, 100)
    logs.span("a", "b", 1, 10)
    logs.span("b", "a", 2, 9)
    logs.span("self", "self", 3, 4, trace="u")
    assert why(logs, "cycle") == [("cycle", 1.0)] * 2
    with logs.engine() as engine:
        roots = engine.rows("SELECT count(*) AS n FROM span_tree WHERE depth = 0")
    assert roots == [{"n": 3}]


def test_one_record_twice_and_one_id_twice(logs: Any) -> None:
    """OR4: one span; OR5: two, which one process or two gave the same id."""
    logs.span("twice")
    logs.raw(logs.files["a.log"][0], "copy.log")
    logs.span("reused", None, 1, 2, trace="u", name="one")
    logs.span("reused", None, 1, 3, trace="u", name="other")
    logs.span("forked", None, 1, 2, trace="v", instance="a-1", name="one")
    logs.span("forked", None, 1, 3, trace="v", instance="a-2", name="other")
    assert why(logs, "duplicate_span") == [("read_twice", 1.0)]
    assert sorted(why(logs, "id_collision")) == [("fork_shared_ids", 0.8), ("id_reused", 0.6)]
    with logs.engine() as engine:
        counts = engine.rows("SELECT count(*) AS spans, sum(duplicates)::INT AS copies FROM spans")
    assert counts == [{"spans": 5, "copies": 1}]


def test_a_parent_with_only_a_start(logs: Any) -> None:
    """OR6: its child stands under it."""
    logs.process("started", 0)
    logs.span("parent", None, 0, None)
    logs.span("child", "parent", 1, 2)
    assert logs.findings("orphan") == []
    assert why(logs, "unfinished") == [("still_running", 0.8)]


@pytest.mark.parametrize(
    "spell",
    [
        lambda trace_id, span_id: (trace_id.upper(), span_id.upper()),
        lambda trace_id, span_id: (f"0x{trace_id}", f"0X{span_id}"),
    ],
    ids=["upper case", "0x"],
)
def test_other_spellings_that_are_joined(logs: Any, spell: Any) -> None:
    """OR7: what reading makes the same."""
    parent = logs.span("parent", None, 0, 10)
    child = logs.span("child", "parent", 1, 2, service="b")
    child["trace_id"], child["parent_span_id"] = spell(parent["trace_id"], parent["span_id"])
    logs.files["b.log"][-1] = json.dumps(child)
    assert logs.findings("orphan") == []


def test_trace_ids_of_64_bits_are_filled_up(logs: Any) -> None:
    """OR8: joined, when the other side has the same zeros."""
    parent = logs.span("parent", None, 0, 10)
    child = logs.span("child", "parent", 1, 2, service="b")
    parent["trace_id"], child["trace_id"] = "0" * 16 + "ab" * 8, "ab" * 8
    for file, record in (("a.log", parent), ("b.log", child)):
        logs.files[file][-1] = json.dumps(record)
    assert logs.findings("orphan") == []


def test_ten_thousand_under_one_missing_parent(logs: Any) -> None:
    """OR9: one finding."""
    for number in range(10_000):
        logs.span(f"s{number}", "gone", number, number + 1)
    (orphan,) = logs.findings("orphan")
    assert orphan["evidence"]["children"] == 10_000


@pytest.mark.parametrize(
    ("state", "lost", "cause", "confidence"),
    [
        ("stopped", 0, "unknown", 0.3),
        ("stopped", 3, "lines_lost", 0.8),
        ("dead", 0, "parent_unfinished", 0.8),
        ("alive", 0, "parent_unfinished", 0.7),
    ],
)
def test_what_became_of_the_process_itself(
    logs: Any, state: str, lost: int, cause: str, confidence: float
) -> None:
    """A parent in the same process: it stopped, lost lines, died or is still at work."""
    logs.process("started", 0)
    logs.span("child", "gone", 10, 20)
    logs.skip(lost)
    if state == "stopped":
        logs.process("stopped", 30)
    elif state == "dead":
        logs.process("stopped", SECOND, service="other")
    (orphan,) = logs.findings("orphan")
    assert (orphan["cause"], orphan["confidence"]) == (cause, confidence)
    assert orphan["evidence"]["parent_is_remote"] is False


def test_the_caller_that_is_in_the_trace_is_asked_first(logs: Any) -> None:
    """Another process of the service lost lines, and has nothing to do with it."""
    usual_call(logs)
    logs.skip(5, service="agent", instance="agent-2")
    logs.span("x", None, 1, 2, trace="x", service="agent", instance="agent-2")
    logs.span("run", None, 0, 90 * MS, service="agent", instance="agent-1")
    remote(logs, "served", "gone")
    assert why(logs, "orphan") == [("file_missing", 0.6)]
    logs.span("late", "run", 30, 40, service="agent", instance="agent-2")
    assert why(logs, "orphan") == [("lines_lost", 0.8)]


def test_a_caller_that_died_long_before_is_not_blamed(logs: Any) -> None:
    """It had no call open then."""
    usual_call(logs)
    logs.process("started", 9 * MS, service="agent", instance="agent-9")
    remote(logs, "served", "gone", start=120 * SECOND, end=121 * SECOND)
    logs.process("stopped", 150 * SECOND, service="model")
    logs.process("stopped", 150 * SECOND, service="agent", instance="agent-1")
    assert why(logs, "orphan") == [("file_missing", 0.6)]


@pytest.mark.parametrize(
    ("flags", "header", "cause"),
    [(0x300, None, "not_sampled"), (0x303, "00", "not_sampled"), (0x303, "01", "file_missing")],
)
def test_a_parent_that_was_not_sampled(
    logs: Any, flags: int, header: str | None, cause: str
) -> None:
    """The flags say so, or the header that the child recorded."""
    record = remote(logs, "served", "gone", flags=flags)
    if header is not None:
        sent = f"00-{record['trace_id']}-{record['parent_span_id']}-{header}"
        record["attributes"] = {"http.request.header.traceparent": [sent]}
        logs.files["model.log"][-1] = json.dumps(record)
    assert [each for each, _ in why(logs, "orphan")] == [cause]


def test_ids_that_are_the_same_when_written_alike(logs: Any) -> None:
    """64 bits of 128, a decimal number: named, not joined."""
    parent = logs.span("parent", None, 0, 10)
    half = remote(logs, "half", "parent", start=1, end=2)
    half["trace_id"] = "0" * 16 + parent["trace_id"][16:]
    logs.files["model.log"][-1] = json.dumps(half)
    number = 1_234_567_890_123_456
    root = logs.span("root", None, 0, 10, trace="u")
    root["span_id"] = f"{number:016x}"
    logs.files["a.log"][-1] = json.dumps(root)
    decimal = remote(logs, "decimal", "root", trace="u", start=1, end=2)
    decimal["parent_span_id"] = str(number)
    logs.files["model.log"][-1] = json.dumps(decimal)
    rows = logs.findings("orphan")
    assert [(row["cause"], row["confidence"]) for row in rows] == [("id_format", 0.95)] * 2
    assert {row["evidence"]["other_span_id"] for row in rows} == {
        parent["span_id"],
        root["span_id"],
    }


@pytest.mark.parametrize(
    ("header", "cause", "confidence"),
    [
        (f"00-{'ab' * 16}-{'cd' * 8}-01", "traceparent_ignored", 1),
        (f"00-{'00' * 16}-{'cd' * 8}-01", "invalid_id", 0.95),
        (f"00-{'AB' * 16}-{'CD' * 8}-01", "invalid_id", 0.95),
        ("undefined", "invalid_id", 0.95),
    ],
)
def test_a_request_with_a_header(logs: Any, header: str, cause: str, confidence: float) -> None:
    """It was ignored; or it was none, and that is not the receiver's fault."""
    remote(
        logs, "served", None, attributes={"http.request.header.traceparent": header}, flags=0x103
    )
    (split,) = logs.findings("split_trace")
    assert (split["cause"], split["confidence"]) == (cause, confidence)
    assert header in split["message"]


def test_a_caller_without_a_span_for_its_call(logs: Any) -> None:
    """Its service writes such spans otherwise: bypassed. It never does: the group is closed."""
    logs.span("work", None, 0, 90 * MS, trace="u", service="agent", rollout="0-0")
    remote(logs, "served", None, rollout="0-0", name="POST /v1", flags=0x103)
    (closed,) = logs.findings("split_trace")
    assert (closed["cause"], closed["confidence"]) == ("client_group_closed", 0.7)
    assert "span group http_client" in closed["hint"]
    usual_call(logs)
    (bypassed,) = logs.findings("split_trace")
    assert (bypassed["cause"], bypassed["confidence"]) == ("egress_bypassed", 0.9)


def test_a_service_without_spans_of_requests(logs: Any) -> None:
    """Its own work begins a trace; the call that it belongs to is answered by nothing."""
    logs.span("call", None, 0, 90 * MS, service="agent", kind="CLIENT", rollout="0-0")
    logs.span("infer", None, 10 * MS, 80 * MS, trace="u", service="model", rollout="0-0")
    (split,) = logs.findings("split_trace")
    assert (split["cause"], split["severity"]) == ("server_group_closed", "error")
    assert split["hint"].startswith("model writes no span of a request")


def test_work_in_another_thread(logs: Any) -> None:
    """With a rollout it is an error, by its usual parent a warning; a link is enough to be fine."""
    logs.span("serve", None, 0, 90 * MS, kind="SERVER", rollout="0-0")
    logs.span(
        "job",
        None,
        MS,
        5 * MS,
        trace="u",
        rollout="0-0",
        attributes={"gymlog.task.id": "thread-2"},
    )
    (split,) = logs.findings("split_trace")
    assert (split["cause"], split["severity"]) == ("context_lost_in_process", "error")
    assert split["place"] == "serve -> job in a"
    assert "contextvars.copy_context().run" in split["hint"]


def test_jobs_that_are_always_inside_requests(logs: Any) -> None:
    """Chance would not have it so where the process is mostly idle; a timer's work is elsewhere."""
    for number in range(6):
        at = number * SECOND
        logs.span("serve", None, at, at + 90 * MS, trace=f"t{number}", kind="SERVER")
        logs.span("job", None, at + MS, at + 5 * MS, trace=f"u{number}")
        logs.span(
            "timer", None, at + 50 * MS * number, at + 50 * MS * number + MS, trace=f"v{number}"
        )
    rows = logs.findings("split_trace")
    assert {(row["cause"], row["confidence"], row["severity"]) for row in rows} == {
        ("context_lost_in_process", 0.7, "warning")
    }
    assert {row["place"] for row in rows} == {"serve -> job in a"}
    assert len(rows) == 6
