"""Logs of a gym with known faults in them: what the doctor's benchmark asks about.

A rollout is one trace over four services, of random shape and times. A fault is done to a rollout
before it is written, or to a whole log, and says what the doctor should find: a code, a cause, and
the traces that it concerns (`ANY` where it concerns none). The same seed gives the same logs.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

__all__ = [
    "ANY",
    "LOG_FAULTS",
    "ROLLOUT_FAULTS",
    "SECOND",
    "SPECIAL_AGENTS",
    "Expected",
    "Log",
    "Record",
]

ANY: Final = "*"
"""The subject of a finding that is of no trace."""

BEGIN_UNIX_NANO: Final = 1_800_000_000_000_000_000
MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
RUN: Final = "run-1"

Expected: TypeAlias = set[tuple[str, str, str]]
"""Code, cause and subject of each finding that there should be."""
Record: TypeAlias = dict[str, Any]  # Any: JSON


@dataclass
class Process:
    """One process, and what it has written."""

    service: str
    instance: str
    host: str = "node-1"
    port: int = 8000
    run: str = RUN
    offset: int = 0
    """How far its clock is ahead, ns."""
    lines: list[str] = field(default_factory=list)
    seq: int = 0
    file: str = ""

    def write(self, record_type: str, body: Record) -> None:
        """Add a record's line."""
        record = {"record_type": record_type, "seq": self.seq, **body}
        names = {"service.name": self.service, "service.instance.id": self.instance}
        resource = names | record.pop("resource", {})
        record["resource"] = {"attributes": resource}
        self.seq += 1
        self.lines.append(json.dumps(record, separators=(",", ":")))

    def say(self, state: str, time: int, **counts: int) -> None:
        """Add a process record."""
        server = self.service.rpartition("/")[2]
        resource = {
            "process.pid": 100 + self.port % 100,
            "host.name": self.host,
            "nemo.run.id": self.run,
            "nemo.gym.server.name": server,
        }
        body = {
            "state": state,
            "schema": 1,
            "time_unix_nano": BEGIN_UNIX_NANO + time + self.offset,
            "spans_written": self.seq,
            "records_dropped": 0,
            "open_spans": 0,
        }
        self.write("process", body | counts | {"resource": resource})


@dataclass
class Span:
    """A span before it is written."""

    process: Process
    trace_id: str
    span_id: str
    parent: "Span | None"
    name: str
    kind: str
    start: int
    end: int
    rollout: str | None
    attributes: Record = field(default_factory=dict)
    parent_id: str | None = None
    flags: int | None = None
    links: list[Record] = field(default_factory=list)
    fate: str = "written"
    """written, torn, lost (numbered, then gone), or never (not numbered either)."""

    def record(self) -> Record:
        is_remote = self.parent is not None and self.parent.process is not self.process
        flags = 0x103 | (0x200 if is_remote else 0) if self.flags is None else self.flags
        rollout = {} if self.rollout is None else {"nemo.gym.rollout.id": self.rollout}
        record = {
            "trace_id": self.trace_id,
            "span_id": self.span_id,
            "parent_span_id": self.parent_id,
            "name": self.name,
            "kind": self.kind,
            "start_time_unix_nano": BEGIN_UNIX_NANO + self.start + self.process.offset,
            "end_time_unix_nano": BEGIN_UNIX_NANO + self.end + self.process.offset,
            "flags": flags,
            "status": {"code": "UNSET"},
            "attributes": self.attributes | rollout,
        }
        return record | ({"links": self.links} if self.links else {})

    def is_below(self, other: "Span") -> bool:
        """Whether `other` is this span or an ancestor of it."""
        return self is other or (self.parent is not None and self.parent.is_below(other))


class Log:
    """A run's logs in the making: healthy rollouts, with faults where they are asked for."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.time = SECOND
        self.processes: dict[str, Process] = {}
        self.missing_files: set[str] = set()
        self.has_probes = True
        self.extra: dict[str, list[str]] = {}
        self.expected: Expected = set()
        self.parents: dict[str, str] = {}
        """The parent that each span should have had, where that was taken from it."""
        for port, (name, service) in enumerate(
            (
                ("driver", "gym/driver"),
                ("agent", "gym/agent"),
                ("model", "gym/model"),
                ("model-2", "gym/model"),
                ("resources", "gym/resources"),
            ),
            8000,
        ):
            self.process(name, service, port=port)

    def process(self, instance: str, service: str, **facts: Any) -> Process:
        """Start a process, or return the one of this name."""
        if instance not in self.processes:
            process = Process(service, instance, file=f"{instance}.log", **facts)
            process.say("started", self.time - SECOND // 2)
            self.processes[instance] = process
        return self.processes[instance]

    def hex(self, digits: int) -> str:
        return f"{self.random.randrange(1, 16**digits):0{digits}x}"

    def expect(self, code: str, cause: str, subject: str = ANY) -> None:
        self.expected.add((code, cause, subject))

    def rollout(self, number: int, agent: str = "agent") -> list[Span]:
        """Make the spans of a rollout; many run at a time."""
        pick, processes = self.random, self.processes
        trace_id, rollout = self.hex(32), f"{number}-0"
        self.time += pick.randrange(1, 40) * MS
        spans: list[Span] = []

        def span(
            process: Process, name: str, kind: str, parent: Span | None, start: int, end: int
        ) -> Span:
            made = Span(process, trace_id, self.hex(16), parent, name, kind, start, end, rollout)
            made.parent_id = None if parent is None else parent.span_id
            spans.append(made)
            return made

        def call(parent: Span, process: Process, path: str, start: int, end: int) -> Span:
            client = span(parent.process, "HTTP POST", "CLIENT", parent, start, end)
            client.attributes = {
                "http.request.method": "POST",
                "url.full": f"http://127.0.0.1:{process.port}/ng-rollout/{rollout}{path}",
            }
            before, after = (pick.randrange(100_000, MS) for _ in range(2))
            server = span(process, f"POST {path}", "SERVER", client, start + before, end - after)
            server.attributes = {"http.request.method": "POST", "url.path": path}
            return server

        def again(server: Span) -> None:
            """The first try was cut off: its request is another child of the call."""
            assert server.parent is not None
            middle = (server.start + server.end) // 2
            first = span(server.process, server.name, "SERVER", server.parent, server.start, middle)
            first.attributes = dict(server.attributes)
            server.start = middle + 100_000
            server.parent.attributes["http.request.resend_count"] = 1

        turns = pick.randrange(1, 4)
        lengths = [pick.randrange(20, 400) * MS for _ in range(turns)]
        begin, length = self.time, sum(lengths) + 60 * MS
        driver = span(processes["driver"], "gym.rollout", "INTERNAL", None, begin, begin + length)
        run = call(driver, processes[agent], "/run", begin + MS, begin + length - MS)
        act = span(
            run.process, "gym.agent.responses", "INTERNAL", run, run.start + MS, run.end - 30 * MS
        )
        at = act.start + MS
        for turn in lengths:
            encode = span(act.process, "tokenize", "INTERNAL", act, at, at + 5 * MS)
            encode.rollout = None
            model = processes[pick.choice(["model", "model-2"])]
            served = call(act, model, "/v1/responses", at + 6 * MS, at + turn)
            work = span(
                model, "gym.model.responses", "INTERNAL", served, served.start, served.end - 1_000
            )
            if pick.random() < 0.5:
                ask = span(model, "HTTP POST", "CLIENT", work, work.start + 1_000, work.end - 1_000)
                host = pick.choice(["https://api.example.com", "http://10.0.0.9:8000"])
                ask.attributes = {
                    "http.request.method": "POST",
                    "url.full": f"{host}/v1/chat/completions",
                }
            at += turn
        if pick.random() < 0.1:
            again(served)
            work.start = served.start
            spans[:] = [each for each in spans if each.parent is not work]
        verify = call(run, processes["resources"], "/verify", run.end - 25 * MS, run.end - MS)
        span(
            verify.process, "gym.verify", "INTERNAL", verify, verify.start + 1_000, verify.end - MS
        )
        self.noise(spans)
        return spans

    def noise(self, spans: list[Span]) -> None:
        """Write what looks like a fault and is none."""
        pick, act = self.random, _named(spans, "gym.agent.responses")[0]
        others: list[Span] = []

        def root(process: Process, name: str, kind: str, start: int, length: int) -> Span:
            made = Span(
                process, self.hex(32), self.hex(16), None, name, kind, start, start + length, None
            )
            others.append(made)
            return made

        if pick.random() < 0.3 and self.has_probes:  # a probe from outside
            probe = root(self.processes["model"], "GET /health", "SERVER", act.start + MS, MS)
            probe.attributes = {"http.request.method": "GET", "url.path": "/health"}
        if pick.random() < 0.2:  # a timer's work
            root(act.process, "sweep", "INTERNAL", act.start - pick.randrange(SECOND), 3 * MS)
        if pick.random() < 0.2:  # work that goes on by itself, and says where it came from
            flush = root(act.process, "flush", "INTERNAL", act.end - MS, 20 * MS)
            flush.rollout = act.rollout
            flush.links = [{"trace_id": act.trace_id, "span_id": act.span_id, "attributes": {}}]
        if pick.random() < 0.1:  # the rollout once more, after the first
            once_more = root(
                self.processes["driver"], "gym.rollout", "INTERNAL", spans[0].end + MS, 5 * MS
            )
            once_more.rollout = act.rollout
        if pick.random() < 0.2:  # a server that goes on after its answer
            served = _named(spans, "POST /verify")[0]
            served.end += 4 * MS
        self.write(others)

    def retrace(self, spans: list[Span], top: Span, trace_id: str | None = None) -> str:
        """Give the tree under `top` a trace of its own, in which `top` is the root."""
        trace_id = trace_id or self.hex(32)
        assert top.parent is not None
        self.parents[top.span_id] = top.parent.span_id
        for span in spans:
            if span.is_below(top):
                span.trace_id = trace_id
        top.parent_id = None
        return trace_id

    def write(self, spans: list[Span]) -> None:
        """Write spans as their processes end them."""
        for span in sorted(spans, key=lambda each: each.end):
            process = span.process
            if span.fate == "never":
                continue
            process.write("span", span.record())
            if span.fate == "torn":
                process.lines[-1] = process.lines[-1][: len(process.lines[-1]) // 2]
            elif span.fate == "lost":
                process.lines.pop()

    def close(self, folder: Path, *, dead: tuple[str, ...] = ()) -> None:
        """End the processes and write the files."""
        folder.mkdir(parents=True, exist_ok=True)
        for process in self.processes.values():
            if process.instance not in dead:
                process.say("stopped", self.time + 5 * SECOND)
            if process.file not in self.missing_files:
                text = "".join(f"{line}\n" for line in process.lines)
                with (folder / process.file).open("a") as file:
                    file.write(text)
        for name, lines in self.extra.items():
            (folder / name).write_text("".join(f"{line}\n" for line in lines))


RolloutFault: TypeAlias = Callable[[Log, list[Span]], None]
LogFault: TypeAlias = Callable[[Log], None]
LOG_FAULTS: Final[dict[str, LogFault]] = {}
ROLLOUT_FAULTS: Final[dict[str, RolloutFault]] = {}
SPECIAL_AGENTS: Final = {
    "parent_unfinished": "agent-dead",
    "lines_lost": "agent-lossy",
    "file_missing": "agent-away",
}
"""Faults of a process, and the process that has it."""


def _of_rollouts(fault: RolloutFault) -> RolloutFault:
    ROLLOUT_FAULTS[fault.__name__.lstrip("_")] = fault
    return fault


def _of_logs(fault: LogFault) -> LogFault:
    LOG_FAULTS[fault.__name__.lstrip("_")] = fault
    return fault


def _named(spans: list[Span], name: str, kind: str = "") -> list[Span]:
    return [span for span in spans if span.name == name and kind in ("", span.kind)]


def _served(log: Log, spans: list[Span]) -> Span:
    """Return a request to the model, by chance."""
    return log.random.choice(_named(spans, "POST /v1/responses"))


@_of_rollouts
def _parent_unfinished(log: Log, spans: list[Span]) -> None:
    """The agent dies within the rollout: what it had open is lost, and said by no line."""
    served = _served(log, spans)
    for span in spans:
        is_agents = span.process is log.processes["agent-dead"]
        if (is_agents and span.end > served.end) or span.start > served.end:
            span.fate = "never"
    log.expect("orphan", "parent_unfinished", spans[0].trace_id)


@_of_rollouts
def _line_torn(log: Log, spans: list[Span]) -> None:
    """Another process wrote into the line of a parent."""
    parents = [*_named(spans, "gym.agent.responses"), *_named(spans, "POST /run")]
    log.random.choice(parents).fate = "torn"
    log.expect("orphan", "line_torn", spans[0].trace_id)


@_of_rollouts
def _lines_lost(log: Log, spans: list[Span]) -> None:
    """The line of a parent is cut from the log."""
    log.random.choice(
        [*_named(spans, "gym.agent.responses"), *_named(spans, "POST /run")]
    ).fate = "lost"
    log.expect("orphan", "lines_lost", spans[0].trace_id)


@_of_rollouts
def _file_missing(log: Log, spans: list[Span]) -> None:
    """The log of the agent that ran it is not given."""
    log.missing_files.add("agent-away.log")
    log.expect("orphan", "file_missing", spans[0].trace_id)


@_of_rollouts
def _context_not_extracted(log: Log, spans: list[Span]) -> None:
    """A proxy drops the header of one call."""
    trace_id = log.retrace(spans, _served(log, spans))
    log.expect("split_trace", "context_not_extracted", trace_id)


@_of_rollouts
def _traceparent_ignored(log: Log, spans: list[Span]) -> None:
    """The receiver records the header and does not use it."""
    top = _served(log, spans)
    header = f"00-{top.trace_id}-{top.parent_id}-01"
    top.attributes["http.request.header.traceparent"] = [header]
    log.expect("split_trace", "traceparent_ignored", log.retrace(spans, top))


@_of_rollouts
def _invalid_id(log: Log, spans: list[Span]) -> None:
    """The header is none."""
    top = _served(log, spans)
    bad = log.random.choice([f"00-{'0' * 32}-{top.parent_id}-01", "00-abc-def-01", "undefined"])
    top.attributes["http.request.header.traceparent"] = [bad]
    log.expect("split_trace", "invalid_id", log.retrace(spans, top))


@_of_rollouts
def _egress_bypassed(log: Log, spans: list[Span]) -> None:
    """A call is made by a client that knows nothing of traces."""
    top = _served(log, spans)
    client = top.parent
    assert client is not None
    for span in spans:
        if span is client or (span.parent is client and span is not top):
            span.fate = "never"
    trace_id = log.retrace(spans, top)
    assert client.parent_id is not None
    log.parents[top.span_id] = client.parent_id
    log.expect("split_trace", "egress_bypassed", trace_id)


@_of_rollouts
def _context_lost_in_process(log: Log, spans: list[Span]) -> None:
    """A thread of a pool begins without the context, and with or without the rollout."""
    if log.random.random() < 0.5:
        top = log.random.choice(_named(spans, "tokenize"))
    else:
        top = log.random.choice(_named(spans, "HTTP POST", "CLIENT")[1:])
    log.expect("split_trace", "context_lost_in_process", log.retrace(spans, top))


@_of_rollouts
def _id_format(log: Log, spans: list[Span]) -> None:
    """One service knows trace ids of 64 bits only."""
    top = _served(log, spans)
    parent_id = top.parent_id
    trace_id = log.retrace(spans, top, "0" * 16 + top.trace_id[16:])
    top.parent_id = parent_id
    log.expect("orphan", "id_format", trace_id)


@_of_rollouts
def _not_sampled(log: Log, spans: list[Span]) -> None:
    """The caller was told not to record, the receiver did not listen."""
    top = _served(log, spans)
    assert top.parent is not None
    top.parent.fate = "never"
    for span in spans:
        if span.parent is top.parent:
            span.flags = 0x300
    log.expect("orphan", "not_sampled", spans[0].trace_id)


@_of_rollouts
def _cycle(log: Log, spans: list[Span]) -> None:
    """A span is its own ancestor."""
    top = _served(log, spans)
    below = [span for span in spans if span.parent is top]
    top.parent_id = log.random.choice([top, *below]).span_id
    log.expect("cycle", "cycle", spans[0].trace_id)


@_of_rollouts
def _fork_shared_ids(log: Log, spans: list[Span]) -> None:
    """Two workers go on with one random state."""
    one = _named(spans, "gym.model.responses")[0]
    other = "model-2" if one.process.instance == "model" else "model"
    twin = Span(
        log.processes[other],
        one.trace_id,
        one.span_id,
        one.parent,
        "gym.model.tokens",
        "INTERNAL",
        one.start + MS,
        one.end,
        one.rollout,
        parent_id=one.parent_id,
    )
    spans.append(twin)
    log.expect("id_collision", "fork_shared_ids", spans[0].trace_id)


def _all_rollouts(log: Log, count: int = 12) -> list[Span]:
    spans = [span for number in range(count) for span in log.rollout(number)]
    return spans


@_of_logs
def _healthy(log: Log) -> None:
    """Nothing is wrong."""
    log.write(_all_rollouts(log))


@_of_logs
def _clock(log: Log) -> None:
    """The model's hosts are ahead, or behind."""
    log.processes.clear()
    offset = log.random.choice([-1, 1]) * log.random.randrange(1_500 * MS, 90 * SECOND)
    for port, name in enumerate(("driver", "agent", "model", "model-2", "resources"), 8000):
        is_off = name.startswith("model")
        log.process(
            name,
            f"gym/{name.partition('-')[0]}",
            port=port,
            host="node-2" if is_off else "node-1",
            offset=offset if is_off else 0,
        )
    log.write(_all_rollouts(log))
    log.expect("clock_skew", "clock")


@_of_logs
def _client_group_closed(log: Log) -> None:
    """No service writes spans of calls, nor sends a header."""
    spans = _all_rollouts(log)
    for top in _named(spans, "POST /v1/responses") + _named(spans, "POST /verify"):
        log.expect("split_trace", "client_group_closed", log.retrace(spans, top))
    for client in _named(spans, "HTTP POST", "CLIENT"):
        if client.process is log.processes["agent"]:
            client.fate = "never"
    log.write(spans)


@_of_logs
def _server_group_closed(log: Log) -> None:
    """The model writes no spans of requests, nor reads a header."""
    log.has_probes = False
    spans = _all_rollouts(log)
    for request in _named(spans, "POST /v1/responses"):
        request.fate = "never"
    for top in _named(spans, "gym.model.responses"):
        log.expect("split_trace", "server_group_closed", log.retrace(spans, top))
    log.write(spans)


@_of_logs
def _not_initialised(log: Log) -> None:
    """The resources server never turns its telemetry on: its log is text."""
    del log.processes["resources"].lines[:]
    spans = _all_rollouts(log)
    for span in spans:
        if span.process is log.processes["resources"]:
            span.fate = "never"
    log.write(spans)
    del log.processes["resources"]
    log.extra["resources.log"] = ['INFO:     127.0.0.1:40123 - "POST /verify" 200 OK'] * 12
    log.expect("unanswered", "not_initialised")


@_of_logs
def _leaf_file_missing(log: Log) -> None:
    """The log of a service that calls no other is not given."""
    log.write(_all_rollouts(log))
    log.missing_files.add("resources.log")
    log.expect("unanswered", "file_missing")


@_of_logs
def _records_dropped(log: Log) -> None:
    """A process could not write all its records."""
    log.write(_all_rollouts(log))
    log.processes["agent"].say("alive", log.time, records_dropped=log.random.randrange(1, 99))
    log.expect("lost_lines", "records_dropped")


@_of_logs
def _exports_dropped(log: Log) -> None:
    """A collector was away."""
    log.write(_all_rollouts(log))
    log.processes["model"].say("alive", log.time, export_failed=log.random.randrange(1, 99))
    log.expect("lost_lines", "exports_dropped")


@_of_logs
def _several_runs(log: Log) -> None:
    """The logs of two runs lie in one folder."""
    log.write(_all_rollouts(log))
    log.process("other", "gym/driver", run="run-2")
    log.expect("mixed_runs", "several_runs")


@_of_logs
def _trace_in_two_runs(log: Log) -> None:
    """A server of an earlier run answers calls of this one."""
    log.processes.pop("resources")
    log.process("resources", "gym/resources", run="run-0", port=8004)
    log.write(_all_rollouts(log))
    log.expect("mixed_runs", "several_runs")
    log.expect("mixed_runs", "trace_in_two_runs")


@_of_logs
def _read_twice(log: Log) -> None:
    """A file was copied beside itself."""
    log.write(_all_rollouts(log))
    log.extra["copy-of-agent.log"] = list(log.processes["agent"].lines)
    log.expect("duplicate_span", "read_twice")


@_of_logs
def _zero_id(log: Log) -> None:
    """A writer without a span writes zeros."""
    log.write(_all_rollouts(log))
    lines = log.processes["model"].lines
    record = json.loads(lines[-1])
    lines.append(json.dumps(record | {"seq": record["seq"] + 1, "trace_id": "0" * 32}))
    log.processes["model"].seq += 1
    log.expect("invalid_id", "invalid_id")


@_of_logs
def _dashed_id(log: Log) -> None:
    """A writer spells trace ids as UUIDs."""
    log.write(_all_rollouts(log))
    lines = log.processes["model"].lines
    record = json.loads(lines[-1])
    one = record["trace_id"]
    dashed = "-".join((one[:8], one[8:12], one[12:16], one[16:20], one[20:]))
    lines.append(json.dumps(record | {"seq": record["seq"] + 1, "trace_id": dashed}))
    log.processes["model"].seq += 1
    log.expect("invalid_id", "id_format", one)


@_of_logs
def _always_lost_in_process(log: Log) -> None:
    """Each job of a thread pool begins without the context; the process is idle in between."""
    for number in range(8):
        spans = log.rollout(number)
        log.time += 20 * SECOND
        for top in _named(spans, "tokenize"):
            log.expect("split_trace", "context_lost_in_process", log.retrace(spans, top))
        log.write(spans)


@_of_logs
def _many_names(log: Log) -> None:
    """Names of spans hold the rollout's id. A note, of no cause."""
    spans = _all_rollouts(log, 60)
    for span in _named(spans, "gym.verify"):
        span.name = f"gym.verify {span.rollout}"
    log.write(spans)
    log.expect("many_names", "", ANY)
