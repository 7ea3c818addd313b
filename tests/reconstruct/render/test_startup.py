"""Starts as a terminal shows them: bars of stages on one axis, and who was waited for."""

from typing import Any

import pytest

from reconstruct.render.startup import startup
from reconstruct.render.text import plain, width

S = 1_000_000_000


def stage(name: str, begin: int, end: int, *, bad: bool = False, **fields: Any) -> dict[str, Any]:
    return {
        "part": "server",
        "instance": "model#1",
        "process_pid": 7,
        "stage": name,
        "start_time_unix_nano": begin * S,
        "duration_ns": (end - begin) * S,
        "share": (end - begin) / 10,
        "is_unfinished": bad,
        "message": None,
        **fields,
    }


def server(name: str, end: int, stages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {
        "server_name": name,
        "start_time_unix_nano": 0,
        "duration_ns": end * S,
        "outcome": "ready",
        "has_held_up": False,
        "behind_ns": None,
        "instance": stages[0]["instance"] if stages else None,
        "stage": stages[0]["stage"] if stages else None,
        "is_stage_over": True if stages else None,
        "noticed_after_ns": None,
        "message": None,
        "own_message": None,
        "stages": stages,
        **fields,
    }


def drawn(*servers: dict[str, Any], columns: int = 60, **fields: Any) -> list[str]:
    start = {
        "trace_id": "f9a48ac1" * 4,
        "run_id": "run-1",
        "start_time_unix_nano": 0,
        "duration_ns": 11 * S,
        "outcome": "ready",
        "server_count": len(servers),
        "ready_count": sum(server["outcome"] == "ready" for server in servers),
        "message": None,
        "stages": [stage("wait_for_servers", 0, 11, part="supervisor")],
        "servers": list(servers),
        **fields,
    }
    return plain(startup(start, columns=columns)).splitlines()


def test_a_start_that_got_ready() -> None:
    """The last server is marked, and its stages are listed with their shares."""
    tools = server("tools", 5, [stage("init", 0, 4, instance="tools#1")])
    model = server(
        "model",
        10,
        [stage("init", 0, 2), stage("load", 2, 9)],
        has_held_up=True,
        behind_ns=5 * S,
        noticed_after_ns=S,
    )
    assert drawn(tools, model) == [
        "start ready after 11.0 s   2 of 2 servers ready",
        "1970-01-01T00:00:00.000Z   run run-1   trace f9a48ac1",
        "supervisor:   wait_for_servers 11.0 s",
        "",
        "               0        2 s      4 s      6 s      8 s",
        "  tools 5.00 s ██████████████████─────",
        "▸ model 10.0 s █████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓─────",
        "  █ init   ▓ load",
        "",
        "model was ready last, 5.00 s after the one before it",
        "  init  2.00 s   20 %  █████",
        "  load  7.00 s   70 %  ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓",
        "  then 1.00 s until its supervisor saw it answer",
        "",
    ]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        ("failed", "model failed after 10.0 s, in load"),
        ("timeout", "model was not ready after 10.0 s, in load"),
        ("interrupted", "model was interrupted after 10.0 s, in load"),
        ("open", "model is still starting after 10.0 s, in load"),
        ("lost", "model was last seen starting after 10.0 s, in load"),
    ],
)
def test_a_server_that_was_not_ready(outcome: str, words: str) -> None:
    """Its outcome, what it was in, and why, are told once each."""
    model = server(
        "model",
        10,
        [stage("init", 0, 2), stage("load", 2, 10, bad=True)],
        has_held_up=True,
        outcome=outcome,
        stage="load",
        is_stage_over=False,
        message="no weights",
        own_message="no weights",
    )
    text = "\n".join(drawn(model, outcome=outcome, message="no weights: model", columns=80))
    assert words in text
    assert text.count("no weights") == 1
    assert f"▸ model {outcome} 10.0 s ██" in text
    assert "load  8.00 s   80 %  ╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱╱ unfinished" in text


def test_an_unfinished_stage_is_seen_however_short() -> None:
    """Hatched, where no time of it would fill a column."""
    stages = [stage("init", 0, 10), stage("load", 10, 10, bad=True)]
    text = drawn(server("model", 10, stages, outcome="failed", has_held_up=True))
    assert any(line.startswith("▸ model") and line.endswith("█╱") for line in text)


def test_what_a_dead_process_did_not_write() -> None:
    """Is said, rather than told as its last stage."""
    bad: dict[str, Any] = {"outcome": "failed", "has_held_up": True}
    known = drawn(server("model", 10, [stage("init", 0, 2)], **bad), columns=80)
    assert "model failed after 10.0 s; init was over, and what it did next is not in these" in known
    silent = drawn(server("model", 10, [], **bad), columns=80)
    assert "model failed after 10.0 s; its process tells nothing of its start" in silent


def test_each_process_of_a_server_has_a_bar() -> None:
    """Below that of the server, from its spawn until it answers."""
    stages = [
        stage("init", 0, 2),
        stage("init", 2, 6, part="worker", instance="model#2", process_pid=8),
        stage("init", 2, 9, part="worker", instance="model#3", process_pid=9, bad=True),
    ]
    lines = drawn(server("model", 10, stages, has_held_up=True), columns=80)
    names = [line.split(" s ")[0] for line in lines[5:9]]
    assert [name.split()[:-1] for name in names] == [
        ["▸", "model"],
        ["main", "process", "7"],
        ["worker", "8"],
        ["worker", "9"],
    ]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_lines_fit(columns: int) -> None:
    """Names are cut to leave room for bars, reasons are wrapped, and nothing is obeyed."""
    name = "a_server_with_a_name_that_is_longer_than_any_terminal_would_like\x1b[2J"
    model = server(
        name,
        10,
        [stage("init\x1b", 0, 10, bad=True)],
        outcome="failed",
        has_held_up=True,
        message="reason " * 40 + "\x1b",
    )
    lines = drawn(model, columns=columns)
    assert max(map(width, lines)) <= columns
    assert "\x1b" not in "".join(lines)
    assert any("…" in line and "█" not in line for line in lines)


def test_a_start_without_servers() -> None:
    lines = drawn(outcome="failed", message="failed in load_config: KeyError", columns=80)
    assert lines[0].startswith("start failed after 11.0 s   0 of 0 servers ready")
    assert "failed in load_config: KeyError" in lines
