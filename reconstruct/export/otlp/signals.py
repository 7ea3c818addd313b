"""Log records and metric points as OTLP says them, and what the three signals are called.

A number of a metric is a double here, since the relation holds doubles. Exponential histograms are
histograms with bounds by the time they are read; a quantile of a summary goes as a gauge.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Exemplar,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    Sum,
    Summary,
    SummaryDataPoint,
)

from reconstruct.export.otlp.encoding import (
    Unsendable,
    any_value,
    attribute_pairs,
    identity,
    parsed,
    span_message,
)
from reconstruct.export.otlp.settings import Signal

__all__ = ["KINDS", "Kind", "log_message", "metric_message"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
Json = Any  # Any: whatever JSON can hold

_UNSPECIFIED: Final = AggregationTemporality.AGGREGATION_TEMPORALITY_UNSPECIFIED
_TEMPORALITIES: Final = {
    "DELTA": AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA,
    "CUMULATIVE": AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A signal's names in OTLP and how its rows become messages."""

    noun: str
    message: Callable[[Row], Message]
    service: str
    response: type[Message]
    rejected: str
    """Field of partial_success that counts what was rejected."""
    resources: str
    scopes: str
    records: str
    """Names of the lists of a request in JSON."""


def log_message(row: Row) -> LogRecord:
    """Build OTLP's log record of a row; raise `Unsendable` where OTLP cannot say it."""
    try:
        return LogRecord(
            time_unix_nano=row["time_unix_nano"] or 0,
            severity_number=SeverityNumber.ValueType(row["severity_number"] or 0),
            severity_text=row["severity_text"],
            body=None if row["body"] is None else any_value(parsed(row["body"])),
            attributes=attribute_pairs(parsed(row["attributes"])),
            dropped_attributes_count=row["dropped_attributes_count"],
            flags=row["flags"] or 0,
            trace_id=identity(row["trace_id"], 16) if row["trace_id"] else b"",
            span_id=identity(row["span_id"], 8) if row["span_id"] else b"",
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unsendable(str(error)) from error


def metric_message(row: Row) -> Metric:
    """Build OTLP's metric of one point; raise `Unsendable` where OTLP cannot say it."""
    try:
        return Metric(
            name=row["name"],
            description=row["description"],
            unit=row["unit"],
            **_data(row),
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unsendable(str(error)) from error


def _data(row: Row) -> dict[str, Any]:  # Any: one of OTLP's kinds of metrics
    point: dict[str, Any] = {  # Any: as the fields of a point
        "start_time_unix_nano": row["start_time_unix_nano"] or 0,
        "time_unix_nano": row["time_unix_nano"] or 0,
        "attributes": attribute_pairs(parsed(row["attributes"])),
    }
    temporality = _TEMPORALITIES.get(row["aggregation_temporality"], _UNSPECIFIED)
    kind = row["type"]
    if kind == "summary" and row["value"] is None:
        summary = SummaryDataPoint(count=row["count"] or 0, sum=row["sum"] or 0.0, **point)
        return {"summary": Summary(data_points=[summary])}
    exemplars = [_exemplar(each) for each in parsed(row["exemplars"]) or ()]
    if kind in {"histogram", "exponential_histogram"}:
        histogram = HistogramDataPoint(
            count=row["count"] or 0,
            sum=row["sum"],
            min=row["min"],
            max=row["max"],
            bucket_counts=parsed(row["bucket_counts"]),
            explicit_bounds=parsed(row["explicit_bounds"]),
            exemplars=exemplars,
            **point,
        )
        return {
            "histogram": Histogram(data_points=[histogram], aggregation_temporality=temporality)
        }
    number = NumberDataPoint(as_double=row["value"], exemplars=exemplars, **point)
    if kind == "sum":
        monotonic = bool(row["is_monotonic"])
        sum_ = Sum(
            data_points=[number], aggregation_temporality=temporality, is_monotonic=monotonic
        )
        return {"sum": sum_}
    if kind in {"gauge", "summary"}:
        return {"gauge": Gauge(data_points=[number])}
    raise ValueError(f"no metric of OTLP is a {kind}")


def _exemplar(exemplar: Mapping[str, Json]) -> Exemplar:
    return Exemplar(
        time_unix_nano=exemplar.get("time_unix_nano", 0),
        as_double=exemplar.get("value", 0.0),
        filtered_attributes=attribute_pairs(
            exemplar.get("filtered_attributes") or exemplar.get("attributes")
        ),
        trace_id=identity(exemplar["trace_id"], 16) if exemplar.get("trace_id") else b"",
        span_id=identity(exemplar["span_id"], 8) if exemplar.get("span_id") else b"",
    )


_SERVICE: Final = "opentelemetry.proto.collector"
KINDS: Final[Mapping[Signal, Kind]] = {
    "traces": Kind(
        "span",
        span_message,
        f"/{_SERVICE}.trace.v1.TraceService/Export",
        ExportTraceServiceResponse,
        "rejected_spans",
        "resourceSpans",
        "scopeSpans",
        "spans",
    ),
    "logs": Kind(
        "log record",
        log_message,
        f"/{_SERVICE}.logs.v1.LogsService/Export",
        ExportLogsServiceResponse,
        "rejected_log_records",
        "resourceLogs",
        "scopeLogs",
        "logRecords",
    ),
    "metrics": Kind(
        "metric point",
        metric_message,
        f"/{_SERVICE}.metrics.v1.MetricsService/Export",
        ExportMetricsServiceResponse,
        "rejected_data_points",
        "resourceMetrics",
        "scopeMetrics",
        "metrics",
    ),
}
