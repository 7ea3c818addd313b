"""Event-loop lag: how late a sleeping coroutine wakes, and how many tasks a loop has.

Each loop that is shown to `EventLoops` gets a timer of its own. It is a bare timer and not a
task: it keeps no loop running, is in nobody's `asyncio.all_tasks`, needs no cancelling, and goes
when its loop is closed. Cost: about 20 µs a sample.
"""

import asyncio
import contextvars
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from gymlog.notices import notice

__all__ = ["LAG_BOUNDS_MS", "EventLoops", "LoopTicks"]

LAG_BOUNDS_MS: Final = (
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000,
    3_600_000,
)  # fmt: skip

_NS: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000


class LoopTicks:
    """Calls `on_tick` on a loop every `period_seconds`, with how many ns late, until `is_over`.

    A loop that was stopped and runs again is not late: that tick is passed over.
    """

    __slots__ = ("_context", "_on_tick", "_period_seconds", "_run", "due_ns", "is_over")

    def __init__(self, period_seconds: float, on_tick: Callable[[int], None]) -> None:
        self._period_seconds = period_seconds
        self._on_tick = on_tick
        # An empty one: the first request of a loop would otherwise stay in memory for good.
        self._context = contextvars.Context()
        self._run: Callable[[], object] = _nothing
        self.due_ns = 0
        """When the next tick is due, by the monotonic clock."""
        self.is_over = False

    def schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the timer of the next tick; called by the running loop."""
        self._run = _current_run()
        self.due_ns = time.monotonic_ns() + round(self._period_seconds * _NS)
        loop.call_later(self._period_seconds, self._fire, loop, context=self._context)

    def _fire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do as a sleeping coroutine's timer does: its task runs in the loop's next turn."""
        if not self.is_over:
            loop.call_soon(self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.is_over:
            return
        try:
            if _current_run()() is self._run():
                self._on_tick(max(time.monotonic_ns() - self.due_ns, 0))
        except Exception as error:  # noqa: BLE001 - the host must not notice
            notice("event loop", f"a sample of an event loop failed ({error!r}); told only once")
        self.schedule(loop)


def _current_run() -> Callable[[], object]:
    """Return a reference to what lives from when the running loop is started until it stops.

    asyncio and uvloop set hooks for async generators, made anew, each time that a loop starts.
    """
    hook = sys.get_asyncgen_hooks().firstiter
    return _nothing if hook is None else weakref.ref(hook)


def _nothing() -> None:
    """Stand for a run of a loop that sets no hooks: one is like the other."""


class EventLoops:
    """The metrics of every event loop that was shown to it."""

    def __init__(
        self, meter: Meter, *, interval_seconds: float = 1.0, counts_tasks: bool = False
    ) -> None:
        self._interval_seconds = interval_seconds
        self._counts_tasks = counts_tasks
        self._samplers: list[_Sampler] = []
        self._lag = meter.create_histogram(
            "gym.event_loop.lag_ms",
            "ms",
            "How late a sleeping coroutine wakes",
            explicit_bucket_boundaries_advisory=LAG_BOUNDS_MS,
        )
        if counts_tasks:
            meter.create_observable_gauge(
                "gym.event_loop.tasks", [self._observe_tasks], "{task}", "Tasks that are not done"
            )

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to sample a loop; called by the running loop."""
        for old in tuple(self._samplers):
            if not old.is_in_use():
                with suppress(ValueError):  # another loop's thread was quicker
                    self._samplers.remove(old)
        sampler = _Sampler(loop, self._record_lag, counts_tasks=self._counts_tasks)
        self._samplers.append(sampler)
        sampler.ticks = LoopTicks(self._interval_seconds, sampler.sample)
        sampler.ticks.schedule(loop)

    def forget(self) -> None:
        """Sample no loop any more: each timer runs out once and is not set again."""
        samplers, self._samplers = self._samplers, []
        for sampler in samplers:
            sampler.ticks.is_over = True

    stop = forget

    def _record_lag(self, lag_ns: int) -> None:
        self._lag.record(lag_ns / _NS_PER_MS)

    def _observe_tasks(self, options: CallbackOptions) -> Iterable[Observation]:
        del options
        counts = [
            one.tasks for one in tuple(self._samplers) if one.tasks is not None and one.is_in_use()
        ]
        if counts:
            yield Observation(sum(counts))


class _Sampler:
    """Takes the samples of one loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        record_lag: Callable[[int], None],
        *,
        counts_tasks: bool,
    ) -> None:
        self._loop = weakref.ref(loop)
        self._record_lag = record_lag
        self._counts_tasks = counts_tasks
        self.ticks: LoopTicks
        self.tasks: int | None = None
        """At the last sample; None before the first."""

    def is_in_use(self) -> bool:
        """Say whether the loop is there and not closed."""
        loop = self._loop()
        return loop is not None and not loop.is_closed()

    def sample(self, late_ns: int) -> None:
        """Record what the running loop is like."""
        self._record_lag(late_ns)
        loop = self._loop()
        if self._counts_tasks and loop is not None:
            self.tasks = len(asyncio.all_tasks(loop))
