"""OTLP over gRPC: one channel, requests that are bytes already."""

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import grpc  # type: ignore[import-untyped]  # ships no types
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # no types
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types

from reconstruct.export.otlp.settings import Target
from reconstruct.export.otlp.signals import KINDS
from reconstruct.export.otlp.transport import Answer, shortened

__all__ = ["GrpcTransport"]

_CODE: Final = grpc.StatusCode
_RETRYABLE: Final = frozenset(
    {
        _CODE.CANCELLED,
        _CODE.DEADLINE_EXCEEDED,
        _CODE.ABORTED,
        _CODE.OUT_OF_RANGE,
        _CODE.UNAVAILABLE,
        _CODE.DATA_LOSS,
    }
)
"""As OTLP has it; RESOURCE_EXHAUSTED only where the answer says when to come again."""
_ABOUT_CONTENT: Final = frozenset({_CODE.INVALID_ARGUMENT, _CODE.RESOURCE_EXHAUSTED})
_DETAILS: Final = "grpc-status-details-bin"
_OPTIONS: Final = (
    ("grpc.enable_retries", 0),
    ("grpc.primary_user_agent", "reconstruct"),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
_COMPRESSIONS: Final = {
    "none": grpc.Compression.NoCompression,
    "gzip": grpc.Compression.Gzip,
    "deflate": grpc.Compression.Deflate,
}

_FOR_EVER: Final = 1e8
"""Seconds that a clock can count to; more is for ever."""


class GrpcTransport:
    """Sends to one method of one receiver; see `Transport`. Raises `OSError` for files."""

    def __init__(self, target: Target) -> None:
        options = {"options": _OPTIONS, "compression": _COMPRESSIONS[target.compression]}
        if target.is_plain:
            self._channel = grpc.insecure_channel(target.url, **options)
        else:
            credentials = grpc.ssl_channel_credentials(
                _content(target.certificate),
                _content(target.client_key),
                _content(target.client_certificate),
            )
            self._channel = grpc.secure_channel(target.url, credentials, **options)
        self._kind = KINDS[target.signal]
        self._headers = tuple(target.headers.items())
        self._export = self._channel.unary_unary(
            self._kind.service, response_deserializer=self._kind.response.FromString
        )

    def send(self, request: bytes, seconds: float) -> Answer:
        """See `Transport`."""
        timeout = None if seconds > _FOR_EVER else seconds
        try:
            response = self._export(request, timeout=timeout, metadata=self._headers)
        except grpc.RpcError as error:
            return _answer(error)
        except ValueError as error:  # a header that is none
            return Answer("failed", f"gRPC takes no such header: {error}")
        partial = response.partial_success
        rejected = getattr(partial, self._kind.rejected)
        return Answer("taken", shortened(partial.error_message), rejected)

    def close(self) -> None:
        """See `Transport`."""
        self._channel.close()


def _content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None


def _answer(error: Any) -> Answer:  # Any: grpc.RpcError, untyped
    code, details = error.code(), shortened(error.details() or "")
    words = f"{code.name}: {details}" if details else str(code.name)
    wait = _wait_seconds(error)
    if code in _RETRYABLE or (code is _CODE.RESOURCE_EXHAUSTED and wait is not None):
        return Answer("busy", words + _hint(code, details), wait_seconds=wait)
    if code in _ABOUT_CONTENT:
        return Answer("refused", words)
    if code is _CODE.UNIMPLEMENTED:
        return Answer("unsupported", words + _hint(code, details))
    return Answer("failed", words + _hint(code, details))


def _wait_seconds(error: Any) -> float | None:  # Any: grpc.RpcError, untyped
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS:
            with suppress(DecodeError):
                for detail in Status.FromString(value).details:
                    info = RetryInfo()
                    if detail.Is(RetryInfo.DESCRIPTOR) and detail.Unpack(info):
                        delay = info.retry_delay
                        return float(max(delay.seconds + delay.nanos / 1e9, 0.0))
    return None


def _hint(code: Any, details: str) -> str:  # Any: grpc.StatusCode, untyped
    text = details.lower()
    if code is _CODE.UNIMPLEMENTED or "http" in text or "settings frame" in text:
        return "; is this an HTTP port? --protocol http/protobuf, or port 4317"
    if "handshake" in text or "ssl" in text or "tls" in text:
        return "; for a receiver without TLS give http://host:port, or --insecure"
    if "socket closed" in text or "reset" in text:
        return "; does it want TLS (https://)? is it an HTTP port (--protocol http/protobuf)?"
    return ""
