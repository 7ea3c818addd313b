"""One request and its response: how their span is named, when it ends, with what outcome.

Known from the ASGI messages as they pass. The span ends with the last part of the response. After
a 5xx it is written when the application returns, with the earlier end: Starlette answers first and
raises afterwards, so only then is the exception known. A client that leaves early, like a
cancelled task, makes an ERROR marked `gymlog.cancelled`; such a span ends when the application has
noticed and returned.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from gymlog import clock
from gymlog.body_watch import BodyWatch
from gymlog.metrics.instruments import HTTP_SERVER_ACTIVE_REQUESTS, HTTP_SERVER_DURATION
from gymlog.path_context import REDIRECTS, PathContext
from gymlog.routes import route_template
from gymlog.semconv import CANCELLED, ERROR_TYPE, HTTP_RESPONSE_STATUS_CODE, HTTP_ROUTE
from gymlog.spans import Span

__all__ = ["Exchange", "Message", "Receive", "Scope", "Send"]

Scope = MutableMapping[str, Any]  # Any: ASGI's own types, here and below
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_CLIENT_GONE: Final = "ClientDisconnect"
_INCOMPLETE: Final = "IncompleteResponse"
_SERVER_ERROR: Final = 500

_WEBSOCKET_DISCONNECT: Final = "WebSocketDisconnect"
_NORMAL_CLOSURES: Final = frozenset({1000, 1001, 1005})


class Exchange:
    """Stands between server and application; `receive` and `send` hand every message on as it is.

    Without a span only the body is watched and redirects keep their path context. When it is
    measured, how long it took is a measurement too, with a span or without.
    """

    __slots__ = (
        "_body_watch",
        "_endpoint",
        "_error_type",
        "_has_trailers",
        "_is_client_gone",
        "_is_last_part_sent",
        "_is_over",
        "_measured_key",
        "_method",
        "_monotonic_end",
        "_monotonic_start",
        "_path_context",
        "_receive",
        "_route",
        "_scope",
        "_send",
        "_span",
        "_status",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        span: Span | None,
        body_watch: BodyWatch | None,
        path_context: PathContext | None,
        measured_key: tuple[str, str] | None,
    ) -> None:
        """`measured_key`, of method and scheme, lets the exchange be measured."""
        self._scope = scope
        self._receive = receive
        self._send = send
        self._span = span if span is not None and span.is_recording() else None
        self._method = "" if span is None else span.name
        self._body_watch = body_watch
        self._path_context = path_context
        self._endpoint = scope.get("endpoint")  # of an application around this one
        self._monotonic_start = clock.monotonic_ns()
        self._monotonic_end: int | None = None
        self._route: str | None = None
        self._error_type: str | None = None
        self._is_over = self._span is None and measured_key is None
        """Whether there is nothing left to end."""
        self._measured_key = measured_key
        if measured_key is not None:
            HTTP_SERVER_ACTIVE_REQUESTS.add(1, measured_key)
        self._status: int | None = None
        self._has_trailers = False
        self._is_last_part_sent = False
        self._is_client_gone = False

    async def receive(self) -> Message:
        """Hand on the server's next message."""
        self._name()  # as early as the route is known, so that a stuck request shows it
        message = await self._receive()
        if self._body_watch is not None:
            self._body_watch.see(message)
        if message["type"] == "http.disconnect" and not self._is_last_part_sent:
            self._is_client_gone = True
        return message

    async def send(self, message: Message) -> None:
        """Hand on the application's next message."""
        kind = message["type"]
        if kind == "http.response.body":
            is_last = not (message.get("more_body", False) or self._has_trailers)
        elif kind == "http.response.start":
            is_last = False
            message = self._started(message)
        elif kind == "http.response.trailers":
            is_last = not message.get("more_trailers", False)
        else:
            is_last = kind == "http.response.pathsend"
        if not is_last:
            await self._send(message)
            return
        self._is_last_part_sent = True
        await self._send(message)
        self._completed()

    def returned(self) -> None:
        """Take note that the application returned."""
        if self._is_over:
            return
        if not self._is_last_part_sent and self._scope["type"] == "http":
            if self._is_client_gone:
                self._client_left()
            else:
                self._error_type = _INCOMPLETE
                if self._span is not None:
                    self._span.set_attribute(ERROR_TYPE, _INCOMPLETE)
                    self._span.set_status(
                        "ERROR", "the application returned before its response was whole"
                    )
        self._end()

    def failed(self, error: BaseException) -> None:
        """Take note that `error` left the application."""
        if self._is_over:
            return
        kind = type(error).__name__
        if kind == _CLIENT_GONE:
            self._client_left()
        elif kind == _WEBSOCKET_DISCONNECT:
            if getattr(error, "code", None) not in _NORMAL_CLOSURES:
                self._client_left()
        else:
            self._error_type = type(error).__qualname__
            if self._span is not None:
                self._span.fail(error)
            if isinstance(error, GeneratorExit):  # the event loop dropped the request
                self._cancelled("the request was dropped")
        self._end()

    def _started(self, message: Message) -> Message:
        status: int = message["status"]
        self._status = status
        self._has_trailers = message.get("trailers", False)
        self._name()
        if self._path_context is None or status not in REDIRECTS:
            return message
        headers = self._path_context.put_back(message["headers"], self._scope["headers"])
        return {**message, "headers": headers}

    def _completed(self) -> None:
        if self._is_over:
            return
        self._monotonic_end = clock.monotonic_ns()
        if self._is_client_gone:
            self._client_left()
        if self._status is None or self._status < _SERVER_ERROR:
            self._end()

    def _client_left(self) -> None:
        self._error_type = _CLIENT_GONE
        if self._span is not None:
            self._span.set_attribute(ERROR_TYPE, _CLIENT_GONE)
        self._cancelled("the client disconnected")

    def _cancelled(self, message: str) -> None:
        if self._span is not None:
            self._span.set_attribute(CANCELLED, True)  # noqa: FBT003 - an attribute's value
            self._span.set_status("ERROR", message)

    def _end(self) -> None:
        if self._status is None:
            self._name()
        self._is_over = True
        if self._measured_key is not None:
            self._measure(*self._measured_key)
        span = self._span
        if span is None:
            return
        status = self._status
        if status is not None:
            span.put(HTTP_RESPONSE_STATUS_CODE, status)
            if status >= _SERVER_ERROR and span.status_code == "UNSET":
                span.set_attribute(ERROR_TYPE, str(status))
                span.set_status("ERROR")
        end = self._monotonic_end
        span.end(None if end is None else span.start_time_unix_nano + end - self._monotonic_start)

    def _measure(self, method: str, scheme: str) -> None:
        status = self._status
        error_type = self._error_type
        if error_type is None and status is not None and status >= _SERVER_ERROR:
            error_type = str(status)
        HTTP_SERVER_ACTIVE_REQUESTS.add(-1, (method, scheme))
        HTTP_SERVER_DURATION.record_between(
            self._monotonic_start,
            self._monotonic_end or clock.monotonic_ns(),
            (method, scheme, self._route, status, error_type),
            self._span,
        )

    def _name(self) -> None:
        """Name the span after its route when the application has chosen another endpoint."""
        endpoint = self._scope.get("endpoint")
        if endpoint is self._endpoint or self._is_over:
            return
        self._endpoint = endpoint
        template = self._route = route_template(self._scope)
        if template is not None and self._span is not None:
            self._span.put(HTTP_ROUTE, template, len(template))
            self._span.update_name(f"{self._method} {template}")
