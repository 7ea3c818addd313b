"""A small fleet's logs, written line by line as `gymlog.record` has them."""

import json
from itertools import count
from pathlib import Path

import pytest

from reconstruct.cli import main

START = 1_764_475_132_000_000_000
SERVICES = {"driver": 101, "agent": 102, "model": 103}


class Log:
    """One server's log file; times are ms since the run began."""

    def __init__(self, folder, service, run_id):
        self.path = Path(folder, f"{service}.log")
        self._seq = count()
        self._service = {
            "service.name": f"gym/{service}",
            "service.instance.id": f"{service}-{run_id}",
        }
        self._process = {
            **self._service,
            "process.pid": SERVICES[service],
            "host.name": "node-1",
            "nemo.run.id": run_id,
        }

    def write(self, text):
        with self.path.open("a", encoding="utf-8") as file:
            file.write(text)

    def record(self, record_type, **fields):
        record = {"record_type": record_type, "seq": next(self._seq), **fields}
        self.write(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n")

    def process(self, state, at_ms):
        self.record(
            "process",
            state=state,
            schema=1,
            time_unix_nano=START + at_ms * 1_000_000,
            spans_written=0,
            records_dropped=0,
            open_spans=0,
            resource={"attributes": self._process},
        )

    def span(self, trace, span, parent, name, start_ms, end_ms, *, rollout=None, **fields):
        """Write a span, or a span_start where `end_ms` is None."""
        facts = {
            "trace_id": f"{trace:032x}",
            "span_id": f"{span:016x}",
            "parent_span_id": None if parent is None else f"{parent:016x}",
            "name": name,
            "kind": "INTERNAL",
            "start_time_unix_nano": START + start_ms * 1_000_000,
        }
        if end_ms is not None:
            facts["end_time_unix_nano"] = START + end_ms * 1_000_000
            facts["status"] = {"code": "UNSET"}
        attributes = {} if rollout is None else {"nemo.gym.rollout.id": rollout}
        facts |= {"flags": 257, "attributes": attributes}
        facts |= {**fields, "resource": {"attributes": self._service}}
        facts["attributes"] = {**attributes, **fields.get("attributes", {})}
        self.record("span" if end_ms is not None else "span_start", **facts)


def write_rollout(logs, trace, rollout, start, length):
    """driver: gym.rollout ── agent: POST /run ── model: gym.model.call, over `length` ms."""
    end, first = start + length, (trace ^ trace >> 96) % 2**32 * 16
    logs["model"].span(
        trace, first + 3, first + 2, "gym.model.call", start + 2, end - 2, rollout=rollout
    )
    logs["agent"].span(
        trace, first + 2, first + 1, "POST /run", start + 1, end - 1, rollout=rollout
    )
    logs["driver"].span(trace, first + 1, None, "gym.rollout", start, end, rollout=rollout)


@pytest.fixture
def write():
    """Return `write_rollout`."""
    return write_rollout


@pytest.fixture
def write_logs(tmp_path, monkeypatch):
    """Return a function that makes an empty set of logs in a folder below the current one."""
    monkeypatch.chdir(tmp_path)

    def make(folder="logs", run_id="run-1"):
        Path(folder).mkdir()
        logs = {service: Log(folder, service, run_id) for service in SERVICES}
        for log in logs.values():
            log.process("started", 0)
        return logs

    return make


@pytest.fixture
def logs(write_logs):
    """Three rollouts of 10, 50 and 30 ms, each its own trace, in `logs/`; nothing is wrong."""
    logs = write_logs()
    for number, length in enumerate((10, 50, 30)):
        write_rollout(logs, 0xA0 + number, f"{number}-0", number * 100, length)
    for log in logs.values():
        log.process("stopped", 1_000)
    return logs


class Run:
    """What a command line did."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit code {self.code}\n{self.out}\n--- stderr\n{self.err}"


@pytest.fixture
def run(capsys, monkeypatch):
    """Return a function that runs `reconstruct` with arguments and returns what it did."""
    for variable in ("COLUMNS", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)

    def run_command(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Run(code, *capsys.readouterr())

    return run_command


@pytest.fixture
def two_hosts(tmp_path, monkeypatch):
    """A trace over two hosts, `node-b` 3.5 s behind, in `logs/`; times in ms of the first's clock.

    rollout 0-1000 (node-a) ─┬─ model call 100-200 ── POST /v1/responses 110-190 (node-b)
                             └─ write results later 1200-1500
    """
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    spans = (
        (1, None, "rollout", "INTERNAL", 0, 1_000, "node-a"),
        (2, 1, "model call", "CLIENT", 100, 200, "node-a"),
        (3, 2, "POST /v1/responses", "SERVER", -3_390, -3_310, "node-b"),
        (4, 1, "write results later", "INTERNAL", 1_200, 1_500, "node-a"),
    )
    for span, parent, name, kind, start_ms, end_ms, host in spans:
        line = {
            "trace_id": f"{0xC36:032x}",
            "span_id": f"{span:016x}",
            "parent_span_id": None if parent is None else f"{parent:016x}",
            "name": name,
            "kind": kind,
            "start_time_unix_nano": START + start_ms * 1_000_000,
            "end_time_unix_nano": START + end_ms * 1_000_000,
            "attributes": {},
            "resource": {"attributes": {"service.name": f"gym/{host}", "host.name": host}},
        }
        with Path("logs", f"{host}.log").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
