"""What `State` says at one moment, as plain values for whoever draws or forwards it.

Times are ns since 1970, lengths ns. Lists are cut to a limit, counts are of all there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "Event",
    "FailureKind",
    "FinishedRollout",
    "OpenRollout",
    "ProcessNow",
    "Snapshot",
]


@dataclass(frozen=True, slots=True)
class OpenRollout:
    """A rollout that is going on. `span_name` is its open span that began last, null where none is
    announced yet; then `after` names its span that ended last."""

    run_id: str | None
    rollout_id: str
    start_time_unix_nano: int
    span_name: str | None
    service_name: str | None
    after: str | None
    span_count: int
    open_count: int
    error_count: int


@dataclass(frozen=True, slots=True)
class FinishedRollout:
    """A rollout that has ended."""

    run_id: str | None
    rollout_id: str
    start_time_unix_nano: int
    duration_ns: int
    span_count: int
    error_count: int


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Spans with status ERROR of one service and route, or name where they have no route; the
    other fields are of the one that ended last."""

    service_name: str | None
    route: str
    count: int
    last_time_unix_nano: int
    message: str | None
    trace_id: str
    rollout_id: str | None


@dataclass(frozen=True, slots=True)
class ProcessNow:
    """A process that writes lines. `state` is that of the relation `instances`, or `silent`: it
    should be alive, and nothing was heard of it for two of its intervals.

    `lag_ms` is the longest event-loop lag in its latest point of that metric.
    """

    instance: str
    service_name: str | None
    run_id: str | None
    host_name: str | None
    process_pid: int | None
    state: str
    last_time_unix_nano: int
    spans_read: int
    spans_written: int | None
    records_dropped: int | None
    open_spans: int | None
    lag_ms: float | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has happened since the snapshot before: its `kind`, when, and its facts.

    `rollout_finished`, `rollout_lost`, `error`, and `process_` with the process's new state.
    """

    kind: str
    time_unix_nano: int
    facts: Mapping[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is going on. `newest_time_unix_nano` is the latest time on any line, null before the
    first one.

    `lost_count` are rollouts whose first span gets no end any more; `open`, oldest first;
    `slowest`, of the finished ones; `failures`, latest first; `processes`, those that may be alive
    first. Of these `alive_count` are alive by what they say; `died_count` are dead or silent.
    """

    time_unix_nano: int
    newest_time_unix_nano: int | None
    open_count: int
    finished_count: int
    lost_count: int
    finished_in_10_s: int
    finished_in_60_s: int
    error_count: int
    span_count: int
    line_classes: Mapping[str, int]
    open: tuple[OpenRollout, ...]
    slowest: tuple[FinishedRollout, ...]
    failures: tuple[FailureKind, ...]
    processes: tuple[ProcessNow, ...]
    process_count: int
    alive_count: int
    died_count: int
    events: tuple[Event, ...]
    events_left_out: int
