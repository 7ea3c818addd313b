"""What spans cost in memory: a million written ones, and each one that is open.

Written: the resident memory of a process before and after its spans, each with three attributes
and one set inside, current in its block, its line in a file. Beside it OpenTelemetry's SDK with
BatchSpanProcessor and a compact ConsoleSpanExporter, flush included; what its full queue dropped is
told.

Open: asyncio tasks that each wait inside a span with three attributes, two of them its own, less
the same tasks with the span's group closed. Once by what Python allocates (tracemalloc), once by
resident memory; also with the `span_start` of each written.

Each measurement has a process of its own. Resident memory moves in pages and with the allocator's
mood, so the exit code looks at what is left per span: 1 when a written one leaves more than a byte
or an open one costs more than 2,048.

    python tests/bench/bench_memory.py [--json] [--spans 1000000] [--sdk-spans 200000]
        [--open 16384]
"""

import argparse
import asyncio
import gc
import json
import multiprocessing
import os
import platform
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import psutil
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from gymlog import managed_span, sites, span_groups
from gymlog.channel import Channel
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider

WARM_UP = 50_000
STEPS = 10
OPEN_LIMIT = 2_048
WRITTEN_LIMIT = 1.0
MIB = 1 << 20

R = TypeVar("R")


def in_fresh_process(function: Callable[..., R], *arguments: object) -> R:
    """Return what a function returns in a process that has done nothing else."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        return pool.submit(function, *arguments).result()


def resident_bytes() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def switch_on(path: Path) -> ServiceInstance:
    """Switch telemetry on with its lines in a file; a sweep announces every open span."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    service = ServiceInstance(
        {"service.name": "nemo-gym/agent"},
        lambda: Sink(Channel(fd)),
        span_start_after_seconds=1e-9,
    )
    sites.install(TracerProvider(service).tracer)
    return service


def written_by_gymlog(path: Path, count: int) -> dict[str, Any]:  # Any: JSON
    """Write spans; return resident memory before, after each tenth, and how many were lost."""
    service = switch_on(path)
    span_groups.open_groups("all")

    def write(spans: int) -> None:
        for number in range(spans):
            with managed_span(
                "rollout", "gym.rollout", turn=number, tool="search", ok=True
            ) as span:
                if span is not None:
                    span.set_attribute("gym.reward_known", False)

    write(WARM_UP)
    before = resident_bytes()
    after = []
    for _ in range(STEPS):
        write(count // STEPS)
        after.append(resident_bytes())
    return _written(before, after, count // STEPS * STEPS, service.sink.records_dropped)


def written_by_sdk(path: Path, count: int) -> dict[str, Any]:  # Any: JSON
    """Do with the SDK what `written_by_gymlog` does; a tenth ends with a flush."""
    provider = SdkTracerProvider()
    with path.open("w") as console:
        compact = ConsoleSpanExporter(
            out=console, formatter=lambda span: ReadableSpan.to_json(span, indent=None) + "\n"
        )
        provider.add_span_processor(BatchSpanProcessor(compact))
        tracer = provider.get_tracer("bench")

        def write(spans: int) -> None:
            for number in range(spans):
                with tracer.start_as_current_span(
                    "gym.rollout", attributes={"turn": number, "tool": "search", "ok": True}
                ) as span:
                    span.set_attribute("gym.reward_known", False)
            provider.force_flush()

        write(WARM_UP // 5)
        before = resident_bytes()
        after = []
        for _ in range(STEPS):
            write(count // STEPS)
            after.append(resident_bytes())
        provider.shutdown()
    written = count // STEPS * STEPS
    with path.open("rb") as lines:
        lost = written + WARM_UP // 5 - sum(1 for _ in lines)
    return _written(before, after, written, lost)


def _written(before: int, after: list[int], count: int, lost: int) -> dict[str, Any]:  # Any: JSON
    return {
        "spans": count,
        "lost": lost,
        "before_mib": round(before / MIB, 2),
        "after_mib": [round(size / MIB, 2) for size in after],
        "bytes_per_span": round((after[-1] - before) / count, 3),
    }


def held_by_tasks(path: Path, count: int, groups: str, is_traced: bool) -> tuple[float, float]:
    """Return the bytes that each of many waiting tasks takes, first, and once announced.

    `groups` empty closes the span's group; `is_traced` counts what Python allocates, else it is
    resident memory.
    """
    service = switch_on(path)
    span_groups.open_groups(groups)
    size = _traced_bytes if is_traced else resident_bytes

    async def wait(number: int, is_over: asyncio.Event) -> None:
        with managed_span(
            "rollout", "gym.rollout", turn=number, tool=f"tool {number}", ok=number % 3 == 0
        ):
            await is_over.wait()

    async def hold(tasks: int) -> tuple[float, float]:
        is_over = asyncio.Event()
        before = size()
        waiting = [asyncio.create_task(wait(number, is_over)) for number in range(tasks)]
        await asyncio.sleep(0)
        first = size()
        service.sweep()
        announced = size()
        is_over.set()
        await asyncio.gather(*waiting)
        return (first - before) / tasks, (announced - before) / tasks

    asyncio.run(hold(100))  # what the first of a kind builds stays
    if is_traced:
        tracemalloc.start()
    return asyncio.run(hold(count))


def _traced_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def bytes_per_open_span(folder: Path, count: int, is_traced: bool) -> dict[str, int]:
    """Return what the span of a waiting task costs: the task with one, less one without."""
    path = folder / "open.log"
    with_span = in_fresh_process(held_by_tasks, path, count, "all", is_traced)
    without = in_fresh_process(held_by_tasks, path, count, "", is_traced)
    return {
        "open": round(with_span[0] - without[0]),
        "announced": round(with_span[1] - without[1]),
        "task": round(without[0]),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--sdk-spans", type=int, default=200_000)
    parser.add_argument("--open", type=int, default=16_384)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written = {
            "gymlog": in_fresh_process(written_by_gymlog, folder / "gymlog.log", options.spans),
            "sdk": in_fresh_process(written_by_sdk, folder / "sdk.log", options.sdk_spans),
        }
        held = {
            "allocated": bytes_per_open_span(folder, options.open, is_traced=True),
            "resident": bytes_per_open_span(folder, options.open, is_traced=False),
        }
    report = {
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("gymlog", "opentelemetry-sdk", "orjson")},
        },
        "written": written,
        "open_spans": options.open,
        "bytes_per_open_span": held,
        "goals_met": {
            "written": written["gymlog"]["bytes_per_span"] <= WRITTEN_LIMIT,
            "open": all(
                costs[state] <= OPEN_LIMIT
                for costs in held.values()
                for state in ("open", "announced")
            ),
        },
    }
    print(json.dumps(report) if options.json else as_text(report))
    return 0 if all(report["goals_met"].values()) else 1


def as_text(report: dict[str, Any]) -> str:  # Any: JSON
    lines = [" ".join(f"{name} {number}" for name, number in report["versions"].items())]
    for name, values in report["written"].items():
        after = values["after_mib"]
        lines.append(
            f"{name:7} {values['spans']:9,} spans written: {values['before_mib']:.2f} MiB before, "
            f"{after[len(after) // 2 - 1]:.2f} half way, {after[-1]:.2f} after "
            f"({values['bytes_per_span']:.3f} bytes a span), {values['lost']:,} lost"
        )
    for name, values in report["bytes_per_open_span"].items():
        lines.append(
            f"{report['open_spans']:,} open spans, {name}: {values['open']:,} bytes each, "
            f"{values['announced']:,} once announced (beside a task's {values['task']:,})"
        )
    lines += [
        f"goal met, {name}: {'yes' if is_met else 'NO'}"
        for name, is_met in report["goals_met"].items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
