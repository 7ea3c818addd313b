"""How late the event loops of a benched fleet are, measured inside its processes and read back.

`bench_fleet` lets each process of the fleet run `watch` before anything else, whatever writes
telemetry there. A task of each event loop is due every 20 ms; its lag is how much later it runs.
What would have been due while a loop was blocked counts as late too, so a loop that stands still
for a second is fifty late samples, not one. uvloop's timers know whole milliseconds, so less than
one says nothing. Seconds that the garbage collector took are noted along. Cost: below 1 % of a
core per process.

A file holds, for each time that the task ran, three floats in seconds: when it was due (monotonic
clock, one for all processes of a host), the lag, and the garbage collector's time so far.
"""

import asyncio
import atexit
import gc
import os
import sys
import time
from array import array
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["Lags", "lags_by_process", "watch"]

PERIOD_SECONDS = 0.02
FOLDER_VARIABLE = "BENCH_FLEET_LAG_FOLDER"
MODULES = "gymlog.fleet."

_FIELDS = 3
_SAMPLES_PER_WRITE = 250
"""Five seconds of them: what a process that is killed loses."""
_PATIENCE = 10
"""The fleet's own timeouts times this: a slow subject is measured to its end, not cut off."""

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Lags:
    """What one process wrote of a stretch of time."""

    seconds: list[float]
    """Lags, one for each 20 ms."""
    gc_seconds: float


def watch() -> None:
    """Watch every event loop of this process and lengthen its timeouts, if it is the fleet's."""
    names = [word.removeprefix(MODULES) for word in sys.orig_argv if word.startswith(MODULES)]
    if not names:
        return
    probe = _Probe(Path(os.environ[FOLDER_VARIABLE], f"{names[0]}.lag"))
    run, timeout = asyncio.Runner.run, asyncio.timeout

    def watched_run(
        runner: asyncio.Runner,
        main: Coroutine[Any, Any, R],  # Any: what a coroutine yields is the loop's business
        **options: Any,  # Any: those of asyncio's own `run`
    ) -> R:
        return run(runner, probe.beside(main), **options)

    asyncio.Runner.run = watched_run  # type: ignore[method-assign, assignment]  # uvicorn's too
    asyncio.timeout = lambda delay: timeout(None if delay is None else delay * _PATIENCE)


class _Probe:
    """The samples of one process on their way to its file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)  # now, since descriptors may run out later
        self._samples = array("d")
        self._gc_began = self._gc_seconds = 0.0
        gc.callbacks.append(self._on_gc)
        atexit.register(self._flush)

    async def beside(self, main: Coroutine[Any, Any, R]) -> R:  # Any: as in `watch`
        """Await `main` with the loop watched."""
        sampling = asyncio.create_task(self._sample())
        try:
            return await main
        finally:
            sampling.cancel()

    async def _sample(self) -> None:
        due = time.monotonic() + PERIOD_SECONDS
        while True:
            await asyncio.sleep(due - time.monotonic())
            lag = max(time.monotonic() - due, 0.0)
            self._samples.extend((due, lag, self._gc_seconds))
            if len(self._samples) >= _FIELDS * _SAMPLES_PER_WRITE:
                self._flush()
            due += _missed(lag) * PERIOD_SECONDS

    def _on_gc(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._gc_began = time.monotonic()
        else:
            self._gc_seconds += time.monotonic() - self._gc_began

    def _flush(self) -> None:
        self._samples.tofile(self._file)
        del self._samples[:]


def _missed(lag: float) -> int:
    """Return how many samples have become due when one is so late, itself included."""
    return int(lag / PERIOD_SECONDS) + 1


def lags_by_process(folder: Path) -> dict[str, Lags]:
    """Return the lags of each process, by its name, while the driver's loop ran.

    Raises ValueError when there are none of the driver, or of another process during that time.
    """
    samples = {path.stem: _read(path) for path in sorted(folder.glob("*.lag"))}
    if not samples.get("driver"):
        raise ValueError(f"the driver has written no samples to {folder}")
    since, until = samples["driver"][0][0], samples["driver"][-1][0]
    lags = {name: _between(since, until, mine) for name, mine in samples.items()}
    silent = [name for name, mine in lags.items() if not mine.seconds]
    if silent:
        raise ValueError(
            f"no samples of {', '.join(silent)} while the driver ran; run more rollouts"
        )
    return lags


def _read(path: Path) -> list[tuple[float, float, float]]:
    values = array("d")
    values.frombytes(path.read_bytes())
    return list(zip(values[::_FIELDS], values[1::_FIELDS], values[2::_FIELDS], strict=True))


def _between(since: float, until: float, samples: list[tuple[float, float, float]]) -> Lags:
    """Return the lags of what was due from `since` until `until`, monotonic seconds."""
    lags = [
        lag - number * PERIOD_SECONDS
        for due, lag, _ in samples
        for number in range(_missed(lag))
        if since <= due + number * PERIOD_SECONDS <= until
    ]
    collected = [gc_seconds for due, _, gc_seconds in samples if since <= due <= until]
    return Lags(lags, collected[-1] - collected[0] if collected else 0.0)
