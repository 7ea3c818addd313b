"""Fixtures of the ingress's tests: captured telemetry, ASGI by hand, and a real server."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import uvicorn

from gymlog import testing


@pytest.fixture
def telemetry():
    """Telemetry with every span group, into memory."""
    with testing.captured() as captured:
        yield captured


@dataclass
class Answer:
    """What an ASGI application did with one request."""

    messages: list = field(default_factory=list)
    error: BaseException | None = None

    @property
    def status(self):
        return self.messages[0]["status"]

    @property
    def headers(self):
        return dict(self.messages[0]["headers"])

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.messages)


def http_scope(method, path, headers=(), root_path="", **more):
    """Return the scope of a request, as uvicorn makes it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"api_key=SECRET",
        "root_path": root_path,
        "headers": [(b"host", b"gym.local:8000"), (b"user-agent", b"UA-SECRET"), *headers],
        "client": ("127.0.0.1", 50000),
        "server": ("127.0.0.1", 8000),
        **more,
    }


async def ask(app, method="GET", path="/work", headers=(), body=b"", **scope) -> Answer:
    """Make one request of an ASGI application; `body` is bytes or a list of chunks.

    After the body `receive` waits, as a server does while its client stays.
    """
    answer = Answer()
    chunks = [body] if isinstance(body, bytes) else list(body)

    async def receive():
        if chunks:
            chunk = chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(chunks)}
        return await asyncio.get_running_loop().create_future()

    async def send(message):
        answer.messages.append(message)

    try:
        await app(http_scope(method, path, headers, **scope), receive, send)
    except Exception as error:
        answer.error = error
    return answer


@pytest.fixture(scope="session")
def asgi():
    """`await asgi(app, method, path, …)` makes one request by hand."""
    return ask


@pytest.fixture(scope="session")
def asgi_scope():
    """`asgi_scope(method, path, …)` makes a scope."""
    return http_scope


@contextlib.contextmanager
def serving(app) -> Iterator[tuple[str, int]]:
    """Serve an application on a free port of the loopback; yields the address.

    The socket listens before the server runs, so a client need not wait for it. When the block
    is left the server has finished all its requests.
    """
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, ws="none", lifespan="off")
    )
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True
    )
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()
    assert not thread.is_alive()


@pytest.fixture(scope="session")
def serve():
    """`with serve(app) as (host, port)` runs uvicorn."""
    return serving
