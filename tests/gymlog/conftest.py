"""Fixtures of the writer's tests: captured telemetry, ASGI by hand, real servers and programs."""

import asyncio
import collections
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import textwrap
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


@pytest.fixture(scope="session")
def parents():
    """`parents(telemetry)` returns name -> name of the parent, of all spans that have ended."""

    def parents(captured):
        names = {line["span_id"]: line["name"] for line in captured.spans}
        assert len(names) == len(captured.spans)
        return {line["name"]: names.get(line["parent_span_id"]) for line in captured.spans}

    return parents


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


async def ask(app, method="GET", path="/task", headers=(), body=b"", **scope) -> Answer:
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


class Records(list):
    """Records in the order of their lines."""

    def __add__(self, other):
        return Records([*self, *other])

    def of(self, record_type, name=None):
        """Return the records of a type (and name)."""
        return Records(
            record
            for record in self
            if record["record_type"] == record_type and name in (None, record.get("name"))
        )

    def instances(self):
        """Return the records by service instance, in the order of their lines."""
        grouped = collections.defaultdict(Records)
        for record in self:
            grouped[record["resource"]["attributes"]["service.instance.id"]].append(record)
        return grouped

    def no_gap_no_repeat(self):
        """Assert that each instance's numbers are 0, 1, 2 …"""
        for mine in self.instances().values():
            assert sorted(record["seq"] for record in mine) == list(range(len(mine)))


class Programs:
    """Runs programs that have telemetry on, each a process of its own."""

    SECONDS = 20
    """More than any of them takes; a program that is still there hangs."""

    BEGIN = """
import asyncio, os, signal, sys, threading, time
import gymlog
from gymlog import managed_span
handle = gymlog.init_telemetry("agent", "responses_api_agents")
def say(text):
    os.write(2, text.encode() + b"\\n")
def spans(count, name="done", **attributes):
    for number in range(count):
        with managed_span("verify", name, number=number, **attributes):
            pass
"""

    def environment(self, **variables):
        """Return this process's environment with telemetry on."""
        return {
            **{key: value for key, value in os.environ.items() if "OTEL" not in key},
            "NEMO_GYM_OTEL_ENABLED": "true",
            "NEMO_GYM_OTEL_SPAN_GROUPS": "all",
            "NEMO_GYM_OTEL_METRICS_ENABLED": "false",
            **variables,
        }

    @contextlib.contextmanager
    def __call__(self, code, *, stdout=subprocess.PIPE, before=(), **variables):
        """Run a program; it is killed when the block is left with it running."""
        process = subprocess.Popen(
            [*before, sys.executable, "-c", self.BEGIN + textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            bufsize=0,  # so that no word waits in a buffer while `await_word` looks at the pipe
            env=self.environment(**variables),
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def output(self, code, **options):
        """Return the records and the stderr of a program that ends by itself without failure."""
        with self(code, **options) as process:
            out, err = process.communicate(timeout=self.SECONDS)
            assert process.returncode == 0, err.decode()
        return self.parse(out or b""), err.decode()

    def parse(self, data):
        """Return the record of every line; each must be whole."""
        assert not data or data.endswith(b"\n")
        return Records(json.loads(line) for line in data.splitlines())

    def await_word(self, process):
        """Wait for one line on stderr and return it."""
        assert select.select([process.stderr], [], [], self.SECONDS)[0], "the program says nothing"
        return process.stderr.readline().decode().strip()


@pytest.fixture(scope="session")
def program():
    """`with program(code) as process` runs a program that has telemetry on."""
    return Programs()


@pytest.fixture
def full_pipe():
    """A pipe that is full and that nobody reads: the end to give away, the end to read."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"f" * 4096)
    os.set_blocking(write_end, True)
    yield write_end, read_end
    for end in (read_end, write_end):
        with contextlib.suppress(OSError):
            os.close(end)
