"""What one span costs: ours, OpenTelemetry's SDK, and the floor, in one run.

A span has three attributes at the start and one set inside, is current in its block, and its line
goes to a file. Baselines: the SDK with BatchSpanProcessor and a compact ConsoleSpanExporter
(flush included), the SDK with an exporter that does nothing, and the floor: `orjson.dumps` of the
same record and one `os.write`. Times are of this machine; the ratios are what counts.

    python tests/bench/bench_span.py [--json] [--spans 20000] [--rounds 7]
"""

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import orjson
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExporter,
    SpanExportResult,
)

from gymlog import sites, span_groups
from gymlog.channel import Channel
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider

ATTRIBUTES = {"gym.turn": 3, "gym.tool": "get_weather", "gym.ok": True}


class Nothing(SpanExporter):
    """An exporter that does nothing."""

    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def gymlog_span(folder: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    fd = os.open(folder / "gymlog.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    service = ServiceInstance({"service.name": "nemo-gym/agent"}, lambda: Sink(Channel(fd)))
    provider = TracerProvider(service)
    service.start()
    sites.install(provider.tracer)
    span_groups.open_groups("all")
    managed_span = sites.managed_span

    def span() -> None:
        with managed_span("rollout", "gym.rollout", **ATTRIBUTES) as span:
            span.set_attribute("gym.reward_known", False)

    return span, lambda: None


def sdk_span(exporter: SpanExporter) -> tuple[Callable[[], None], Callable[[], None]]:
    provider = SdkTracerProvider()
    processor = BatchSpanProcessor(exporter, max_queue_size=1 << 20)
    provider.add_span_processor(processor)
    tracer = provider.get_tracer("bench")

    def span() -> None:
        with tracer.start_as_current_span("gym.rollout", attributes=ATTRIBUTES) as span:
            span.set_attribute("gym.reward_known", False)

    return span, lambda: processor.force_flush() and None


def floor(folder: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    line = (folder / "gymlog.log").read_bytes().splitlines()[3]
    record = orjson.loads(line)
    fd = os.open(folder / "floor.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    dumps, write, append = orjson.dumps, os.write, orjson.OPT_APPEND_NEWLINE
    return lambda: write(fd, dumps(record, option=append)) and None, lambda: None


def measure(
    subjects: dict[str, tuple[Callable[[], None], Callable[[], None]]], spans: int, rounds: int
) -> dict[str, list[float]]:
    """Return µs per span and round; the subjects take turns, so noise hits all alike."""
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, (span, flush) in subjects.items():
            start = time.perf_counter()
            for _ in range(spans):
                span()
            flush()
            times[name].append((time.perf_counter() - start) / spans * 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, (Path(name) / "sdk.log").open("w") as console:
        folder = Path(name)
        compact = ConsoleSpanExporter(
            out=console, formatter=lambda span: ReadableSpan.to_json(span, indent=None) + "\n"
        )
        ours = gymlog_span(folder)
        for _ in range(10):
            ours[0]()
        subjects = {
            "gymlog": ours,
            "floor": floor(folder),
            "sdk console": sdk_span(compact),
            "sdk nothing": sdk_span(Nothing()),
        }
        times = measure(subjects, options.spans, options.rounds)
    best = {name: min(values) for name, values in times.items()}
    report = {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("gymlog", "opentelemetry-sdk", "orjson")},
        },
        "microseconds": {
            name: {
                "best": round(best[name], 2),
                "median": round(statistics.median(values), 2),
                "worst": round(max(values), 2),
            }
            for name, values in times.items()
        },
        "ratios": {
            "gymlog / floor": round(best["gymlog"] / best["floor"], 2),
            "sdk console / gymlog": round(best["sdk console"] / best["gymlog"], 1),
            "sdk nothing / gymlog": round(best["sdk nothing"] / best["gymlog"], 1),
        },
    }
    if options.json:
        print(json.dumps(report))
        return
    print(" ".join(f"{name} {number}" for name, number in report["versions"].items()))
    for name, values in report["microseconds"].items():
        print(
            f"{name:12} best of {options.rounds} {values['best']:8.2f} µs   "
            f"median {values['median']:8.2f} µs   worst {values['worst']:8.2f} µs"
        )
    for name, ratio in report["ratios"].items():
        print(f"{name:22} {ratio:6.2f}")


if __name__ == "__main__":
    sys.exit(main())
