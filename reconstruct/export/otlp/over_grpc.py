"""An OTLP receiver over gRPC."""

from collections.abc import Mapping
from typing import Any, Final, cast

import grpc  # type: ignore[import-untyped]  # ships no types
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from reconstruct.export.otlp.receiver import Answer, Ready, let_requests_through, taken

__all__ = ["GrpcReceiver"]

let_requests_through(trace_exporter)

_CONTENT_REFUSALS: Final = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.OUT_OF_RANGE,
    }
)
"""Answers about what was sent rather than about who sends or where to."""
_WORTH_A_RETRY: Final = frozenset(
    {
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""As OTLP has it, without RESOURCE_EXHAUSTED: here that is a message over the receiver's limit."""


class GrpcReceiver:
    """Sends over one gRPC channel; `destination` names host, port and whether there is TLS."""

    def __init__(
        self,
        *,
        endpoint: str | None,
        headers: Mapping[str, str] | None,
        insecure: bool | None,
        timeout: float | None,
        compression: str | None,
    ) -> None:
        self._exporter = _ListeningExporter(
            endpoint=endpoint,
            headers=dict(headers) if headers else None,
            insecure=insecure,
            timeout=timeout,
            compression=_COMPRESSIONS[compression] if compression else None,
            retryable_error_codes=_WORTH_A_RETRY,
        )
        # The exporter knows best what the variables come to, but has no public word for it.
        transport = "gRPC" if self._exporter._insecure else "gRPC with TLS"
        self.destination = f"{self._exporter._endpoint} ({transport})"

    def send(self, request: ExportTraceServiceRequest, spans: int) -> Answer:
        """Send one request; see `Receiver`."""
        self._exporter.export(cast("Any", Ready(request, spans)))  # Any: see let_requests_through
        last = self._exporter.take_last()
        if isinstance(last, ExportTraceServiceResponse):
            return taken(last)
        if last is None:
            return Answer("failed", "no answer in time; --timeout SECONDS waits longer")
        details = " ".join((last.details() or "").split())
        words = f"{last.code().name}: {details}" if details else str(last.code().name)
        if last.code() in _CONTENT_REFUSALS:
            return Answer("refused", words)
        return Answer("failed", words + _hint(last.code(), details))

    def close(self) -> None:
        """Close the channel."""
        self._exporter.shutdown()


def _hint(code: grpc.StatusCode, details: str) -> str:
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return "; --timeout SECONDS waits longer"
    if code is grpc.StatusCode.UNIMPLEMENTED or "http" in details.lower():
        return "; is this an HTTP port? --protocol http/protobuf, or port 4317"
    if "handshake" in details.lower():
        return "; for a receiver without TLS give http://host:port, or --insecure"
    return ""


_COMPRESSIONS: Final = {
    "none": grpc.Compression.NoCompression,
    "gzip": grpc.Compression.Gzip,
    "deflate": grpc.Compression.Deflate,
}


class _ListeningExporter(trace_exporter.OTLPSpanExporter):
    """Remembers how the last call ended."""

    _last: Any = None  # Any: a response or grpc's untyped RpcError

    def _initialize_channel_and_stub(self) -> None:
        # Also called by the exporter when it reconnects, so this is where to listen in.
        super()._initialize_channel_and_stub()  # type: ignore[no-untyped-call]  # OpenTelemetry's
        self._client = cast("Any", _ListeningStub(self._client, self._heard))  # Any: a stub

    def _heard(self, result: Any) -> None:  # Any: as _last
        self._last = result

    def take_last(self) -> Any:  # Any: as _last
        """Hand out the last result, once; None where there was none since."""
        last, self._last = self._last, None
        return last


class _ListeningStub:
    """Tells how each call ended, then lets it end so."""

    def __init__(self, stub: Any, heard: Any) -> None:  # Any: OpenTelemetry's generated stub
        self._stub = stub
        self._heard = heard

    def Export(  # noqa: N802  # the service's own name for it
        self,
        **arguments: Any,  # Any: the stub's arguments
    ) -> ExportTraceServiceResponse:
        try:
            response: ExportTraceServiceResponse = self._stub.Export(**arguments)
        except grpc.RpcError as error:
            self._heard(error)
            raise
        self._heard(response)
        return response
