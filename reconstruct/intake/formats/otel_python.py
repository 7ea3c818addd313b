"""Console output of the OpenTelemetry SDK for Python, which is also NeMo Gym's.

Spans, log records and metrics, in the words of `ReadableSpan.to_json`, `LogRecord.to_json` and
`MetricsData.to_json`: ids with 0x, ISO times in microseconds, enum names. Scope, trace flags and
the remote-parent flag are not written there, so those columns stay empty.
"""

from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import Record
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row
from reconstruct.intake.times import to_unix_nano

__all__ = ["recognise"]

_TEMPORALITY: Final = {1: "DELTA", 2: "CUMULATIVE"}


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn an object of the SDK's console exporters into a record."""
    context = value.get("context")
    if isinstance(context, dict) and "trace_id" in context and "start_time" in value:
        return _span(value, context, server_hint)
    if "severity_number" in value and "body" in value and "timestamp" in value:
        return _log(value, server_hint)
    if isinstance(value.get("resource_metrics"), list):
        return _metrics(value, server_hint)
    return None


def _span(value: dict[str, Json], context: dict[str, Json], server_hint: str | None) -> Record:
    get = value.get
    end_time = get("end_time")
    is_start = end_time is None
    status = fields.members(get("status"))
    attributes = fields.members(get("attributes"))
    start = fields.required_time(to_unix_nano(get("start_time")), "start_time")
    end = None if is_start else fields.required_time(to_unix_nano(end_time), "end_time")
    row = (
        "span_start" if is_start else "span",
        None,
        fields.trace_id(context.get("trace_id")),
        fields.span_id(context.get("span_id")),
        fields.parent_span_id(get("parent_id")),
        fields.required_text(get("name"), "name"),
        fields.kind(get("kind")),
        start,
        end,
        None,
        _trace_state(context.get("trace_state")),
        None if is_start else fields.status_code(status.get("status_code")),
        fields.text(status.get("description")),
        fields.json_object(attributes),
        fields.json_list([_event(event) for event in _list(get("events"))]),
        fields.json_list([_link(link) for link in _list(get("links"))]),
        None,
        None,
        None,
        None,
        None,
        fields.rollout_id(attributes),
        _owner(value, server_hint),
    )
    line_class = LineClass.SPAN_START if is_start else LineClass.SPAN
    return Record(line_class, ((tables.SPAN_LINES, row),))


def _trace_state(value: Json) -> str | None:
    """The exporter writes the repr of a list of `key=value`; give the header's form back."""
    if not isinstance(value, str) or value in ("", "[]"):
        return None
    return ",".join(item.strip().strip("'\"") for item in value.strip("[]").split(", "))


def _event(value: Json) -> dict[str, Json]:
    event = fields.members(value)
    return {
        "time_unix_nano": to_unix_nano(event.get("timestamp")),
        "name": fields.text(event.get("name")),
        "attributes": fields.members(event.get("attributes")),
    }


def _link(value: Json) -> dict[str, Json]:
    link = fields.members(value)
    context = fields.members(link.get("context"))
    return {
        "trace_id": fields.trace_id(context.get("trace_id")),
        "span_id": fields.span_id(context.get("span_id")),
        "attributes": fields.members(link.get("attributes")),
    }


def _log(value: dict[str, Json], server_hint: str | None) -> Record:
    get = value.get
    attributes = fields.members(get("attributes"))
    if get("event_name"):
        attributes = attributes | {"event.name": get("event_name")}
    time = to_unix_nano(get("timestamp"))
    if time is None:
        time = to_unix_nano(get("observed_timestamp"))
    trace_id, span_id = get("trace_id"), get("span_id")
    has_span = isinstance(trace_id, str) and trace_id.removeprefix("0x").strip("0") != ""
    row = (
        None,
        fields.required_time(time, "timestamp"),
        fields.int64(get("severity_number")),
        fields.text(get("severity_text")),
        fields.json_value(get("body")),
        fields.json_object(attributes),
        fields.trace_id(trace_id) if has_span else None,
        fields.span_id(span_id) if has_span else None,
        fields.int64(get("trace_flags")) if has_span else None,
        fields.int64(get("dropped_attributes")),
        None,
        None,
        fields.rollout_id(attributes),
        _owner(value, server_hint),
    )
    return Record(LineClass.LOG, ((tables.LOG_LINES, row),))


def _metrics(value: dict[str, Json], server_hint: str | None) -> Record:
    rows: list[tuple[str, Row]] = []
    for resource_metrics in _list(value["resource_metrics"]):
        owner = _owner(fields.members(resource_metrics), server_hint)
        for scope_metrics in _list(fields.members(resource_metrics).get("scope_metrics")):
            scope = fields.members(fields.members(scope_metrics).get("scope"))
            for metric in _list(fields.members(scope_metrics).get("metrics")):
                for row in _points(fields.members(metric)):
                    names = (fields.text(scope.get("name")), fields.text(scope.get("version")))
                    rows.append((tables.METRIC_LINES, (*row, *names, owner)))
    return Record(LineClass.METRIC, tuple(rows))


def _points(metric: dict[str, Json]) -> list[Row]:
    data = fields.members(metric.get("data"))
    rows: list[Row] = []
    for item in _list(data.get("data_points")):
        point = fields.members(item)
        get = point.get
        row = (
            None,
            fields.required_text(metric.get("name"), "name"),
            fields.text(metric.get("description")),
            fields.text(metric.get("unit")),
            _metric_type(data, point),
            fields.boolean(data.get("is_monotonic")),
            _TEMPORALITY.get(fields.int64(data.get("aggregation_temporality")) or 0),
            fields.int64(get("start_time_unix_nano")),
            fields.required_time(fields.int64(get("time_unix_nano")), "time_unix_nano"),
            fields.json_object(get("attributes")),
            fields.float64(get("value")),
            fields.int64(get("count")),
            fields.float64(get("sum")),
            fields.float64(get("min")),
            fields.float64(get("max")),
            fields.json_list(get("bucket_counts")),
            fields.json_list(get("explicit_bounds")),
            fields.json_list([_exemplar(exemplar) for exemplar in _list(get("exemplars"))]),
        )
        rows.append(row)
    return rows


def _metric_type(data: dict[str, Json], point: dict[str, Json]) -> str:
    if "bucket_counts" in point:
        return "histogram"
    if "scale" in point:
        return "exponential_histogram"
    return "sum" if "is_monotonic" in data else "gauge"


def _exemplar(value: Json) -> dict[str, Json]:
    """The exporter writes the ids of exemplars as decimal integers."""
    exemplar = dict(fields.members(value))
    for field, digits in (("trace_id", 32), ("span_id", 16)):
        number = exemplar.get(field)
        if type(number) is int:
            exemplar[field] = format(number, f"0{digits}x")
    return exemplar


def _owner(value: dict[str, Json], server_hint: str | None) -> Owner:
    return fields.owner(fields.members(value.get("resource")), server_hint, by_pid=True)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
