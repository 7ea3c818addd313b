"""What the ingress adds to a FastAPI request, beside OpenTelemetry's own FastAPI instrumentation.

Run `python tests/bench/bench_server.py [--json]`. Each application is called in this process as
ASGI, without sockets: a POST with a small JSON body and a traceparent. All write to files: gymlog
as it does on stdout, OpenTelemetry by its batch processor and console exporter, one line a span.
The variants take turns in every round, so that a slow moment hits all; times are of this machine,
only the ratios say something.
"""

import argparse
import asyncio
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from gymlog import sites, span_groups
from gymlog.channel import Channel
from gymlog.server import ServerMiddleware, instrument_fastapi
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider

VERSIONS = ("fastapi", "starlette", "opentelemetry-instrumentation-fastapi", "opentelemetry-sdk")
BODY = json.dumps({"response": "x" * 200, "reward_model": {"ground_truth": "42"}}).encode()
HEADERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"user-agent", b"bench"),
    (b"content-type", b"application/json"),
    (b"content-length", str(len(BODY)).encode()),
    (b"traceparent", b"00-11112222333344445555666677778888-aaaabbbbccccdddd-01"),
]


@dataclass
class Variant:
    """One application and the times of its rounds, in µs per request."""

    name: str
    app: Any  # Any: an ASGI application
    times: list[float] = field(default_factory=list)


def make_app() -> FastAPI:
    """Return a small application with the routes of a gym's server."""
    app = FastAPI()

    @app.post("/verify")
    async def verify(body: dict[str, object]) -> dict[str, object]:
        return {"reward": 1.0}

    @app.post("/v1/responses")
    async def responses(body: dict[str, object]) -> dict[str, object]:
        return body

    return app


async def raw_app(scope: Any, receive: Any, send: Any) -> None:  # Any: ASGI
    """Answer at once: what is left is what the ingress itself costs."""
    await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"{}", "more_body": False})


async def request(app: Any) -> None:  # Any: ASGI
    """Make one request."""
    message = {"type": "http.request", "body": BODY, "more_body": False}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/verify",
        "raw_path": b"/verify",
        "query_string": b"",
        "root_path": "",
        "headers": HEADERS,
        "client": ("127.0.0.1", 40000),
        "server": ("127.0.0.1", 8000),
    }

    async def receive() -> dict[str, object]:
        return message

    async def send(message: dict[str, object]) -> None:
        assert message.get("status", 200) == 200

    await app(scope, receive, send)


def contrib(exclude_spans: list[str] | None, folder: str) -> tuple[FastAPI, Callable[[], object]]:
    """Return an application with OpenTelemetry's instrumentation, and how to flush it."""
    app = make_app()
    provider = SdkTracerProvider()
    path = Path(folder) / f"contrib-{bool(exclude_spans)}.log"
    exporter = ConsoleSpanExporter(
        out=path.open("w"), formatter=lambda span: span.to_json(indent=None) + "\n"
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    FastAPIInstrumentor.instrument_app(app, tracer_provider=provider, exclude_spans=exclude_spans)
    return app, provider.force_flush


def measure(
    variants: list[Variant], flush: list[Callable[[], object]], rounds: int, count: int
) -> None:
    """Time `count` requests per round of each variant; what it queued is written in its time."""

    async def series(variant: Variant) -> None:
        for _ in range(count // 10):
            await request(variant.app)
        gc.collect()
        started = time.perf_counter()
        for _ in range(count):
            await request(variant.app)
        for write_all in flush:
            write_all()
        variant.times.append((time.perf_counter() - started) / count * 1e6)

    for _ in range(rounds):
        for variant in variants:
            asyncio.run(series(variant))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="rounds, the best counts (7)")
    parser.add_argument("--count", type=int, default=500, help="requests per round (500)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        descriptor = os.open(Path(folder) / "gymlog.log", os.O_WRONLY | os.O_CREAT)
        service = ServiceInstance({"service.name": "bench"}, lambda: Sink(Channel(descriptor)))
        lean, flush_lean = contrib(["receive", "send"], folder)
        full, flush_full = contrib(None, folder)
        sites.install(TracerProvider(service).tracer)
        span_groups.open_groups("default")
        variants = [
            Variant("bare", make_app()),
            Variant("gymlog", instrument_fastapi(make_app())),
            Variant("contrib without send and receive spans", lean),
            Variant("contrib", full),
            Variant("raw ASGI", raw_app),
            Variant("raw ASGI with gymlog", ServerMiddleware(raw_app)),
        ]
        measure(variants, [flush_lean, flush_full], options.rounds, options.count)

    best = {variant.name: min(variant.times) for variant in variants}
    added = {name: best[name] - best["bare"] for name in list(best)[1:4]}
    result = {
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in VERSIONS},
        "us_per_request": {
            variant.name: {
                "best": round(min(variant.times), 1),
                "median": round(statistics.median(variant.times), 1),
                "worst": round(max(variant.times), 1),
            }
            for variant in variants
        },
        "us_added": {name: round(value, 1) for name, value in added.items()},
        "us_of_the_ingress_alone": round(best["raw ASGI with gymlog"] - best["raw ASGI"], 1),
        "added_relative_to_gymlog": {
            name: round(value / added["gymlog"], 1) for name, value in added.items()
        },
    }
    print(json.dumps(result) if options.json else json.dumps(result, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
