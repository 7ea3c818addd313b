"""For tests of instrumented code: records captured in memory, counted ids, a stepped clock.

No test framework is needed; each is a context manager. In a pytest fixture:

    @pytest.fixture
    def telemetry():
        with gymlog.testing.captured() as telemetry:
            yield telemetry
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any

import orjson

from gymlog import clock, ids, sites, span_groups
from gymlog.record import DEFAULT_LINE_MAX_BYTES
from gymlog.samplers import Sampler
from gymlog.service import ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import Tracer, TracerProvider
from gymlog.values import Limits

__all__ = ["Captured", "MemoryFile", "SteppedClock", "captured", "counted_ids", "stepped_clock"]

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record


class MemoryFile:
    """A file that keeps the bytes of each write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.lines_dropped = self.spans_dropped = 0

    def write(self, line: bytes, /) -> None:
        """Keep one line."""
        self.writes.append(line)

    def flush(self) -> None:
        """Nothing is buffered."""


class Captured:
    """Telemetry that is on in this process and writes to memory."""

    def __init__(self, provider: TracerProvider, file: MemoryFile) -> None:
        self.provider = provider
        self.file = file

    @property
    def tracer(self) -> Tracer:
        """gymlog's own tracer."""
        return self.provider.tracer

    @property
    def service(self) -> ServiceInstance:
        """The service instance that writes."""
        return self.provider.service

    @property
    def records(self) -> list[Record]:
        """Every record so far, in the order of writing."""
        return [orjson.loads(line) for line in self.file.writes]

    @property
    def spans(self) -> list[Record]:
        """The `span` records so far, in the order of ending."""
        return [record for record in self.records if record["record_type"] == "span"]

    def span(self, name: str) -> Record:
        """Return the only span of a name; raises AssertionError when there is not just one."""
        found = [span for span in self.spans if span["name"] == name]
        names = [span["name"] for span in self.spans]
        assert len(found) == 1, f"{len(found)} spans are named {name!r}; all: {names}"
        return found[0]


@contextmanager
def captured(
    groups: str = "all",
    *,
    resource: Mapping[str, object] | None = None,
    sampler: Sampler | None = None,
    keeps_errors: bool = False,
    limits: Limits | None = None,
    line_max_bytes: int = DEFAULT_LINE_MAX_BYTES,
    span_start_after_seconds: float = -1,
    silent_scopes: frozenset[str] = frozenset(),
) -> Iterator[Captured]:
    """Switch telemetry on for a block, with the given span groups, into memory.

    The environment is not read, OpenTelemetry's global provider stays as it is, no thread runs
    (call `service.sweep()`), and what was on before is on again afterwards.
    """
    file = MemoryFile()
    service = ServiceInstance(
        {"service.name": "test", **(resource or {})},
        lambda: Sink(file, line_max_bytes=line_max_bytes),
        span_start_after_seconds=span_start_after_seconds,
    )
    provider = TracerProvider(
        service,
        sampler=sampler,
        keeps_errors=keeps_errors,
        limits=limits,
        silent_scopes=silent_scopes,
    )
    before = sites.installed_tracer(), span_groups.open_now()
    sites.install(provider.tracer)
    span_groups.open_groups(groups)
    try:
        yield Captured(provider, file)
    finally:
        sites.install(before[0])
        span_groups.restore(before[1])


@contextmanager
def counted_ids() -> Iterator[None]:
    """Make span ids 0000000000000001, …2 and trace ids likewise for a block."""
    spans, traces = count(1), count(1)
    originals = ids.new_span_id, ids.new_trace_id
    ids.new_span_id = lambda: f"{next(spans):016x}"
    ids.new_trace_id = lambda: f"{next(traces):032x}"
    try:
        yield
    finally:
        ids.new_span_id, ids.new_trace_id = originals


class SteppedClock:
    """A clock that stands still until it is told to move; ns since 1970."""

    def __init__(self, now: int) -> None:
        self.now = now

    def advance(self, *, seconds: float = 0.0, ns: int = 0) -> None:
        """Move the time on."""
        self.now += round(seconds * 1_000_000_000) + ns


@contextmanager
def stepped_clock(start: int = 1_750_000_000_000_000_000) -> Iterator[SteppedClock]:
    """Let spans of a block take their times from a clock that the test moves."""
    stepped = SteppedClock(start)
    originals = clock.monotonic_ns, clock.offset, clock.reanchor
    clock.monotonic_ns, clock.offset, clock.reanchor = lambda: stepped.now, 0, lambda: False
    try:
        yield stepped
    finally:
        clock.monotonic_ns, clock.offset, clock.reanchor = originals
