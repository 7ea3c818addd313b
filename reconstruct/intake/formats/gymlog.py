"""Our own lines, as `gymlog.record` defines them: told by `record_type`."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from gymlog import semconv
from gymlog.record import RecordType
from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner

__all__ = ["recognise"]

_SHORT_RESOURCE: Final = {semconv.SERVICE_NAME, semconv.SERVICE_INSTANCE_ID}


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a line of ours into a record."""
    record_type = value.get("record_type")
    if not isinstance(record_type, str):
        return None
    convert = _CONVERT.get(record_type)
    return None if convert is None else convert(value, server_hint)


def _span(value: dict[str, Json], server_hint: str | None) -> Record:
    get = value.get
    record_type = get("record_type")
    is_start = record_type == RecordType.SPAN_START
    end = None if is_start else _time(value, "end_time_unix_nano")
    status = fields.members(get("status"))
    scope = fields.members(get("scope"))
    attributes = fields.members(get("attributes"))
    row = (
        record_type,
        fields.int64(get("seq")),
        fields.trace_id(get("trace_id")),
        fields.span_id(get("span_id")),
        fields.parent_span_id(get("parent_span_id")),
        fields.required_text(get("name"), "name"),
        fields.kind(get("kind")),
        _time(value, "start_time_unix_nano"),
        end,
        fields.int64(get("flags")),
        fields.text(get("trace_state")),
        None if is_start else fields.status_code(status.get("code")),
        fields.text(status.get("message")),
        fields.json_object(attributes),
        fields.json_list(get("events")),
        fields.json_list(get("links")),
        fields.int64(get("dropped_attributes_count")),
        fields.int64(get("dropped_events_count")),
        fields.int64(get("dropped_links_count")),
        fields.text(scope.get("name")),
        fields.text(scope.get("version")),
        fields.rollout_id(attributes),
        _owner(value, server_hint),
    )
    line_class = LineClass.SPAN_START if is_start else LineClass.SPAN
    return Record(line_class, ((tables.SPAN_LINES, row),))


def _log(value: dict[str, Json], server_hint: str | None) -> Record:
    get = value.get
    scope = fields.members(get("scope"))
    attributes = fields.members(get("attributes"))
    trace_id, span_id = get("trace_id"), get("span_id")
    row = (
        fields.int64(get("seq")),
        _time(value, "time_unix_nano"),
        fields.int64(get("severity_number")),
        fields.text(get("severity_text")),
        fields.json_value(get("body")),
        fields.json_object(attributes),
        None if trace_id is None else fields.trace_id(trace_id),
        None if span_id is None else fields.span_id(span_id),
        fields.int64(get("flags")),
        fields.int64(get("dropped_attributes_count")),
        fields.text(scope.get("name")),
        fields.text(scope.get("version")),
        fields.rollout_id(attributes),
        _owner(value, server_hint),
    )
    return Record(LineClass.LOG, ((tables.LOG_LINES, row),))


def _metric(value: dict[str, Json], server_hint: str | None) -> Record:
    get = value.get
    scope = fields.members(get("scope"))
    row = (
        fields.int64(get("seq")),
        fields.required_text(get("name"), "name"),
        fields.text(get("description")),
        fields.text(get("unit")),
        fields.text(get("type")),
        fields.boolean(get("is_monotonic")),
        fields.text(get("aggregation_temporality")),
        fields.int64(get("start_time_unix_nano")),
        _time(value, "time_unix_nano"),
        fields.json_object(get("attributes")),
        fields.float64(get("value")),
        fields.int64(get("count")),
        fields.float64(get("sum")),
        fields.float64(get("min")),
        fields.float64(get("max")),
        fields.json_list(get("bucket_counts")),
        fields.json_list(get("explicit_bounds")),
        fields.json_list(get("exemplars")),
        fields.text(scope.get("name")),
        fields.text(scope.get("version")),
        _owner(value, server_hint),
    )
    return Record(LineClass.METRIC, ((tables.METRIC_LINES, row),))


def _process(value: dict[str, Json], server_hint: str | None) -> Record:
    get = value.get
    row = (
        fields.int64(get("seq")),
        fields.required_text(get("state"), "state"),
        fields.int64(get("schema")),
        _time(value, "time_unix_nano"),
        fields.int64(get("spans_written")),
        fields.int64(get("records_dropped")),
        fields.int64(get("open_spans")),
        fields.int64(get("export_dropped")),
        fields.int64(get("export_failed")),
        _owner(value, server_hint),
    )
    return Record(LineClass.PROCESS, ((tables.PROCESS_LINES, row),))


_CONVERT: Final[dict[str, Callable[[dict[str, Json], str | None], Record]]] = {
    RecordType.SPAN: _span,
    RecordType.SPAN_START: _span,
    RecordType.LOG: _log,
    RecordType.METRIC: _metric,
    RecordType.PROCESS: _process,
}


def _time(value: dict[str, Json], field: str) -> int:
    time = value.get(field)
    if type(time) is int and 0 <= time < 2**63:
        return time
    raise InvalidRecordError(f"{field} is missing or not ns since 1970")


def _owner(value: dict[str, Json], server_hint: str | None) -> Owner:
    resource = fields.members(value.get("resource"))
    attributes = fields.members(resource.get("attributes"))
    if len(resource) == 1 and attributes.keys() == _SHORT_RESOURCE:
        service = attributes[semconv.SERVICE_NAME]
        instance_id = attributes[semconv.SERVICE_INSTANCE_ID]
        if isinstance(service, str) and isinstance(instance_id, str):
            return _short_owner(service, instance_id, server_hint)
    return fields.owner(resource, server_hint, by_pid=False)


@lru_cache(maxsize=4096)
def _short_owner(service: str, instance_id: str, server_hint: str | None) -> Owner:
    """Return the owner's columns of an ordinary line, which are the same for a whole process."""
    attributes = {semconv.SERVICE_NAME: service, semconv.SERVICE_INSTANCE_ID: instance_id}
    return fields.owner({"attributes": attributes}, server_hint, by_pid=False)
