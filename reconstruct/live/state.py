"""What is going on, from the rows of lines as they come, in any order.

Memory is bounded by what is open and a fixed rest: `kept` spans of what is over, the counts, the
slowest, the kinds of failures. Nothing costs more because much has been read before. What lies so
far back that it is no longer kept counts as new when another line of it comes.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

from gymlog import semconv
from gymlog.record import RecordType
from reconstruct.intake import tables
from reconstruct.intake.tables import Row
from reconstruct.live.failures import Failures
from reconstruct.live.processes import Process, Processes
from reconstruct.live.rollouts import Fate, Rollouts
from reconstruct.live.snapshot import Event, FailureKind, Snapshot
from reconstruct.live.traces import Span, Traces

__all__ = ["LIMIT", "State"]

LIMIT: Final = 100
"""So many of each are in a snapshot, unless it is asked for more."""
_KEPT: Final = 20_000
_MOST_EVENTS: Final = 10_000
_LAG: Final = "gym.event_loop.lag_ms"


def _fields(table: str, *names: str) -> Callable[[Row], Any]:  # Any: as a row
    columns = [name for name, _ in tables.TABLES[table]]
    return itemgetter(*(columns.index(name) for name in names))


_SPAN: Final = _fields(
    tables.SPAN_LINES,
    "record_type",
    "trace_id",
    "span_id",
    "parent_span_id",
    "name",
    "start_time_unix_nano",
    "end_time_unix_nano",
    "status_code",
    "status_message",
    "attributes",
    "rollout_id",
)
_LOG: Final = _fields(tables.LOG_LINES, "time_unix_nano")
_METRIC: Final = _fields(tables.METRIC_LINES, "name", "time_unix_nano", "value", "max")
_PROCESS: Final = _fields(
    tables.PROCESS_LINES,
    "state",
    "time_unix_nano",
    "spans_written",
    "records_dropped",
    "open_spans",
)
_CLASS: Final = _fields(tables.CLASS_COUNTS, "class", "lines")


class State:
    """What the lines that were added come to."""

    def __init__(self, *, kept: int = _KEPT) -> None:
        self._processes = Processes()
        self._traces = Traces(kept)
        self._rollouts = Rollouts(self._traces, self._processes, kept)
        self._failures = Failures()
        self._line_classes: Counter[str] = Counter()
        self._span_count = 0
        self._events: list[Event] = []
        self._events_left_out = 0
        self._adders: dict[str, Callable[[Row], None]] = {
            tables.SPAN_LINES: self._add_span,
            tables.LOG_LINES: self._add_log,
            tables.METRIC_LINES: self._add_metric,
            tables.PROCESS_LINES: self._add_process,
            tables.CLASS_COUNTS: self._add_class,
        }

    def add(self, table: str, rows: Sequence[Row]) -> None:
        """Take rows of a table of `intake.tables`; about 7 µs a span."""
        add = self._adders.get(table)
        if add is not None:
            for row in rows:
                add(row)

    def _add_span(self, row: Row) -> None:
        record_type, trace_id, span_id, parent, name, start, end, status, *facts = _SPAN(row)
        message, attributes, rollout_id = facts
        is_error = status == "ERROR"
        if record_type == RecordType.SPAN_START:
            end = None
        process = self._processes.of(row[-1], start if end is None else max(start, end))
        span = Span(
            parent=None if parent is None else int(parent, 16),
            name=name,
            start=start,
            end=end,
            is_error=is_error,
            rollout_id=rollout_id,
            process=process,
        )
        if not self._traces.add(trace_id, int(span_id, 16), span):
            return
        if end is None:
            return
        self._span_count += 1
        process.spans_read += 1
        if is_error:
            route = json.loads(attributes).get(semconv.HTTP_ROUTE)
            failure = FailureKind(
                service_name=process.service_name,
                route=route if isinstance(route, str) else name,
                count=1,
                last_time_unix_nano=end,
                message=message,
                trace_id=trace_id,
                rollout_id=rollout_id,
            )
            self._failures.add(failure)
            self._tell(_error(failure))

    def _add_log(self, row: Row) -> None:
        self._processes.of(row[-1], _LOG(row))

    def _add_class(self, row: Row) -> None:
        line_class, lines = _CLASS(row)
        self._line_classes[line_class] += lines

    def _add_metric(self, row: Row) -> None:
        name, time, value, longest = _METRIC(row)
        process = self._processes.of(row[-1], time)
        lag = value if longest is None else longest
        if name == _LAG and lag is not None:
            process.lag = (time, lag) if process.lag is None else max(process.lag, (time, lag))

    def _add_process(self, row: Row) -> None:
        state, time, spans_written, records_dropped, open_spans = _PROCESS(row)
        process = self._processes.of(row[-1], time)
        said = time, state
        if process.said is None or said >= process.said:
            process.said = said
            process.spans_written = spans_written
            process.records_dropped = records_dropped
            process.open_spans = open_spans

    def _tell(self, event: Event) -> None:
        if len(self._events) < _MOST_EVENTS:
            self._events.append(event)
        else:
            self._events_left_out += 1

    def _settle(self, now: int) -> None:
        self._processes.settle(now)
        for process in self._processes.all():
            if process.state != process.told_state:
                process.told_state = process.state
                if process.state != "unknown":
                    self._tell(_process_event(process))
        for event in self._rollouts.settle():
            self._tell(event)

    def settle(self) -> None:
        """Free what is over, as of the latest time on any line; its events are left out.

        To be called now and then while much of the past is read.
        """
        self._settle(self._processes.newest_time or 0)
        self._events.clear()
        self._events_left_out = 0

    def snapshot(self, now: int, *, limit: int | None = LIMIT) -> Snapshot:
        """Say how it is at `now` (ns since 1970), with at most `limit` of each kind in a list.

        Its events are those since the snapshot before. Costs as much as there are open rollouts,
        and others with new lines.
        """
        self._settle(now)
        events, self._events = self._events, []
        left_out, self._events_left_out = self._events_left_out, 0
        events.sort(key=lambda event: event.time_unix_nano)
        rollouts = self._rollouts
        return Snapshot(
            time_unix_nano=now,
            newest_time_unix_nano=self._processes.newest_time,
            open_count=rollouts.count(Fate.OPEN),
            finished_count=rollouts.count(Fate.FINISHED),
            lost_count=rollouts.count(Fate.LOST),
            finished_in_10_s=rollouts.finished_within(10, now),
            finished_in_60_s=rollouts.finished_within(60, now),
            error_count=self._failures.count,
            span_count=self._span_count,
            line_classes=dict(self._line_classes),
            open=rollouts.open(limit),
            slowest=rollouts.slowest(LIMIT if limit is None else limit),
            failures=self._failures.latest(limit),
            processes=self._processes.now(limit),
            process_count=len(self._processes),
            alive_count=self._processes.alive_count,
            died_count=self._processes.died_count,
            events=tuple(events),
            events_left_out=left_out,
        )


def _error(failure: FailureKind) -> Event:
    facts = {
        "service_name": failure.service_name,
        "route": failure.route,
        "message": failure.message,
        "trace_id": failure.trace_id,
        "rollout_id": failure.rollout_id,
    }
    return Event("error", failure.last_time_unix_nano, facts)


def _process_event(process: Process) -> Event:
    facts = {
        "service_name": process.service_name,
        "instance": process.instance,
        "run_id": process.run_id,
        "host_name": process.host_name,
        "process_pid": process.process_pid,
    }
    return Event(f"process_{process.state}", process.last_time, facts)
