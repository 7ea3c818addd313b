"""Observers of the process: event-loop lag and stalls, garbage collections, CPU, memory, files.

`gymlog.setup` starts them with telemetry and stops them with it. Event loops are seen by
themselves where gymlog serves or sends requests; any other one calls `watch_event_loop`. Memory of
the host and of servers' process trees is for the process that started them: `MemoryProfiler`.
"""

import asyncio
import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from gymlog.config import TelemetryConfig
    from gymlog.observers.garbage import GarbageCollections
    from gymlog.service import ServiceInstance

__all__ = ["start_observers", "stop_observers", "watch_event_loop"]


class _LoopObserver(Protocol):
    """Observes each event loop that it is shown, until it is stopped."""

    def watch(self, loop: asyncio.AbstractEventLoop, /) -> None: ...

    def stop(self) -> None: ...

    def forget(self) -> None: ...


class _Observers:
    """What observes this process."""

    def __init__(
        self, loop_observers: Sequence[_LoopObserver], collections: "GarbageCollections | None"
    ) -> None:
        self._loop_observers = loop_observers
        self._collections = collections
        self.seen: set[weakref.ref[asyncio.AbstractEventLoop]] = set()
        if collections is not None:
            collections.start()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        self.seen.difference_update([one for one in tuple(self.seen) if one() is None])
        self.seen.add(weakref.ref(loop))
        for observer in self._loop_observers:
            observer.watch(loop)

    def stop(self) -> None:
        for observer in self._loop_observers:
            observer.stop()
        if self._collections is not None:
            self._collections.stop()

    def become_new(self) -> None:
        """Observe nothing of the parent's in a forked child."""
        self.seen = set()
        for observer in self._loop_observers:
            observer.forget()
        if self._collections is not None:
            self._collections.become_new()


_observers: _Observers | None = None


def start_observers(
    meter: "Meter | None", config: "TelemetryConfig", service: "ServiceInstance"
) -> None:
    """Observe this process, in place of what observed it before.

    Metrics go to `meter`; without one only stalls of event loops are watched, which are log
    records of `service`. When called in an event loop, that one is observed too.
    """
    global _observers
    stop_observers()
    from gymlog.settings import EVENT_LOOP_STALL_SECONDS

    loop_observers: list[_LoopObserver] = []
    collections = None
    if meter is not None:
        from gymlog.observers.event_loop import EventLoops
        from gymlog.observers.garbage import GarbageCollections
        from gymlog.observers.process import observe_process

        loop_observers.append(
            EventLoops(
                meter,
                interval_seconds=config.event_loop_sample_interval_seconds,
                counts_tasks=config.event_loop_task_count,
            )
        )
        collections = GarbageCollections(meter)
        observe_process(meter)
    threshold_seconds = EVENT_LOOP_STALL_SECONDS.value()
    if threshold_seconds > 0:
        from gymlog.observers.stalls import StallWatch

        loop_observers.append(StallWatch(service, threshold_seconds))
    _observers = _Observers(loop_observers, collections)
    watch_event_loop()


def stop_observers() -> None:
    """Observe no more; what was measured so far is recorded, for a last export after this."""
    global _observers
    observers, _observers = _observers, None
    if observers is not None:
        observers.stop()


def watch_event_loop() -> bool:
    """Observe the running event loop until it is closed; say whether that is so.

    For loops in which gymlog neither serves nor sends requests; to call it again changes nothing
    and costs 0.3 µs. Outside of an asyncio loop, or with telemetry off, nothing happens.
    """
    observers = _observers
    if observers is None:
        return False
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return False  # no loop, or one of another library
    if weakref.ref(loop) not in observers.seen:
        observers.watch(loop)
    return True


def _after_fork() -> None:
    if _observers is not None:
        _observers.become_new()


os.register_at_fork(after_in_child=_after_fork)
