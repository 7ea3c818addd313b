"""What rollouts spent their time on: one row each, with the words for what was unusual."""

import json
from typing import Any

import pytest

from reconstruct.engine import Engine
from reconstruct.render.text import duration

SECOND = 1_000_000_000
KINDS = (
    "model",
    "tool",
    "verify",
    "sandbox",
    "agent",
    "queue",
    "client_overhead",
    "event_loop_lag",
    "retry",
    "unaccounted",
)


def shares(engine: Engine) -> list[dict[str, Any]]:
    return engine.rows("FROM rollout_shares ORDER BY run_id, rollout_id")


def rollout(logs: Any, rollout_id: str, *calls: tuple[str, float, float], end: float) -> None:
    """A rollout in s: an agent's calls of `model` or of a tool, served all the time."""
    trace = rollout_id
    logs.span("run", None, 0, round(end * SECOND), service="agent", trace=trace, rollout=rollout_id)
    for number, (callee, start, over) in enumerate(calls):
        times = round(start * SECOND), round(over * SECOND)
        service = "model" if callee == "model" else "resources"
        label = f"{callee}{number}"
        logs.span(label, "run", *times, service="agent", kind="CLIENT", trace=trace)
        logs.span(
            f"{label}/0",
            label,
            *times,
            service=service,
            kind="SERVER",
            name=f"POST /{callee}",
            trace=trace,
        )


def test_they_add_up(logs: Any) -> None:
    """To the rollout's duration; the next ten columns after it say so."""
    rollout(logs, "0-0", ("model", 0, 4), ("get_weather", 5, 6), end=7)
    with logs.engine() as engine:
        (row,) = shares(engine)
    assert row["duration_ns"] == sum(row[f"{kind}_ns"] for kind in KINDS) == 7 * SECOND
    names = list(row)
    after = names.index("duration_ns") + 1
    assert names[after : after + len(KINDS)] == [f"{kind}_ns" for kind in KINDS]


def test_sum_and_wall_time_of_calls(logs: Any) -> None:
    """Calls side by side: 13 s in all, in 7 s of ten."""
    calls = [("model", 0.0, 4.0), ("model", 1.0, 5.0), ("model", 2.0, 6.0), ("model", 8.0, 9.0)]
    rollout(logs, "0-0", *calls, ("search", 6, 7.5), end=10)
    with logs.engine() as engine:
        (row,) = shares(engine)
    assert row["turns"] == 4
    assert (row["model_sum_ns"], row["model_wall_ns"]) == (13 * SECOND, 7 * SECOND)
    assert (row["tool_sum_ns"], row["tool_wall_ns"]) == (1.5 * SECOND, 1.5 * SECOND)
    assert (row["model_ns"], row["tool_ns"], row["agent_ns"]) == (
        7 * SECOND,
        1.5 * SECOND,
        1.5 * SECOND,
    )
    assert (row["model_call_p50_ns"], row["model_call_max_ns"]) == (4 * SECOND, 4 * SECOND)
    assert row["slowest_tool"] == "search"


def test_why(logs: Any) -> None:
    """What is a twentieth of the median's duration more than there, the most first."""
    for number in range(3):
        rollout(logs, f"{number}-0", ("model", 0, 4), ("get_weather", 5, 6), end=7)
    more = [("model", 0.0, 4.0), ("model", 4.0, 6.0), ("get_weather", 6.0, 7.0)]
    rollout(logs, "3-0", *more, ("search", 7, 10), end=11.02)
    rollout(logs, "4-0", ("model", 0, 3), ("get_weather", 5, 6), end=7.3)
    with logs.engine() as engine:
        assert [row["why"] for row in shares(engine)] == [
            None,
            None,
            None,
            "tool search +3.00 s (1 more call), model +2.00 s (1 more turn)",
            "own work +1.30 s",
        ]


def test_each_run_has_its_own_median(logs: Any) -> None:
    """What is usual in one says nothing of another."""
    for run, length in (("one", 1), ("two", 9)):
        logs.process("started", 0, service=run, run=run)
        logs.span(
            "run", None, 0, length * SECOND, service=run, name="gym.rollout", trace=run, rollout="0"
        )
    with logs.engine() as engine:
        assert [row["why"] for row in shares(engine)] == [None, None]


@pytest.mark.parametrize(
    ("status", "end", "expected"),
    [("UNSET", 100, "success"), ("ERROR", 100, "failure"), ("UNSET", None, "unfinished")],
)
def test_outcome(logs: Any, status: str, end: int | None, expected: str) -> None:
    """Of the first span; what failed within may have been made up for."""
    logs.span("run", None, 0, end, service="agent", rollout="7-1-a2", status=status)
    logs.span("tool", "run", 10, 20, service="agent", kind="CLIENT", status="ERROR")
    with logs.engine() as engine:
        (row,) = shares(engine)
    assert row["outcome"] == expected
    assert row["attempt"] == 2
    assert row["failed_calls"] == 1


def test_names_of_servers(logs: Any) -> None:
    """Where there is one of a type."""
    logs.process("started", 0, service="talker", server_type="responses_api_agents")
    for service in ("weather", "maths"):
        logs.process("started", 0, service=service)
    logs.span("run", None, 0, 100, service="talker", rollout="0-0")
    logs.span("tool", "run", 10, 20, service="weather")
    logs.span("other", "run", 10, 20, service="maths", trace="u", rollout="1-0")
    logs.span("run", None, 0, 100, service="weather", trace="u", rollout="1-0")
    with logs.engine() as engine:
        found = [(row["agent_name"], row["resources_name"]) for row in shares(engine)]
    assert found == [("talker", "weather"), (None, None)]


def test_retries(logs: Any) -> None:
    """As the client counted them, else by failed halves that another followed."""
    logs.span("run", None, 0, 100, service="agent", rollout="0-0")
    counted = {"http.request.resend_count": 3}
    logs.span("one", "run", 0, 40, service="agent", kind="CLIENT", attributes=counted)
    logs.span("one/0", "one", 30, 40, service="model", kind="SERVER")
    logs.span("two", "run", 50, 90, service="agent", kind="CLIENT")
    for start, status in ((50, "ERROR"), (60, "ERROR"), (70, "UNSET")):
        logs.span(
            f"two/{start}", "two", start, start + 5, service="model", kind="SERVER", status=status
        )
    with logs.engine() as engine:
        (row,) = shares(engine)
    assert (row["retries"], row["turns"]) == (5, 2)
    assert row["retry_ns"] == 30 + 20


def test_tokens_of_spans(logs: Any) -> None:
    """Those of the model server count where a client says the same; null without any."""
    usage = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7}
    logs.span("run", None, 0, 100, service="agent", rollout="0-0")
    for number in range(2):
        logs.span(f"c{number}", "run", 0, 100, service="agent", kind="CLIENT", attributes=usage)
        logs.span(
            f"m{number}",
            f"c{number}",
            0,
            100,
            service="model",
            name="gym.model.responses",
            attributes=usage | {"gen_ai.usage.output_tokens": 5},
        )
    logs.span("run", None, 0, 100, service="agent", trace="u", rollout="1-0")
    logs.span("c", "run", 0, 100, service="agent", trace="u", kind="CLIENT", attributes=usage)
    logs.span("run", None, 0, 100, service="agent", trace="v", rollout="2-0")
    odd = usage | {"gen_ai.usage.input_tokens": "many"}
    logs.span("c", "run", 0, 100, service="agent", trace="v", kind="CLIENT", attributes=odd)
    with logs.engine() as engine:
        found = [(row["input_tokens"], row["output_tokens"]) for row in shares(engine)]
    assert found == [(14, 10), (7, None), (None, None)]


def test_captured_calls(logs: Any) -> None:
    """They say more than spans do, and come before them."""
    logs.span("run", None, 0, 100 * 10**6, service="agent", rollout="0-0")
    for number, latency in enumerate((10.0, 30.0)):
        usage = {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
        }
        capture = {
            "model_call_id": f"call-{number}",
            "dialect": "responses",
            "model_ref": {"type": "responses_api_models", "name": "model"},
            "started_at": 1_800_000_000 + number / 100,
            "completed_at": 1_800_000_000 + number / 100 + latency / 1e3,
            "latency_ms": latency,
            "latency_ttft_ms": latency / 2,
            "status_code": 200,
            "request": {},
            "response": {"id": f"resp-{number}", "model": "stub", "usage": usage},
        }
        logs.raw(json.dumps(capture), "0-0.capture.jsonl")
    with logs.engine() as engine:
        (row,) = shares(engine)
    assert {
        "captured_calls": 2,
        "input_tokens": 20,
        "cached_input_tokens": 8,
        "output_tokens": 10,
        "reasoning_tokens": 4,
        "model_call_p50_ns": 10_000_000,
        "model_call_max_ns": 30_000_000,
        "time_to_first_token_p50_ns": 5_000_000,
    }.items() <= row.items()


def test_lengths_read_as_in_tables(logs: Any) -> None:
    """The words in SQL are those of `render.text.duration`."""
    edges = [999, 9_994, 9_995, 99_950, 999_499, 999_500, 59_949_999_999, 59_950_000_000]
    edges += [0, 1, 60 * SECOND, 3_599_499_999_999, 3_599_500_000_000, 86_399_500_000_000, 10**18]
    lengths = edges + [7**power for power in range(21)]
    logs.span("root")
    with logs.engine() as engine:
        rows = engine.rows(
            "SELECT ns, _duration_words(ns) AS words FROM (SELECT unnest($ns::BIGINT[]) AS ns)",
            {"ns": lengths},
        )
    assert {row["ns"]: row["words"] for row in rows} == {ns: duration(ns) for ns in lengths}
