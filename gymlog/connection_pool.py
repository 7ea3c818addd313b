"""The egress's pool of connections, and how long requests queue for one.

aiohttp's own hooks (TraceConfig) cost each request several µs, queued or not. So the two methods
that wait and connect are watched instead, which costs a request nothing that finds a free
connection. With metrics off, aiohttp's connector is used as it is.
"""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

import aiohttp

from gymlog import clock, destinations
from gymlog.metrics import instruments

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.tracing import Trace

__all__ = ["destination", "make_connector"]

MAX_CONNECTIONS: Final = 102_400
MAX_CONNECTIONS_PER_HOST: Final = 1_024

destination: ContextVar[str | None] = ContextVar("gymlog_destination", default=None)
"""The name that a caller gave the server it sends to."""


def make_connector() -> aiohttp.TCPConnector:
    """Return a pool for the running event loop, measured when metrics are on."""
    kind = _MeasuredConnector if instruments.are_on else aiohttp.TCPConnector
    return kind(limit=MAX_CONNECTIONS, limit_per_host=MAX_CONNECTIONS_PER_HOST)


class _MeasuredConnector(aiohttp.TCPConnector):
    async def _wait_for_available_connection(
        self, key: "ConnectionKey", traces: "list[Trace]"
    ) -> None:
        began = clock.monotonic_ns()
        constraint = self._constraint(key)
        outcome = "abandoned"
        try:
            await super()._wait_for_available_connection(key, traces)
            outcome = "ok"
        finally:
            name = _destination_name(key.host, key.port)
            instruments.CONNECTION_POOL_QUEUE_DURATION.record_since(
                began, (constraint, outcome, name)
            )

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: "list[Trace]",
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as aiohttp has it
    ) -> "ResponseHandler":
        name = _destination_name(req.url.host, req.url.port)
        instruments.CONNECTION_POOL_CONNECTS.add(1, (name,))
        return await super()._create_connection(req, traces, timeout)

    def _constraint(self, key: "ConnectionKey") -> str:
        """Return which limit stands in the way."""
        if self.limit and len(self._acquired) >= self.limit:
            return "total"
        acquired = self._acquired_per_host.get(key, ())
        if self.limit_per_host and len(acquired) >= self.limit_per_host:
            return "per_host"
        return "unknown"


def _destination_name(host: str | None, port: int | None) -> str:
    """Return the caller's name for a server, host:port of one in the gym, else `external`."""
    name = destination.get()
    if name is not None:
        return name
    is_internal = (host or "") in destinations.from_environment()
    return f"{host}:{port}" if is_internal else "external"
