"""Stalls of an event loop, as parts of the rollouts that they held up."""

import json
from typing import Any

from reconstruct.engine import Engine

BASE = 1_800_000_000_000_000_000
MS = 1_000_000


def spent(engine: Engine) -> dict[tuple[str, str], int]:
    """Milliseconds by rollout and kind of work."""
    rows = engine.rows(
        """
        SELECT rollout_id, spent_on, sum(duration_ns)::BIGINT AS ns
        FROM rollout_work
        GROUP BY ALL
        """
    )
    return {(row["rollout_id"], row["spent_on"]): row["ns"] // MS for row in rows}


def span(
    logs: Any, label: str, parent: str | None, start: int, end: int, **more: Any
) -> dict[str, Any]:
    """A span of the agent's if nothing else is said, in ms."""
    record: dict[str, Any] = logs.span(
        label, parent, start * MS, end * MS, **{"service": "agent", **more}
    )
    return record


def stall(
    logs: Any,
    at: int,
    length: int,
    *,
    is_over: bool,
    span: dict[str, Any] | None = None,
    **attributes: Any,
) -> None:
    """A log record of the agent's about a stall, in ms."""
    place = {} if span is None else {key: span[key] for key in ("trace_id", "span_id")}
    record = {
        "record_type": "log",
        "time_unix_nano": BASE + at * MS,
        "severity_number": 13,
        "severity_text": "WARN",
        "body": "the event loop did not run",
        "attributes": {
            "gymlog.event_loop.stall_ms": length,
            "gymlog.event_loop.is_stalled": not is_over,
            **attributes,
        },
        **place,
        "resource": {"attributes": {"service.name": "agent", "service.instance.id": "agent-1"}},
    }
    logs.raw(json.dumps({**record, "seq": len(logs.files.get("agent.log", ()))}), "agent.log")


def test_a_stalled_loop(logs: Any) -> None:
    """Holds up the other rollouts of its process; who stalled it was at work.

    victim   ##########   its model answers at 500 ms
    culprit       ###
    stalled       ==      600 to 800 ms
    """
    span(logs, "victim", None, 0, 1_000, rollout="0-0")
    span(logs, "call", "victim", 100, 900, kind="CLIENT")
    span(logs, "model", "call", 200, 500, service="model", kind="SERVER", name="POST /v1/responses")
    culprit = span(logs, "culprit", None, 550, 850, trace="u", rollout="1-0")
    stall(logs, 800, 200, is_over=True, span=culprit)
    with logs.engine() as engine:
        assert spent(engine) == {
            ("0-0", "agent"): 200,
            ("0-0", "queue"): 100,
            ("0-0", "model"): 300,
            ("0-0", "client_overhead"): 200,
            ("0-0", "event_loop_lag"): 200,
            ("1-0", "agent"): 300,
        }


def test_a_call_waits_for_a_stalled_loop(logs: Any) -> None:
    """On the other side, where its half begins when that is over.

    0-0       a call from 100 ms on; the agent's half begins at 900 ms
    2-0       a call from 100 ms on; the agent's half begins at 150 ms, and is held up
    culprit   stalls the agent from 200 to 700 ms
    """
    for other in ("0-0", "2-0"):
        span(logs, "run", None, 0, 1_000, trace=other, service="driver", rollout=other)
        span(logs, "call", "run", 100, 1_000, trace=other, service="driver", kind="CLIENT")
        span(
            logs,
            "serve",
            "call",
            900 if other == "0-0" else 150,
            950,
            trace=other,
            kind="SERVER",
            name="POST /run",
        )
    culprit = span(logs, "culprit", None, 150, 750, trace="u", rollout="1-0")
    stall(logs, 700, 500, is_over=True, span=culprit)
    with logs.engine() as engine:
        times = spent(engine)
        said = {
            row["rollout_id"]: (row["stalled_by"], row["why"])
            for row in engine.rows("SELECT rollout_id, stalled_by, why FROM rollout_shares")
        }
    assert {kind: ms for (rollout, kind), ms in times.items() if rollout == "0-0"} == {
        "agent": 150,
        "queue": 300,
        "event_loop_lag": 500,
        "client_overhead": 50,
    }
    assert {kind: ms for (rollout, kind), ms in times.items() if rollout == "2-0"} == {
        "agent": 400,
        "queue": 50,
        "event_loop_lag": 500,
        "client_overhead": 50,
    }
    assert times["1-0", "agent"] == 600
    assert said["0-0"][0] == said["2-0"][0] == "culprit in agent, rollout 1-0"
    assert said["1-0"] == (None, "own work +200 ms")


def test_who_stalled_it_is_a_reason(logs: Any) -> None:
    """Of a rollout that took longer than the others for that."""
    for number, rollout in enumerate(("0-0", "1-0", "2-0")):
        start, length = 2_000 * number, 600 if number else 1_100
        place = {"trace": rollout, "service": "driver", "rollout": rollout}
        span(logs, "run", None, start, start + length, **place)
        span(logs, "call", "run", start + 50, start + length, kind="CLIENT", **place)
        place["service"] = "agent"
        half = start + length - 100
        span(logs, "serve", "call", half, half + 50, kind="SERVER", name="POST /run", **place)
    culprit = span(logs, "parse", None, 100, 800, trace="u")
    stall(logs, 700, 500, is_over=True, span=culprit)
    with logs.engine() as engine:
        why = {
            row["rollout_id"]: row["why"]
            for row in engine.rows("SELECT rollout_id, why FROM rollout_shares")
        }
    assert why == {"0-0": "event loop lag +500 ms by parse in agent", "1-0": None, "2-0": None}


def test_records_of_one_stall(logs: Any) -> None:
    """The one that came while it lasted says when it began; that of the end may come late."""
    span(logs, "victim", None, 0, 1_000, rollout="0-0")
    stall(logs, 700, 100, is_over=False, span=None)
    stall(logs, 830, 200, is_over=True, span=None)
    stall(logs, 950, 50, is_over=True, span=None)
    with logs.engine() as engine:
        rows = engine.rows(
            """
            SELECT start_time_unix_nano AS s, end_time_unix_nano AS e
            FROM rollout_work
            WHERE spent_on = 'event_loop_lag'
            ORDER BY s
            """
        )
    assert [((row["s"] - BASE) // MS, (row["e"] - BASE) // MS) for row in rows] == [
        (600, 800),
        (900, 950),
    ]


PLACE = {
    "code.function.name": "Tokenizer.encode",
    "code.file.path": "/srv/agent/tokens.py",
    "code.line.number": 17,
}


def test_a_stall_says_what_the_loop_was_in(logs: Any) -> None:
    """And how many rollouts it held up: not its own span, not what was over or began later.

    culprit   ==========      400 to 3,400 ms stalled
    victim    ##########
    earlier  #                until 300 ms
    later               ##    from 3,500 ms on
    """
    culprit = span(logs, "culprit", None, 350, 3_450, rollout="0-0")
    span(logs, "victim", None, 0, 3_500, trace="v", rollout="1-0")
    span(logs, "another", "victim", 3_000, 3_300, trace="v", rollout="1-0")
    span(logs, "earlier", None, 0, 300, trace="e", rollout="2-0")
    span(logs, "later", None, 3_500, 3_600, trace="l", rollout="3-0")
    span(logs, "elsewhere", None, 0, 3_500, trace="w", rollout="4-0", service="model")
    seen = {**PLACE, "code.stacktrace": "a.py:1 in handle\ntokens.py:17 in Tokenizer.encode"}
    stall(logs, 1_400, 1_000, is_over=False, span=culprit, **seen)
    stall(
        logs,
        3_400,
        3_000,
        is_over=True,
        span=culprit,
        **PLACE,
        **{"gymlog.event_loop.cpu_ms": 2_900},
    )
    with logs.engine() as engine:
        (row,) = engine.rows("FROM stalls")
        (finding,) = engine.rows("FROM findings")
    assert row["start_time_unix_nano"] == BASE + 400 * MS
    assert row["duration_ns"] == 3_000 * MS
    assert row["cpu_ns"] == 2_900 * MS
    assert (row["function_name"], row["line_number"]) == ("Tokenizer.encode", 17)
    assert row["stack"] == seen["code.stacktrace"]
    assert (row["span_name"], row["rollout_id"]) == ("culprit", "0-0")
    assert row["held_up_rollouts"] == 1
    assert (row["file"].endswith("agent.log"), row["line"]) == (True, 7)
    assert (finding["code"], finding["severity"]) == ("stalled_event_loop", "note")
    assert finding["message"] == (
        "the event loop of agent did not run for 3.000 s in 1 stall, in Tokenizer.encode at "
        "/srv/agent/tokens.py:17; the longest within culprit, rollout 0-0"
    )
    assert finding["hint"].startswith("it computed there")
    assert json.loads(finding["evidence"])["held_up_rollouts"] == 1


def told(logs: Any) -> list[tuple[str, str, str]]:
    """Place, severity and hint of each finding."""
    with logs.engine() as engine:
        return [
            (row["place"], row["severity"], row["hint"].partition(":")[0])
            for row in engine.rows("FROM findings ORDER BY place")
        ]


def test_stalls_are_told_by_function(logs: Any) -> None:
    """What waited is told from what computed; of one that no thread could see neither is known."""
    waiting = {**PLACE, "code.function.name": "sleep", "gymlog.event_loop.cpu_ms": 10}
    stall(logs, 10_000, 4_000, is_over=True, **waiting)
    stall(logs, 20_000, 6_000, is_over=True, **waiting)
    for at in (30_000, 40_000, 50_000):
        stall(logs, at, 100, is_over=True)
    assert told(logs) == [
        (
            "a place unseen in agent",
            "note",
            "all that the process served waited for it; the relation stalls has the stacks",
        ),
        (
            "sleep in agent",
            "warning",
            "it waited there, and all that the process served along with it",
        ),
    ]


def test_a_short_stall_is_no_finding(logs: Any) -> None:
    """A machine that is short of CPU has one here and there; the relation has them all."""
    stall(logs, 10_000, 1_200, is_over=True, **PLACE)
    stall(logs, 20_000, 1_200, is_over=True, **{**PLACE, "code.function.name": "other"})
    assert told(logs) == []
    with logs.engine() as engine:
        assert len(engine.rows("FROM stalls")) == 2
