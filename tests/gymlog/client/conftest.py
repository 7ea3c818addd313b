"""Servers on real sockets for the egress to talk to, and telemetry with its group alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict

from gymlog import client, destinations, notices
from gymlog.client import close_sessions, request
from gymlog.testing import Captured, captured

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
def telemetry() -> Iterator[Captured]:
    """Telemetry with the egress's span group, into memory."""
    with captured("http_client") as telemetry:
        yield telemetry


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry without waiting; forget earlier notices."""
    monkeypatch.setattr(client, "RETRY_SECONDS", 0)
    monkeypatch.setattr(client, "_retries", 0)
    notices.reset()


@pytest.fixture
def propagate_to(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """`propagate_to(spec)` sets who may see trace context."""

    def set_to(spec: str) -> None:
        destinations.from_environment.cache_clear()
        monkeypatch.setenv(destinations.VARIABLE, spec)

    yield set_to
    destinations.from_environment.cache_clear()


@asynccontextmanager
async def _serving(handler: Handler) -> AsyncIterator[str]:
    """Serve every path with `handler` on a free port of 127.0.0.1; gives the base URL."""

    async def serve(incoming: web.Request) -> web.StreamResponse:
        return await handler(incoming)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await close_sessions()
        await runner.cleanup()


@asynccontextmanager
async def _raw_serving(answers: list[bytes]) -> AsyncIterator[str]:
    """Answer one connection after another with raw bytes, then close it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answers.pop(0))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await close_sessions()


_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"


def _received(headers: CIMultiDict[str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


class _Echo:
    """A handler that keeps each request's headers and body, and answers `ok`."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.headers: list[CIMultiDict[str]] = []
        self.bodies: list[bytes] = []

    async def __call__(self, incoming: web.Request) -> web.StreamResponse:
        self.headers.append(CIMultiDict(incoming.headers))
        self.bodies.append(await incoming.read())
        return web.Response(status=self.status, text="ok")


class _Streaming:
    """A handler whose headers come at once and whose body ends when it is told to."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()

    async def __call__(self, incoming: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(incoming)
        await response.write(b"first ")
        await self.goes_on.wait()
        await response.write(b"last")
        return response


async def _get(url: str, **options: Any) -> bytes:
    async with await request("GET", url, **options) as response:
        return await response.read()


@pytest.fixture(scope="session")
def serving() -> Any:
    """`async with serving(handler) as url`."""
    return _serving


@pytest.fixture(scope="session")
def raw_serving() -> Any:
    """`async with raw_serving(answers) as url`."""
    return _raw_serving


@pytest.fixture(scope="session")
def echo_handler() -> Any:
    """`echo_handler(status)` makes a handler that keeps what it gets."""
    return _Echo


@pytest.fixture(scope="session")
def streaming_handler() -> Any:
    """`streaming_handler()` makes a handler that ends its body when told to."""
    return _Streaming


@pytest.fixture(scope="session")
def ok_answer() -> bytes:
    """A complete answer, for `raw_serving`."""
    return _OK


@pytest.fixture(scope="session")
def received() -> Any:
    """`received(headers)` turns headers into ASGI's raw ones."""
    return _received


@pytest.fixture(scope="session")
def get() -> Any:
    """`await get(url, …)` gives the body."""
    return _get
