"""Log lines of other loggers, in JSON: a message, and the trace and span it belongs to.

Elastic's ECS, Google's and AWS's structured logs, Datadog's and OpenTelemetry's log correlation,
and the `trace_id` and `span_id` that everyone else writes. Keys may be dotted or nested. An id that
is none stays an attribute; Datadog writes only the lower half of a trace id here.
"""

import re
from typing import Any, Final

from reconstruct.intake.formats import fields, ids, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.times import to_unix_nano

__all__ = ["SEVERITIES", "recognise"]

_MESSAGE: Final = ("message", "msg", "event", "body")
_TIME: Final = ("@timestamp", "timestamp", "time", "ts", "datetime", "asctime")
_LEVEL: Final = ("log.level", "severity", "level", "levelname", "log_level", "severity_text")
_LOGGER: Final = ("log.logger", "logger", "logger_name")
_GOOGLE_TRACE: Final = "logging.googleapis.com/trace"
_TRACE: Final = (
    _GOOGLE_TRACE,
    "trace.id",
    "dd.trace_id",
    "otelTraceID",
    "trace_id",
    "traceId",
    "xray_trace_id",
    "AWS-XRAY-TRACE-ID",
)
_SPAN: Final = (
    "logging.googleapis.com/spanId",
    "span.id",
    "dd.span_id",
    "otelSpanID",
    "span_id",
    "spanId",
    "transaction.id",
)
_RESOURCE: Final = {
    "service.name": "service.name",
    "dd.service": "service.name",
    "otelServiceName": "service.name",
    "service": "service.name",
    "service.node.name": "service.instance.id",
    "service.version": "service.version",
    "host.name": "host.name",
    "hostname": "host.name",
    "process.pid": "process.pid",
    "pid": "process.pid",
}
SEVERITIES: Final = {
    "trace": 1,
    "debug": 5,
    "info": 9,
    "notice": 10,
    "warn": 13,
    "warning": 13,
    "error": 17,
    "exception": 17,
    "critical": 21,
    "fatal": 21,
    "alert": 22,
    "emergency": 24,
}
"""OpenTelemetry's severity numbers of the levels' names."""
_PINO: Final = {10: "trace", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "fatal"}
_XRAY: Final = re.compile(r"(?:.*\bRoot=)?1-([0-9a-fA-F]{8})-([0-9a-fA-F]{24})(?:;.*)?")
_XRAY_PARENT: Final = re.compile(r".*\bParent=([0-9a-fA-F]{16})\b.*")
_HEX_TRACE: Final = re.compile(r"(?:0x)?[0-9a-fA-F]{32}")
_DATADOG: Final = "dd."


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a logger's line into a log record: a message with a trace id, or a level and a time."""
    if not any(key in value for key in _MESSAGE):
        return None
    line = _Line(value)
    trace_id, span_id = _ids(line)
    time = line.take_first(_TIME)
    level = line.take_first(_LEVEL)
    time_unix_nano = to_unix_nano(time)
    if trace_id is None and (level is None or time_unix_nano is None):
        return None
    if isinstance(level, dict | list):
        return None
    resource: dict[str, Json] = {}
    for path, key in _RESOURCE.items():
        found = line.take(path, scalar=True)
        if found is not None:
            resource.setdefault(key, found)
    if time is not None and time_unix_nano is None:
        line.rest["time"] = time
    text = _PINO.get(level, fields.text(level)) if isinstance(level, int) else fields.text(level)
    row = rows.log(
        time=time_unix_nano,
        body=line.take_first(_MESSAGE),
        severity_number=SEVERITIES.get((text or "").lower()),
        severity_text=text,
        scope_name=fields.text(line.take_first(_LOGGER)),
        trace_id=trace_id,
        span_id=span_id,
        attributes=line.rest,
        owner=rows.owner(resource, server_hint),
    )
    return Record(LineClass.LOG, (row,))


class _Line:
    """The fields of a line; what is taken is no attribute any more."""

    def __init__(self, value: dict[str, Json]) -> None:
        self.rest = dict(value)

    def take(self, path: str, *, scalar: bool = False) -> Json:
        """Take a field out, its key dotted or nested; None when it is not there."""
        if path in self.rest:
            if scalar and isinstance(self.rest[path], dict | list):
                return None
            return self.rest.pop(path)
        outer, _, inner = path.partition(".")
        nested = self.rest.get(outer)
        if not inner or not isinstance(nested, dict) or inner not in nested:
            return None
        others = {key: item for key, item in nested.items() if key != inner}
        if others:
            self.rest[outer] = others
        else:
            del self.rest[outer]
        return nested[inner]

    def take_first(self, paths: tuple[str, ...]) -> Json:
        """Take the first of these fields that is there."""
        for path in paths:
            found = self.take(path)
            if found is not None:
                return found
        return None


def _ids(line: _Line) -> tuple[str | None, str | None]:
    trace_id = span_id = None
    for path in _TRACE:
        written = line.take(path)
        if written is None:
            continue
        trace_id = _trace_id(path, written)
        if trace_id is None:
            line.rest[path] = written
            continue
        parent = _XRAY_PARENT.fullmatch(written) if isinstance(written, str) else None
        span_id = parent[1].lower() if parent else None
        break
    for path in _SPAN:
        written = line.take(path)
        if written is None:
            continue
        found = _span_id(path, written)
        if found is None or trace_id is None:
            line.rest[path] = written
            continue
        span_id = found
        break
    return trace_id, span_id


def _trace_id(path: str, written: Json) -> str | None:
    if isinstance(written, str):
        xray = _XRAY.fullmatch(written)
        if xray is not None:
            return (xray[1] + xray[2]).lower()
        if path == _GOOGLE_TRACE:
            written = written.rpartition("/")[2]
    try:
        if path.startswith(_DATADOG) and not _is_hex_trace(written):
            return fields.trace_id((ids.from_decimal(written, path) or "").zfill(32))
        return fields.trace_id(written)
    except InvalidRecordError:
        return None


def _span_id(path: str, written: Json) -> str | None:
    try:
        if path.startswith(_DATADOG):
            return ids.from_decimal(written, path)
        return fields.span_id(written)
    except InvalidRecordError:
        return None


def _is_hex_trace(written: Any) -> bool:  # Any: whatever JSON can hold
    return isinstance(written, str) and _HEX_TRACE.fullmatch(written) is not None
