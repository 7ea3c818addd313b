"""A sink before the sink: records go to OTLP, and as lines to stdout where those are wanted too.

`process` records always become lines, with what OTLP lost so far: `export_dropped` and
`export_failed`. `span_start` records have no form in OTLP and go where lines go.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from gymlog import settings
from gymlog.notices import notice
from gymlog.otlp.encoding import logs_request, trace_request
from gymlog.otlp.protocols import receiver_for
from gymlog.otlp.queue import Encode, ExportQueue
from gymlog.otlp.receiver import Receiver, Signal
from gymlog.record import RecordType
from gymlog.sink import BytesFile, Sink

__all__ = ["ExportingSink", "exporting"]

Record = dict[str, Any]  # Any: the one untyped dict, see gymlog.record

_SIGNALS: Final[dict[RecordType, tuple[Signal, str, Encode]]] = {
    RecordType.SPAN: ("traces", "spans", trace_request),
    RecordType.LOG: ("logs", "log records", logs_request),
}


class ExportingSink:
    """What a service instance writes to when an exporter is OTLP; has the public side of Sink."""

    def __init__(
        self, sink: Sink, queues: Mapping[str, ExportQueue], *, writes_lines: bool = True
    ) -> None:
        """`queues` are by record type; what has none there becomes lines whatever is wanted."""
        self._sink = sink
        self._queues = queues
        self._unwritten: frozenset[str] = (
            frozenset() if writes_lines else frozenset({*queues, RecordType.SPAN_START})
        )
        self._points_failed = 0
        self.is_writing: Callable[[], bool] = sink.is_writing

    @property
    def file(self) -> BytesFile:
        """What the lines are written to."""
        return self._sink.file

    @property
    def records_dropped(self) -> int:
        """Records that should have become lines and did not."""
        return self._sink.records_dropped

    @property
    def spans_dropped(self) -> int:
        """Those of them that were `span` records."""
        return self._sink.spans_dropped

    @property
    def export_dropped(self) -> int:
        """Records that found no room on their way to OTLP."""
        return sum(queue.dropped for queue in self._queues.values())

    @property
    def export_failed(self) -> int:
        """Records and points of metrics that no receiver took."""
        return self._points_failed + sum(queue.failed for queue in self._queues.values())

    def count_failed(self, points: int) -> None:
        """Count points of metrics that no receiver took."""
        self._points_failed += points

    def write(self, record: Record) -> None:
        """Send one record, write it, or both; about 0.4 µs beside the writing."""
        kind = record["record_type"]
        queue = self._queues.get(kind)
        if queue is not None:
            queue.put(record)
        if kind in self._unwritten:
            return
        if kind == RecordType.PROCESS:
            self._complete(record)
        self._sink.write(record)

    def write_all(self, records: Sequence[Record]) -> None:
        """Write many `span_start` records, where lines go at all."""
        if RecordType.SPAN_START not in self._unwritten:
            self._sink.write_all(records)

    def flush(self, seconds: float) -> bool:
        """Send what waits; say whether all was dealt with in time."""
        deadline = time.monotonic() + seconds
        flushed = [queue.flush(deadline - time.monotonic()) for queue in self._queues.values()]
        return all(flushed)

    def finish(self, seconds: float) -> None:
        """Send what waits, within `seconds`, and nothing more; what is left over is counted."""
        deadline = time.monotonic() + seconds
        for finish in [queue.end() for queue in self._queues.values()]:
            finish(deadline)

    def _complete(self, record: Record) -> None:
        """Say in a `process` record what OTLP lost, before the resource as the contract orders."""
        resource = record.pop("resource")
        if RecordType.SPAN in self._unwritten:
            record["spans_written"] = 0
        lost = {"export_dropped": self.export_dropped, "export_failed": self.export_failed}
        record.update({field: count for field, count in lost.items() if count})
        record["resource"] = resource


def exporting(
    make_sink: Callable[[], Sink],
    resource: Callable[[], Mapping[str, object]],
    *,
    signals: frozenset[Signal],
    writes_lines: bool,
) -> Callable[[], Sink]:
    """Return what makes the sink of a process whose `signals` go to OTLP, and of its children.

    Where one cannot be sent, for its variables make no sense, that is one notice, and its records
    become lines.
    """
    makers: dict[str, Callable[[], ExportQueue]] = {}
    for kind, (signal, what, encode) in _SIGNALS.items():
        batches = settings.OTLP_BATCHES[signal]
        most_seconds = batches.export_timeout_ms.value() / 1_000
        make_receiver = partial(receiver_for, signal, most_seconds)
        if signal in signals and _is_possible(make_receiver, what):
            makers[kind] = partial(
                ExportQueue,
                what,
                make_receiver,
                encode,
                resource,
                max_records=batches.max_queue_size.value(),
                batch_records=batches.max_export_batch_size.value(),
                delay_seconds=batches.schedule_delay_ms.value() / 1_000,
            )

    def make() -> Sink:
        queues = {kind: make_queue() for kind, make_queue in makers.items()}
        sink = ExportingSink(make_sink(), queues, writes_lines=writes_lines)
        return cast("Sink", sink)  # it has the public side of one

    return make


def _is_possible(make_receiver: Callable[[], Receiver], what: str) -> bool:
    """Say whether an exporter can be set up; a person is told otherwise."""
    try:
        make_receiver().close()
    except Exception as error:  # noqa: BLE001 - the host must not notice
        notice(
            f"otlp {what}",
            f"OTLP cannot be set up for {what} ({type(error).__name__}: {error}), so they go to "
            "stdout; check the OTEL_EXPORTER_OTLP_* variables",
        )
        return False
    return True
