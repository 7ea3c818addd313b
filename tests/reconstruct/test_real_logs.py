"""Logs of real runs of NeMo Gym: exact numbers, counted without the reader.

`RECONSTRUCT_REAL_LOGS` names the folder with them. What is counted there, per file, and how:

    spans           grep -o '"context": {"trace_id": "0x' FILE | wc -l, all ids different
    log records     grep -c '"severity_number": ' FILE
    metric lines    grep -c '"resource_metrics": ' FILE
    points          grep -o '"start_time_unix_nano": ' FILE | wc -l: each point has one
    model calls     grep -c '^{"model_call_id": ' FILE
    two prefixes    grep -c '^([^)]*) ([^)]*) ' FILE

Nothing in them is torn: each of these lines is JSON from the first brace to its end. Small logs
with the same peculiarities are read by default.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reconstruct.engine import Engine

VARIABLE = "RECONSTRUCT_REAL_LOGS"
CALL = "model_call"
DAMAGE = {"recovered", "torn", "invalid", "bad_encoding", "oversize", "duplicate"}


@dataclass(frozen=True, slots=True)
class Counts:
    """What one file has in it."""

    lines: int
    spans: int = 0
    logs: int = 0
    metrics: int = 0
    points: int = 0
    calls: int = 0
    two_prefixes: int = 0


REAL = {
    "all-preset-log-dir": {
        "0-0.capture.jsonl": Counts(2, calls=2),
        "example_single_tool_call.log": Counts(143, spans=88, metrics=20, points=300),
        "example_single_tool_call_simple_agent.log": Counts(113, 93, metrics=13, points=221),
        "orchestrator_console.log": Counts(332, 18, logs=2, metrics=8, points=102),
        "policy_model.log": Counts(103, 70, metrics=22, points=171),
        "stderr.log": Counts(73),
    },
    "default-preset": {
        "console.log": Counts(330, 190, metrics=41, points=267, two_prefixes=1),
        "driver.log": Counts(36),
        "stderr.log": Counts(47),
    },
    "torn-console": {
        "console_lines_398_520.log": Counts(123, 123, two_prefixes=2),
    },
}
TOTALS = {
    "all-preset-log-dir": {"span": 269, "log": 2, "metric": 63, "points": 794, "model_call": 2},
    "default-preset": {"span": 190, "metric": 41, "points": 267},
    "torn-console": {"span": 123},
}


def grepped(path: Path) -> Counts:
    """Count as the commands above do."""
    data = path.read_text()
    lines = data.splitlines()
    ids = re.findall(r'"context": \{"trace_id": "0x\w+", "span_id": "(0x\w+)"', data)
    assert len(set(ids)) == len(ids)
    return Counts(
        lines=data.count("\n"),
        spans=len(ids),
        logs=sum('"severity_number": ' in line for line in lines),
        metrics=sum('"resource_metrics": ' in line for line in lines),
        points=data.count('"start_time_unix_nano": '),
        calls=sum(line.startswith('{"model_call_id":') for line in lines),
        two_prefixes=sum(re.match(r"\([^)]*\) \([^)]*\) ", line) is not None for line in lines),
    )


def read(folder: Path) -> dict[str, Counts]:
    """Read a folder; say what each file gave, which must add up."""
    classes: dict[str, Counter[str]] = {}
    with Engine.read([str(folder)]) as engine:

        def rows_of(relation: str) -> Counter[str]:
            rows = engine.rows(f"SELECT file, count(*) AS n FROM {relation} GROUP BY file")
            return Counter({row["file"]: row["n"] for row in rows})

        for row in engine.rows("SELECT file, class, lines FROM line_classes"):
            assert row["class"] not in DAMAGE, row
            classes.setdefault(row["file"], Counter())[row["class"]] = row["lines"]
        for relation, name in (("spans", "span"), ("log_records", "log"), ("model_calls", CALL)):
            assert rows_of(relation) == Counter(
                {file: each[name] for file, each in classes.items()}
            )
        points = rows_of("metric_points")
        for row in engine.rows("SELECT file, lines, bytes, problem FROM _files"):
            assert row["lines"] == classes[row["file"]].total()
            assert row["bytes"] == Path(row["file"]).stat().st_size
            assert row["problem"] is None
    return {
        Path(file).name: Counts(
            lines=counts.total(),
            spans=counts["span"],
            logs=counts["log"],
            metrics=counts["metric"],
            points=points[file],
            calls=counts[CALL],
            two_prefixes=grepped(Path(file)).two_prefixes,
        )
        for file, counts in classes.items()
    }


@pytest.mark.skipif(
    VARIABLE not in os.environ, reason=f"{VARIABLE} names no folder with captured logs"
)
@pytest.mark.parametrize("name", REAL)
def test_real_logs_give_exactly_what_is_in_them(name: str) -> None:
    """Every span, log record, metric line and point of every file; nothing torn, nothing lost."""
    folder = Path(os.environ[VARIABLE], "nemo-gym", name)
    assert {path.name: grepped(path) for path in folder.iterdir()} == REAL[name]
    assert read(folder) == REAL[name]
    totals = Counter[str]()
    for counts in REAL[name].values():
        totals += Counter(
            span=counts.spans,
            log=counts.logs,
            metric=counts.metrics,
            points=counts.points,
            model_call=counts.calls,
        )
    assert totals == TOTALS[name]


TRACE = "0x00000000000000000000000000abc001"
RESOURCE = {"attributes": {"service.name": "nemo-gym/agent", "service.instance.id": "3c64-rank0"}}


def console_span(number: int, name: str, pid: int, parent: int | None = None) -> str:
    return json.dumps(
        {
            "name": name,
            "context": {
                "trace_id": TRACE,
                "span_id": f"0x{number:016x}",
                "trace_state": "[]",
            },
            "kind": "SpanKind.INTERNAL",
            "parent_id": None if parent is None else f"0x{parent:016x}",
            "start_time": f"2026-11-30T02:50:02.{number:06}Z",
            "end_time": f"2026-11-30T02:50:03.{number:06}Z",
            "status": {"status_code": "UNSET"},
            "attributes": {"nemo.gym.rollout.id": "0-0"},
            "events": [],
            "links": [],
            "resource": {"attributes": RESOURCE["attributes"] | {"process.pid": pid}},
        }
    )


def console_metrics(points: int, at: int = 0) -> str:
    data = {
        "data_points": [
            {
                "attributes": {"series": number},
                "start_time_unix_nano": 1_796_006_690_000_000_000,
                "time_unix_nano": 1_796_006_691_000_000_000 + at,
                "count": 1,
                "sum": 0.5,
                "min": 0.5,
                "max": 0.5,
                "bucket_counts": [0, 1],
                "explicit_bounds": [0.1],
                "exemplars": [{"time_unix_nano": 1, "value": 0.5, "trace_id": 11_255_809}],
            }
            for number in range(points)
        ],
        "aggregation_temporality": 2,
    }
    metric = {"name": "http.server.duration", "description": "", "unit": "ms", "data": data}
    scope = {"scope": {"name": "fastapi", "version": "1"}, "metrics": [metric], "schema_url": ""}
    resource = {"resource": RESOURCE, "scope_metrics": [scope], "schema_url": ""}
    return json.dumps({"resource_metrics": [resource]})


CONSOLE_LOG = json.dumps(
    {
        "body": "telemetry initialised (groups=all)",
        "severity_number": 9,
        "severity_text": "INFO",
        "attributes": {"code.line.number": 12},
        "dropped_attributes": 0,
        "timestamp": "2026-11-30T02:44:20.000001Z",
        "observed_timestamp": "2026-11-30T02:44:20.000002Z",
        "trace_id": "0x" + "0" * 32,
        "span_id": "0x" + "0" * 16,
        "trace_flags": 0,
        "resource": RESOURCE,
    }
)
CAPTURED = json.dumps(
    {
        "model_call_id": "f6647cb5",
        "dialect": "responses",
        "started_at": 1_796_006_694.5520349,
        "completed_at": 1_796_006_694.7566774,
        "latency_ms": 204.64,
        "status_code": 200,
        "request": {"model": "m"},
        "response": {"usage": {"input_tokens": 20, "output_tokens": 10}},
    }
)
FOUND_ULIMIT = "Found ulimit of %s and failed to automatically increase with error %s."


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[dict[str, list[str]]], Path]:
    """Write files of a run, each a list of lines."""

    def write(files: dict[str, list[str]]) -> Path:
        for name, lines in files.items():
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
        return tmp_path

    return write


def test_a_log_dir_with_every_group(folder: Any) -> None:
    """A file per server with its prefix, the orchestrator's without one, stderr, captured calls:
    log records, histograms with exemplars, indented JSON that is no record."""
    run = folder(
        {
            "agent.log": [
                FOUND_ULIMIT,
                f"(agent) {console_span(1, 'POST /run', 11)}",
                f"(agent) {console_span(2, 'gym.verify', 11, 1)}",
                f"(agent) {console_metrics(3)}",
                "(agent) INFO:     Finished server process [936]",
            ],
            "orchestrator_console.log": [
                "",
                "#" * 100,
                "# Load and validate server instance configs",
                CONSOLE_LOG,
                console_span(3, "gym.startup", 12),
                console_metrics(1, at=7),
                *json.dumps({"agent": {"host": "127.0.0.1", "ports": [1, 2]}}, indent=4).split(
                    "\n"
                ),
            ],
            "stderr.log": ["[2026-11-30 02:43:22,518][nemo_gym][WARNING] - DEPRECATED", "", "Each"],
            "0-0.capture.jsonl": [CAPTURED],
        }
    )
    assert read(run) == {path.name: grepped(path) for path in run.iterdir()}
    assert read(run) == {
        "agent.log": Counts(5, spans=2, metrics=1, points=3),
        "orchestrator_console.log": Counts(15, spans=1, logs=1, metrics=1, points=1),
        "stderr.log": Counts(3),
        "0-0.capture.jsonl": Counts(1, calls=1),
    }
    with Engine.read([str(run)]) as engine:
        # one service.instance.id for several processes
        assert engine.rows("SELECT DISTINCT instance FROM spans ORDER BY ALL") == [
            {"instance": "nemo-gym/agent#3c64-rank0#11"},
            {"instance": "nemo-gym/agent#3c64-rank0#12"},
        ]
        (point,) = engine.rows("SELECT exemplars FROM metric_points WHERE file LIKE '%console.log'")
        assert json.loads(point["exemplars"])[0]["trace_id"] == TRACE.removeprefix("0x")


def test_one_console_for_all_servers(folder: Any) -> None:
    """Prefixes change from line to line; the driver's progress and results are no damage."""
    run = folder(
        {
            "console.log": [
                "NeMo Gym is starting a new Ray cluster...",
                f"(agent) {console_span(1, 'POST /run', 11)}",
                f"(tools) {console_span(2, 'POST /seed', 12)}",
                f"(agent) (tools) {console_metrics(2)}",
                "2026-11-30 02:44:29,132\tINFO worker.py:2029 -- at \x1b[1m\x1b[32mhttp://h\x1b[39m",
            ],
            "driver.log": [
                "Finished 1 / 2 rollouts (50%) in 0:00:00 (114.67 rollouts/min). Examples left:",
                *json.dumps({"reward": 1.0, "mask_sample": 0.0}, indent=4).split("\n"),
                "",
            ],
        }
    )
    assert read(run) == {
        "console.log": Counts(5, spans=2, metrics=1, points=2, two_prefixes=1),
        "driver.log": Counts(6),
    }


def test_a_console_whose_buffers_met(folder: Any) -> None:
    """A prefix lies before another's line: the nearest names the server, nothing is damaged."""
    run = folder(
        {
            "console.log": [
                f"(agent) {console_span(1, 'POST /v1/responses http receive', 11)}",
                f"(agent) (tools) {console_span(2, 'POST /seed http receive', 12)}",
                f"(tools) {console_span(3, 'POST /seed', 12)}",
            ]
        }
    )
    assert read(run) == {"console.log": Counts(3, spans=3, two_prefixes=1)}
    with Engine.read([str(run)]) as engine:
        assert engine.rows("SELECT trace_id, server_name FROM spans ORDER BY line") == [
            {"trace_id": TRACE.removeprefix("0x"), "server_name": name}
            for name in ("agent", "tools", "tools")
        ]
