"""Starts of fleets: stages that add up, who was waited for, and starts that came to no good end."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

SERVERS = "server_name, outcome, has_held_up, behind_ns, stage, stage_ns, is_stage_over"
STARTS = "outcome, stage, server_count, ready_count, held_up_by"


def one_of(logs: Any, columns: str, relation: str) -> list[tuple[Any, ...]]:
    with logs.engine() as engine:
        rows = engine.rows(f"SELECT {columns} FROM {relation} ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def supervisor(logs: Any, end: int | None, outcome: str | None = "ready", **fields: Any) -> None:
    """gym.startup, 0 to `end`, with stages load_config (10) and wait_for_servers."""
    bad = outcome not in (None, "ready")
    facts = {"nemo.gym.startup.outcome": outcome} if outcome and end is not None else {}
    own = {"service": "boss", "status": "ERROR" if bad else "UNSET"} | fields
    logs.span("start", None, 0, end, name="gym.startup", attributes=facts, **own)
    stages = (("load_config", 0, 10), ("wait_for_servers", 10, end))
    for stage, start, stage_end in stages:
        is_last = stage == "wait_for_servers"
        logs.span(
            stage,
            "start",
            start,
            stage_end,
            name=f"gym.startup.{stage}",
            attributes={"nemo.gym.startup.stage": stage} | (facts if is_last and bad else {}),
            **own,
        )


def server(logs: Any, name: str, start: int, end: int | None, outcome: str = "ready") -> None:
    """gym.startup.server, as the supervisor sees it."""
    facts = {} if end is None else {"nemo.gym.startup.outcome": outcome}
    logs.span(
        name,
        "start",
        start,
        end,
        name="gym.startup.server",
        service="boss",
        status="UNSET" if outcome == "ready" else "ERROR",
        attributes={"nemo.gym.server.name": name} | facts,
    )


def own(
    logs: Any,
    name: str,
    times: Sequence[int | None],
    outcome: str = "ready",
    *,
    worker: int | None = None,
    has_own_line: bool = True,
) -> None:
    """A server's own start, or a worker's, with stages one, two … between `times`."""
    kind = "gym.server.startup" + ("" if worker is None else ".worker")
    label, instance = f"{name}/own{worker}", f"{name}-{worker or 1}"
    facts: dict[str, Any] = {"nemo.gym.server.name": name}
    ended = {} if times[-1] is None else {"nemo.gym.startup.outcome": outcome}
    status = "UNSET" if outcome == "ready" else "ERROR"
    place: dict[str, Any] = {"service": name, "instance": instance}
    if has_own_line:
        logs.span(
            label, name, times[0], times[-1], name=kind, status=status, attributes=facts | ended,
            **place,
        )  # fmt: skip
    for number, (begin, end) in enumerate(pairwise(times)):
        stage = ("one", "two", "three")[number]
        is_bad = outcome != "ready" and number == len(times) - 2
        logs.span(
            f"{label}/{stage}",
            label,
            begin,
            end,
            name=f"{kind}.{stage}",
            status=status if is_bad else "UNSET",
            attributes=facts | {"nemo.gym.startup.stage": stage} | (ended if is_bad else {}),
            **place,
        )


def test_a_start_that_got_ready(logs: Any) -> None:
    """Its last server held it up, by its longest stage; the stages of a process add up to it."""
    supervisor(logs, 100)
    server(logs, "agent", 10, 60)
    own(logs, "agent", (12, 20, 58))
    server(logs, "model", 11, 95)
    own(logs, "model", (13, 73, 93))
    assert one_of(logs, STARTS, "startups") == [("ready", None, 2, 2, ["model"])]
    assert one_of(logs, "duration_ns, service_name", "startups") == [(100, "boss")]
    assert one_of(logs, SERVERS, "startup_servers") == [
        ("agent", "ready", False, None, "two", 38, True),
        ("model", "ready", True, 35, "one", 60, True),
    ]
    assert one_of(logs, "server_name, duration_ns, noticed_after_ns", "startup_servers") == [
        ("agent", 50, 2),
        ("model", 84, 2),
    ]
    columns = "part, server_name, position, stage, duration_ns, share, is_unfinished"
    assert one_of(logs, columns, "startup_stages") == [
        ("server", "agent", 1, "one", 8, 8 / 46, False),
        ("server", "agent", 2, "two", 38, 38 / 46, False),
        ("server", "model", 1, "one", 60, 0.75, False),
        ("server", "model", 2, "two", 20, 0.25, False),
        ("supervisor", None, 1, "load_config", 10, 0.1, False),
        ("supervisor", None, 2, "wait_for_servers", 90, 0.9, False),
    ]


def test_the_last_worker_is_what_a_server_waits_for(logs: Any) -> None:
    """Apart from its main process, and from one that replaces a worker long after."""
    supervisor(logs, 100)
    server(logs, "model", 10, 95)
    own(logs, "model", (11, 20))
    own(logs, "model", (20, 50, 60), worker=2)
    own(logs, "model", (20, 30, 90), worker=3)
    own(logs, "model", (500, 900), worker=4)
    assert one_of(logs, SERVERS, "startup_servers") == [
        ("model", "ready", True, None, "two", 60, True)
    ]
    assert one_of(logs, "instance, process_count, noticed_after_ns", "startup_servers") == [
        ("model#model-3", 4, 5)
    ]
    parts = one_of(logs, "part, instance, sum(duration_ns)::BIGINT", "startup_stages GROUP BY ALL")
    assert [part for part in parts if part[0] != "supervisor"] == [
        ("server", "model#model-1", 9),
        ("worker", "model#model-2", 40),
        ("worker", "model#model-3", 70),
        ("worker", "model#model-4", 400),
    ]


@pytest.mark.parametrize("outcome", ["failed", "timeout"])
def test_a_start_that_one_server_spoilt(logs: Any, outcome: str) -> None:
    """That one is to blame, not those that were interrupted when it failed."""
    supervisor(logs, 100, outcome)
    server(logs, "agent", 10, 99, "interrupted")
    own(logs, "agent", (12, 40, 99), "interrupted")
    server(logs, "model", 11, 98, outcome)
    own(logs, "model", (13, 50, 97), "failed")
    server(logs, "tools", 11, 60)
    assert one_of(logs, STARTS, "startups") == [(outcome, "wait_for_servers", 3, 1, ["model"])]
    assert one_of(logs, SERVERS, "startup_servers") == [
        ("agent", "interrupted", False, None, "two", 59, False),
        ("model", outcome, True, None, "two", 47, False),
        ("tools", "ready", False, None, None, None, None),
    ]


def test_a_start_that_was_interrupted(logs: Any) -> None:
    """It waited for all that were not ready."""
    supervisor(logs, 100, "interrupted")
    server(logs, "agent", 10, 60)
    for name in ("model", "tools"):
        server(logs, name, 11, 99, "interrupted")
    assert one_of(logs, STARTS, "startups") == [
        ("interrupted", "wait_for_servers", 3, 1, ["model", "tools"])
    ]


def test_a_start_that_failed_by_itself(logs: Any) -> None:
    """No server is to blame."""
    supervisor(logs, 100, "failed")
    server(logs, "model", 11, 99, "interrupted")
    assert one_of(logs, STARTS, "startups") == [("failed", "wait_for_servers", 1, 0, [])]


def test_a_start_that_hangs(logs: Any) -> None:
    """Spans that have only begun count as far as the run was seen."""
    logs.process("started", 0, service="boss")
    logs.process("started", 0, service="model", pid=8)
    supervisor(logs, None)
    server(logs, "agent", 10, 60)
    server(logs, "model", 11, None)
    own(logs, "model", (13, 50, None))
    logs.process("alive", 90, service="boss")
    logs.process("alive", 90, service="model", pid=8)
    assert one_of(logs, STARTS, "startups") == [("open", "wait_for_servers", 2, 1, ["model"])]
    assert one_of(logs, "duration_ns, end_time_unix_nano", "startups") == [(90, None)]
    assert one_of(logs, SERVERS, "startup_servers") == [
        ("agent", "ready", False, None, None, None, None),
        ("model", "open", True, None, "two", 40, False),
    ]
    assert one_of(logs, "ready_unix_nano, duration_ns", "startup_servers")[1:] == [(None, 79)]


def test_a_server_that_died_before_it_wrote_what_it_was_at(logs: Any) -> None:
    """Its last stage known is told as one that was over."""
    supervisor(logs, 100, "failed")
    server(logs, "model", 11, 98, "failed")
    own(logs, "model", (13, 50, 60), has_own_line=False)
    assert one_of(logs, SERVERS, "startup_servers") == [
        ("model", "failed", True, None, "two", 10, True)
    ]


def test_servers_alone(logs: Any) -> None:
    """Without the supervisor's lines they are told as their processes tell it."""
    own(logs, "agent", (12, 20, 58))
    own(logs, "model", (13, 73, 93), "failed")
    assert one_of(logs, STARTS, "startups") == [("unknown", None, 2, 1, ["model"])]
    assert one_of(logs, SERVERS, "startup_servers") == [
        ("agent", "ready", False, None, "two", 38, True),
        ("model", "failed", True, None, "two", 20, False),
    ]


def test_starts_that_say_no_outcome(logs: Any) -> None:
    """An older gym writes none: then the status tells."""
    supervisor(logs, 100, None)
    logs.span("bad", None, 0, 50, name="gym.startup", status="ERROR", trace="u", service="boss")
    assert one_of(logs, "outcome", "startups") == [("failed",), ("ready",)]


def test_no_start(logs: Any) -> None:
    """Other spans are none, whatever they are called."""
    logs.span("x", name="gym.startups")
    logs.span("y", name="gym.server", trace="u")
    for relation in ("startups", "startup_servers", "startup_stages"):
        assert one_of(logs, "trace_id", relation) == []
