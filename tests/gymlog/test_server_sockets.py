"""The ingress under a real server: streams, lost clients, kept-alive connections, a process."""

import asyncio
import itertools
import json
import os
import socket
import subprocess
import sys
import textwrap
import threading

import httpx
from fastapi import BackgroundTasks, Depends, FastAPI, Form, Request, UploadFile
from fastapi.responses import StreamingResponse
from starlette.middleware.base import BaseHTTPMiddleware

import gymlog
from gymlog.rollout import current_rollout_id
from gymlog.server import instrument_fastapi


def test_a_streamed_response_is_covered_to_its_end(telemetry, serve):
    """The line is written after the last chunk, not after the headers."""
    release = threading.Event()
    app = FastAPI()

    @app.get("/stream")
    def stream():
        def chunks():
            yield b"first"
            assert release.wait(timeout=10)
            yield b"last"

        return StreamingResponse(chunks())

    with (
        serve(instrument_fastapi(app)) as (host, port),
        httpx.stream("GET", f"http://{host}:{port}/stream") as response,
    ):
        body = response.iter_raw()
        assert next(body) == b"first"
        assert telemetry.spans == []
        assert [span.name for span in telemetry.service.open_spans.values()] == ["GET /stream"]
        release.set()
        assert b"".join(body) == b"last"
    assert telemetry.span("GET /stream")["status"] == {"code": "UNSET"}


def test_a_client_that_closes_its_connection_in_a_stream_is_noticed(telemetry, serve):
    """The handler is stopped and its span says that nobody waited for the rest."""
    stopped = threading.Event()
    app = FastAPI()

    @app.get("/stream")
    async def stream():
        async def chunks():
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                stopped.set()

        return StreamingResponse(chunks())

    with serve(instrument_fastapi(app)) as (host, port):
        with socket.create_connection((host, port)) as client:
            client.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
            received = b""
            while b"first" not in received:
                received += client.recv(4096)
        assert stopped.wait(timeout=10)
    span = telemetry.span("GET /stream")
    assert span["attributes"]["error.type"] == "ClientDisconnect"
    assert span["attributes"]["gymlog.cancelled"] is True
    assert span["attributes"]["http.response.status_code"] == 200


def test_contexts_stay_apart_on_kept_alive_connections(telemetry, serve):
    """50 connections, three requests each: with a rollout and a large body, without, with.

    The second request has none; the third has its own in middleware, dependency and a plain
    `def` handler. The large body makes the server pause and resume its reading, which is what
    hands a context on.
    """
    app = FastAPI()
    tracer = telemetry.tracer

    class Middleware(BaseHTTPMiddleware):
        async def dispatch(self, request, call_next):
            with tracer.start_as_current_span("middleware"):
                return await call_next(request)

    def dependency():
        with tracer.start_as_current_span("dependency"):
            pass

    @app.post("/upload")
    async def upload(file: UploadFile, name: str = Form()):
        with tracer.start_as_current_span("upload"):
            return len(await file.read())

    @app.post("/plain/{connection}")
    def plain(connection: int, given: None = Depends(dependency)):
        with tracer.start_as_current_span("handler"):
            return current_rollout_id()

    app.add_middleware(Middleware)

    async def connection(address, number):
        base = f"http://{address[0]}:{address[1]}"
        limits = httpx.Limits(max_connections=1)
        async with httpx.AsyncClient(base_url=base, limits=limits, timeout=60) as client:
            files, form = {"file": b"x" * 200_000}, {"name": "n"}
            first = await client.post(f"/ng-rollout/a-{number}/upload", files=files, data=form)
            second = await client.post(f"/plain/{number}")
            third = await client.post(f"/ng-rollout/b-{number}/plain/{number}")
        assert (first.json(), second.json(), third.json()) == (200_000, None, f"b-{number}")

    async def run(address):
        await asyncio.gather(*(connection(address, number) for number in range(50)))

    with serve(instrument_fastapi(app)) as address:
        asyncio.run(run(address))

    traces = {}
    for span in telemetry.spans:
        traces.setdefault(span["trace_id"], []).append(span)
    assert len(traces) == 150
    found = {}
    for spans in traces.values():
        (root,) = (span for span in spans if span["parent_span_id"] is None)
        assert root["kind"] == "SERVER"
        ids = {span["attributes"].get("nemo.gym.rollout.id") for span in spans}
        assert len(ids) == 1
        names = sorted(span["name"] for span in spans if span is not root)
        found.setdefault((ids.pop() or "none")[:2], []).append(names)
    assert found == {
        "a-": [["middleware", "upload"]] * 50,
        "no": [["dependency", "handler", "middleware"]] * 50,
        "b-": [["dependency", "handler", "middleware"]] * 50,
    }


def test_a_background_task_is_its_requests_work_and_not_its_time(telemetry, serve):
    """
    POST /start          ends with its response
    └─ bg.work           goes on
       └─ HTTP GET       its call of a server, in the same rollout
          └─ GET /task
    """
    app = FastAPI()
    answered, finished = threading.Event(), threading.Event()

    @app.get("/task")
    async def task():
        return {}

    @app.post("/start")
    async def start(tasks: BackgroundTasks, request: Request):
        async def background():
            with gymlog.span_cm("bg.work"):
                await asyncio.to_thread(answered.wait, 10)
                async with await gymlog.request("GET", f"{request.base_url}task"):
                    pass
            finished.set()

        tasks.add_task(background)
        return {}

    with serve(instrument_fastapi(app)) as (host, port):
        url = f"http://{host}:{port}/ng-rollout/1-0/start"
        with httpx.stream("POST", url) as response:
            response.read()
            answered.set()
        assert finished.wait(timeout=10)
    spans = {span["name"]: span for span in telemetry.spans}
    names = ["POST /start", "bg.work", "HTTP GET", "GET /task"]
    for above, below in itertools.pairwise(names):
        assert spans[below]["parent_span_id"] == spans[above]["span_id"]
    assert {spans[name]["attributes"]["nemo.gym.rollout.id"] for name in names} == {"1-0"}
    assert spans["POST /start"]["end_time_unix_nano"] < spans["HTTP GET"]["start_time_unix_nano"]


def test_requests_that_are_sent_ahead_on_one_connection_stay_apart(telemetry, serve):
    """Three rollouts, pipelined: the server begins each when the one before is answered."""
    app = FastAPI()

    @app.get("/turn/{number}")
    async def turn(number: int):
        await asyncio.sleep(0)
        with telemetry.tracer.start_as_current_span(f"work {number}"):
            return current_rollout_id()

    with serve(instrument_fastapi(app)) as (host, port):
        with socket.create_connection((host, port), timeout=10) as client:
            for number in range(3):
                path = f"/turn/{number}" if number == 1 else f"/ng-rollout/r-{number}/turn/{number}"
                close = "close" if number == 2 else "keep-alive"
                head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: {close}\r\n"
                client.sendall(
                    f"{head}traceparent: 00-{number + 1:032x}-{1:016x}-01\r\n\r\n".encode()
                )
            received = b""
            while chunk := client.recv(65_536):
                received += chunk
    assert received.count(b"200 OK") == 3
    for number in range(3):
        span = telemetry.span(f"work {number}")
        assert int(span["trace_id"], 16) == number + 1
        rollout_id = span["attributes"].get("nemo.gym.rollout.id")
        assert rollout_id == (None if number == 1 else f"r-{number}")


def test_a_server_process_writes_one_span_per_request():
    """init_telemetry, FastAPI's own telemetry, a mounted application and a probe, end to end."""
    program = textwrap.dedent(
        """
        import asyncio
        from fastapi import FastAPI
        from gymlog.server import instrument_fastapi
        from gymlog.setup import init_telemetry, shutdown_telemetry
        import httpx

        app, inner = FastAPI(), FastAPI()
        app.add_api_route("/", lambda: {})
        app.add_api_route("/task/{x}", lambda x: {})
        inner.add_api_route("/{y}", lambda y: {})
        app.mount("/inner", inner)
        instrument_fastapi(app)
        init_telemetry("agent")

        async def run():
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://gym") as client:
                for path in ("/", "/task/1", "/inner/2"):
                    assert (await client.get(path)).status_code == 200

        asyncio.run(run())
        shutdown_telemetry()
        """
    )
    environment = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    finished = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"NEMO_GYM_OTEL_ENABLED": "1"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    records = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [record["name"] for record in records if record["record_type"] == "span"] == [
        "GET /task/{x}",
        "GET /inner/{y}",
    ]
    assert {record["record_type"] for record in records} == {"span", "metric", "process"}
