"""What a receiver is asked and what it answers, over whichever protocol.

Requests go through OpenTelemetry's own exporters, so compression, TLS, retries and every
`OTEL_EXPORTER_OTLP_*` variable are theirs. They take SDK spans and say only whether it went well;
`Ready` lets a request through that is built already, and `Answer` keeps what the receiver said.
"""

from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, Protocol

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

__all__ = ["Answer", "Ready", "Receiver", "let_requests_through", "taken"]


@dataclass(frozen=True, slots=True)
class Answer:
    """How a request ended, and the receiver's or the network's words for it.

    `taken`: all but `rejected_spans` arrived. `refused`: not in this form; fewer spans may pass.
    `failed`: no request would arrive now.
    """

    outcome: Literal["taken", "refused", "failed"]
    words: str = ""
    rejected_spans: int = 0


class Receiver(Protocol):
    """An OTLP receiver."""

    destination: str
    """Where it is, for people."""

    def send(self, request: ExportTraceServiceRequest, spans: int) -> Answer:
        """Send one request of so many spans; takes the timeout at most, retries included."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class Ready:
    """A built request in the place of the SDK spans that an exporter expects."""

    def __init__(self, request: ExportTraceServiceRequest, spans: int) -> None:
        self.request = request
        self._spans = spans

    def __len__(self) -> int:
        return self._spans


def let_requests_through(exporter: ModuleType) -> None:
    """Make an exporter's module send a `Ready` as it is.

    The module's encoder is replaced for good: its exporters have no other door for a request that
    is built already, and anything else is encoded as before.
    """
    encode = exporter.encode_spans

    def pass_or_encode(spans: Any) -> Any:  # Any: as the exporter's own encoder, or Ready
        return spans.request if isinstance(spans, Ready) else encode(spans)

    exporter.encode_spans = pass_or_encode  # type: ignore[attr-defined]  # see above


def taken(response: ExportTraceServiceResponse) -> Answer:
    """Read what a receiver says beside 'taken': spans it rejected, or a warning."""
    partial = response.partial_success
    return Answer("taken", partial.error_message, partial.rejected_spans)
