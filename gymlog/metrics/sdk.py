"""OpenTelemetry's SDK for metrics: its provider, and exporters that get gymlog's own ones too.

Loaded when a program makes an instrument, or exports by other means than lines; loading takes 0.1 s
or more. Sums and histograms come as differences (DELTA), counters that go both ways count
from the start.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value
from opentelemetry.sdk.metrics import (
    AlwaysOffExemplarFilter,
    AlwaysOnExemplarFilter,
    Counter,
    ExemplarFilter,
    MeterProvider,
    ObservableCounter,
    ObservableUpDownCounter,
    TraceBasedExemplarFilter,
    UpDownCounter,
)
from opentelemetry.sdk.metrics import Exemplar as SdkExemplar
from opentelemetry.sdk.metrics import Histogram as SdkHistogram
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    ExponentialHistogram,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricReader,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from gymlog.metrics.harvest import Harvest
from gymlog.metrics.lines import LineWriter
from gymlog.metrics.points import Exemplar, HistogramPoint, NumberPoint, Stream

__all__ = ["ExportingReader", "LineExporter", "meter_provider", "resource_from"]

_DELTA: Final = AggregationTemporality.DELTA
_CUMULATIVE: Final = AggregationTemporality.CUMULATIVE

_FILTERS: Final[dict[str, ExemplarFilter]] = {
    "always_on": AlwaysOnExemplarFilter(),
    "always_off": AlwaysOffExemplarFilter(),
    "trace_based": TraceBasedExemplarFilter(),
}


class LineExporter(MetricExporter):
    """Writes the SDK's points as `metric` lines."""

    def __init__(self, lines: LineWriter) -> None:
        super().__init__(
            preferred_temporality={
                Counter: _DELTA,
                ObservableCounter: _DELTA,
                SdkHistogram: _DELTA,
                UpDownCounter: _CUMULATIVE,
                ObservableUpDownCounter: _CUMULATIVE,
            }
        )
        self._lines = lines

    def export(
        self,
        metrics_data: MetricsData,
        timeout_millis: float = 10_000,
        **kwargs: object,
    ) -> MetricExportResult:
        """Write each point that says something new."""
        del timeout_millis, kwargs
        self._lines.write(
            _stream(metric)
            for resource_metrics in metrics_data.resource_metrics
            for scope_metrics in resource_metrics.scope_metrics
            for metric in scope_metrics.metrics
        )
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is buffered."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Nothing is held."""


def _stream(metric: Metric) -> Stream:
    data = metric.data
    kind = "gauge"
    if isinstance(data, Sum):
        kind = "sum"
    elif isinstance(data, Histogram):
        kind = "histogram"
    elif isinstance(data, ExponentialHistogram):
        kind = "exponential_histogram"
    return Stream(
        metric.name,
        metric.description or "",
        metric.unit or "",
        kind,
        getattr(data, "is_monotonic", False),
        getattr(data, "aggregation_temporality", None) == _DELTA,
        list(data.data_points),
    )


class ExportingReader(MetricReader):
    """Gives an exporter what the SDK has, and what gymlog measured itself, when `tick` is called.

    Without a harvest, only what the SDK has.
    """

    def __init__(self, exporter: MetricExporter, resource: Resource, *, has_own: bool) -> None:
        temporality = exporter._preferred_temporality or {}
        super().__init__(
            preferred_temporality=temporality,
            preferred_aggregation=exporter._preferred_aggregation,
        )
        self._exporter = exporter
        self._resource = resource
        is_delta = temporality.get(SdkHistogram) == _DELTA
        self._harvest = Harvest(is_delta=is_delta) if has_own else None
        self._received: MetricsData | None = None

    def tick(self, timeout_ms: float) -> None:
        """Collect and export; raises what the exporter raises."""
        self._received = None
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: FBT003 - OTel's
        try:
            self.collect(timeout_millis=timeout_ms)
            data = self._received
            if self._harvest is not None:
                data = _with_own(data, self._harvest.collect(), self._resource)
            if data is not None:
                self._exporter.export(data, timeout_millis=timeout_ms)
        finally:
            detach(token)

    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> None:
        del timeout_millis, kwargs
        self._received = metrics_data

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Export now."""
        self.tick(timeout_millis)
        return self._exporter.force_flush(timeout_millis)

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Shut the exporter down; the last export is the caller's business."""
        del kwargs
        self._exporter.shutdown(timeout_millis=timeout_millis)


def _with_own(
    data: MetricsData | None, streams: Sequence[Stream], resource: Resource
) -> MetricsData | None:
    """Return `data` and gymlog's own streams together."""
    if not streams:
        return data
    own = ScopeMetrics(InstrumentationScope("gymlog"), [_metric(one) for one in streams], "")
    resource_metrics = list(data.resource_metrics) if data is not None else []
    return MetricsData([*resource_metrics, ResourceMetrics(resource, [own], "")])


def _metric(stream: Stream) -> Metric:
    temporality = _DELTA if stream.is_delta else _CUMULATIVE
    data: Sum | Gauge | Histogram
    if stream.type == "histogram":
        data = Histogram([_histogram_point(point) for point in stream.points], temporality)
    else:
        points = [_number_point(point) for point in stream.points]
        data = Gauge(points) if stream.type == "gauge" else Sum(
            points, temporality, stream.is_monotonic
        )  # fmt: skip
    return Metric(stream.name, stream.description, stream.unit, data)


def _number_point(point: NumberPoint) -> NumberDataPoint:
    return NumberDataPoint(
        dict(point.attributes), point.start_time_unix_nano or 0, point.time_unix_nano, point.value
    )


def _histogram_point(point: HistogramPoint) -> HistogramDataPoint:
    return HistogramDataPoint(
        dict(point.attributes),
        point.start_time_unix_nano,
        point.time_unix_nano,
        point.count,
        point.sum,
        point.bucket_counts,
        point.explicit_bounds,
        point.min,
        point.max,
        list(_exemplars(point.exemplars)),
    )


def _exemplars(exemplars: Iterable[Exemplar]) -> Iterable[SdkExemplar]:
    for one in exemplars:
        yield SdkExemplar({}, one.value, one.time_unix_nano, one.span_id, one.trace_id)


def meter_provider(
    readers: Sequence[MetricReader], resource: Resource, exemplar_filter: str
) -> MeterProvider:
    """Return a provider of the SDK that leaves its end to its owner."""
    return MeterProvider(
        readers, resource, exemplar_filter=_FILTERS[exemplar_filter], shutdown_on_exit=False
    )


def resource_from(attributes: Mapping[str, Any]) -> Resource:  # Any: one JSON value
    """Return a process's resource as the SDK's."""
    scalars = (str, bool, int, float)
    return Resource(
        {key: value if isinstance(value, scalars) else str(value)
         for key, value in attributes.items()}
    )  # fmt: skip
