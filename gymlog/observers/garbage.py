"""Garbage collections: how long the program stood still for each, and what they collected.

The interpreter calls back at both ends of a collection, and that may be anywhere, also inside a
lock of the metrics library. So the callback only keeps the pause (0.5 µs a collection); it becomes
a metric when metrics are collected. All else the interpreter counts by itself.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from gymlog.semconv import GC_GENERATION

__all__ = ["PAUSE_BOUNDS_MS", "GarbageCollections"]

PAUSE_BOUNDS_MS: Final = (
    0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000,
)  # fmt: skip

_MAX_PAUSES: Final = 16_384
"""Kept between two exports; of more the histogram lacks the oldest, the counters none."""

_NS_PER_MS: Final = 1_000_000

_COUNTERS: Final = (
    ("collections", "{collection}", "Garbage collections"),
    ("collected", "{object}", "Objects that they freed"),
    ("uncollectable", "{object}", "Objects that they found and could not free"),
)
"""Keys of `gc.get_stats`, with unit and description."""


class GarbageCollections:
    """The garbage collections of this process since this was made; pauses from `start` on."""

    def __init__(self, meter: Meter) -> None:
        self._began_ns = 0
        self._pauses: deque[tuple[int, int]] = deque(maxlen=_MAX_PAUSES)
        self._before = gc.get_stats()
        self._pause = meter.create_histogram(
            "gym.gc.pause_duration_ms",
            "ms",
            "How long the program stood still for a garbage collection",
            explicit_bucket_boundaries_advisory=PAUSE_BOUNDS_MS,
        )
        for statistic, unit, description in _COUNTERS:
            meter.create_observable_counter(
                f"gym.gc.{statistic}_total", [self._counter_of(statistic)], unit, description
            )
        meter.create_observable_gauge(
            "gym.gc.count",
            [self._observe_count],
            "1",
            "As gc.get_count: what is due to be looked at",
        )

    def start(self) -> None:
        """Begin to measure pauses."""
        gc.callbacks.append(self._on_collection)

    def stop(self) -> None:
        """End it; those measured so far are recorded."""
        if self._on_collection in gc.callbacks:
            gc.callbacks.remove(self._on_collection)
        self._record_pauses()

    def become_new(self) -> None:
        """Count from nothing on: in a forked child what there was is its parent's."""
        self._pauses.clear()
        self._before = gc.get_stats()

    def _on_collection(self, phase: str, info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began_ns = time.perf_counter_ns()
        else:
            self._pauses.append((info["generation"], time.perf_counter_ns() - self._began_ns))

    def _record_pauses(self) -> None:
        for _ in range(len(self._pauses)):
            generation, pause_ns = self._pauses.popleft()
            self._pause.record(pause_ns / _NS_PER_MS, {GC_GENERATION: generation})

    def _counter_of(self, statistic: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(options: CallbackOptions) -> Iterable[Observation]:
            del options
            for generation, (before, now) in enumerate(
                zip(self._before, gc.get_stats(), strict=True)
            ):
                yield Observation(now[statistic] - before[statistic], {GC_GENERATION: generation})

        return observe

    def _observe_count(self, options: CallbackOptions) -> Iterable[Observation]:
        del options
        self._record_pauses()  # observations are made first, so they still count in this export
        for generation, count in enumerate(gc.get_count()):
            yield Observation(count, {GC_GENERATION: generation})
