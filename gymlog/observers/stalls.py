"""Stalls: where in the code an event loop is stuck, written while it is.

A loop that has not run for `threshold_seconds` is looked at from a thread: a WARN `log` record
holds the stack of the loop's thread, with trace, span and rollout of the task it is in. While the
stall lasts there is another one each time it is ten times as long; at its end an INFO record says
how long it was and how much CPU it took. So a hang is in the log before the process is killed, and
a call that blocks is named beside the requests that it held up. After a few stalls in a row only
one in 12 s has records, the next of which counts those left out.

Cost: a tick on the loop and a look at it from the thread, each about 20 µs, four times in a
threshold.
"""

import asyncio
import contextvars
import gc
import sys
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from types import FrameType
from typing import Any, Final, NamedTuple

from gymlog.logs import LogHandler
from gymlog.notices import notice
from gymlog.observers.event_loop import LoopTicks
from gymlog.semconv import (
    CODE_FILE_PATH,
    CODE_FUNCTION_NAME,
    CODE_LINE_NUMBER,
    CODE_STACKTRACE,
    EVENT_LOOP_CPU_MS,
    EVENT_LOOP_IS_STALLED,
    EVENT_LOOP_STALL_MS,
    EVENT_LOOP_STALLS_OMITTED,
    EVENT_LOOP_TASK_NAME,
)
from gymlog.service import ServiceInstance

__all__ = ["StallWatch"]

MAX_FRAMES: Final = 32

_LOGGER_NAME: Final = "gymlog.event_loop"
_BURST: Final = 5
_REFILL_SECONDS: Final = 12.0
_LOOKS_PER_THRESHOLD: Final = 4
_LOOK_SECONDS: Final = (0.02, 1.0)
"""Least and most time between two looks."""

_NEVER: Final = float("inf")
_NS: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000


class StallWatch:
    """Watches event loops from a thread of its own, which starts with the first of them."""

    def __init__(self, service: ServiceInstance, threshold_seconds: float) -> None:
        self._threshold_ns = round(threshold_seconds * _NS)
        least, most = _LOOK_SECONDS
        self._look_seconds = min(max(threshold_seconds / _LOOKS_PER_THRESHOLD, least), most)
        self._log = LogHandler(service)
        self._become_new()

    def _become_new(self) -> None:
        self._pulses: list[_Pulse] = []
        self._allowance = _Allowance()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._starting = threading.Lock()

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to watch a loop; called by the running loop, in its thread."""
        pulse = _Pulse(loop)
        pulse.ticks = LoopTicks(self._look_seconds, pulse.beat)
        pulse.ticks.schedule(loop)
        self._pulses.append(pulse)
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=(self._stopped,), name="gymlog-stalls", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Watch no loop any more, and end the thread; a stall that is just over is still told."""
        self._stopped.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=1.0)
            for pulse in [] if thread.is_alive() else self._pulses:
                if beats := pulse.take_beats():
                    self._look_back(pulse, max(beats), time.monotonic_ns())
        self.forget()

    def forget(self) -> None:
        """Forget every loop: in a forked child they are its parent's, and so is the thread."""
        for pulse in self._pulses:
            pulse.ticks.is_over = True
        self._become_new()

    def _run(self, stopped: threading.Event) -> None:
        looked_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()
        while not stopped.wait(self._look_seconds):
            now_ns = time.monotonic_ns()
            late_ns = now_ns - looked_ns - round(self._look_seconds * _NS)
            # C code that holds the GIL takes CPU. A process that took next to none was stopped: the
            # code its loops are in is not to blame, and they get until the next look.
            stood_still = (
                late_ns > self._threshold_ns / 2
                and time.process_time_ns() - cpu_ns < late_ns / 10
            )  # fmt: skip
            for pulse in list(self._pulses):
                try:
                    self._look(pulse, now_ns, stood_still=stood_still)
                except Exception as error:  # noqa: BLE001 - the host must not notice
                    notice("stalls", f"a stalled event loop cannot be shown ({error!r})")
            looked_ns, cpu_ns = time.monotonic_ns(), time.process_time_ns()

    def _look(self, pulse: "_Pulse", now_ns: int, *, stood_still: bool) -> None:
        beats = pulse.take_beats()
        if beats:
            self._look_back(pulse, max(beats), now_ns)
        loop = pulse.loop()
        if loop is None or loop.is_closed():
            with suppress(ValueError):  # `forget` was quicker
                self._pulses.remove(pulse)
            return
        if stood_still or not loop.is_running():
            pulse.to_blame_from_ns = now_ns
            return
        stalled_ns = now_ns - max(pulse.ticks.due_ns, pulse.to_blame_from_ns)
        if stalled_ns < self._threshold_ns:
            return
        if pulse.stall is None:
            pulse.stall = _Stall(0 if self._allowance.take(now_ns) else _NEVER)
        if stalled_ns >= pulse.stall.report_at_ns:
            self._report(pulse.stall, pulse.thread_id, loop, stalled_ns)

    def _report(
        self, stall: "_Stall", thread_id: int, loop: asyncio.AbstractEventLoop, stalled_ns: int
    ) -> None:
        """Write where a loop is stuck."""
        stall.report_at_ns = 10 * stalled_ns
        task = asyncio.current_task(loop)
        stall.context = _context_of(task)
        stall.place = {} if task is None else {EVENT_LOOP_TASK_NAME: task.get_name()}
        facts: dict[str, object] = {
            EVENT_LOOP_STALL_MS: round(stalled_ns / _NS_PER_MS),
            EVENT_LOOP_IS_STALLED: True,
        }
        frame = sys._current_frames().get(thread_id)
        if frame is not None:
            stall.place |= _place(frame)
            facts[CODE_STACKTRACE] = _stack(frame)
        self._write(
            stall,
            "warning",
            f"the event loop has not run for {stalled_ns / _NS:.1f} s, it is {stall.where()}",
            facts,
        )

    def _look_back(self, pulse: "_Pulse", longest: "_Beat", now_ns: int) -> None:
        """Write the end of a stall, also of one during which no thread could run."""
        stall, pulse.stall = pulse.stall, None
        if longest.late_ns < self._threshold_ns:
            return
        is_unseen = stall is None
        if stall is None:
            stall = _Stall(0 if self._allowance.take(now_ns) else _NEVER)
        if stall.report_at_ns == _NEVER:
            return
        self._write(
            stall,
            "warning" if is_unseen else "info",
            f"the event loop did not run for {longest.late_ns / _NS:.1f} s, it was {stall.where()}",
            {
                EVENT_LOOP_STALL_MS: round(longest.late_ns / _NS_PER_MS),
                EVENT_LOOP_IS_STALLED: False,
                EVENT_LOOP_CPU_MS: round(longest.cpu_ns / _NS_PER_MS),
            },
        )

    def _write(self, stall: "_Stall", level: str, body: str, facts: dict[str, object]) -> None:
        omitted = self._allowance.take_omitted()
        if omitted:
            facts[EVENT_LOOP_STALLS_OMITTED] = omitted
        event = {"event": body, **facts, **stall.place}
        stall.context.run(self._log.write_event, _LOGGER_NAME, level, event)


class _Beat(NamedTuple):
    """One tick of a loop: how late, and the CPU time that its thread took since the last one."""

    late_ns: int
    cpu_ns: int


class _Pulse:
    """What the watch knows of one loop. The loop's thread adds beats, the watch takes them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = weakref.ref(loop)
        self.ticks: LoopTicks
        self.thread_id = threading.get_ident()
        self.stall: _Stall | None = None
        self.to_blame_from_ns = 0
        """Since when, as far as is known, the loop has been running all the time."""
        self._beats: deque[_Beat] = deque(maxlen=64)
        self._cpu_ns = time.thread_time_ns()

    def beat(self, late_ns: int) -> None:
        """Say that the loop runs; called by it."""
        cpu_ns = time.thread_time_ns()
        self.thread_id = threading.get_ident()
        self._beats.append(_Beat(late_ns, cpu_ns - self._cpu_ns))
        self._cpu_ns = cpu_ns

    def take_beats(self) -> list[_Beat]:
        """Return the beats since the last time."""
        return [self._beats.popleft() for _ in range(len(self._beats))]


class _Stall:
    """A stall that lasts."""

    def __init__(self, report_at_ns: float) -> None:
        self.report_at_ns = report_at_ns
        """How long it must be for its next record; `_NEVER` when it is left out."""
        self.context = contextvars.Context()
        """Of the task it is in, so that its records have the task's span and rollout."""
        self.place: dict[str, object] = {}

    def where(self) -> str:
        """Return file, line and function, in words."""
        if CODE_FUNCTION_NAME not in self.place:
            return "in a place that no thread could see"
        file, line = self.place[CODE_FILE_PATH], self.place[CODE_LINE_NUMBER]
        return f"at {file}:{line} in {self.place[CODE_FUNCTION_NAME]}"


class _Allowance:
    """How many stalls may have records: `_BURST`, and one more every `_REFILL_SECONDS`."""

    def __init__(self) -> None:
        self._left = float(_BURST)
        self._refilled_ns = time.monotonic_ns()
        self._omitted = 0

    def take(self, now_ns: int) -> bool:
        """Say whether one more stall may have records."""
        refill = (now_ns - self._refilled_ns) / _NS / _REFILL_SECONDS
        self._left = min(self._left + refill, _BURST)
        self._refilled_ns = now_ns
        if self._left < 1:
            self._omitted += 1
            return False
        self._left -= 1
        return True

    def take_omitted(self) -> int:
        """Return how many were refused since this was last asked."""
        omitted, self._omitted = self._omitted, 0
        return omitted


def _context_of(task: "asyncio.Task[Any] | None") -> contextvars.Context:  # Any: of anything
    """Return a copy of a task's context; an empty one when there is none."""
    if task is None:
        return contextvars.Context()
    if sys.version_info >= (3, 12):
        return task.get_context().copy()
    # Python 3.11 has no way to ask; a task refers to one context, its own.
    found = (one for one in gc.get_referents(task) if isinstance(one, contextvars.Context))
    return next(found, contextvars.Context()).copy()


def _place(frame: FrameType) -> dict[str, object]:
    return {
        CODE_FUNCTION_NAME: frame.f_code.co_qualname,
        CODE_FILE_PATH: frame.f_code.co_filename,
        CODE_LINE_NUMBER: frame.f_lineno,
    }


def _stack(frame: FrameType) -> str:
    """Return the frames of what the loop called, the innermost last, as exceptions have them."""
    lines: list[str] = []
    outer: FrameType | None = frame
    while outer is not None and len(lines) < MAX_FRAMES:
        if outer.f_globals.get("__name__") == "asyncio.events":
            break  # from here on outwards it is the loop itself
        lines.append(f"{outer.f_code.co_filename}:{outer.f_lineno} in {outer.f_code.co_qualname}")
        outer = outer.f_back
    return "\n".join(reversed(lines))
