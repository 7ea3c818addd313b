"""When a SERVER span ends and with what outcome, from the messages of one request."""

import asyncio
import contextlib

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.background import BackgroundTask
from starlette.websockets import WebSocket, WebSocketDisconnect

from gymlog import testing
from gymlog.server import ServerMiddleware, instrument_fastapi
from gymlog.values import Limits

OK_START = {"type": "http.response.start", "status": 200, "headers": []}
LAST = {"type": "http.response.body", "body": b"", "more_body": False}
CHUNK = {"type": "http.response.body", "body": b"x", "more_body": True}


class RequestError(RuntimeError):
    """An exception of an application."""


def sends(*messages, then=None):
    """Return an application that sends messages and then raises or returns."""

    async def app(scope, receive, send):
        for message in messages:
            await send(message)
        if then is not None:
            raise then

    return ServerMiddleware(app)


def failing_app():
    """The application of the table of failed requests."""
    app = FastAPI()

    @app.get("/boom")
    async def boom():
        raise RequestError("x")

    @app.get("/missing")
    async def missing():
        raise HTTPException(404)

    @app.get("/number/{number}")
    async def number(number: int):
        return number

    @app.get("/late")
    async def late():
        async def chunks():
            yield b"first"
            raise RequestError("late")

        return StreamingResponse(chunks())

    @app.get("/teapot")
    async def teapot():
        raise ValueError("short and stout")

    @app.get("/unavailable")
    async def unavailable():
        raise HTTPException(503)

    @app.exception_handler(ValueError)
    async def to_teapot(request, error):
        return JSONResponse({"is": "teapot"}, 418)

    return app


@pytest.mark.parametrize(
    ("path", "code", "status", "error_type", "exception"),
    [
        ("/boom", 500, "ERROR", "RequestError", "x"),
        ("/missing", 404, "UNSET", None, None),
        ("/number/none", 422, "UNSET", None, None),
        ("/late", 200, "ERROR", "RequestError", "late"),
        ("/teapot", 418, "UNSET", None, None),
        ("/unavailable", 503, "ERROR", "503", None),
        ("/number/3", 200, "UNSET", None, None),
    ],
)
def test_a_failed_request_tells_code_status_and_exception(
    telemetry, asgi, path, code, status, error_type, exception
):
    """5xx and exceptions are errors of the server, 4xx are not; each keeps its code."""
    asyncio.run(asgi(instrument_fastapi(failing_app()), "GET", path))
    (span,) = telemetry.spans
    assert span["attributes"]["http.response.status_code"] == code
    assert span["status"]["code"] == status
    assert span["attributes"].get("error.type") == error_type
    events = span.get("events", [])
    assert [event["attributes"]["exception.message"] for event in events] == (
        [exception] if exception else []
    )
    for event in events:
        assert event["name"] == "exception"
        assert event["attributes"]["exception.type"].endswith("RequestError")
        assert "test_exchange.py" in event["attributes"]["exception.stacktrace"]


@pytest.mark.parametrize(
    "path", ["/boom", "/missing", "/number/none", "/late", "/teapot", "/unavailable", "/nothing"]
)
def test_the_client_and_the_server_get_the_same_as_without_tracing(telemetry, asgi, path):
    """Every message is equal, and the same exception reaches the server."""
    plain = asyncio.run(asgi(failing_app(), "GET", path))
    traced = asyncio.run(asgi(instrument_fastapi(failing_app()), "GET", path))
    assert traced.messages == plain.messages
    assert (type(traced.error), str(traced.error)) == (type(plain.error), str(plain.error))


def test_a_handler_for_every_exception_stays_in_charge(telemetry, asgi):
    """Its answer goes out; the exception, which Starlette raises afterwards, is on the span."""
    app = failing_app()

    @app.exception_handler(Exception)
    async def answer(request, error):
        return JSONResponse({"error": "handled"}, 502)

    reply = asyncio.run(asgi(instrument_fastapi(app), "GET", "/boom"))
    assert (reply.status, reply.body) == (502, b'{"error":"handled"}')
    assert isinstance(reply.error, RequestError)
    (span,) = telemetry.spans
    assert span["attributes"]["http.response.status_code"] == 502
    assert span["attributes"]["error.type"] == "RequestError"
    assert len(span["events"]) == 1


@pytest.mark.parametrize("code", [200, 503])
def test_a_background_task_does_not_prolong_the_span(asgi, code):
    """The span has the end of the response; what runs afterwards is still its child."""
    with testing.captured() as telemetry, testing.stepped_clock() as clock:

        async def handler(scope, receive, send):
            async def work():
                clock.advance(seconds=60)
                telemetry.tracer.open_span("after").end()

            clock.advance(seconds=1)
            await JSONResponse({}, code, background=BackgroundTask(work))(scope, receive, send)

        asyncio.run(asgi(ServerMiddleware(handler)))
    server, after = telemetry.span("GET"), telemetry.span("after")
    assert server["end_time_unix_nano"] - server["start_time_unix_nano"] == 1_000_000_000
    assert after["parent_span_id"] == server["span_id"]
    assert after["trace_id"] == server["trace_id"]


def test_a_background_task_that_fails_leaves_the_answered_request_alone(telemetry, asgi):
    """The request went well; the exception still reaches the server."""

    async def fail():
        raise RequestError("later")

    async def handler(scope, receive, send):
        await JSONResponse({}, background=BackgroundTask(fail))(scope, receive, send)

    reply = asyncio.run(asgi(ServerMiddleware(handler)))
    assert isinstance(reply.error, RequestError)
    assert telemetry.span("GET")["status"] == {"code": "UNSET"}


def test_the_last_part_may_be_trailers_or_a_path(telemetry, asgi):
    """Extensions of ASGI end a response as well."""
    trailers = [
        OK_START | {"trailers": True},
        LAST,
        {"type": "http.response.trailers", "headers": [], "more_trailers": True},
        {"type": "http.response.trailers", "headers": [], "more_trailers": False},
    ]
    asyncio.run(asgi(sends(*trailers)))
    asyncio.run(asgi(sends(OK_START, {"type": "http.response.pathsend", "path": "/f"})))
    assert [span["status"] for span in telemetry.spans] == [{"code": "UNSET"}] * 2
    asyncio.run(asgi(sends(*trailers[:3])))
    assert telemetry.spans[2]["attributes"]["error.type"] == "IncompleteResponse"


@pytest.mark.parametrize("messages", [(), (OK_START,), (OK_START, CHUNK)])
def test_an_incomplete_response_is_an_error(telemetry, asgi, messages):
    """An application that returns too early breaks its client's read."""
    asyncio.run(asgi(sends(*messages)))
    (span,) = telemetry.spans
    assert span["status"]["code"] == "ERROR"
    assert span["attributes"]["error.type"] == "IncompleteResponse"


def test_a_client_that_leaves_early_is_told_from_a_good_request(telemetry, asgi_scope):
    """Starlette stops a stream without an exception when the client is gone."""
    outcomes = []

    async def endless(scope, receive, send):
        async def chunks():
            try:
                while True:
                    yield b"x"
                    await asyncio.Event().wait()
            finally:
                outcomes.append("stopped")

        await StreamingResponse(chunks())(scope, receive, send)

    async def disconnect():
        return {"type": "http.disconnect"}

    async def discard(message):
        del message

    asyncio.run(ServerMiddleware(endless)(asgi_scope("GET", "/task"), disconnect, discard))
    (span,) = telemetry.spans
    assert outcomes == ["stopped"]
    assert span["status"]["code"] == "ERROR"
    assert span["attributes"]["error.type"] == "ClientDisconnect"
    assert span["attributes"]["gymlog.cancelled"] is True


def test_a_disconnect_after_the_last_part_is_no_cancellation(telemetry, asgi_scope):
    """Servers report one to every reader as soon as they have the whole response.

    app     ── start ── last part ……………………………… returns
    reader  ── waits ……………………… disconnect ──┘
    """

    async def run():
        has_all, was_read = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            reader = asyncio.create_task(receive())
            await send(OK_START)
            await send(LAST)
            assert (await reader)["type"] == "http.disconnect"

        async def receive():
            await has_all.wait()
            was_read.set()
            return {"type": "http.disconnect"}

        async def send(message):
            if message is LAST:
                has_all.set()
                await was_read.wait()

        await ServerMiddleware(app)(asgi_scope("GET", "/task"), receive, send)

    asyncio.run(run())
    assert telemetry.span("GET")["status"] == {"code": "UNSET"}


def test_a_client_that_leaves_during_its_upload_is_cancelled(telemetry, asgi_scope):
    """Starlette raises ClientDisconnect in the handler; that is not the handler's error."""
    app = FastAPI()

    @app.post("/upload")
    async def upload(body: dict):
        raise AssertionError

    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive():
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def discard(message):
        del message

    async def run():
        with contextlib.suppress(Exception):
            await instrument_fastapi(app)(asgi_scope("POST", "/upload"), receive, discard)

    asyncio.run(run())
    (span,) = telemetry.spans
    assert span["attributes"]["gymlog.cancelled"] is True
    assert span["attributes"]["error.type"] == "ClientDisconnect"


def test_a_server_that_refuses_a_stream_for_a_lost_client_is_understood(telemetry, asgi_scope):
    """From ASGI 2.4 on `send` raises OSError then, which Starlette makes a ClientDisconnect."""

    async def stream(scope, receive, send):
        await StreamingResponse(iter([b"x"]))(scope, receive, send)

    async def lost(message):
        if message["type"] == "http.response.body":
            raise OSError

    async def run():
        scope = asgi_scope("GET", "/task", asgi={"version": "3.0", "spec_version": "2.4"})
        with contextlib.suppress(Exception):
            await ServerMiddleware(stream)(scope, None, lost)

    asyncio.run(run())
    (span,) = telemetry.spans
    assert span["attributes"]["error.type"] == "ClientDisconnect"
    assert span["attributes"]["gymlog.cancelled"] is True


def test_a_cancelled_request_is_marked_and_stays_cancelled(telemetry, asgi_scope):
    """The server's shutdown and timeouts cancel the task; the exception goes on unchanged."""

    async def run():
        started = asyncio.Event()

        async def app(scope, receive, send):
            started.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(ServerMiddleware(app)(asgi_scope("GET", "/task"), None, None))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    (span,) = telemetry.spans
    assert span["status"] == {"code": "ERROR", "message": "cancelled"}
    assert span["attributes"]["error.type"] == "CancelledError"
    assert span["attributes"]["gymlog.cancelled"] is True


def test_a_request_that_the_event_loop_drops_is_marked(telemetry, asgi_scope):
    """A coroutine that is closed unfinished still writes its line."""

    class Pause:
        def __await__(self):
            yield

    async def app(scope, receive, send):
        await Pause()

    coroutine = ServerMiddleware(app)(asgi_scope("GET", "/task"), None, None)
    coroutine.send(None)
    coroutine.close()
    (span,) = telemetry.spans
    assert span["status"]["code"] == "ERROR"
    assert span["attributes"]["gymlog.cancelled"] is True


def test_a_server_that_cannot_send_fails_the_span(telemetry, asgi_scope):
    """The last part counts only when the server has taken it."""

    async def broken(message):
        if message["type"] == "http.response.body":
            raise OSError("broken pipe")

    with pytest.raises(OSError, match="broken pipe"):
        asyncio.run(sends(OK_START, LAST)(asgi_scope("GET", "/task"), None, broken))
    (span,) = telemetry.spans
    assert span["attributes"]["error.type"] == "OSError"
    assert span["status"]["code"] == "ERROR"


@pytest.mark.parametrize(
    ("error", "status", "error_type"),
    [
        (None, "UNSET", None),
        (WebSocketDisconnect(1000), "UNSET", None),
        (WebSocketDisconnect(1006), "ERROR", "ClientDisconnect"),
        (RequestError("x"), "ERROR", "RequestError"),
    ],
)
def test_a_websocket_has_one_span_for_its_connection(
    telemetry, asgi_scope, error, status, error_type
):
    """From the handshake until the handler returns; a normal closure is no error."""
    app = FastAPI()

    @app.websocket("/socket/{name}")
    async def socket(websocket: WebSocket, name: str):
        await websocket.accept()
        names = [span.name for span in telemetry.service.open_spans.values()]
        assert names == ["WS /socket/{name}"]
        if error is not None:
            raise error

    scope = asgi_scope("GET", "/socket/a", type="websocket", scheme="ws", subprotocols=[])
    del scope["method"]

    async def connect():
        return {"type": "websocket.connect"}

    async def discard(message):
        del message

    async def run():
        with contextlib.suppress(RequestError, WebSocketDisconnect):
            await instrument_fastapi(app)(scope, connect, discard)

    asyncio.run(run())
    (span,) = telemetry.spans
    assert span["name"] == "WS /socket/{name}"
    assert span["kind"] == "SERVER"
    assert span["attributes"]["url.scheme"] == "ws"
    assert span["status"]["code"] == status
    assert span["attributes"].get("error.type") == error_type


def test_a_stuck_request_shows_its_route_while_it_is_open(telemetry, asgi_scope):
    """The route is known when the body is read, long before the response."""
    app = FastAPI()
    seen = []

    @app.post("/v1/responses")
    async def responses(body: dict):
        seen.extend(span.name for span in telemetry.service.open_spans.values())
        return body

    messages = [{"type": "http.request", "body": b"{}", "more_body": False}]

    async def receive():
        return messages.pop()

    async def discard(message):
        del message

    scope = asgi_scope("POST", "/v1/responses", [(b"content-type", b"application/json")])
    asyncio.run(instrument_fastapi(app)(scope, receive, discard))
    assert seen == ["POST /v1/responses"]


def test_the_hosts_limit_of_attributes_holds_for_requests_too(asgi):
    """What finds no room is counted."""
    with testing.captured(limits=Limits(attributes=2)) as telemetry:
        app = FastAPI()

        @app.get("/items/{item}")
        def item(item: str):
            return item

        asyncio.run(asgi(instrument_fastapi(app), "GET", "/items/1", []))
        (span,) = telemetry.spans
    assert len(span["attributes"]) == 2
    assert span["dropped_attributes_count"] == 2
