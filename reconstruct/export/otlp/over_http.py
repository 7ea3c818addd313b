"""OTLP over HTTP, as protobuf or JSON, on one connection that is kept."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import BadStatusLine
from pathlib import Path
from typing import Any, Final

import orjson
import requests
import urllib3
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships no types

from reconstruct.export.otlp.settings import Target
from reconstruct.export.otlp.signals import KINDS
from reconstruct.export.otlp.transport import Answer, form_of, shortened

__all__ = ["HttpTransport"]

_RETRYABLE: Final = frozenset({429, 502, 503, 504})
_ABOUT_CONTENT: Final = frozenset({400, 413, 422})
"""Answers about what was sent rather than about who sends or where to."""
_NO_SUCH_SIGNAL: Final = frozenset({404, 405, 501})
_NOT_HTTP: Final = (BadStatusLine, ConnectionResetError)
"""How a gRPC port answers HTTP/1.1."""
_PROTOBUF: Final = "application/x-protobuf"
_JSON: Final = "application/json"
_ANSWER_BYTES: Final = 1 << 20
"""No answer of a receiver is longer."""
_GZIP_LEVEL: Final = 6
_FOR_EVER: Final = 1e8


class HttpTransport:
    """Posts to one URL; see `Transport`. Raises `OSError` for files that cannot be read."""

    def __init__(self, target: Target) -> None:
        for path in (target.certificate, target.client_certificate, target.client_key):
            if path:
                Path(path).read_bytes()
        self._url = target.url
        self._kind = KINDS[target.signal]
        self._compression = target.compression
        self._session = requests.Session()
        self._session.auth = _as_it_is
        self._verify = target.certificate or True
        if target.client_certificate:
            certificate, key = target.client_certificate, target.client_key
            self._session.cert = (certificate, key) if key else certificate
        self._session.headers.update(
            {"content-type": form_of(target).content_type, "user-agent": "reconstruct"}
        )
        if target.compression != "none":
            self._session.headers["content-encoding"] = target.compression
        self._session.headers.update(target.headers)

    def send(self, request: bytes, seconds: float) -> Answer:
        """See `Transport`."""
        if self._compression == "gzip":
            request = gzip.compress(request, _GZIP_LEVEL)
        elif self._compression == "deflate":
            request = zlib.compress(request)
        timeout: Any = urllib3.Timeout(total=seconds if seconds < _FOR_EVER else None)
        try:
            # Followed, a POST becomes a GET and headers with keys in them go elsewhere. A CA that
            # the session trusts would give way to REQUESTS_CA_BUNDLE.
            with self._session.post(
                self._url,
                data=request,
                timeout=timeout,
                allow_redirects=False,
                stream=True,
                verify=self._verify,
            ) as response:
                body = response.raw.read(_ANSWER_BYTES, decode_content=True) or b""
                return self._answer(response, body)
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            return _silence(error)
        except ValueError as error:  # a header that is none
            return Answer("failed", f"HTTP takes no such request: {error}")

    def close(self) -> None:
        """See `Transport`."""
        self._session.close()

    def _answer(self, response: requests.Response, body: bytes) -> Answer:
        code = response.status_code
        status = f"{code} {response.reason or ''}".rstrip()
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if 200 <= code < 300:
            if kind == "text/html":
                return Answer("failed", f"answered {status} with a web page: no OTLP receiver")
            return self._taken(kind, body)
        words = f"answered {status}"
        if said := _said(kind, body):
            words += f": {said}"
        if code in _RETRYABLE:
            return Answer("busy", words, wait_seconds=_wait_seconds(response))
        if code in _ABOUT_CONTENT:
            return Answer("refused", words)
        if 300 <= code < 400:
            where = response.headers.get("location", "nowhere")
            return Answer("failed", f"{words}; it points to {where}: give that endpoint")
        if code in _NO_SUCH_SIGNAL:
            words += f" (tried {self._url}); check the endpoint's path"
            return Answer("unsupported", words)
        return Answer("failed", words)

    def _taken(self, kind: str, body: bytes) -> Answer:
        unread = Answer("taken", "its answer is not OTLP's; whether it kept all is not known")
        try:
            if kind == _PROTOBUF:
                partial = self._kind.response.FromString(body).partial_success
                words, rejected = partial.error_message, getattr(partial, self._kind.rejected)
            elif kind == _JSON and body.strip():
                said = orjson.loads(body).get("partialSuccess") or {}
                first, *rest = self._kind.rejected.split("_")
                name = first + "".join(map(str.capitalize, rest))
                words, rejected = str(said.get("errorMessage", "")), int(said.get(name, 0))
            else:
                return Answer("taken")
        except (DecodeError, ValueError, AttributeError, TypeError):
            return unread
        return Answer("taken", shortened(words), rejected)


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keep passwords in ~/.netrc from taking the place of the Authorization header."""
    return request


def _said(kind: str, body: bytes) -> str:
    """Take the receiver's own words out of the body: google.rpc.Status or text."""
    text = ""
    if kind == _PROTOBUF:
        with suppress(DecodeError):
            text = Status.FromString(body).message
    elif kind == _JSON:
        text = body.decode("utf-8", "replace")
        with suppress(ValueError, AttributeError):
            text = str(orjson.loads(body).get("message") or text)
    elif kind != "text/html":
        text = body.decode("utf-8", "replace")
    return shortened(text)


def _wait_seconds(response: requests.Response) -> float | None:
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    with suppress(ValueError, TypeError):
        time = parsedate_to_datetime(text)
        now = datetime.now(UTC)
        return max((time.replace(tzinfo=time.tzinfo or UTC) - now).total_seconds(), 0.0)
    return None


def _silence(error: Exception) -> Answer:
    if isinstance(error, requests.exceptions.SSLError) or "SSL" in type(error).__name__:
        words = f"{_innermost(error)}; for a receiver without TLS give an http:// endpoint"
        return Answer("failed", words)
    timeouts = (requests.Timeout, urllib3.exceptions.TimeoutError)
    if isinstance(error, timeouts):
        return Answer("busy", "no answer in time; --timeout SECONDS waits longer")
    if any(isinstance(cause, _NOT_HTTP) for cause in _causes(error)):
        words = "what listens there hung up on HTTP; is it a gRPC port? --protocol grpc"
        return Answer("busy", words)
    if isinstance(error, requests.exceptions.InvalidHeader | requests.exceptions.InvalidURL):
        return Answer("failed", str(error))
    return Answer("busy", _innermost(error))


def _innermost(error: BaseException) -> str:
    """Say what the network said, without the layers around it."""
    *_, deepest = _causes(error)
    text = getattr(deepest, "strerror", None) or str(deepest) or type(deepest).__name__
    return shortened(str(text))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
