"""What the egress adds to a request: ours, and OpenTelemetry's aiohttp instrumentation, in one run.

Each request goes over a kept-alive connection to a server of a few bytes in the same loop, which
costs all alike; the body is read. Compared: gymlog with its lines going to a file, and with the
`http_client` group closed (context handed on, no span), to gymlog with telemetry off; and
OpenTelemetry's instrumentation with BatchSpanProcessor and ConsoleSpanExporter into a file, flush
included, to aiohttp alone. What is added is the median of the differences within a round, all of
whose requests are sent within a second: machines change their pace every few. Times are of this
machine; the ratios are what counts.

    python tests/bench/bench_client.py [--json] [--requests 150] [--rounds 60]
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from importlib.metadata import version
from pathlib import Path

import aiohttp
from opentelemetry.instrumentation.aiohttp_client import create_trace_config
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from gymlog import sites, span_groups
from gymlog.channel import Channel
from gymlog.client import request
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"


class Server(asyncio.Protocol):
    """Answers every request that fits one segment."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(ANSWER)


class Contender:
    """One way to send a request, and what it needs."""

    def __init__(self, folder: Path, groups: str | None = None) -> None:
        self.times: list[float] = []
        self._groups = groups
        self._tracer = None
        if groups is not None:
            fd = os.open(folder / groups, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            service = ServiceInstance({"service.name": "nemo-gym/agent"}, lambda: Sink(Channel(fd)))
            self._tracer = TracerProvider(service).tracer

    async def round(self, url: str, requests: int) -> None:
        """Send requests and keep the µs of processor time that each took."""
        sites.install(self._tracer)
        span_groups.open_groups(self._groups or "")
        begin = time.process_time()
        for _ in range(requests):
            async with await self.send(url) as response:
                await response.read()
        self.flush()
        self.times.append((time.process_time() - begin) / requests * 1e6)
        sites.install(None)

    def send(self, url: str) -> Awaitable[aiohttp.ClientResponse]:
        return request("GET", url)

    def flush(self) -> None:
        """Nothing is buffered."""

    async def close(self) -> None:
        """Nothing is held."""


class Aiohttp(Contender):
    """A session of aiohttp's own, with OpenTelemetry's instrumentation or without."""

    def __init__(self, folder: Path, *, instrumented: bool) -> None:
        super().__init__(folder)
        self._out = (folder / "opentelemetry").open("w")
        provider = SdkTracerProvider()
        self._processor = BatchSpanProcessor(
            ConsoleSpanExporter(
                out=self._out, formatter=lambda span: span.to_json(indent=None) + "\n"
            ),
            max_queue_size=1 << 20,
        )
        provider.add_span_processor(self._processor)
        self._session = aiohttp.ClientSession(
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[create_trace_config(tracer_provider=provider)] if instrumented else [],
        )

    def send(self, url: str) -> Awaitable[aiohttp.ClientResponse]:
        return self._session.request("GET", url)

    def flush(self) -> None:
        self._processor.force_flush()

    async def close(self) -> None:
        await self._session.close()
        self._processor.shutdown()
        self._out.close()


BASELINES = {
    "gymlog": "gymlog off",
    "gymlog, group closed": "gymlog off",
    "opentelemetry": "aiohttp",
}


async def measure(requests: int, rounds: int) -> dict[str, list[float]]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/responses"
    with tempfile.TemporaryDirectory() as folder:
        contenders = {
            "aiohttp": Aiohttp(Path(folder), instrumented=False),
            "opentelemetry": Aiohttp(Path(folder), instrumented=True),
            "gymlog off": Contender(Path(folder)),
            "gymlog": Contender(Path(folder), "http_client"),
            "gymlog, group closed": Contender(Path(folder), "rollout"),
        }
        for _ in range(rounds):
            for contender in contenders.values():
                await contender.round(url, requests)
        for contender in contenders.values():
            await contender.close()
    server.close()
    return {name: contender.times for name, contender in contenders.items()}


def _added(times: list[float], baseline: list[float]) -> list[float]:
    """Return the quartiles of what was added, round by round."""
    return statistics.quantiles(
        (time - other for time, other in zip(times, baseline, strict=True)), n=4
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    times = asyncio.run(measure(arguments.requests, arguments.rounds))
    added = {name: _added(times[name], times[baseline]) for name, baseline in BASELINES.items()}
    result = {
        "python": platform.python_version(),
        "aiohttp": version("aiohttp"),
        "request_us": {name: round(min(taken), 1) for name, taken in times.items()},
        "added_us": {name: [round(each, 1) for each in taken] for name, taken in added.items()},
        "opentelemetry_adds_times": round(added["opentelemetry"][1] / added["gymlog"][1], 1),
    }
    if arguments.json:
        json.dump(result, sys.stdout)
        print()
        return
    for name, taken in times.items():
        low, median, high = added.get(name, (0, 0, 0))
        more = f"  +{median:7.1f} µs ({low:.1f} … {high:.1f})" if name in added else ""
        print(f"{name:22} {min(taken):8.1f} µs{more}")
    print(
        f"OpenTelemetry's instrumentation adds {result['opentelemetry_adds_times']} times as much"
    )


if __name__ == "__main__":
    main()
