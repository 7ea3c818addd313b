"""The ingress and the egress measure each request once, with its span or without."""

import asyncio
import threading
from collections import Counter

import aiohttp
import pytest
from aiohttp import web
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse

from gymlog import client, connection_pool, instrument_fastapi, sites, span_groups
from gymlog.client import close_sessions, request
from gymlog.metrics.instruments import HTTP_CLIENT_DURATION, ROLLOUT_DURATION

GROUPS = ["all", "rollout"]
"""With the groups of HTTP spans open, and closed."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(client, "RETRY_SECONDS", 0)


@pytest.fixture(params=GROUPS)
def groups(request, telemetry):
    span_groups.open_groups(request.param)
    return request.param


def make_app():
    app = FastAPI()

    @app.get("/items/{item}")
    async def item(item: str):
        if item == "broken":
            raise RuntimeError("no item")
        if item == "missing":
            raise HTTPException(404)
        if item == "bad":
            raise HTTPException(503)
        return item

    @app.get("/health")
    async def health():
        return "ok"

    @app.get("/stream")
    async def stream():
        return StreamingResponse(iter(["a", "b"]))

    @app.websocket("/ws")
    async def socket(websocket):
        await websocket.accept()

    return instrument_fastapi(app)


def series_of(points, name, *keys):
    """Return {attribute values: count} of a metric's lines."""
    counts = Counter()
    for line in points(name):
        counts[tuple(line["attributes"].get(key) for key in keys)] += line.get("count", 0)
    return counts


SERVER = ("http.request.method", "http.route", "http.response.status_code", "error.type")


def test_the_ingress_measures_each_request_by_route(groups, collecting, points, asgi, telemetry):
    """Templates, never paths; a failure names its error; a probe is not counted."""
    with collecting():
        app = make_app()

        async def run():
            for path in ("/items/1", "/items/2", "/items/missing", "/items/bad", "/items/broken"):
                await asgi(app, "GET", path)
            await asgi(app, "GET", "/nowhere")
            await asgi(app, "GET", "/stream")
            await asgi(app, "BREW", "/items/1")
            await asgi(app, "GET", "/health")
            await asgi(app, "GET", "/ng-rollout/7-0/items/1")

        asyncio.run(run())
    assert series_of(points, "http.server.request.duration", *SERVER) == {
        ("GET", "/items/{item}", 200, None): 3,
        ("GET", "/items/{item}", 404, None): 1,
        ("GET", "/items/{item}", 503, "503"): 1,
        ("GET", "/items/{item}", 500, "RuntimeError"): 1,
        ("GET", None, 404, None): 1,
        ("GET", "/stream", 200, None): 1,
        ("_OTHER", "/items/{item}", 405, None): 1,
    }
    has_spans = groups == "all"
    assert bool(telemetry.spans) == has_spans
    exemplars = [line for line in points("http.server.request.duration") if "exemplars" in line]
    assert bool(exemplars) == has_spans


def test_what_the_ingress_measures_is_what_its_span_says(collecting, points, asgi, telemetry):
    """The exemplar leads to the span, whose duration is the value."""
    with collecting():
        asyncio.run(asgi(make_app(), "GET", "/items/1"))
    (line,) = points("http.server.request.duration")
    (exemplar,) = line["exemplars"]
    span = telemetry.span("GET /items/{item}")
    assert (exemplar["trace_id"], exemplar["span_id"]) == (span["trace_id"], span["span_id"])
    seconds = (span["end_time_unix_nano"] - span["start_time_unix_nano"]) / 1e9
    assert line["sum"] == exemplar["value"] == pytest.approx(seconds, abs=1e-3)
    assert (line["unit"], line["attributes"]["url.scheme"]) == ("s", "http")


def test_the_ingress_measures_without_a_tracer(collecting, points, asgi):
    """Metrics have their own switch."""
    with collecting():
        sites.install(None)
        answer = asyncio.run(asgi(make_app(), "GET", "/items/1"))
    assert answer.status == 200
    assert series_of(points, "http.server.request.duration", *SERVER) == {
        ("GET", "/items/{item}", 200, None): 1
    }


def test_active_requests_go_up_and_down(groups, collecting, points, asgi):
    """However a request ends."""
    with collecting() as collector:
        app = FastAPI()

        @app.get("/a")
        async def inside():
            collector.flush()
            raise RuntimeError

        asyncio.run(asgi(instrument_fastapi(app), "GET", "/a"))
    assert [line["value"] for line in points("http.server.active_requests")] == [1, 0]


def test_a_request_that_is_cancelled_is_measured(groups, collecting, points, asgi_scope):
    """With what cancelled it, once."""
    begun = asyncio.Event()

    async def app(scope, receive, send):
        begun.set()
        await asyncio.Event().wait()

    async def run():
        task = asyncio.create_task(instrument_fastapi(app)(asgi_scope("GET", "/a"), None, None))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])

    with collecting():
        asyncio.run(run())
    assert series_of(points, "http.server.request.duration", *SERVER) == {
        ("GET", None, None, "CancelledError"): 1
    }
    assert [line["value"] for line in points("http.server.active_requests")] == [0]


def test_a_server_that_shuts_down_writes_its_metrics(collecting, points, telemetry):
    """Then, for a signal may end it before atexit does; and `stopped` comes after."""

    async def app(scope, receive, send):
        ROLLOUT_DURATION.record(1.0, (None,))
        await send({"type": "lifespan.shutdown.complete"})

    async def send(message):
        assert points() == []

    with collecting():
        asyncio.run(instrument_fastapi(app)({"type": "lifespan"}, None, send))
        assert len(points("gym.rollout.duration_ms")) == 1
        assert telemetry.records[-1]["state"] == "stopped"


def test_an_observer_that_waits_for_the_event_loop_does_not_hang_its_end(collecting, points):
    """The loop waits a second at most."""

    async def app(scope, receive, send):
        await send({"type": "lifespan.shutdown.complete"})

    async def send(message):
        pass

    async def run(collector):
        loop = asyncio.get_running_loop()

        def observe(options):
            has_run = threading.Event()
            loop.call_soon_threadsafe(has_run.set)
            assert has_run.wait(20)
            return []

        collector.provider.get_meter("gym").create_observable_gauge("g", [observe])
        async with asyncio.timeout(10):
            await instrument_fastapi(app)({"type": "lifespan"}, None, send)

    with collecting() as collector:
        asyncio.run(run(collector))


# The egress.

CLIENT = ("http.request.method", "http.response.status_code", "error.type")


async def serve(handler):
    """Serve on a free port; return the URL and what ends it."""
    runner = web.AppRunner(handler if isinstance(handler, web.Application) else app_of(handler))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return f"http://127.0.0.1:{runner.addresses[0][1]}", runner


def app_of(handler):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    return app


def run_against(handler, use):
    """Run `use(url)` against a server; the sessions are closed afterwards."""

    async def run():
        url, runner = await serve(handler)
        try:
            return await use(url)
        finally:
            await close_sessions()
            await runner.cleanup()

    return asyncio.run(run())


async def answer(incoming):
    return web.Response(status=int(incoming.query.get("status", 200)), text="ok")


def test_the_egress_measures_each_request(groups, collecting, points, telemetry):
    """By host and port, status and error; once, whatever it took."""

    async def use(url):
        for path in ("/a/1", "/a/2?status=404", "/a/3?status=500"):
            async with await request("POST", f"{url}{path}", json={}) as response:
                await response.read()
        with pytest.raises(aiohttp.InvalidURL):
            await request("GET", "http://")
        return int(url.rpartition(":")[2])

    with collecting():
        port = run_against(answer, use)
    assert series_of(points, "http.client.request.duration", *CLIENT) == {
        ("POST", 200, None): 1,
        ("POST", 404, "404"): 1,
        ("POST", 500, "500"): 1,
        ("GET", None, "InvalidUrlClientError"): 1,
    }
    hosts = {
        (line["attributes"].get("server.address"), line["attributes"].get("server.port"))
        for line in points("http.client.request.duration")
    }
    assert hosts == {("127.0.0.1", port), (None, None)}
    has_exemplars = any("exemplars" in line for line in points("http.client.request.duration"))
    assert has_exemplars == (groups == "all")


def test_the_egress_measures_without_a_tracer(collecting, points, telemetry):
    """Metrics have their own switch."""

    async def use(url):
        async with await request("GET", url) as response:
            await response.read()

    with collecting():
        sites.install(None)
        run_against(answer, use)
    assert series_of(points, "http.client.request.duration", *CLIENT) == {("GET", 200, None): 1}


def test_credentials_of_a_url_are_no_attribute(collecting, points):
    """Host and port alone."""

    async def use(url):
        async with await request("GET", url.replace("://", "://user:secret@")) as response:
            await response.read()

    with collecting():
        run_against(answer, use)
    (line,) = points("http.client.request.duration")
    assert line["attributes"]["server.address"] == "127.0.0.1"
    assert "secret" not in str(points())


@pytest.mark.parametrize(
    ("authority", "address", "port"),
    [
        ("gym.local", "gym.local", None),
        ("gym.local:8000", "gym.local", 8000),
        ("[::1]:80", "::1", 80),
        ("[::1]", "::1", None),
        ("a:b@gym:1", "gym", 1),
        ("", None, None),
    ],
)
def test_an_authority_is_an_address_and_a_port(authority, address, port):
    """As a URL has them."""
    attributes = HTTP_CLIENT_DURATION.attributes_of(("GET", authority, 200, None))
    assert (attributes.get("server.address"), attributes.get("server.port")) == (address, port)


def test_retries_and_timeouts_are_counted(collecting, points):
    """By reason; what is tried again is one request."""
    failures = [aiohttp.ServerDisconnectedError(), aiohttp.ClientOSError(), TimeoutError()]

    async def use(url):
        async def fail_first(outgoing, handler):
            if failures:
                raise failures.pop(0)
            return await handler(outgoing)

        async with await request(
            "POST", url, _internal=True, middlewares=(fail_first,)
        ) as response:
            await response.read()

    with collecting():
        run_against(answer, use)
    assert {
        line["attributes"]["nemo.gym.http.retry_reason"]: line["value"]
        for line in points("gym.http.retry_total")
    } == {"server_disconnected": 1, "client_os_error": 1, "timeout": 1}
    (timeouts,) = points("gym.http.timeout_total")
    assert (timeouts["value"], timeouts["attributes"]) == (1, {"nemo.gym.http.internal": True})
    assert series_of(points, "http.client.request.duration", *CLIENT) == {("POST", 200, None): 1}


# The pool.


@pytest.mark.parametrize(("constraint", "limit"), [("total", 1), ("per_host", 100)])
def test_waiting_for_a_connection_is_measured(constraint, limit, collecting, points, monkeypatch):
    """By what stood in the way and how it ended; who did not wait is not counted."""
    monkeypatch.setattr(connection_pool, "MAX_CONNECTIONS", limit)
    monkeypatch.setattr(connection_pool, "MAX_CONNECTIONS_PER_HOST", 1)

    async def use(url):
        arrived, goes_on = asyncio.Event(), asyncio.Event()

        async def first(incoming):
            arrived.set()
            await goes_on.wait()
            return web.Response(text="ok")

        slow, runner = await serve(first)

        async def get(**options):
            async with await request("GET", slow, **options) as response:
                await response.read()

        try:
            holder = asyncio.create_task(get())
            await arrived.wait()
            waiting = asyncio.create_task(get(_server_name="policy_model"))
            abandoned = asyncio.create_task(get())
            await until_waiting(2)
            abandoned.cancel()
            await asyncio.wait([abandoned])
            goes_on.set()
            await asyncio.gather(holder, waiting)
        finally:
            await close_sessions()
            await runner.cleanup()
        return slow.removeprefix("http://")

    async def until_waiting(count):
        session = await client.current_session()
        async with asyncio.timeout(20):
            while sum(map(len, session.connector._waiters.values())) < count:
                await asyncio.sleep(0)

    with collecting():
        name = run_against(answer, use)
    assert series_of(
        points,
        "gym.http.connection_pool.queue_duration_ms",
        "nemo.gym.http.connection_pool.queue_constraint",
        "nemo.gym.http.connection_pool.queue_outcome",
        "nemo.gym.http.destination.server.name",
    ) == {(constraint, "ok", "policy_model"): 1, (constraint, "abandoned", name): 1}
    connects = {
        line["attributes"]["nemo.gym.http.destination.server.name"]: line["value"]
        for line in points("gym.http.connection_pool.connect_total")
    }
    assert connects == {name: 1}


def test_a_destination_outside_is_external():
    """Its hosts would be attributes without end."""
    assert connection_pool._destination_name("api.example.com", 443) == "external"
    assert connection_pool._destination_name("10.0.0.7", 8000) == "10.0.0.7:8000"


def test_without_metrics_the_pool_is_aiohttps_own():
    """Nothing stands between."""

    async def kind():
        connector = connection_pool.make_connector()
        await connector.close()
        return type(connector)

    assert asyncio.run(kind()) is aiohttp.TCPConnector
