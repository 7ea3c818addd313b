"""Faults of a gym's telemetry, one function each: what the doctor's benchmark asks about.

A fault is done to a rollout before it is written, or to a whole log, and says what the doctor
should find: a code, a cause, and the trace that it concerns (`ANY` where it concerns none).
"""

import json
from collections.abc import Callable
from typing import Final, TypeAlias

from busy_gym import MS, SECOND, Log, Span, named

__all__ = ["LOG_FAULTS", "ROLLOUT_FAULTS", "SPECIAL_AGENTS"]

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


def _served(log: Log, spans: list[Span]) -> Span:
    """Return a request to the model, by chance."""
    return log.random.choice(named(spans, "POST /v1/responses"))


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
    parents = [*named(spans, "gym.agent.responses"), *named(spans, "POST /run")]
    log.random.choice(parents).fate = "torn"
    log.expect("orphan", "line_torn", spans[0].trace_id)


@_of_rollouts
def _lines_lost(log: Log, spans: list[Span]) -> None:
    """The line of a parent is cut from the log."""
    log.random.choice(
        [*named(spans, "gym.agent.responses"), *named(spans, "POST /run")]
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
        if span.is_below(client) and not span.is_below(top):
            span.fate = "never"
    trace_id = log.retrace(spans, top)
    assert client.parent_id is not None
    log.parents[top.span_id] = client.parent_id
    log.expect("split_trace", "egress_bypassed", trace_id)


@_of_rollouts
def _context_lost_in_process(log: Log, spans: list[Span]) -> None:
    """A thread of a pool begins without the context, and with or without the rollout."""
    if log.random.random() < 0.5:
        top = log.random.choice(named(spans, "tokenize"))
    else:
        top = log.random.choice(named(spans, "HTTP POST", "CLIENT")[1:])
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
    one = named(spans, "gym.model.responses")[0]
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
    return [span for number in range(count) for span in log.rollout(number)]


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
    for top in named(spans, "POST /v1/responses") + named(spans, "POST /verify"):
        log.expect("split_trace", "client_group_closed", log.retrace(spans, top))
    for client in named(spans, "HTTP POST", "CLIENT"):
        if client.process is log.processes["agent"]:
            client.fate = "never"
    log.write(spans)


@_of_logs
def _server_group_closed(log: Log) -> None:
    """The model writes no spans of requests, nor reads a header."""
    log.has_probes = False
    spans = _all_rollouts(log)
    for request in named(spans, "POST /v1/responses"):
        request.fate = "never"
    for top in named(spans, "gym.model.responses"):
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
        for top in named(spans, "tokenize"):
            log.expect("split_trace", "context_lost_in_process", log.retrace(spans, top))
        log.write(spans)


@_of_logs
def _many_names(log: Log) -> None:
    """Names of spans hold the rollout's id. A note, of no cause."""
    spans = _all_rollouts(log, 60)
    for span in named(spans, "gym.verify"):
        span.name = f"gym.verify {span.rollout}"
    log.write(spans)
    log.expect("many_names", "")
