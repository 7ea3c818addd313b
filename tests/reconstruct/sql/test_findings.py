"""Findings: each fault is named with its place, and a healthy run has none."""

import json
from typing import Any

import pytest

MS = 1_000_000
SECOND = 1_000 * MS


def found(logs: Any) -> dict[str, list[dict[str, Any]]]:
    with logs.engine() as engine:
        rows = engine.rows("FROM findings ORDER BY file, line, message")
    by_code: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        row["evidence"] = json.loads(row["evidence"])
        by_code.setdefault(row["code"], []).append(row)
    return by_code


def healthy(
    logs: Any, *, rollouts: int = 8, agents: int = 2, slow: int = 1, stop: bool = True
) -> None:
    """Write a run: each rollout is run (agent) ── call (agent, CLIENT) ── serve (model, SERVER).

    `slow` makes the second model that much slower.
    """
    models = [f"model-{number}" for number in range(agents)]
    logs.process("started", 0, service="agent")
    for model in models:
        logs.process("started", 0, service="model", instance=model)
    for number in range(rollouts):
        start = number * 100 * MS
        trace = f"rollout {number}"
        length = (60 + number) * MS * (slow if number % agents else 1)
        rollout = f"{number}-0"
        logs.span(
            "run",
            None,
            start,
            start + length + 30 * MS,
            trace=trace,
            service="agent",
            rollout=rollout,
        )
        logs.span(
            "call",
            "run",
            start + MS,
            start + length + 20 * MS,
            trace=trace,
            service="agent",
            kind="CLIENT",
            rollout=rollout,
        )
        logs.span(
            "serve",
            "call",
            start + 2 * MS,
            start + 2 * MS + length,
            trace=trace,
            service="model",
            name="POST /v1/responses",
            instance=models[number % agents],
            kind="SERVER",
            rollout=rollout,
            flags=0x303,
        )
    if stop:
        for model in models:
            logs.process("stopped", 20 * SECOND, service="model", instance=model)
        logs.process("stopped", 20 * SECOND + 1, service="agent")


@pytest.mark.parametrize("stop", [True, False])
def test_a_healthy_run_has_none(logs: Any, stop: bool) -> None:
    """Stopped or still running: not even a note."""
    healthy(logs, stop=stop)
    assert found(logs) == {}


def test_orphans_of_one_parent_are_one_finding(logs: Any) -> None:
    """It names the service that should have written the parent."""
    healthy(logs)
    for number in range(50):
        logs.span(f"x{number}", "gone", 10, 20, trace="z", service="agent")
    (finding,) = found(logs)["orphan"]
    assert finding["severity"] == "error"
    assert "(50 children)" in finding["message"]
    assert finding["hint"].startswith("agent should have written it")
    assert (finding["file"].endswith("agent.log"), finding["evidence"]["children"]) == (True, 50)


def test_an_orphan_whose_parent_is_in_another_service(logs: Any) -> None:
    """The usual caller of its service is asked for, or named as dead."""
    healthy(logs)
    logs.span(
        "serve",
        "gone",
        10,
        20,
        trace="z",
        service="model",
        instance="model-0",
        kind="SERVER",
        flags=0x303,
    )
    (finding,) = found(logs)["orphan"]
    assert finding["hint"].startswith("agent, which usually calls model, should have written it")
    logs.files["agent.log"].pop()  # the agent's stop
    (finding,) = found(logs)["orphan"]
    assert (
        finding["hint"]
        == "agent (instance agent-1), pid 7 should have written it, but died with the span open"
    )


def test_an_orphan_whose_parents_line_is_torn(logs: Any) -> None:
    """The torn line is named."""
    logs.span("child", "parent", 10, 20)
    torn = logs.span("parent", start=0, end=100)
    line = logs.files["a.log"].pop()
    logs.raw(line[: len(line) // 2], "torn.log")
    assert torn
    findings = found(logs)
    assert findings["orphan"][0]["hint"].endswith("torn.log:1")
    (torn_finding,) = findings["torn_lines"]
    assert (torn_finding["severity"], torn_finding["line"]) == ("warning", 1)


def test_a_line_of_which_a_part_cannot_be_read(logs: Any) -> None:
    """A span of OTLP that breaks the format is a loss, though its line has others."""
    good = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "good", "startTimeUnixNano": "1"}
    spans = [good, good | {"traceId": "a" * 5, "name": "bad"}]
    logs.raw(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    (finding,) = found(logs)["torn_lines"]
    assert finding["severity"] == "warning"
    assert "1 record read; not read: span 'bad': traceId is neither" in finding["message"]
    assert "does not keep to the format" in finding["hint"]


def test_console_output_of_javascript(logs: Any) -> None:
    """Spans that are no JSON are counted, and it is said what to do."""
    for digit in "ab":
        logs.raw("{\n  traceId: '" + digit * 32 + "',\n  name: 'x'\n}", "node.log")
    (finding,) = found(logs)["js_console"]
    assert (finding["file"].rpartition("/")[2], finding["line"]) == ("node.log", 2)
    assert finding["message"].startswith("2 spans in ")
    assert finding["evidence"] == {"spans": 2, "first_lines": [2, 6]}


def test_a_missing_file_between_two_services(logs: Any) -> None:
    """A call that nobody answers, around the orphan, says which address to look for."""
    logs.span(
        "call",
        start=0,
        end=100,
        kind="CLIENT",
        attributes={"server.address": "env", "server.port": 80},
    )
    logs.span("serve", "gone", 10, 90, kind="SERVER", service="b", flags=0x303)
    (finding,) = found(logs)["orphan"]
    assert finding["hint"].startswith("a called env:80, and no log of what answers there")


def test_a_missing_root(logs: Any) -> None:
    """A trace whose first span names a parent that is not there."""
    logs.span("child", "gone", 10, 20, rollout="0-0")
    (finding,) = found(logs)["missing_root"]
    assert finding["message"] == "no root: the trace begins with child in a, rollout 0-0"


def test_cycles(logs: Any) -> None:
    """One finding per cycle."""
    logs.span("a", "b", 1, 2)
    logs.span("b", "a", 1, 3)
    logs.span("self", "self", 1, 2, trace="u")
    assert len(found(logs)["cycle"]) == 2


def test_a_killed_process(logs: Any) -> None:
    """Its death, the spans it died with, and what its callers saw."""
    healthy(logs)
    logs.process("started", 0, service="tool", pid=99)
    logs.span(
        "serve", None, SECOND, None, trace="z", service="tool", name="POST /tool", rollout="9-9"
    )
    findings = found(logs)
    (died,) = findings["process_died"]
    assert died["message"].startswith("tool (instance tool-1), pid 99 died")
    assert died["evidence"]["lost_spans"] == 1
    (open_span,) = findings["unfinished"]
    assert open_span["severity"] == "error"
    assert (
        "POST /tool in tool, rollout 9-9 was open when tool (instance tool-1), pid 99"
        in open_span["message"]
    )
    assert open_span["evidence"]["process_pid"] == 99


def test_an_open_span_of_a_living_process_is_only_noted(logs: Any) -> None:
    """Nothing is wrong with work that goes on."""
    healthy(logs, stop=False)
    logs.span("call", None, 19 * SECOND, None, trace="z", service="agent")
    logs.process("alive", 20 * SECOND, service="agent")
    assert {code: [row["severity"] for row in rows] for code, rows in found(logs).items()} == {
        "unfinished": ["note"]
    }


def test_a_hanging_call(logs: Any) -> None:
    """The deepest unfinished span is what everything waits for."""
    healthy(logs, stop=False)
    logs.span("run", None, 0, None, trace="z", service="agent", rollout="9-9")
    logs.span("call", "run", MS, None, trace="z", service="agent", kind="CLIENT", rollout="9-9")
    logs.span(
        "serve",
        "call",
        2 * MS,
        None,
        trace="z",
        service="model",
        instance="model-0",
        name="POST /v1/responses",
        kind="SERVER",
        rollout="9-9",
    )
    logs.process("alive", 30 * SECOND, service="agent")
    (stuck,) = found(logs)["stuck"]
    assert stuck["message"].startswith(
        "POST /v1/responses in model, rollout 9-9 kept its callers waiting"
    )
    assert stuck["evidence"]["finished_peers"] == 8


def test_failures_are_told_where_they_begin(logs: Any) -> None:
    """Only the deepest failing span counts, with its share and reason."""
    healthy(logs)
    for number in range(2):
        trace = f"bad {number}"
        logs.span("run", None, 0, 90, trace=trace, service="agent", status="ERROR")
        logs.span(
            "serve",
            "run",
            10,
            20,
            trace=trace,
            service="model",
            name="POST /v1/responses",
            instance="model-0",
            kind="SERVER",
            status="ERROR",
            attributes={"error.type": "500"},
        )
    (errors,) = found(logs)["errors"]
    assert errors["message"] == "POST /v1/responses in model failed 2 of 10 times (20.0 %): 500"
    assert errors["file"].endswith("model.log")


def test_a_slow_instance(logs: Any) -> None:
    """The process whose median is far above its peers', by their own time alone."""
    healthy(logs, rollouts=12, slow=5)
    findings = found(logs)
    assert list(findings) == ["slow_instance"]
    (slow,) = findings["slow_instance"]
    assert "in model (instance model-1), pid 7, host node-1; 1 peer takes" in slow["message"]
    assert slow["evidence"]["spans"] == 6


def test_too_few_spans_make_no_slow_instance(logs: Any) -> None:
    """Four on a side are chance."""
    healthy(logs, rollouts=8, slow=5)
    assert found(logs) == {}


def test_a_call_that_bypasses_propagation(logs: Any) -> None:
    """The request that began a trace of its own, and the span it was made from."""
    healthy(logs)
    logs.span("agent work", None, 0, 900 * MS, trace="z", service="agent", rollout="9-9")
    logs.span(
        "serve",
        None,
        100 * MS,
        200 * MS,
        trace="y",
        service="model",
        instance="model-0",
        name="POST /v1/responses",
        kind="SERVER",
        rollout="9-9",
    )
    findings = found(logs)
    assert list(findings) == ["split_trace"]
    (split,) = findings["split_trace"]
    assert split["severity"] == "error"
    assert "POST /v1/responses in model began a trace of its own" in split["message"]
    assert "its caller is agent work in agent" in split["message"]
    assert split["evidence"]["caller_place"].rsplit("/", 1)[-1].startswith("agent.log:")


def test_a_client_span_without_a_server_half_is_the_caller(logs: Any) -> None:
    """Without rollout ids, method, port and path join the two ends."""
    logs.span(
        "call",
        None,
        0,
        100 * MS,
        trace="z",
        service="agent",
        kind="CLIENT",
        attributes={"http.request.method": "POST", "url.full": "http://m:80/v1", "server.port": 80},
    )
    logs.span(
        "serve",
        None,
        MS,
        50 * MS,
        trace="y",
        service="model",
        kind="SERVER",
        name="POST /v1",
        attributes={"http.request.method": "POST", "url.path": "/v1", "server.port": 80},
    )
    (split,) = found(logs)["split_trace"]
    assert split["cause"] == "context_not_extracted"
    assert split["evidence"]["grounds"] == [
        "a call that nothing answers",
        "same path",
        "same port",
        "ended later",
    ]


def test_health_probes_split_nothing(logs: Any) -> None:
    """A GET from outside, in the middle of a run, is not a broken call."""
    healthy(logs)
    logs.span(
        "probe",
        None,
        100 * MS,
        101 * MS,
        trace="y",
        service="model",
        instance="model-0",
        name="GET /health",
        kind="SERVER",
    )
    assert found(logs) == {}


def test_lost_lines(logs: Any) -> None:
    """A gap in seq is counted, between the lines on its two sides."""
    logs.span("one")
    logs.skip(3)
    logs.span("two")
    (lost,) = found(logs)["lost_lines"]
    assert lost["severity"] == "error"
    assert lost["message"].startswith("3 lines of a (instance a-1) are missing between ")
    assert lost["evidence"] == {"lost": 3, "first_seq": 1, "last_seq": 3}


def test_a_log_without_its_beginning(logs: Any) -> None:
    """Lines before the first are a warning: they may just have been rotated away."""
    logs.skip(5)
    logs.span("one")
    (lost,) = found(logs)["lost_lines"]
    assert (lost["severity"], lost["evidence"]["lost"]) == ("warning", 5)


def test_records_that_a_process_could_not_write(logs: Any) -> None:
    """Its own count is believed."""
    logs.process("started", 0)
    logs.process("stopped", 10, dropped=4)
    (lost,) = found(logs)["lost_lines"]
    assert lost["message"].endswith("could not write 4 records")


def test_copies_collisions_and_times(logs: Any) -> None:
    """A copy is a note; a shared id and a negative duration are errors."""
    logs.span("twin", start=10, end=20)
    logs.span("twin", start=11, end=20, name="other")
    logs.span("back", start=50, end=40)
    logs.raw(logs.files["a.log"][0], "copy.log")
    findings = found(logs)
    assert {code: rows[0]["severity"] for code, rows in findings.items()} == {
        "duplicate_span": "note",
        "id_collision": "error",
        "negative_duration": "error",
    }
    assert len(findings["id_collision"][0]["evidence"]["places"]) == 2


@pytest.mark.parametrize(
    ("start", "end", "service", "kind", "severity"),
    [
        (-2 * MS, 5 * MS, "a", "INTERNAL", "warning"),
        (1 * MS, 12 * MS, "a", "INTERNAL", "note"),
        (1 * MS, 12 * MS, "a", "SERVER", None),
        (-2 * MS, 5 * MS, "b", "SERVER", None),
        (1 * MS, 12 * MS, "b", "SERVER", None),
        (-MS, 11 * MS, "a", "INTERNAL", None),
    ],
)
def test_outside_the_parent(
    logs: Any, start: int, end: int, service: str, kind: str, severity: str | None
) -> None:
    """The parent lies at 0-10 ms; 1 ms is tolerated, and a server that outlives its caller too."""
    logs.span("parent", start=0, end=10 * MS, kind="CLIENT")
    logs.span("child", "parent", start, end, service=service, kind=kind)
    rows = found(logs).get("outside_parent", [])
    assert [row["severity"] for row in rows] == ([] if severity is None else [severity])


def test_a_damaged_archive(logs: Any) -> None:
    """The file and where it ends."""
    logs.span("one")
    path = logs.write()
    (path / "a.log.gz").write_bytes(b"\x1f\x8b\x08" + b"garbage")
    (damaged,) = found(logs)["damaged_file"]
    assert damaged["file"].endswith("a.log.gz")


def test_records_that_ray_left_out(logs: Any) -> None:
    """How many are missing, and what to do; the ones that were printed are no torn lines."""
    for number in range(3):
        logs.span(f"s{number}", None, number, number + 1, trace=f"t{number}")
    lines = logs.files["a.log"]
    lines[1] = f"(Env pid=7) {lines[1]} [repeated 4x across cluster]"
    lines.append("(Env pid=7) loading weights [repeated 9x across cluster]")
    findings = found(logs)
    (left_out,) = findings["deduplicated"]
    assert (left_out["severity"], left_out["line"]) == ("error", 2)
    assert left_out["message"].startswith("3 lines are missing from ")
    assert "RAY_DEDUP_LOGS=0" in left_out["hint"]
    assert left_out["evidence"] == {"lost_lines": 3, "lines": 1, "first_lines": [2]}
    assert "torn_lines" not in findings


def test_a_record_that_docker_changed(logs: Any) -> None:
    """It is noted, and blamed on nobody else."""
    logs.span("x" * 200)
    whole = logs.files["a.log"].pop()
    for piece in (whole[:300], "2021-10-18T17:35:54.266092638Z " + whole[300:] + "\n"):
        logs.raw(json.dumps({"log": piece, "stream": "stdout", "time": "t"}))
    (finding,) = found(logs)["torn_lines"]
    assert finding["severity"] == "note"
    assert "docker's time" in finding["message"]
    assert "what carried the lines changed them" in finding["hint"]


def test_a_line_that_is_too_long(logs: Any) -> None:
    """It may have been a record; the lines around it count."""
    logs.span("one")
    logs.raw("x" * (64 << 20) + "y")
    logs.span("two", None, 1, 2)
    (finding,) = found(logs)["torn_lines"]
    assert (finding["severity"], finding["line"]) == ("warning", 2)
    assert "are too long to be read" in finding["message"]
    assert "no log at all" in finding["hint"]
