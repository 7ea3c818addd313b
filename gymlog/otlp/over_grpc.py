"""OTLP over gRPC, through OpenTelemetry's exporters, with an ear for what the receiver answers."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # ships no types
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics.export import MetricsData

from gymlog.otlp.receiver import Outcome, Ready, Signal, outcome_of, quietly

__all__ = ["GrpcReceiver", "ListeningMetricExporter"]

_WORDS: Final = 300
"""Characters of an answer that are repeated."""

Heard = Any  # Any: a response, grpc's untyped RpcError, or None


class _Ear:
    """Hears how the calls of an exporter end."""

    heard: Heard = None

    def listen(self, stub: Any) -> "_Stub":  # Any: OpenTelemetry's generated stub
        """Return a stub whose calls are heard."""
        return _Stub(stub, self._hear)

    def _hear(self, result: Heard) -> None:
        self.heard = result

    def outcome(self, count: int) -> Outcome:
        """Say what came of `count` records, by the last answer."""
        heard, self.heard = self.heard, None
        if heard is None:
            return Outcome(count, "no answer in time")
        if isinstance(heard, grpc.RpcError):
            details = " ".join((heard.details() or "").split())
            return Outcome(count, f"{heard.code().name}: {details}"[:_WORDS])
        return outcome_of(heard, count)


class _Stub:
    """Tells how each call ended, then lets it end so."""

    def __init__(self, stub: Any, hear: Callable[[Heard], None]) -> None:  # Any: a generated stub
        self._stub = stub
        self._hear = hear

    def Export(self, **arguments: Any) -> Any:  # noqa: N802 - the service's own name; Any: gRPC's
        try:
            response = self._stub.Export(**arguments)
        except grpc.RpcError as error:
            self._hear(error)
            raise
        self._hear(response)
        return response


class _SpanExporter(_Ear, OTLPSpanExporter):
    def _initialize_channel_and_stub(self) -> None:  # also called when it connects anew
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]  # OpenTelemetry's
        self._client: Any = self.listen(self._client)  # Any: a stub

    def _translate_data(self, data: Any) -> Any:  # Any: always Ready
        return data.request


class _LogExporter(_Ear, OTLPLogExporter):
    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]  # OpenTelemetry's
        self._client: Any = self.listen(self._client)  # Any: a stub

    def _translate_data(self, data: Any) -> Any:  # Any: always Ready
        return data.request


class ListeningMetricExporter(_Ear, OTLPMetricExporter):
    """OpenTelemetry's exporter of metrics that says how an export ended."""

    def _initialize_channel_and_stub(self) -> None:
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]  # OpenTelemetry's
        self._client: Any = self.listen(self._client)  # Any: a stub

    def send(self, data: MetricsData, count: int, timeout_ms: float) -> Outcome:
        """Export `count` points."""
        self.heard = None
        with quietly():
            super().export(data, timeout_millis=timeout_ms)
        return self.outcome(count)

    @property
    def destination(self) -> str:
        """Where it sends, for people."""
        return _destination(self)


class GrpcReceiver:
    """Sends the requests of one signal over one gRPC channel."""

    def __init__(self, signal: Signal, timeout: float) -> None:
        exporters: dict[Signal, Any] = {"traces": _SpanExporter, "logs": _LogExporter}  # Any: both
        self._exporter = exporters[signal](timeout=timeout)
        self.destination = _destination(self._exporter)

    def send(self, request: Any, count: int) -> Outcome:  # Any: a request of the signal
        """Send one request; see `Receiver`."""
        self._exporter.heard = None
        ready: Sequence[Any] | Ready = Ready(request, count)  # Any: what the exporter expects
        self._exporter.export(ready)
        return self._exporter.outcome(count)  # type: ignore[no-any-return]  # of an _Ear

    def close(self) -> None:
        """Close the channel."""
        self._exporter.shutdown()


def _destination(exporter: Any) -> str:  # Any: an exporter of any signal
    # The exporter knows best what the variables come to, but has no public word for it.
    return f"{exporter._endpoint} ({'gRPC' if exporter._insecure else 'gRPC with TLS'})"
