"""Memory of the host and of each server's process tree, sampled by whoever started the servers.

A server's tree is its root process with all descendants; one that ends while it is looked at is
left out. RSS counts shared pages in every process that has them, PSS by their share; the kernel
gives PSS on Linux alone, and a tree has one only when each of its processes has. Peaks are those
of the last export interval. Cost of a sample: 50 µs for each process of the host, 1 ms for each of
the trees, in a thread.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import psutil
from opentelemetry.metrics import CallbackOptions, Meter, Observation

from gymlog.notices import notice
from gymlog.semconv import MEMORY_TYPE, PROCESS_PID, SERVER_NAME, SERVER_TYPE
from gymlog.settings import METRIC_EXPORT_INTERVAL

__all__ = ["MemoryProfiler", "ServerProcess"]

_PSS: Final = re.compile(rb"^Pss:\s+(\d+) kB", re.MULTILINE)


class ServerProcess(NamedTuple):
    """The root process of a server, or of one of its workers."""

    name: str
    type: str
    pid: int


class _Tree(NamedTuple):
    """What a process tree held at one moment."""

    rss: int
    pss: int | None
    processes: int


class _Sample(NamedTuple):
    """The host and the trees at one moment."""

    at: float
    available: int
    total: int
    trees: dict[ServerProcess, _Tree]

    @property
    def usage(self) -> int:
        return self.total - self.available


class MemoryProfiler:
    """Samples memory every `interval_seconds` between `start` and `stop`.

    `export_interval_seconds` is how often the meter's metrics are collected, by default what
    OTEL_METRIC_EXPORT_INTERVAL says.
    """

    def __init__(
        self,
        meter: Meter,
        interval_seconds: float = 1.0,
        *,
        export_interval_seconds: float | None = None,
    ) -> None:
        if export_interval_seconds is None:
            export_interval_seconds = METRIC_EXPORT_INTERVAL.value() / 1_000
        self._interval_seconds = interval_seconds
        # One sample more than fits: a late export must not miss one between two windows.
        self._window_seconds = export_interval_seconds + interval_seconds
        self._samples: tuple[_Sample, ...] = ()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        for name, unit, description, observe in (
            ("gym.host.memory.usage", "By", "Total less available memory", _host_usage),
            ("gym.host.memory.available", "By", "What can be had at once", _host_available),
            ("gym.host.memory.total", "By", "Physical memory", _host_total),
            ("gym.host.memory.sampled_peak", "By", "Highest sample of usage", _host_peak),
            ("gym.server.memory.usage", "By", "Memory of a server's process tree", _server_usage),
            ("gym.server.memory.sampled_peak", "By", "Highest sample of it", _server_peak),
            ("gym.server.processes", "{process}", "Processes of the tree", _server_processes),
        ):
            meter.create_observable_gauge(name, [self._callback(observe)], unit, description)

    def start(self, servers: Iterable[ServerProcess]) -> None:
        """Begin to sample; called again, go on with other servers."""
        self.stop()
        roots = {server: root for server in servers if (root := _process(server.pid)) is not None}
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(roots, self._stopped), name="gymlog-memory", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End sampling; the last samples are still there for a last export."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopped.set()
            thread.join(timeout=1.0)

    def _run(self, roots: Mapping[ServerProcess, psutil.Process], stopped: threading.Event) -> None:
        is_over = False
        while not is_over:  # one sample at least
            try:
                self._samples = (*self._recent(), _sample(roots))
            except Exception as error:  # noqa: BLE001 - the host must not notice
                notice("memory", f"a sample of memory failed ({error!r}); told only once")
            is_over = stopped.wait(self._interval_seconds)

    def _recent(self) -> tuple[_Sample, ...]:
        """Return the samples of the last export interval, the newest last."""
        oldest = time.monotonic() - self._window_seconds
        return tuple(sample for sample in self._samples if sample.at >= oldest)

    def _callback(
        self, observe: Callable[[Sequence[_Sample]], Iterable[Observation]]
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """Return a callback that observes the recent samples, and nothing while there is none."""

        def callback(options: CallbackOptions) -> Iterable[Observation]:
            del options
            recent = self._recent()
            return observe(recent) if recent else ()

        return callback


# What the instruments observe, of samples whose newest is the last.


def _host_usage(samples: Sequence[_Sample]) -> Iterable[Observation]:
    yield Observation(samples[-1].usage)


def _host_available(samples: Sequence[_Sample]) -> Iterable[Observation]:
    yield Observation(samples[-1].available)


def _host_total(samples: Sequence[_Sample]) -> Iterable[Observation]:
    yield Observation(samples[-1].total)


def _host_peak(samples: Sequence[_Sample]) -> Iterable[Observation]:
    yield Observation(max(sample.usage for sample in samples))


def _server_usage(samples: Sequence[_Sample]) -> Iterable[Observation]:
    return _server_peak(samples[-1:])


def _server_peak(samples: Sequence[_Sample]) -> Iterable[Observation]:
    peaks: dict[tuple[ServerProcess, str], int] = {}
    for sample in samples:
        for server, tree in sample.trees.items():
            for kind, value in (("rss", tree.rss), ("pss", tree.pss)):
                if value is not None:
                    peaks[server, kind] = max(value, peaks.get((server, kind), 0))
    for (server, kind), peak in peaks.items():
        yield Observation(peak, {**_attributes(server), MEMORY_TYPE: kind})


def _server_processes(samples: Sequence[_Sample]) -> Iterable[Observation]:
    for server, tree in samples[-1].trees.items():
        yield Observation(tree.processes, _attributes(server))


def _attributes(server: ServerProcess) -> dict[str, str | int]:
    return {SERVER_NAME: server.name, SERVER_TYPE: server.type, PROCESS_PID: server.pid}


# Sampling.


def _process(pid: int) -> psutil.Process | None:
    """Return a process, known from now on by more than its number; None when it is gone."""
    try:
        return psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def _sample(roots: Mapping[ServerProcess, psutil.Process]) -> _Sample:
    host = psutil.virtual_memory()
    children = _children_by_parent()
    trees = {}
    for server, root in roots.items():
        if root.is_running():
            tree = _measure(_descendants(root, children))
            if tree.processes:
                trees[server] = tree
    return _Sample(time.monotonic(), host.available, host.total, trees)


def _children_by_parent() -> dict[int, list[psutil.Process]]:
    children: dict[int, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            children.setdefault(process.ppid(), []).append(process)
    return children


def _descendants(
    root: psutil.Process, children: Mapping[int, list[psutil.Process]]
) -> list[psutil.Process]:
    """Return a process and all below it."""
    tree = [root]
    for process in tree:  # which grows meanwhile
        tree += children.get(process.pid, ())
    return tree


def _measure(processes: Iterable[psutil.Process]) -> _Tree:
    """Add up what those of the processes hold that are still there."""
    rss = count = 0
    pss: int | None = 0
    for process in processes:
        own_pss = _pss(process.pid)  # first: when the process ends in between, it is not counted
        try:
            own_rss = process.memory_info().rss
        except psutil.Error:
            continue
        if own_rss == 0:
            continue  # a zombie, which has only a number left
        count += 1
        rss += own_rss
        pss = None if pss is None or own_pss is None else pss + own_pss
    return _Tree(rss, pss, count)


def _pss(pid: int) -> int | None:
    """Return the PSS of a process in bytes; None where the kernel or its permissions give none."""
    try:
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
    except OSError:
        return None
    return None if found is None else int(found[1]) * 1024
