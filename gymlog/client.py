"""The egress: `request`, the one way out of a gym's server.

Pooled connections, JSON encoded once, lost connections tried again. With telemetry on,
`client_span` adds a CLIENT span and the trace context; with telemetry off the same request is
sent without either, and nothing of OpenTelemetry is imported.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple

import aiohttp
import orjson
from aiohttp.typedefs import StrOrURL
from multidict import CIMultiDict

from gymlog import sites
from gymlog.client_session import close_sessions, current_session
from gymlog.metrics import instruments
from gymlog.notices import notice
from gymlog.redaction import scrub_url

__all__ = ["close_sessions", "request"]

RETRY_SECONDS: Final = 0.5
"""Pause before a request is sent again."""

MAX_TRIES: Final = 3
"""Failures that are no lost connection, of a request to the outside, until it is given up."""

_REPORT_EVERY: Final = 100
_LOST_CONNECTION: Final = (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)
_FINAL: Final = (
    aiohttp.ClientResponseError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
    aiohttp.RedirectClientError,
)
"""An answer, or the caller's mistake: the same would come again."""

_retries = 0


async def request(
    method: str,
    url: StrOrURL,
    _internal: bool = False,  # noqa: FBT001, FBT002 - the published signature
    _max_connection_retries: int | None = None,
    _server_name: str | None = None,
    _max_num_tries: int | None = None,
    **aiohttp_kwargs: Any,  # Any: aiohttp's own keyword arguments
) -> aiohttp.ClientResponse:
    """Send a request and return its response, whose body is the caller's to read.

    A lost connection is tried again every 0.5 s, `_max_connection_retries` times or for ever. Other
    failures (timeouts, broken answers) are tried again for ever when `_internal`, else the third
    one is raised. `_max_num_tries` bounds both. An answer is never asked for again, whatever its
    status, nor is a request that was cancelled or whose body cannot be sent twice (a stream).
    `_server_name` is whom to name in what is said about retries. Raises what aiohttp raises.
    """
    _encode_json(aiohttp_kwargs)
    patience = _Patience(_internal, _max_connection_retries, _max_num_tries)
    sending = _send(method, url, aiohttp_kwargs, patience, _server_name)
    tracer = sites.installed_tracer()
    if tracer is None and not instruments.are_on:
        return await sending
    return await _send_traced()(tracer, method, url, _server_name, sending)


@functools.cache
def _send_traced() -> Callable[..., Coroutine[Any, Any, aiohttp.ClientResponse]]:  # Any: async def
    from gymlog.client_span import send_traced

    return send_traced


class _Patience(NamedTuple):
    """How often a request is tried."""

    is_internal: bool
    max_connection_retries: int | None
    max_tries: int | None

    def is_over(self, failure: Exception, lost_connections: int, others: int) -> bool:
        if isinstance(failure, _FINAL):
            return True
        if self.max_tries is not None and lost_connections + others >= self.max_tries:
            return True
        if isinstance(failure, _LOST_CONNECTION):
            limit = self.max_connection_retries
            return limit is not None and lost_connections > limit
        return not self.is_internal and others >= MAX_TRIES


async def _send(
    method: str,
    url: StrOrURL,
    options: Mapping[str, Any],  # Any: aiohttp's own keyword arguments
    patience: _Patience,
    server_name: str | None,
) -> aiohttp.ClientResponse:
    lost_connections = others = 0
    while True:
        session = await current_session()
        try:
            return await session.request(method, url, **options)
        except (aiohttp.ClientError, TimeoutError) as failure:
            if instruments.are_on and isinstance(failure, TimeoutError):
                instruments.HTTP_TIMEOUTS.add(1, (patience.is_internal,))
            if isinstance(failure, _LOST_CONNECTION):
                lost_connections += 1
            else:
                others += 1
            if patience.is_over(failure, lost_connections, others) or not _can_be_resent(options):
                raise
            if instruments.are_on:
                instruments.HTTP_RETRIES.add(1, (_retry_reason(failure),))
            _report_retry(method, url, server_name, failure)
        await asyncio.sleep(RETRY_SECONDS)


def _encode_json(options: dict[str, Any]) -> None:  # Any: aiohttp's own keyword arguments
    if options.get("json") is None or options.get("data") is not None:
        return  # nothing to encode, or aiohttp's to refuse
    options["data"] = orjson.dumps(options.pop("json"), option=orjson.OPT_NON_STR_KEYS)
    headers = CIMultiDict(options.get("headers") or ())
    headers.setdefault("Content-Type", "application/json")
    options["headers"] = headers


def _can_be_resent(options: Mapping[str, Any]) -> bool:  # Any: aiohttp's own keyword arguments
    """Say whether the body is still whole after it was sent: a file or stream is not."""
    body = options.get("data")
    if isinstance(body, Mapping):
        return all(isinstance(value, str | bytes | int | float) for value in body.values())
    return body is None or isinstance(body, str | bytes | bytearray | memoryview)


def _retry_reason(failure: Exception) -> str:
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return "server_disconnected"
    return "client_os_error" if isinstance(failure, aiohttp.ClientOSError) else "other"


def _report_retry(method: str, url: object, server_name: str | None, failure: Exception) -> None:
    global _retries
    _retries += 1
    if _retries == 1 or _retries % _REPORT_EVERY == 0:
        whom = f" ({server_name})" if server_name else ""
        notice(
            None,
            f"{method} {scrub_url(str(url))}{whom} failed with {type(failure).__name__}; trying "
            f"again every {RETRY_SECONDS} s ({_retries} retries in this process so far)",
        )
