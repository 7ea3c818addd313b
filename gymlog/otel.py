"""gymlog's lines for a process that already runs OpenTelemetry's SDK: its exporters by entry point.

`OTEL_TRACES_EXPORTER=gymlog`, and likewise for metrics and logs: what the SDK exports becomes the
lines that gymlog's own tracer would have written, with `process` records of the SDK's resource.
The SDK decides what it samples, limits, batches and loses; `open_spans` is 0, since it exports
ended spans only.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Link

from gymlog import settings
from gymlog.channel import Channel
from gymlog.metrics.lines import LineWriter
from gymlog.metrics.sdk import LineExporter
from gymlog.notices import notice
from gymlog.record import FLAG_HAS_IS_REMOTE, FLAG_IS_REMOTE
from gymlog.resource import resource_of
from gymlog.semconv import EVENT_NAME, SERVICE_GROUP, SERVICE_INSTANCE_ID, SERVICE_NAME
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.values import clean, clean_mapping, clean_text

__all__ = ["LineLogExporter", "LineMetricExporter", "LineSpanExporter"]

Record = dict[str, Any]  # Any: see gymlog.record

_UNLIMITED: Final = 1 << 62
"""Attributes, events and links: the SDK has applied its limits."""


class LineSpanExporter(SpanExporter):
    """Writes each span that the SDK exports as a `span` line."""

    def __init__(self) -> None:
        self._limit = settings.VALUE_LENGTH_LIMIT.value()
        _exporters.add(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write the lines; FAILURE only after the shutdown, or when a span cannot be read."""
        is_complete = self in _exporters
        for span in spans if is_complete else ():
            try:
                service = _instance_of(span.resource)
                record = _span_record(span, service, self._limit)
            except Exception as error:  # noqa: BLE001 - the host must not notice
                _tell("span", error)
                is_complete = False
                continue
            service.spans_ended += 1
            service.sink.write(record)
        return SpanExportResult.SUCCESS if is_complete else SpanExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is buffered here."""
        del timeout_millis
        return True

    def shutdown(self) -> None:
        """Write the `stopped` record when this is the last exporter of the process."""
        _leave(self)


class LineLogExporter(LogRecordExporter):
    """Writes each log record that the SDK exports as a `log` line."""

    def __init__(self) -> None:
        self._limit = settings.VALUE_LENGTH_LIMIT.value()
        _exporters.add(self)

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        """Write the lines; FAILURE only after the shutdown, or when a record cannot be read."""
        is_complete = self in _exporters
        for log in batch if is_complete else ():
            try:
                service = _instance_of(log.resource)
                record = _log_record(log, service, self._limit)
            except Exception as error:  # noqa: BLE001 - the host must not notice
                _tell("log record", error)
                is_complete = False
                continue
            service.sink.write(record)
            service.went_on()
        return LogRecordExportResult.SUCCESS if is_complete else LogRecordExportResult.FAILURE

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        """Nothing is buffered here."""
        del timeout_millis
        return True

    def shutdown(self) -> None:
        """Write the `stopped` record when this is the last exporter of the process."""
        _leave(self)


class LineMetricExporter(LineExporter):
    """Writes each point that the SDK exports as a `metric` line."""

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]  # set for each resource in export
        _exporters.add(self)

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Write the points that say something new; FAILURE only after the shutdown."""
        if self not in _exporters:
            return MetricExportResult.FAILURE
        for resource_metrics in metrics_data.resource_metrics:
            service = _instance_of(resource_metrics.resource)
            if service not in _writers:
                _writers[service] = LineWriter(service)
            self._lines = _writers[service]
            super().export(MetricsData([resource_metrics]), timeout_millis, **kwargs)
            del self._lines  # what refers to an instance would keep it alive in a forked child
        return MetricExportResult.SUCCESS

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Write the `stopped` record when this is the last exporter of the process."""
        del timeout_millis, kwargs
        _leave(self)


# From the SDK's objects to records.


def _span_record(span: ReadableSpan, service: ServiceInstance, limit: int) -> Record:
    context, parent = span.get_span_context(), span.parent
    if context is None:
        raise ValueError("it has no span context")
    remote = FLAG_IS_REMOTE if parent is not None and parent.is_remote else 0
    status: dict[str, str] = {"code": span.status.status_code.name}
    if span.status.description:
        status["message"] = clean_text(span.status.description, limit)
    record: Record = {
        "record_type": "span",
        "seq": 0,  # the sink numbers lines in the order in which it writes them
        "trace_id": f"{context.trace_id:032x}",
        "span_id": f"{context.span_id:016x}",
        "parent_span_id": None if parent is None else f"{parent.span_id:016x}",
        "name": clean_text(span.name, limit),
        "kind": span.kind.name,
        "start_time_unix_nano": span.start_time,
        "end_time_unix_nano": span.end_time,
        "flags": int(context.trace_flags) | FLAG_HAS_IS_REMOTE | remote,
        "trace_state": context.trace_state.to_header(),
        "status": status,
        "attributes": clean_mapping(span.attributes or {}, _UNLIMITED, limit)[0],
        "events": [
            _item(
                {
                    "time_unix_nano": event.timestamp,
                    "name": clean_text(event.name, limit),
                    "attributes": clean_mapping(event.attributes or {}, _UNLIMITED, limit)[0],
                },
                event.dropped_attributes,
            )
            for event in span.events
        ],
        "links": [_link(link, limit) for link in span.links],
        "dropped_attributes_count": span.dropped_attributes,
        "dropped_events_count": span.dropped_events,
        "dropped_links_count": span.dropped_links,
        "scope": _scope(span.instrumentation_scope),
        "resource": service.short_resource,
    }
    return _without_empty(
        record,
        "trace_state",
        "events",
        "links",
        "dropped_attributes_count",
        "dropped_events_count",
        "dropped_links_count",
        "scope",
    )


def _link(link: Link, limit: int) -> Record:
    fields: Record = {
        "trace_id": f"{link.context.trace_id:032x}",
        "span_id": f"{link.context.span_id:016x}",
        "attributes": clean_mapping(link.attributes or {}, _UNLIMITED, limit)[0],
    }
    if link.context.trace_state:
        fields["trace_state"] = link.context.trace_state.to_header()
    return _item(fields, link.dropped_attributes)


def _item(fields: Record, dropped: int) -> Record:
    if dropped:
        fields["dropped_attributes_count"] = dropped
    return fields


def _log_record(log: ReadableLogRecord, service: ServiceInstance, limit: int) -> Record:
    source = log.log_record
    number = source.severity_number
    attributes, _ = clean_mapping(source.attributes or {}, _UNLIMITED, limit)
    if source.event_name:
        attributes.setdefault(EVENT_NAME, clean_text(source.event_name, limit))
    body = clean(source.body, limit)
    record: Record = {
        "record_type": "log",
        "seq": 0,
        "time_unix_nano": source.timestamp or source.observed_timestamp,
        "severity_number": 0 if number is None else number.value,
        "severity_text": clean_text(source.severity_text or "", limit),
        "body": "None" if body is None else body,
        "attributes": attributes,
        "trace_id": f"{source.trace_id:032x}" if source.trace_id else "",
        "span_id": f"{source.span_id:016x}" if source.span_id else "",
        "flags": int(source.trace_flags or 0),
        "dropped_attributes_count": log.dropped_attributes,
        "scope": _scope(log.instrumentation_scope),
        "resource": service.short_resource,
    }
    return _without_empty(
        record, "trace_id", "span_id", "flags", "dropped_attributes_count", "scope"
    )


def _scope(scope: Any) -> dict[str, str]:  # Any: the SDK's scope, or None
    if scope is None:
        return {}
    fields = {"name": clean_text(scope.name, 256)}
    if scope.version:
        fields["version"] = clean_text(scope.version, 256)
    return fields


def _without_empty(record: Record, *optional: str) -> Record:
    for field in optional:
        if not record[field]:
            del record[field]
    return record


def _tell(what: str, error: Exception) -> None:
    kind = type(error).__name__
    notice(f"otel {what}", f"a {what} of OpenTelemetry's SDK has no line ({kind}: {error})")


# One service instance per resource: traces, metrics and logs of a process are one.


class _SdkInstance(ServiceInstance):
    """A service instance with the instance id of the SDK's resource, if no other process has it."""

    def _new_instance_id(self) -> str:
        own_id = self._attributes.get(SERVICE_INSTANCE_ID)
        pid = os.getpid()
        if own_id is None or _owners.setdefault(str(own_id), pid) != pid:
            return super()._new_instance_id()
        return str(own_id)


_exporters: Final[set[object]] = set()
_instances: Final[dict[str, ServiceInstance]] = {}
_writers: Final[dict[ServiceInstance, LineWriter]] = {}
_owners: Final[dict[str, int]] = {}
"""Instance id -> pid of the process that had it first."""
_lock = threading.Lock()


def _forget_instances() -> None:
    """Begin anew in a forked child: the SDK gives it a resource with another instance id."""
    global _lock
    _lock = threading.Lock()
    _writers.clear()
    _instances.clear()


os.register_at_fork(after_in_child=_forget_instances)


def _instance_of(resource: Resource) -> ServiceInstance:
    key = resource.to_json(indent=None)
    service = _instances.get(key)
    if service is not None:
        return service
    with _lock:
        if key not in _instances:
            _instances[key] = _started(resource.attributes)
        return _instances[key]


def _started(attributes: Mapping[str, Any]) -> ServiceInstance:  # Any: attribute values
    facts = resource_of(
        service_name=str(attributes.get(SERVICE_NAME, "unknown_service")),
        per_server=False,
        server_name=None,
        server_type=None,
        run_id=settings.FIELDS["run_id"].value(),
        extra=attributes,
    )
    if SERVICE_GROUP not in attributes:
        del facts[SERVICE_GROUP]
    wait_seconds = settings.WRITE_WAIT_SECONDS.value()
    line_max = round(settings.LINE_MAX_BYTES.value())
    service = _SdkInstance(
        facts,
        lambda: Sink(Channel(1, wait_seconds=wait_seconds), line_max_bytes=line_max),
        span_start_after_seconds=-1,
        process_interval_seconds=settings.PROCESS_INTERVAL_SECONDS.value(),
    )
    service.start()
    return service


def _leave(exporter: object) -> None:
    _exporters.discard(exporter)
    if _exporters:
        return
    with _lock:
        instances = list(_instances.values())
        _instances.clear()
        _writers.clear()
    for service in instances:
        service.stop()
