"""The ingress: one SERVER span per HTTP request or WebSocket connection of an ASGI application.

Pure ASGI: no framework is imported, Starlette and FastAPI are known by their attributes. The
request alone decides: whatever an earlier one left behind on its connection, it starts with an
empty context, its own caller and its own rollout id. The span ends with the last byte of the
response; background tasks run on as its children. With the `server` group closed, and for health
probes, there is no span but the context travels on. A request costs 25 to 40 µs, its line included.
With metrics on, all but the probes are measured too, with a span or without, for 2 to 3 µs more.

Names and attributes: OpenTelemetry's stable HTTP conventions, without query string and headers.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, Protocol, TypeVar, overload

from opentelemetry.context.context import Context
from opentelemetry.propagators.textmap import Getter

from gymlog import http_detail, rollout, sites
from gymlog.body_watch import BodyWatch
from gymlog.environment import is_telemetry_env_enabled
from gymlog.exchange import Exchange, Message, Receive, Scope, Send
from gymlog.metrics import instruments
from gymlog.metrics.collector import flush_metrics
from gymlog.notices import notice
from gymlog.observers import watch_event_loop
from gymlog.path_context import PathContext, split_root, take_off
from gymlog.propagation import (
    OWN_MEMBER,
    Propagator,
    RemoteParent,
    extract,
    remote_parent,
    rollout_id_in,
)
from gymlog.semconv import (
    HTTP_REQUEST_METHOD,
    HTTP_REQUEST_METHOD_ORIGINAL,
    URL_PATH,
    URL_SCHEME,
)
from gymlog.settings import TRACE_HEALTH
from gymlog.span_groups import GymSpanGroup, is_span_group_enabled
from gymlog.spans import REMOTE, Span, context_with, get_context, set_context
from gymlog.tracer import Tracer

__all__ = ["HEALTH_PROBES", "ServerMiddleware", "instrument_fastapi"]

HEALTH_PROBES: Final = ("/", "/health*")
"""Paths whose GET requests have no span by default; a `*` at the end stands for any text."""

ASGIApp = Callable[[Any, Any, Any], Awaitable[None]]  # Any: each framework has its own aliases
Headers = Sequence[tuple[bytes, bytes]]

_SEEN: Final = "gymlog.seen"
"""Scope key: the request has been looked at, an application further in leaves it alone."""

_FASTAPI_TELEMETRY: Final = "fastapi.telemetry"
"""Scope key: while it is there, FastAPI (0.165 and later) opens no spans of its own."""

_METHODS: Final = frozenset(
    {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}
)
_EMPTY: Final = Context()
_TRACE_HEADERS: Final = frozenset({b"traceparent", b"tracestate"})
_CONTRIB: Final = "opentelemetry.instrumentation."


class ServerMiddleware:
    """An ASGI application that opens the SERVER span around another one, `app`."""

    __slots__ = ("_excluded_paths", "_excluded_starts", "app")

    def __init__(self, app: ASGIApp, *, excluded_paths: Iterable[str] = HEALTH_PROBES) -> None:
        self.app = app
        paths = list(excluded_paths)
        self._excluded_paths = frozenset(path for path in paths if not path.endswith("*"))
        self._excluded_starts = tuple(path[:-1] for path in paths if path.endswith("*"))

    async def __call__(  # noqa: C901 - the hot path is one function
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve one request or connection; the client gets what `app` sends."""
        watch_event_loop()
        tracer = sites.installed_tracer()
        is_off = tracer is None and not instruments.are_on
        kind = scope["type"]
        if is_off or kind not in ("http", "websocket") or _SEEN in scope:
            if kind == "lifespan":
                send = _farewell(send)
            await self.app(scope, receive, send)
            return
        scope = dict(scope)
        scope[_SEEN] = True
        is_native = scope.setdefault(_FASTAPI_TELEMETRY, None) is not None
        headers = scope["headers"]
        if type(headers) is not list:  # ASGI promises no more than one walk
            headers = scope["headers"] = list(headers)
        path_context = take_off(scope)
        parent, rollout_id, has_others, has_json = _origin(headers, path_context)
        rollout_token = rollout.set_rollout_id(rollout_id)
        span = watch = measured_key = None
        method = scope.get("method")
        is_excluded = method == "GET" and self._is_excluded(scope)
        if instruments.are_on and not is_excluded and kind == "http":
            scheme = scope.get("scheme", "http")
            measured_key = (method if method in _METHODS else "_OTHER", scheme)
        if tracer is not None and is_span_group_enabled(GymSpanGroup.SERVER) and not is_excluded:
            span = _open_span(tracer, scope, parent)
        if rollout_id is None and has_json and method == "POST":
            watch = BodyWatch(span)
        exchange = Exchange(scope, receive, send, span, watch, path_context, measured_key)
        # A FastAPI that traces into a provider of its own keeps its place in the context.
        context = get_context() if is_native else _EMPTY
        if has_others or (span is None and parent is not None):
            context = _propagator.extract(_with_parent(headers, path_context), context, _getter)
        if span is not None:
            context = context_with(span, context)
        context_token = set_context(context)
        del parent, context  # else they stay, for the collector to look at, as long as this runs
        try:
            await self.app(scope, exchange.receive, exchange.send)
        except BaseException as error:
            exchange.failed(error)
            raise
        else:
            exchange.returned()
        finally:
            Span.detach(context_token)
            rollout.reset(rollout_token)

    def _is_excluded(self, scope: Scope) -> bool:
        path = split_root(scope["path"], scope.get("root_path", ""))[1]
        return path in self._excluded_paths or path.startswith(self._excluded_starts)


def _farewell(send: Send) -> Send:
    """Return `send` that writes metrics, what is open, and `stopped`, after the application's end.

    A server that ends on a signal raises it again when it is done, and no atexit hook runs then.
    """

    async def send_and_say(message: Message) -> None:
        await send(message)
        if not message["type"].startswith("lifespan.shutdown."):
            return
        if instruments.are_on:
            flush_metrics()
        tracer = sites.installed_tracer()
        if tracer is not None:
            tracer.service.say_stopped()

    return send_and_say


class _Starlette(Protocol):
    """What Starlette's applications, FastAPI's among them, have."""

    router: Any  # Any: frameworks are not imported, here and below
    middleware_stack: Any

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None: ...


_StarletteT = TypeVar("_StarletteT", bound=_Starlette)


@overload
def instrument_fastapi(  # type: ignore[overload-overlap]  # the first that fits is meant
    app: _StarletteT, *, excluded_paths: Iterable[str] | None = None
) -> _StarletteT: ...


@overload
def instrument_fastapi(
    app: ASGIApp, *, excluded_paths: Iterable[str] | None = None
) -> ServerMiddleware: ...


def instrument_fastapi(
    app: Any,  # Any: an application of a framework that is not imported
    *,
    excluded_paths: Iterable[str] | None = None,
) -> Any:  # Any: as the overloads say
    """Give an ASGI application the ingress; call it before or after `init_telemetry`.

    A FastAPI or Starlette application is changed in place and returned, whether it has served
    already or not; doing it again changes nothing. Any other application is returned wrapped, so
    use what this returns. With telemetry off the application serves exactly as before.

    GET requests for `excluded_paths` (a `*` at the end stands for any text) have no span; by
    default these are `HEALTH_PROBES`, or none with GYMLOG_TRACE_HEALTH=1.
    """
    if excluded_paths is None:
        excluded_paths = () if TRACE_HEALTH.value() else HEALTH_PROBES
    if isinstance(app, ServerMiddleware):
        return app
    build = getattr(app, "build_middleware_stack", None)
    if build is None:
        return ServerMiddleware(app, excluded_paths=excluded_paths)
    if not isinstance(build, _StackBuilder):
        build = app.build_middleware_stack = _StackBuilder(app, build, tuple(excluded_paths))
    if app.middleware_stack is not None:
        app.middleware_stack = build.around(app.middleware_stack)
    return app


class _StackBuilder:
    """Takes the place of an application's `build_middleware_stack`, with the ingress outermost.

    Starlette builds its stack when it is called for the first time. By then it is known whether
    telemetry is on; when it is off, the stack is what it would have been.
    """

    def __init__(self, app: Any, build: Callable[[], Any], excluded_paths: Sequence[str]) -> None:
        self._app = app
        self._build = build
        self._excluded_paths = excluded_paths

    def __call__(self) -> Any:  # Any: an ASGI application
        return self.around(self._build())

    def around(self, stack: Any) -> Any:  # Any: an ASGI application
        """Return `stack` inside the ingress, other tracers of its requests being silent."""
        is_on = sites.installed_tracer() is not None or instruments.are_on
        if not (is_on or is_telemetry_env_enabled()) or isinstance(stack, ServerMiddleware):
            return stack
        _silence_native_telemetry(self._app)
        return ServerMiddleware(
            _without_contrib_middleware(stack), excluded_paths=self._excluded_paths
        )


def _silence_native_telemetry(app: Any) -> None:  # Any: a FastAPI application
    """Switch off what FastAPI would send to the global providers; a provider of its own stays."""
    config = getattr(app, "_telemetry", None)
    if not isinstance(config, dict):
        return
    for signal, provider in (
        ("tracing", "tracer_provider"),
        ("metrics", "meter_provider"),
        ("logs", "logger_provider"),
    ):
        if config.get(provider) is None:
            config[signal] = False


def _without_contrib_middleware(stack: Any) -> Any:  # Any: ASGI applications
    """Return `stack` without the middleware of OpenTelemetry's own FastAPI instrumentation.

    Two SERVER spans for each request would contradict each other. One that writes to a provider
    of the OpenTelemetry SDK does not meet ours and stays.
    """
    layers = [stack]
    while (inner := getattr(layers[-1], "app", None)) is not None:
        layers.append(inner)
    contrib = [layer for layer in layers if type(layer).__module__.startswith(_CONTRIB)]
    if not contrib or any(_writes_elsewhere(layer) for layer in contrib):
        return stack
    notice(
        "contrib instrumentation",
        "this application is also instrumented by opentelemetry-instrumentation-fastapi; its "
        "spans and metrics of requests are left out, gymlog's SERVER spans stand",
    )
    for outer, inner in reversed(list(pairwise(layers))):
        if inner in contrib:
            outer.app = inner.app
    return stack.app if stack in contrib else stack


def _writes_elsewhere(layer: Any) -> bool:  # Any: an ASGI application
    return type(getattr(layer, "tracer", None)).__module__.startswith("opentelemetry.sdk.")


class _HeaderGetter(Getter[Headers]):
    """Reads ASGI's raw headers, whose names are in lower case, for a propagator."""

    def get(self, carrier: Headers, key: str) -> list[str] | None:
        wanted = key.lower().encode()
        return [value.decode("latin-1") for name, value in carrier if name == wanted] or None

    def keys(self, carrier: Headers) -> list[str]:
        return [name.decode("latin-1") for name, _ in carrier]


_getter = _HeaderGetter()
_propagator = Propagator()


def _origin(
    headers: Headers, path_context: PathContext | None
) -> tuple[RemoteParent | None, str | None, bool, bool]:
    """Say where a request comes from, as its headers and its path have it.

    The caller's span, the rollout id, whether there is other baggage, whether the body is JSON.
    """
    values = dict(headers)
    baggage = values.get(b"baggage")
    if len(values) == len(headers) and b"tracestate" not in values:  # as almost always
        traceparent = values.get(b"traceparent")
        parent = None if traceparent is None else remote_parent(traceparent)
    else:
        parent = extract(headers)
        if baggage is not None:
            baggage = b",".join(value for name, value in headers if name == b"baggage")
    rollout_id = None
    if path_context is not None:
        rollout_id = path_context.rollout_id
        if parent is None and path_context.traceparent is not None:
            parent = extract(_with_parent(headers, path_context))
    has_others = False
    if baggage:
        has_others = b"," in baggage or not baggage.startswith(OWN_MEMBER)
        if rollout_id is None:
            rollout_id = rollout_id_in(baggage)
    return parent, rollout_id, has_others, b"json" in values.get(b"content-type", b"")


def _with_parent(headers: Headers, path_context: PathContext | None) -> Headers:
    """Return the headers with the caller's span that the path names, if they name none."""
    if path_context is None or path_context.traceparent is None or extract(headers) is not None:
        return headers
    kept = [header for header in headers if header[0] not in _TRACE_HEADERS]
    return [*kept, (b"traceparent", path_context.traceparent)]


def _open_span(tracer: Tracer, scope: Scope, parent: RemoteParent | None) -> Span:
    """Open the request's span, with what is known before the route is.

    Names and attributes are those that OpenTelemetry's conventions ask for.
    """
    path = scope["path"]
    scheme = scope.get("scheme", "http")
    method: str = scope.get("method", "")  # a WebSocket has none
    span = Span()
    if scheme == "http" and method in _METHODS and not http_detail.is_full():  # as almost always
        attributes = {HTTP_REQUEST_METHOD: method, URL_PATH: path}
        span.begin(tracer, method, "SERVER", attributes, parent, REMOTE, len(path))
        return span
    name, attributes = "WS", {}
    if scope["type"] == "http":
        name, attributes = method, {HTTP_REQUEST_METHOD: method}
        if method not in _METHODS:
            name = "HTTP"
            attributes = {HTTP_REQUEST_METHOD: "_OTHER", HTTP_REQUEST_METHOD_ORIGINAL: method}
    if scheme != "http" or http_detail.is_full():
        attributes[URL_SCHEME] = scheme
    attributes[URL_PATH] = path
    span.begin(tracer, name, "SERVER", attributes, parent, REMOTE)
    return span
