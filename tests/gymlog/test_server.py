"""The ingress: what a request's span is, whose child it is, and what it leaves alone."""

import asyncio

import opentelemetry.trace
import pytest
from fastapi import FastAPI
from opentelemetry import baggage
from opentelemetry import context as otel_context
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.applications import Starlette
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Mount

from gymlog import http_detail, notices, sites, testing
from gymlog.rollout import current_rollout_id, rollout_context
from gymlog.samplers import sampler_from
from gymlog.server import ServerMiddleware, instrument_fastapi

TRACE_ID = "11112222333344445555666677778888"
CALLER = "aaaabbbbccccdddd"
TRACEPARENT = (b"traceparent", f"00-{TRACE_ID}-{CALLER}-01".encode())
JSON = (b"content-type", b"application/json")


def gym_app(seen=None):
    """A server with one route; it notes its rollout and opens a span, as handlers do."""
    app = FastAPI()

    @app.api_route("/task", methods=["GET", "POST"])
    @app.get("/")
    @app.get("/health/live")
    async def work():
        if seen is not None:
            seen.append(current_rollout_id())
        tracer = sites.installed_tracer()
        if tracer is not None:
            tracer.open_span("gym.work").end()
        return {}

    @app.post("/run")
    async def run(body: dict):
        return await work()

    return app


# What the span is.


def test_a_request_is_one_span_of_the_stable_conventions(telemetry, asgi):
    """No query string, no user agent, no header, no address: small lines that leak nothing."""
    asyncio.run(asgi(instrument_fastapi(gym_app()), "POST", "/task", [TRACEPARENT]))
    span = telemetry.span("POST /task")
    assert span["kind"] == "SERVER"
    assert (span["trace_id"], span["parent_span_id"]) == (TRACE_ID, CALLER)
    assert span["flags"] == 0x301
    assert span["attributes"] == {
        "http.request.method": "POST",
        "url.path": "/task",
        "http.route": "/task",
        "http.response.status_code": 200,
    }
    assert telemetry.span("gym.work")["parent_span_id"] == span["span_id"]
    assert b"SECRET" not in b"".join(telemetry.file.writes)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_scheme_is_written_on_demand_and_when_it_is_not_plain_http(
    telemetry, asgi, monkeypatch, scheme
):
    """`full` writes what the conventions require, `lean` leaves plain http out."""
    for is_full in (True, False):
        monkeypatch.setattr(http_detail, "is_full", lambda is_full=is_full: is_full)
        asyncio.run(asgi(instrument_fastapi(gym_app()), "POST", "/task", scheme=scheme))
        written = telemetry.spans[-1]["attributes"].get("url.scheme")
        assert written == (scheme if is_full or scheme == "https" else None)


def test_an_unknown_method_is_an_attribute_not_a_name(telemetry, asgi):
    """Anyone can send any method, a name has few values."""
    asyncio.run(asgi(instrument_fastapi(gym_app()), "BREW", "/task"))
    (span,) = telemetry.spans
    assert span["name"] == "HTTP /task"
    assert span["attributes"]["http.request.method"] == "_OTHER"
    assert span["attributes"]["http.request.method_original"] == "BREW"


def test_a_caller_that_is_not_sampled_is_followed(telemetry, asgi):
    """No line is written and no child either, but the trace is handed on."""
    headers = [(b"traceparent", TRACEPARENT[1][:-2] + b"00")]
    asyncio.run(asgi(instrument_fastapi(gym_app()), "POST", "/task", headers))
    assert telemetry.spans == []


def test_a_root_that_the_sampler_refuses_has_no_lines(asgi):
    """Sampling decides once, for the whole request."""
    with testing.captured(sampler=sampler_from("always_off", "")) as telemetry:
        reply = asyncio.run(asgi(instrument_fastapi(gym_app()), "POST", "/task"))
    assert reply.status == 200
    assert telemetry.spans == []


# Where a request belongs.


@pytest.mark.parametrize(
    ("path", "headers", "body", "rollout_id"),
    [
        ("/ng-rollout/12-0/run", [], b'{"_ng_rollout_id":"other"}', "12-0"),
        ("/ng-rollout/12-0/training-token-capture/run", [], b"{}", "12-0"),
        ("/run", [(b"baggage", b"nemo.gym.rollout.id=7-1")], b'{"_ng_rollout_id":"b"}', "7-1"),
        ("/run", [], b'{"_ng_task_index":3,"_ng_rollout_index":0}', "3-0"),
        ("/run", [], [b'{"_ng_roll', b'out_id":"x.1"}'], "x.1"),
        ("/run", [], b'{"text":"_ng_rollout_id"}', None),
        ("/ng-rollout/12-0/run", [(b"baggage", b"nemo.gym.rollout.id=7-1")], b"{}", "12-0"),
    ],
)
def test_the_rollout_is_found_in_path_baggage_and_body(
    telemetry, asgi, path, headers, body, rollout_id
):
    """In this order; the handler, its spans and the SERVER span all have it."""
    seen = []
    app = instrument_fastapi(gym_app(seen))
    reply = asyncio.run(asgi(app, "POST", path, [JSON, *headers], body))
    assert reply.status == 200
    assert seen == [rollout_id]
    server, work = telemetry.span("POST /run"), telemetry.span("gym.work")
    assert server["attributes"].get("nemo.gym.rollout.id") == rollout_id
    assert work["attributes"].get("nemo.gym.rollout.id") == rollout_id
    assert server["attributes"]["url.path"] == "/run"


@pytest.mark.parametrize("headers", [[], [(b"traceparent", b"garbage"), (b"tracestate", b"a=1")]])
def test_the_path_can_carry_the_caller(telemetry, asgi, headers):
    """For callers that can only choose a URL; a broken header is no better than none."""
    path = f"/ng-trace/{TRACEPARENT[1].decode()}/ng-rollout/12-0/run"
    asyncio.run(asgi(instrument_fastapi(gym_app()), "POST", path, [JSON, *headers], b"{}"))
    span = telemetry.span("POST /run")
    assert (span["trace_id"], span["parent_span_id"]) == (TRACE_ID, CALLER)
    assert span["attributes"]["nemo.gym.rollout.id"] == "12-0"
    assert "trace_state" not in span


def test_a_header_counts_before_the_path(telemetry, asgi):
    """The nearest caller is the one that sent the request."""
    path = f"/ng-trace/00-{'9' * 32}-{'8' * 16}-01/run"
    app = instrument_fastapi(gym_app())
    asyncio.run(asgi(app, "POST", path, [JSON, TRACEPARENT], b"{}"))
    assert telemetry.span("POST /run")["trace_id"] == TRACE_ID


def test_a_broken_segment_in_the_path_starts_a_new_trace(telemetry, asgi):
    """The request is served all the same."""
    app = instrument_fastapi(gym_app())
    reply = asyncio.run(asgi(app, "POST", "/ng-trace/garbage/run", [JSON], b"{}"))
    assert reply.status == 200
    assert telemetry.span("POST /run")["parent_span_id"] is None


def test_a_redirect_keeps_the_rollout(telemetry, asgi):
    """A client that follows it stays in its rollout."""
    app = instrument_fastapi(gym_app())
    reply = asyncio.run(asgi(app, "POST", "/ng-rollout/12-0/task/"))
    assert reply.status == 307
    assert reply.headers[b"location"].startswith(b"http://gym.local:8000/ng-rollout/12-0/task?")


@pytest.mark.parametrize("path", ["/task", "/ng-rollout/12-0/task"])
@pytest.mark.parametrize("header", [b"a=1,nemo.gym.rollout.id=7-1", b"a=1"])
def test_other_baggage_arrives_as_well(telemetry, asgi, header, path):
    """OpenTelemetry's users find their members where they expect them."""
    seen = []

    async def app(scope, receive, send):
        seen.append(baggage.get_baggage("a"))
        await PlainTextResponse("")(scope, receive, send)

    asyncio.run(asgi(ServerMiddleware(app), "POST", path, [(b"baggage", header), TRACEPARENT]))
    assert seen == ["1"]
    assert telemetry.span("POST")["trace_id"] == TRACE_ID


def test_a_request_starts_from_nothing_and_leaves_nothing(telemetry, asgi):
    """What was current around it is neither its parent nor its rollout, and is back afterwards."""
    app = instrument_fastapi(gym_app())
    seen = []

    async def note_baggage(scope, receive, send):
        seen.append(baggage.get_baggage("a"))
        await PlainTextResponse("")(scope, receive, send)

    async def run():
        with rollout_context("outer"), telemetry.tracer.start_as_current_span("outer") as outer:
            await asgi(app, "POST", "/run", [JSON], b'{"_ng_rollout_id":"inner"}')
            await asgi(app, "POST", "/run", [JSON], b"{}")
            assert current_rollout_id() == "outer"
            assert opentelemetry.trace.get_current_span() is outer

            token = otel_context.attach(baggage.set_baggage("a", "left behind"))
            await asgi(ServerMiddleware(note_baggage), "POST", "/task")
            assert baggage.get_baggage("a") == "left behind"
            otel_context.detach(token)

    asyncio.run(run())
    assert seen == [None]
    first, second, _ = (span for span in telemetry.spans if span["kind"] == "SERVER")
    assert first["parent_span_id"] is None
    assert first["attributes"]["nemo.gym.rollout.id"] == "inner"
    assert second["parent_span_id"] is None
    assert "nemo.gym.rollout.id" not in second["attributes"]


# What has no span.


@pytest.mark.parametrize("closes_group", [True, False])
def test_without_a_span_the_context_still_travels(asgi, closes_group):
    """With the group closed, and for a health probe, children join the caller's trace."""
    groups = "rollout" if closes_group else "all"
    path = "/task" if closes_group else "/health/live"
    seen = []
    with testing.captured(groups) as telemetry:
        app = instrument_fastapi(gym_app(seen))
        asyncio.run(asgi(app, "GET", f"/ng-rollout/12-0{path}", [TRACEPARENT]))
        (span,) = telemetry.spans
        assert span["name"] == "gym.work"
        assert (span["trace_id"], span["parent_span_id"]) == (TRACE_ID, CALLER)
        assert span["attributes"] == {"nemo.gym.rollout.id": "12-0"}
        if closes_group:
            asyncio.run(asgi(app, "POST", "/run", [JSON], b'{"_ng_rollout_id":"body"}'))
            assert telemetry.spans[1]["parent_span_id"] is None
            assert seen == ["12-0", "body"]


def test_a_path_carries_the_caller_without_a_span_too(asgi):
    """The group gates the span, not the propagation."""
    with testing.captured("rollout") as telemetry:
        app = instrument_fastapi(gym_app())
        asyncio.run(asgi(app, "GET", f"/ng-trace/{TRACEPARENT[1].decode()}/task"))
    assert telemetry.span("gym.work")["parent_span_id"] == CALLER


@pytest.mark.parametrize(
    ("method", "path", "is_traced"),
    [
        ("GET", "/", False),
        ("GET", "/health", False),
        ("GET", "/healthz", False),
        ("GET", "/health/live", False),
        ("POST", "/", True),
        ("HEAD", "/health", True),
        ("GET", "/task", True),
    ],
)
@pytest.mark.parametrize("root_path", ["", "/api"])
def test_health_probes_have_no_span(telemetry, asgi, method, path, is_traced, root_path):
    """They come every few seconds and say nothing."""
    app = ServerMiddleware(gym_app())
    asyncio.run(asgi(app, method, root_path + path, root_path=root_path))
    assert any(span["kind"] == "SERVER" for span in telemetry.spans) is is_traced


def test_health_probes_can_be_traced(telemetry, asgi, monkeypatch):
    """By the environment for a whole fleet, by an argument for one application."""
    chosen = instrument_fastapi(gym_app(), excluded_paths=["/task"])
    monkeypatch.setenv("GYMLOG_TRACE_HEALTH", "1")
    asyncio.run(asgi(instrument_fastapi(gym_app()), "GET", "/health/live"))
    asyncio.run(asgi(chosen, "GET", "/health/live"))
    asyncio.run(asgi(chosen, "GET", "/task"))
    names = [span["name"] for span in telemetry.spans if span["kind"] == "SERVER"]
    assert names == ["GET /health/live"] * 2


# What is instrumented.


def stack_of(app):
    """Return the application's middleware stack, built."""
    if app.middleware_stack is None:
        app.middleware_stack = app.build_middleware_stack()
    return app.middleware_stack


def test_with_telemetry_off_the_stack_is_what_it_would_have_been(asgi):
    """Nothing is left in the way of a request."""
    app = instrument_fastapi(gym_app())
    assert asyncio.run(asgi(app, "GET", "/task")).status == 200
    assert type(stack_of(app)) is ServerErrorMiddleware
    assert getattr(app, "_telemetry", {"tracing": True})["tracing"] is True


def test_telemetry_that_starts_later_is_waited_for(asgi, monkeypatch):
    """An application whose lifespan calls init_telemetry has its stack by then."""
    monkeypatch.setenv("NEMO_GYM_OTEL_ENABLED", "1")
    app = instrument_fastapi(gym_app())
    asyncio.run(asgi(app, "GET", "/task"))
    with testing.captured() as telemetry:
        asyncio.run(asgi(app, "GET", "/task"))
        assert telemetry.span("GET /task")


def test_an_application_that_served_with_telemetry_off_can_still_be_instrumented(asgi):
    """Calling again when telemetry is on is enough."""
    app = instrument_fastapi(gym_app())
    asyncio.run(asgi(app, "GET", "/task"))
    with testing.captured() as telemetry:
        asyncio.run(asgi(instrument_fastapi(app), "GET", "/task"))
        assert telemetry.span("GET /task")


def test_instrumenting_twice_changes_nothing(telemetry, asgi):
    """One span, before and after the stack was built."""
    app = instrument_fastapi(instrument_fastapi(gym_app()))
    asyncio.run(asgi(app, "GET", "/task"))
    assert instrument_fastapi(app) is app
    asyncio.run(asgi(app, "GET", "/task"))
    assert [span["name"] for span in telemetry.spans].count("GET /task") == 2


def test_an_application_that_has_served_already_is_instrumented(telemetry, asgi):
    """Its stack is wrapped where it is."""
    app = gym_app()
    asyncio.run(asgi(app, "GET", "/task"))
    instrument_fastapi(app)
    asyncio.run(asgi(app, "GET", "/task"))
    assert len([span for span in telemetry.spans if span["kind"] == "SERVER"]) == 1


def test_any_other_application_is_wrapped(telemetry, asgi):
    """A function of three arguments, or an application of another framework."""

    async def app(scope, receive, send):
        await PlainTextResponse("plain")(scope, receive, send)

    wrapped = instrument_fastapi(app)
    assert instrument_fastapi(wrapped) is wrapped
    assert asyncio.run(asgi(wrapped, "GET", "/task")).body == b"plain"
    assert telemetry.span("GET")["attributes"]["url.path"] == "/task"


def test_a_mounted_application_opens_no_second_span(telemetry, asgi):
    """Instrumented or not, the request has been seen."""
    inner = instrument_fastapi(gym_app())
    outer = instrument_fastapi(Starlette(routes=[Mount("/inner", inner)]))
    asyncio.run(asgi(outer, "POST", "/inner/task"))
    assert [span["name"] for span in telemetry.spans if span["kind"] == "SERVER"] == [
        "POST /inner/task"
    ]


def test_a_lifespan_that_is_over_says_stopped(telemetry):
    """Startup and shutdown are no requests; at the end what is open is named, once."""
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent = []

    async def receive():
        return next(messages)

    async def send(message):
        sent.append((message["type"], len(telemetry.records)))

    app = instrument_fastapi(gym_app())
    telemetry.tracer.start_span("open")
    asyncio.run(app({"type": "lifespan", "state": {}}, receive, send))
    assert [kind for kind, _ in sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    before = telemetry.records[: sent[-1][1]]
    after = telemetry.records[sent[-1][1] :]
    assert "stopped" not in [record.get("state") for record in before]
    assert [(r["record_type"], r.get("name", r.get("state"))) for r in after] == [
        ("span_start", "open"),
        ("process", "stopped"),
    ]
    telemetry.service.stop()
    assert len(telemetry.records) == sent[-1][1] + 2


# Other tracers of requests.


@pytest.fixture
def global_provider(telemetry, monkeypatch):
    """Make the captured telemetry OpenTelemetry's global provider."""
    monkeypatch.setattr(opentelemetry.trace, "_TRACER_PROVIDER", telemetry.provider)
    return telemetry


def kinds(telemetry):
    return [span["kind"] for span in telemetry.spans if span["name"] != "gym.work"]


def test_fastapi_alone_does_trace_itself(global_provider, asgi):
    """The reason for the next test: without the ingress its own spans are written."""
    if not hasattr(FastAPI(), "_native_telemetry"):
        pytest.skip("this FastAPI has no telemetry of its own")
    asyncio.run(asgi(gym_app(), "GET", "/task"))
    assert kinds(global_provider).count("SERVER") == 1
    assert len(kinds(global_provider)) > 1


@pytest.mark.parametrize("path", ["/task", "/mounted/task", "/", "/mounted/health/live"])
def test_fastapi_own_telemetry_is_silent_below_the_ingress(global_provider, asgi, path):
    """One SERVER span, no operation spans, for mounted applications and probes as well."""
    app = instrument_fastapi(gym_app())
    app.mount("/mounted", gym_app())
    asyncio.run(asgi(app, "GET", path))
    is_probe = path == "/"
    assert kinds(global_provider) == ([] if is_probe else ["SERVER"])


def test_fastapi_is_silent_when_the_provider_comes_later(telemetry, asgi, monkeypatch):
    """The application is instrumented, and has served, before there is a global provider."""
    monkeypatch.setenv("NEMO_GYM_OTEL_ENABLED", "1")
    sites.install(None)
    app = instrument_fastapi(gym_app())
    asyncio.run(asgi(app, "GET", "/task"))
    sites.install(telemetry.tracer)
    monkeypatch.setattr(opentelemetry.trace, "_TRACER_PROVIDER", telemetry.provider)
    asyncio.run(asgi(app, "GET", "/task"))
    assert kinds(telemetry) == ["SERVER"]


def test_fastapi_with_a_provider_of_its_own_keeps_it(telemetry, asgi):
    """Who configured it explicitly wants it."""
    if not hasattr(FastAPI(), "_native_telemetry"):
        pytest.skip("this FastAPI has no telemetry of its own")
    exporter = InMemorySpanExporter()
    provider = SdkTracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = FastAPI(telemetry={"tracer_provider": provider})

    @app.get("/task")
    def work():
        return {}

    asyncio.run(asgi(instrument_fastapi(app), "GET", "/task"))
    names = {span.name for span in exporter.get_finished_spans()}
    assert names >= {"GET /task", "fastapi.endpoint"}
    assert telemetry.span("GET /task")["parent_span_id"] is None


@pytest.fixture
def contrib():
    """OpenTelemetry's FastAPI instrumentation, undone afterwards."""
    apps = []

    def instrument(app, **options):
        FastAPIInstrumentor.instrument_app(app, **options)
        apps.append(app)
        return app

    yield instrument
    for app in apps:
        FastAPIInstrumentor.uninstrument_app(app)


@pytest.mark.parametrize("has_served", [True, False])
def test_contrib_instrumentation_on_our_provider_is_left_out(
    global_provider, asgi, contrib, capfd, has_served
):
    """Not two SERVER spans; one line says so, and an exception is recorded once."""
    notices.reset()
    app = gym_app()
    app.add_api_route("/boom", lambda: 1 / 0)
    contrib(app)
    if has_served:
        asyncio.run(asgi(app, "GET", "/nothing"))
        global_provider.file.writes.clear()
    instrument_fastapi(app)
    asyncio.run(asgi(app, "GET", "/task"))
    assert isinstance(asyncio.run(asgi(app, "GET", "/boom")).error, ZeroDivisionError)
    assert kinds(global_provider) == ["SERVER", "SERVER"]
    assert len(global_provider.span("GET /boom")["events"]) == 1
    told = [line for line in capfd.readouterr().err.splitlines() if "opentelemetry" in line]
    assert len(told) == 1


def test_contrib_instrumentation_that_comes_second_stays_out(global_provider, asgi, contrib):
    """It refuses by itself a stack that is not Starlette's own."""
    app = contrib(instrument_fastapi(gym_app()))
    asyncio.run(asgi(app, "GET", "/task"))
    assert kinds(global_provider) == ["SERVER"]


def test_contrib_instrumentation_with_an_sdk_of_its_own_stays(telemetry, asgi, contrib):
    """Its spans go elsewhere and meet ours nowhere."""
    exporter = InMemorySpanExporter()
    provider = SdkTracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    app = contrib(gym_app(), tracer_provider=provider)
    asyncio.run(asgi(instrument_fastapi(app), "GET", "/task"))
    assert "GET /task" in [span.name for span in exporter.get_finished_spans()]
    assert kinds(telemetry) == ["SERVER"]
