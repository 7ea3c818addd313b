"""OpenTelemetry's exporter of metrics over OTLP, with an account of points that did not arrive."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData

from gymlog.notices import notice
from gymlog.otlp.protocols import metric_exporter_for
from gymlog.otlp.receiver import quietly

if TYPE_CHECKING:
    from gymlog.otlp.protocols import _MetricExporter

__all__ = ["metric_exporters"]


def metric_exporters(count_failed: Callable[[int], None]) -> list[MetricExporter]:
    """Return the exporters of this process; in a forked child call it again.

    `count_failed` is told how many points a receiver did not take. Where the variables make no
    sense there is one notice and no exporter.
    """
    try:
        exporter = metric_exporter_for()
    except Exception as error:  # noqa: BLE001 - the host must not notice
        notice(
            "otlp metrics",
            f"OTLP cannot be set up for metrics ({type(error).__name__}: {error}); check the "
            "OTEL_EXPORTER_OTLP_* variables",
        )
        return []
    return [_CountingExporter(exporter, count_failed)]


class _CountingExporter(MetricExporter):
    """Exports, and tells of what was lost."""

    def __init__(self, exporter: "_MetricExporter", count_failed: Callable[[int], None]) -> None:
        super().__init__(
            preferred_temporality=exporter._preferred_temporality,
            preferred_aggregation=exporter._preferred_aggregation,
        )
        self._exporter = exporter
        self._count_failed = count_failed

    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Export; FAILURE when anything was lost."""
        del kwargs
        points = sum(
            len(metric.data.data_points)
            for resource_metrics in metrics_data.resource_metrics
            for scope_metrics in resource_metrics.scope_metrics
            for metric in scope_metrics.metrics
        )
        outcome = self._exporter.send(metrics_data, points, timeout_millis)
        if not outcome.lost:
            return MetricExportResult.SUCCESS
        self._count_failed(outcome.lost)
        notice(
            "otlp metrics",
            f"points of metrics did not reach {self._exporter.destination}: {outcome.words}; "
            "they are counted in the process records (export_failed)",
        )
        return MetricExportResult.FAILURE

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Nothing is buffered."""
        del timeout_millis
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Let go of the connection."""
        del kwargs
        with quietly():
            self._exporter.shutdown(timeout_millis=timeout_millis)
