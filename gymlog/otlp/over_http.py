"""OTLP over http/protobuf, through OpenTelemetry's exporters, with an ear for the answer."""

from types import ModuleType
from typing import Any, Final

import requests
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]  # no types
from opentelemetry.exporter.otlp.proto.http import _log_exporter as log_exporter
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics.export import MetricsData

from gymlog.otlp.receiver import Outcome, Ready, Signal, outcome_of, quietly

__all__ = ["HttpReceiver", "ListeningMetricExporter"]

_WORDS: Final = 300
"""Characters of an answer that are repeated."""


def _let_requests_through(exporter: ModuleType, encoder: str) -> None:
    """Make an exporter's module send a `Ready` as it is.

    Its encoder is replaced for good: its exporters have no other door for a request that is built
    already, and anything else is encoded as before.
    """
    encode = getattr(exporter, encoder)

    def pass_or_encode(data: Any) -> Any:  # Any: as the exporter's own encoder, or Ready
        return data.request if isinstance(data, Ready) else encode(data)

    setattr(exporter, encoder, pass_or_encode)


_let_requests_through(trace_exporter, "encode_spans")
_let_requests_through(log_exporter, "encode_logs")


class _Session(requests.Session):
    """Remembers how the last request ended."""

    def __init__(self, response: type[Message]) -> None:
        super().__init__()
        self._response = response
        self._last: requests.Response | Exception | None = None

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # Any: requests' arguments
        """Do as a session does, but follow no redirect, and keep the result."""
        try:
            # Followed, a POST becomes a GET and headers with keys in them go elsewhere.
            self._last = response = super().request(*args, **{**kwargs, "allow_redirects": False})
        except Exception as error:
            self._last = error
            raise
        return response

    def outcome(self, count: int) -> Outcome:
        """Say what came of `count` records, by the last answer."""
        last, self._last = self._last, None
        if last is None or isinstance(last, requests.Timeout):
            return Outcome(count, "no answer in time")
        if isinstance(last, Exception):
            return Outcome(count, _innermost(last)[:_WORDS])
        kind = last.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not 200 <= last.status_code < 300 or kind == "text/html":
            said = "" if kind in ("text/html", "application/x-protobuf") else last.text
            words = f"answered {last.status_code} {last.reason or ''} {said}"
            return Outcome(count, " ".join(words.split())[:_WORDS])
        if kind != "application/x-protobuf":
            return Outcome(0)
        try:
            return outcome_of(self._response.FromString(last.content), count)
        except DecodeError:
            return Outcome(0)


_SIGNALS: Final[dict[Signal, Any]] = {  # Any: an exporter's class, a response's class
    "traces": (trace_exporter.OTLPSpanExporter, ExportTraceServiceResponse),
    "logs": (log_exporter.OTLPLogExporter, ExportLogsServiceResponse),
}


class HttpReceiver:
    """Posts the requests of one signal over one HTTP connection."""

    def __init__(self, signal: Signal, timeout: float) -> None:
        exporter, response = _SIGNALS[signal]
        self._session = _Session(response)
        self._exporter = exporter(timeout=timeout, session=self._session)
        # The exporter knows best what the variables come to, but has no public word for it.
        self.destination: str = self._exporter._endpoint

    def send(self, request: Any, count: int) -> Outcome:  # Any: a request of the signal
        """Send one request; see `Receiver`."""
        self._exporter.export(Ready(request, count))
        return self._session.outcome(count)

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()


class ListeningMetricExporter(OTLPMetricExporter):
    """OpenTelemetry's exporter of metrics that says how an export ended."""

    def __init__(self, *, timeout: float) -> None:
        self._listening = _Session(ExportMetricsServiceResponse)
        super().__init__(timeout=timeout, session=self._listening)

    def send(self, data: MetricsData, count: int, timeout_ms: float) -> Outcome:
        """Export `count` points."""
        with quietly():
            super().export(data, timeout_millis=timeout_ms)
        return self._listening.outcome(count)

    @property
    def destination(self) -> str:
        """Where it sends, for people."""
        return self._endpoint


def _innermost(error: BaseException) -> str:
    """Say what the network said, without the layers around it."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)
