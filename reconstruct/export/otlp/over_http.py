"""An OTLP receiver over http/protobuf."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import BadStatusLine
from typing import Any, Final, cast
from urllib.parse import urlsplit

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types
from opentelemetry.exporter.otlp.proto.http import Compression, trace_exporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from reconstruct.export.otlp.receiver import Answer, Ready, let_requests_through, taken

__all__ = ["HttpReceiver", "traces_url"]

let_requests_through(trace_exporter)

_TRACES_PATH: Final = "/v1/traces"
_CONTENT_REFUSALS: Final = frozenset({400, 413, 422})
"""Answers about what was sent rather than about who sends or where to."""
_NOT_HTTP: Final = (BadStatusLine, ConnectionResetError)
"""How a gRPC port answers HTTP/1.1."""
_WORDS: Final = 300
"""Characters of an answer's body that are repeated."""


class HttpReceiver:
    """Sends over one HTTP connection; `destination` is the URL that is posted to."""

    def __init__(
        self,
        *,
        endpoint: str | None,
        headers: Mapping[str, str] | None,
        timeout: float | None,
        compression: str | None,
    ) -> None:
        self._session = _ListeningSession()
        self._exporter = trace_exporter.OTLPSpanExporter(
            endpoint=traces_url(endpoint) if endpoint else None,
            headers=headers,
            timeout=timeout,
            compression=Compression(compression) if compression else None,
            session=self._session,
        )
        # The exporter knows best what the variables come to, but has no public word for it.
        self.destination = self._exporter._endpoint

    def send(self, request: ExportTraceServiceRequest, spans: int) -> Answer:
        """Send one request; see `Receiver`."""
        self._exporter.export(cast("Any", Ready(request, spans)))  # Any: see let_requests_through
        last = self._session.take_last()
        if isinstance(last, requests.Response):
            return _answer(last)
        return Answer("failed", self._silence(last))

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # OpenTelemetry's, untyped

    @staticmethod
    def _silence(error: Exception | None) -> str:
        if isinstance(error, requests.Timeout) or error is None:
            return "no answer in time; --timeout SECONDS waits longer"
        words = _innermost(error)
        if any(isinstance(cause, _NOT_HTTP) for cause in _causes(error)):
            return "what listens there hung up on HTTP; is it a gRPC port? --protocol grpc"
        if isinstance(error, requests.exceptions.SSLError):
            return f"{words}; for a receiver without TLS give an http:// endpoint"
        return words


class _ListeningSession(requests.Session):
    """Remembers how the last request ended."""

    def __init__(self) -> None:
        super().__init__()
        self._last: requests.Response | Exception | None = None

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:  # Any: requests' arguments
        """Do as a session does, but follow no redirect, and keep the result."""
        try:
            # Followed, a POST becomes a GET and headers with keys in them go elsewhere.
            self._last = response = super().request(*args, **{**kwargs, "allow_redirects": False})
        except requests.RequestException as error:
            self._last = error
            raise
        return response

    def take_last(self) -> requests.Response | Exception | None:
        """Hand out the last result, once; None where there was none since."""
        last, self._last = self._last, None
        return last


def traces_url(endpoint: str) -> str:
    """Complete an endpoint: `/v1/traces` is added where there is no path, http where no scheme."""
    url = endpoint if "://" in endpoint else f"http://{endpoint}"
    return url.rstrip("/") + _TRACES_PATH if urlsplit(url).path in {"", "/"} else url


def _answer(response: requests.Response) -> Answer:
    status = f"{response.status_code} {response.reason or ''}".rstrip()
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if 200 <= response.status_code < 300:
        if kind == "text/html":
            return Answer("failed", f"answered {status} with a web page: no OTLP receiver")
        body = ExportTraceServiceResponse()
        if kind == "application/x-protobuf":
            try:
                body.ParseFromString(response.content)
            except DecodeError:
                return Answer("taken", "its answer is not OTLP's; whether it kept all is not known")
        return taken(body)
    words = f"answered {status}"
    if said := _said(response, kind):
        words += f": {said}"
    if 300 <= response.status_code < 400:
        words += f"; it points to {response.headers.get('location', 'nowhere')}: give that endpoint"
    elif response.status_code == 404:
        words += f"; receivers usually take traces at {_TRACES_PATH}: check the endpoint's path"
    return Answer("refused" if response.status_code in _CONTENT_REFUSALS else "failed", words)


def _said(response: requests.Response, kind: str) -> str:
    """Take the receiver's own words out of the body: google.rpc.Status or text."""
    text = ""
    if kind == "application/x-protobuf":
        with suppress(DecodeError):
            text = Status.FromString(response.content).message
    elif kind != "text/html":
        text = " ".join(response.text.split())
    return text if len(text) <= _WORDS else text[:_WORDS] + "…"


def _innermost(error: BaseException) -> str:
    """Say what the network said, without the layers around it."""
    *_, deepest = _causes(error)
    text = getattr(deepest, "strerror", None) or str(deepest) or type(deepest).__name__
    return str(text)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
