"""Which of OpenTelemetry's exporters a signal goes through: its own variables count before all's.

`OTEL_EXPORTER_OTLP_LOGS_PROTOCOL` before `OTEL_EXPORTER_OTLP_PROTOCOL`, and likewise for traces
and metrics. An exporter is imported when it is needed: each takes most of a second.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from gymlog import settings
from gymlog.notices import notice
from gymlog.otlp.receiver import Receiver, Signal, quietly

if TYPE_CHECKING:
    from gymlog.otlp import over_grpc, over_http

    _MetricExporter = over_grpc.ListeningMetricExporter | over_http.ListeningMetricExporter

__all__ = ["metric_exporter_for", "receiver_for"]


def receiver_for(signal: Signal, most_seconds: float) -> Receiver:
    """Return the receiver that the environment names for a signal; nothing is sent yet.

    A request takes `most_seconds` at most, or what OTEL_EXPORTER_OTLP_TIMEOUT says if that is
    less. Raises whatever the exporter does when its variables make no sense; what it only
    complains about is one notice.
    """
    timeout = min(settings.OTLP_TIMEOUTS[signal].value(), most_seconds)
    make: Callable[[Signal, float], Receiver]
    if settings.OTLP_PROTOCOLS[signal].value() == "grpc":
        _silence_grpc()
        from gymlog.otlp.over_grpc import GrpcReceiver as make  # noqa: N813 - what makes one
    else:
        from gymlog.otlp.over_http import HttpReceiver as make  # noqa: N813 - what makes one
    with quietly() as complaints:
        receiver = make(signal, timeout)
    _repeat(complaints, signal)
    return receiver


def metric_exporter_for() -> "_MetricExporter":
    """Return the exporter that the environment names for metrics; raises as `receiver_for`."""
    timeout = settings.OTLP_TIMEOUTS["metrics"].value()
    make: Callable[..., _MetricExporter]
    if settings.OTLP_PROTOCOLS["metrics"].value() == "grpc":
        _silence_grpc()
        from gymlog.otlp.over_grpc import ListeningMetricExporter as make  # noqa: N813 - see above
    else:
        from gymlog.otlp.over_http import ListeningMetricExporter as make  # noqa: N813 - see above
    with quietly() as complaints:
        exporter = make(timeout=timeout)
    _repeat(complaints, "metrics")
    return exporter


def _repeat(complaints: list[str], signal: str) -> None:
    if complaints:
        notice(
            f"otlp variables {signal}",
            f"OTLP of {signal}: {'; '.join(complaints)}; check the OTEL_EXPORTER_OTLP_* variables",
        )


def _silence_grpc() -> None:
    """Keep gRPC's core, which is not Python, from writing to stderr; before its import."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
