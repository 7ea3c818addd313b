"""When metrics are collected, and by whom: a thread for lines, and one for each exporter.

Every OTEL_METRIC_EXPORT_INTERVAL, once more at the end, and in a forked child by threads of its
own, which know nothing of the parent's measurements. Nothing here raises into the host.
"""

import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final

from opentelemetry import metrics
from opentelemetry.metrics._internal import _ProxyMeterProvider  # the default has no public name

from gymlog.metrics import instruments
from gymlog.metrics.harvest import Harvest, forget_measurements
from gymlog.metrics.lines import LineWriter
from gymlog.metrics.meters import LateMeterProvider
from gymlog.notices import notice
from gymlog.service import ServiceInstance

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricExporter

    from gymlog.metrics.sdk import ExportingReader

__all__ = ["Collector", "flush_metrics", "install_globally"]

_LOAD_AFTER_SECONDS: Final = 1.0
"""How long a process may get on with its start before the SDK is loaded beside it."""

_FLUSH_MS: Final = 1_000
"""How long the event loop of a server that ends may wait for its metrics."""

_FORK_WAIT_SECONDS: Final = 5.0
"""How long a fork waits for a collection that is under way."""


class Collector:
    """The metrics of this process on their way out: as lines, and to exporters."""

    def __init__(
        self,
        service: ServiceInstance,
        *,
        interval_seconds: float,
        timeout_seconds: float = 30.0,
        exemplar_filter: str = "trace_based",
        writes_lines: bool = True,
        make_exporters: "Callable[[], Sequence[MetricExporter]] | None" = None,
    ) -> None:
        """`make_exporters` makes those that get every metric too, and again in a forked child."""
        self._service = service
        self._interval_seconds = interval_seconds
        self._timeout_ms = timeout_seconds * 1_000
        self._exemplar_filter = exemplar_filter
        self._writes_lines = writes_lines
        self._make_exporters = make_exporters
        self._threads: list[_Ticker] = []
        self._is_over = False
        self.provider = LateMeterProvider(self._load)
        """The meters for what is not measured by gymlog itself."""
        self._become_new()

    def _become_new(self) -> None:
        self._lock = threading.RLock()
        """Held while lines are collected and while the SDK is loaded."""
        self._lines = LineWriter(self._service)
        self._harvest = (
            Harvest(is_delta=True, has_exemplars=self._exemplar_filter != "always_off")
            if self._writes_lines
            else None
        )
        self._is_loaded = False
        self._sdk: MeterProvider | None = None
        self._line_reader: ExportingReader | None = None

    def start(self) -> None:
        """Let call sites measure from nothing on, and begin to collect."""
        global _running
        _running = self
        instruments.switch(on=True)
        self._become_new()
        self._start_thread()
        _follow_forks(self)

    def flush(self, timeout_ms: float = 5_000) -> None:
        """Let what was measured so far be written as lines, and wait for it.

        It is the thread that does it: what a program's observers wait for may need this one.
        """
        if not self._is_over:
            self._threads[0].work_now(timeout_ms)

    def stop(self, timeout_ms: float = 5_000) -> None:
        """Collect once more, within about `timeout_ms`, and never again."""
        global _running
        _running = None
        deadline = time.monotonic() + timeout_ms / 1_000
        if self._make_exporters is not None:
            self._load()  # with what it starts, so that all of it can be told to end
        for thread in self._threads:
            thread.tell_to_end()
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._is_over = True
        instruments.switch(on=False)
        self.provider.bind(metrics.NoOpMeterProvider())
        if self._sdk is not None:
            left_ms = max(1.0, (deadline - time.monotonic()) * 1_000)
            _quietly(partial(self._sdk.shutdown, left_ms))

    def _start_thread(self) -> None:
        ticker = _Ticker(self._collect, self._interval_seconds, before=self._prepare)
        self._threads = [ticker]
        ticker.start()

    # In the threads.

    def _prepare(self) -> None:
        """Load the SDK, if there is something for it, before the first collection is due."""
        if self.provider.is_used or self._make_exporters is not None:
            self._load()

    def _collect(self, *, is_last: bool = False) -> None:
        """Write what is new as lines.

        At the end of a process that was short, the SDK is not loaded for what can do without.
        """
        with self._lock:
            has_exporters = self._make_exporters is not None  # whose share begins when it loads
            if has_exporters or self.provider.is_needed or (self.provider.is_used and not is_last):
                self._load()
            if self._harvest is not None:
                self._lines.write(self._harvest.collect())
            if self._line_reader is not None:
                self._line_reader.tick(self._timeout_ms)

    def _load(self) -> None:
        """Put the SDK behind the meters, unless that was done or all is over."""
        with self._lock:
            if self._is_loaded or self._is_over:
                return
            self._is_loaded = True
            try:
                self._build()
            except Exception as error:  # noqa: BLE001 - the host must not notice
                notice(
                    "metrics",
                    "OpenTelemetry's SDK does not start, so the program's own metrics are "
                    f"missing: {type(error).__name__}: {error}",
                )
                self.provider.bind(metrics.NoOpMeterProvider())

    def _build(self) -> None:
        from gymlog.metrics.sdk import ExportingReader, LineExporter, meter_provider, resource_from

        resource = resource_from(self._service.resource)
        readers, threads = [], []
        if self._writes_lines:
            self._line_reader = ExportingReader(LineExporter(self._lines), resource, has_own=False)
            readers.append(self._line_reader)
        for exporter in self._make_exporters() if self._make_exporters is not None else ():
            reader = ExportingReader(exporter, resource, has_own=True)
            readers.append(reader)
            threads.append(_Ticker(partial(self._export, reader), self._interval_seconds))
        self._sdk = meter_provider(readers, resource, self._exemplar_filter)
        self.provider.bind(self._sdk)
        for thread in threads:
            thread.start()
        self._threads += threads

    def _export(self, reader: "ExportingReader", *, is_last: bool = False) -> None:
        del is_last
        reader.tick(self._timeout_ms)

    # Forks.

    def before_fork(self) -> bool:
        """Wait until nothing is being collected; say whether that came in time."""
        return self._lock.acquire(timeout=_FORK_WAIT_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Begin anew."""
        if self._is_over:
            return
        forget_measurements()
        self.provider.bind(None)
        self.provider.forget_kept()
        self._become_new()
        self._start_thread()


class _Ticker(threading.Thread):
    """Calls `work` every `interval_seconds`, and with `is_last` when it is asked to or ends."""

    def __init__(
        self,
        work: Callable[..., None],
        interval_seconds: float,
        *,
        before: Callable[[], None] | None = None,
    ) -> None:
        """`before` is called once, a while after the start and before the first `work`."""
        super().__init__(name="gymlog-metrics", daemon=True)
        self._work = work
        self._interval_seconds = interval_seconds
        self._before = before
        self._wishes: SimpleQueue[threading.Event | None] = SimpleQueue()
        """Events to be set when it has worked; None: to end."""

    def run(self) -> None:
        due = time.monotonic() + self._interval_seconds
        prepare_at = min(due, time.monotonic() + _LOAD_AFTER_SECONDS)
        while True:
            until = due if self._before is None else prepare_at
            try:
                wish = self._wishes.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                if self._before is not None:
                    _quietly(self._before)
                    self._before = None
                else:
                    _quietly(self._work)
                    due = max(due, time.monotonic()) + self._interval_seconds
                continue
            _quietly(partial(self._work, is_last=True))
            if wish is None:
                return
            wish.set()

    def work_now(self, timeout_ms: float) -> None:
        """Let it work, and wait until it has, for `timeout_ms` at most."""
        has_worked = threading.Event()
        self._wishes.put(has_worked)
        has_worked.wait(timeout_ms / 1_000)

    def tell_to_end(self) -> None:
        """Let it work once more and end."""
        self._wishes.put(None)


def _quietly(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception as error:  # noqa: BLE001 - the host must not notice
        notice("metrics", f"metrics are missing: {type(error).__name__}: {error}; told only once")


_running: Collector | None = None


def flush_metrics() -> None:
    """Let what was measured so far be written, in a server that was told to end; never raises."""
    if _running is not None:
        _running.flush(_FLUSH_MS)


def install_globally(provider: metrics.MeterProvider) -> None:
    """Make a provider OpenTelemetry's global one, unless another is."""
    present = metrics.get_meter_provider()
    if not isinstance(present, _ProxyMeterProvider):
        kind = f"{type(present).__module__}.{type(present).__qualname__}"
        notice(
            "global meter provider",
            f"OpenTelemetry's global meter provider is already a {kind}; it stays. gymlog writes "
            "its own metrics and those of its own meter; what other libraries measure goes to "
            "that provider",
        )
        return
    metrics.set_meter_provider(provider)


def _follow_forks(collector: Collector) -> None:
    """Tell a collector of each fork of this process, as long as it lives."""
    this = weakref.ref(collector)
    waiting: dict[int, Collector] = {}  # by thread: several may fork at a time

    def before() -> None:
        collector = this()
        if collector is not None and collector.before_fork():
            waiting[threading.get_ident()] = collector

    def in_parent() -> None:
        collector = waiting.pop(threading.get_ident(), None)
        if collector is not None:
            collector.after_fork_in_parent()

    def in_child() -> None:
        waiting.clear()
        collector = this()
        if collector is not None:
            collector.after_fork_in_child()

    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)
