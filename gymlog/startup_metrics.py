"""The metrics of starts: how long servers take to be ready, stage by stage, and how many are.

Names and attributes are NeMo Gym's published ones; times are ms, in buckets that reach an hour.
Each is measured whatever span groups are open, and leads to its span where there is one. Without
metrics a call does nothing.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

from gymlog.semconv import STARTUP_STAGE
from gymlog.setup import get_telemetry
from gymlog.timeline import Stage, Timeline

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter, _Gauge
    from opentelemetry.util.types import AttributeValue

__all__ = ["record_server", "record_stages", "set_active"]

_NS_PER_MS: Final = 1_000_000

_BOUNDS_MS: Final = (
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000,
)  # fmt: skip


def record_server(timeline: Timeline, attributes: "Mapping[str, AttributeValue]") -> None:
    """Record how long a server took from its spawn until it answered."""
    meter = _meter()
    if meter is not None:
        name = "gym.server.startup_duration_ms"
        histogram = _histogram(meter, name, "From the spawn of a server until it answers.")
        _record(histogram, timeline, attributes)


def record_stages(timeline: Timeline, attributes: "Mapping[str, AttributeValue]") -> None:
    """Record how long each stage of a server's start took."""
    meter = _meter()
    if meter is not None:
        name = "gym.server.startup_stage_duration_ms"
        histogram = _histogram(meter, name, "Duration of one stage of a server's start.")
        for stage in timeline.stages:
            _record(histogram, stage, {**attributes, STARTUP_STAGE: stage.name})


def set_active(count: int) -> None:
    """Set how many servers were ready and have not stopped."""
    meter = _meter()
    if meter is not None:
        _gauge(meter).set(count)


def _meter() -> "Meter | None":
    handle = get_telemetry()
    return handle.meter if handle is not None and handle.config.metrics_enabled else None


def _record(
    histogram: "Histogram", lasted: Timeline | Stage, attributes: "Mapping[str, AttributeValue]"
) -> None:
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context

    context = Context() if lasted.span is None else set_span_in_context(lasted.span, Context())
    histogram.record((lasted.ended_ns - lasted.began_ns) / _NS_PER_MS, attributes, context)


@cache
def _histogram(meter: "Meter", name: str, description: str) -> "Histogram":
    return meter.create_histogram(
        name, unit="ms", description=description, explicit_bucket_boundaries_advisory=_BOUNDS_MS
    )


@cache
def _gauge(meter: "Meter") -> "_Gauge":
    return meter.create_gauge(
        "gym.servers.active",
        unit="{server}",
        description="Servers that were ready and have not stopped.",
    )
