"""Logs of a gym, healthy and not boring, for faults to be planted in.

A rollout is one trace over four services, of random shape and times, many of them at a time. Beside
them stands what looks like a fault and is none: probes, timers, calls to the outside, work with a
link, requests that were sent again. The same seed gives the same logs.
"""

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

__all__ = ["ANY", "MS", "SECOND", "Log", "Record", "Span", "named"]

ANY: Final = "*"
"""The subject of a finding that is of no trace."""

BEGIN_UNIX_NANO: Final = 1_800_000_000_000_000_000
MS: Final = 1_000_000
SECOND: Final = 1_000 * MS
RUN: Final = "run-1"

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
        self.expected: set[tuple[str, str, str]] = set()
        """Code, cause and subject of each finding that there should be."""
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
        pick, act = self.random, named(spans, "gym.agent.responses")[0]
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
            served = named(spans, "POST /verify")[0]
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


def named(spans: list[Span], name: str, kind: str = "") -> list[Span]:
    """Return the spans of a name, and of a kind where one is given."""
    return [span for span in spans if span.name == name and kind in ("", span.kind)]
