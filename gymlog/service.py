"""This service instance: its resource, its open spans, and its `process` records.

One per process. A fork makes it a new one in the child, with its own id and its own numbering, so
that no line of a child can be taken for one of its parent. `sweep` does what is due from time to
time; a thread calls it.
"""

import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import orjson

from gymlog import clock
from gymlog.ids import new_span_id
from gymlog.notices import notice
from gymlog.record import SCHEMA_VERSION
from gymlog.semconv import PROCESS_PARENT_PID, PROCESS_PID, SERVICE_INSTANCE_ID, SERVICE_NAME
from gymlog.sink import Sink

if TYPE_CHECKING:
    from gymlog.spans import Span

__all__ = [
    "DEFAULT_PROCESS_INTERVAL_SECONDS",
    "DEFAULT_SPAN_START_AFTER_SECONDS",
    "ServiceInstance",
]

DEFAULT_SPAN_START_AFTER_SECONDS: Final = 5.0
DEFAULT_PROCESS_INTERVAL_SECONDS: Final = 30.0

_TICK_SECONDS: Final = (0.05, 1.0)
"""Least and most time between two sweeps."""

_INSTANCE_ID_DIGITS: Final = 12
"""48 random bits: it stands on every line, and no run has more than some thousand processes."""

_NS: Final = 1_000_000_000

_FORGOTTEN_REFERENCES: Final = 4
"""Of a span that only the service instance knows: dict, item of the list, variable, argument."""


class ServiceInstance:
    """Who writes here, and what it has open."""

    def __init__(
        self,
        resource: Mapping[str, object],
        make_sink: Callable[[], Sink] = Sink,
        *,
        span_start_after_seconds: float = DEFAULT_SPAN_START_AFTER_SECONDS,
        process_interval_seconds: float = DEFAULT_PROCESS_INTERVAL_SECONDS,
    ) -> None:
        self._make_sink = make_sink
        self._announces_at_once = span_start_after_seconds == 0
        self._announce_after_ns = round(span_start_after_seconds * _NS)
        self._interval_ns = round(process_interval_seconds * _NS)
        self._attributes = dict(resource)
        self._sweeper: _Sweeper | None = None
        self._become_new()

    def _become_new(self) -> None:
        self.sink = self._make_sink()
        self.unannounced: dict[str, Span] = {}
        """Open spans without a `span_start`, by span id, in the order in which they began.

        A span puts itself in, and calls `opened_with_care` while `is_careful`; who takes it out,
        here or of `announced`, writes its line.
        """
        self.announced: dict[str, Span] = {}
        """Open spans with a `span_start`."""
        self.held: dict[str, Span] = {}
        """Open spans that are not sampled and are written only if they fail."""
        self.spans_ended = 0
        self._attributes |= {
            SERVICE_INSTANCE_ID: self._new_instance_id(),
            PROCESS_PID: os.getpid(),
            PROCESS_PARENT_PID: os.getppid(),
        }
        short = {key: self._attributes.get(key) for key in (SERVICE_NAME, SERVICE_INSTANCE_ID)}
        self.short_resource: object = orjson.Fragment(orjson.dumps({"attributes": short}))
        """The resource of every record but `process`, encoded once."""
        self._is_introduced = self._is_over = False
        self.is_careful = True
        """Whether an opened span needs `opened_with_care`; false in a process that is under way."""
        self._stopped_at: tuple[int, int] | None = None
        self._reported_at = clock.monotonic_ns()

    def _new_instance_id(self) -> str:
        return new_span_id()[:_INSTANCE_ID_DIGITS]

    @property
    def open_spans(self) -> "dict[str, Span]":
        """Every open span, by span id."""
        return self.announced | self.unannounced

    @property
    def resource(self) -> Mapping[str, Any]:  # Any: one JSON value
        """The whole resource."""
        return self._attributes

    def start(self) -> None:
        """Write the `started` record and begin to sweep; forked children do so by themselves."""
        self._introduce()
        self._sweeper = _Sweeper(self, self._tick_seconds())
        this = weakref.ref(self)

        def after_fork() -> None:
            service = this()
            if service is not None and service._sweeper is not None:
                service._become_new()
                service._sweeper = _Sweeper(service, service._tick_seconds())

        os.register_at_fork(after_in_child=after_fork)

    def stop(self) -> None:
        """Write a `span_start` for each open span that has none, then the `stopped` record."""
        if self._sweeper is not None:
            self._sweeper.stop()
            self._sweeper = None
        grant = getattr(self.sink.file, "grant", None)
        if grant is not None:
            grant()
        self.say_stopped()
        self._is_over = self.is_careful = True

    def say_stopped(self) -> None:
        """Write what `stop` writes but go on, for a server that was told to end.

        When nothing has happened since it was said, nothing is said again.
        """
        self._announce(list(self.unannounced.values()))
        now = (self.spans_ended, len(self.unannounced) + len(self.announced))
        if self._stopped_at != now:
            self._stopped_at = now
            self._write_process("stopped")

    def went_on(self) -> None:
        """Take note that something else than a span was written: `stopped` is said again."""
        self._stopped_at = None

    def opened_with_care(self, span: "Span") -> None:
        """Do what an opened span asks for while `is_careful`."""
        if self._is_over:
            self.unannounced.pop(span.span_id, None)  # it writes nothing
            return
        if self._announces_at_once:
            self._announce([span])
        if not self._is_introduced:
            self._introduce()

    def hold(self, span: "Span") -> None:
        """Take a span that is not sampled: it is written if it fails, and never announced."""
        if not self._is_over:
            self.held[span.span_id] = span

    def sweep(self) -> None:
        """Announce spans that are open for long, report, follow a stepped clock."""
        clock.reanchor()
        refresh = getattr(self.sink.file, "refresh", None)
        if refresh is not None:
            refresh()
        now = clock.monotonic_ns()
        if self._announce_after_ns > 0:
            self._announce(self._due(now))
        if not self._is_introduced:
            self._introduce()
        elif now - self._reported_at >= self._interval_ns:
            self._let_go_of_forgotten()
            self._write_process("alive")

    def _let_go_of_forgotten(self) -> None:
        """Release spans that nobody can end any more, so that they do not pile up.

        The log has their `span_start`, now at the latest: to a reader they stay unfinished.
        """
        if self._announce_after_ns < 0:
            self._announce(_forgotten(self.unannounced))
        for span in _forgotten(self.announced):
            self.announced.pop(span.span_id, None)
            notice(
                "forgotten span",
                f"a span named {span.name!r} was dropped without being ended; the log shows "
                "it unfinished. Of more like it only the log tells",
            )
        for span in _forgotten(self.held):
            self.held.pop(span.span_id, None)

    def _announce(self, spans: "list[Span]") -> None:
        """Write the `span_start` of open spans, of each once."""
        records = []
        for span in spans:
            span_id = span.span_id
            self.announced[span_id] = span
            if self.unannounced.pop(span_id, None) is None:  # it has ended meanwhile
                self.announced.pop(span_id, None)
            else:
                records.append(span.start_record())
        self.sink.write_all(records)

    def _due(self, now: int) -> list["Span"]:
        """Return the spans to announce: the oldest, up to the first that is not open for long.

        Where a caller gave a span another start than its place in the order, those behind it may
        be announced late, by no more than the threshold.
        """
        due = []
        with suppress(RuntimeError):  # another thread opened or ended one: the rest comes next time
            for span in self.unannounced.values():
                age_ns = span.age_ns(now)
                if age_ns >= self._announce_after_ns:
                    due.append(span)
                elif age_ns >= 0:  # else it starts in the future, as its caller says
                    break
        return due

    def _introduce(self) -> None:
        self._is_introduced = True
        self.is_careful = self._announces_at_once
        self._write_process("started")

    def _write_process(self, state: str) -> None:
        self._reported_at = clock.monotonic_ns()
        self.sink.write(
            {
                "record_type": "process",
                "seq": 0,
                "state": state,
                "schema": SCHEMA_VERSION,
                "time_unix_nano": clock.now(),
                "spans_written": self.spans_ended - self.sink.spans_dropped,
                "records_dropped": self.sink.records_dropped,
                "open_spans": len(self.unannounced) + len(self.announced),
                "resource": {"attributes": self._attributes},
            }
        )

    def _tick_seconds(self) -> float:
        least, most = _TICK_SECONDS
        wanted = [self._interval_ns / _NS, self._announce_after_ns / _NS / 4]
        return min([most, *(max(least, seconds) for seconds in wanted if seconds > 0)])


def _forgotten(spans: "dict[str, Span]") -> "list[Span]":
    """Return those that nobody else refers to."""
    return [
        span for _, span in list(spans.items()) if sys.getrefcount(span) <= _FORGOTTEN_REFERENCES
    ]


class _Sweeper(threading.Thread):
    """Calls `sweep` until the service instance is gone or told to stop."""

    def __init__(self, service: ServiceInstance, tick_seconds: float) -> None:
        super().__init__(name="gymlog-sweep", daemon=True)
        self._service = weakref.ref(service)
        self._tick_seconds = tick_seconds
        self._stopped = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(self._tick_seconds):
            service = self._service()
            if service is None:
                return
            service.sweep()
            del service

    def stop(self) -> None:
        """End the thread; it may be the caller's own."""
        self._stopped.set()
        if self is not threading.current_thread():
            self.join(timeout=1.0)
