"""The service instance: its process records, its span_start lines, its life."""

import asyncio
import threading

import pytest

import gymlog
from gymlog import testing
from gymlog.channel import SPAN_LINE
from gymlog.samplers import sampler_from
from gymlog.service import DEFAULT_PROCESS_INTERVAL_SECONDS, ServiceInstance
from gymlog.sink import Sink
from gymlog.tracer import TracerProvider

AFTER = 5.0


@pytest.fixture
def stepped():
    """A clock that the test moves."""
    with testing.stepped_clock() as clock:
        yield clock


@pytest.fixture
def slow(stepped):
    """Telemetry that announces spans after five seconds."""
    with testing.captured(span_start_after_seconds=AFTER) as captured:
        yield captured


def states(telemetry):
    """Return the states of the process records."""
    return [record["state"] for record in telemetry.records if record["record_type"] == "process"]


def starts(telemetry):
    """Return the names of the span_start records."""
    return [r["name"] for r in telemetry.records if r["record_type"] == "span_start"]


def test_the_first_record_introduces_the_process(telemetry):
    """Schema, counters, the whole resource; the other records have two keys of it only."""
    telemetry.tracer.open_span("a").end()
    first, span = telemetry.records
    assert first["record_type"] == "process"
    assert (first["state"], first["schema"], first["seq"]) == ("started", 1, 0)
    assert (first["spans_written"], first["records_dropped"]) == (0, 0)
    assert {"service.name", "service.instance.id", "process.pid", "process.parent_pid"} <= set(
        first["resource"]["attributes"]
    )
    assert set(span["resource"]["attributes"]) == {"service.name", "service.instance.id"}
    own = first["resource"]["attributes"]["service.instance.id"]
    assert span["resource"]["attributes"]["service.instance.id"] == own


def test_two_instances_are_never_the_same():
    """Each has its own id and its own numbering."""
    with testing.captured() as one, testing.captured() as other:
        for telemetry in (one, other):
            telemetry.tracer.open_span("a").end()
    ids = [t.spans[0]["resource"]["attributes"]["service.instance.id"] for t in (one, other)]
    assert ids[0] != ids[1]
    assert [t.spans[0]["seq"] for t in (one, other)] == [1, 1]


def test_only_spans_open_for_long_are_announced(slow, stepped):
    """Short spans cost nothing; each long one has one span_start, at the sweep after 5 s.

    short |-|
    long  |------------------- sweep ------ sweep -|
    """
    long_span = slow.tracer.open_span("long", attributes={"a": 1})
    slow.tracer.open_span("short").end()
    stepped.advance(seconds=AFTER - 0.001)
    slow.service.sweep()
    assert starts(slow) == []
    stepped.advance(seconds=0.001)
    slow.service.sweep()
    slow.service.sweep()
    assert starts(slow) == ["long"]
    long_span.end()
    start, span = (r for r in slow.records if r.get("name") == "long")
    assert set(span) - set(start) == {"end_time_unix_nano", "status"}
    for key in set(start) - {"record_type", "seq"}:
        assert start[key] == span[key]


def test_zero_announces_at_once():
    """Before the span's own work begins."""
    with testing.captured(span_start_after_seconds=0) as telemetry:
        telemetry.tracer.open_span("a").end()
    assert starts(telemetry) == ["a"]
    assert [r["record_type"] for r in telemetry.records if r.get("name")] == ["span_start", "span"]


def test_negative_never_announces(stepped, telemetry):
    """Not even after a day; a clean stop names what is open all the same."""
    span = telemetry.tracer.open_span("a")
    stepped.advance(seconds=86_400)
    telemetry.service.sweep()
    assert starts(telemetry) == []
    telemetry.service.stop()
    assert starts(telemetry) == ["a"]
    span.end()
    assert telemetry.span("a")


def test_a_span_that_is_not_sampled_is_not_announced(stepped):
    """Nothing of it is in the log."""
    with testing.captured(span_start_after_seconds=0, sampler=lambda *_: False) as telemetry:
        span = telemetry.tracer.open_span("a")
        telemetry.service.stop()
        span.end()
    assert starts(telemetry) == telemetry.spans == []


def test_alive_is_told_every_interval(telemetry, stepped):
    """With the counters so far, which the reader compares with what it read."""
    held = telemetry.tracer.open_span("held")
    for _ in range(3):
        telemetry.tracer.open_span("a").end()
    stepped.advance(seconds=29)
    telemetry.service.sweep()
    assert states(telemetry) == ["started"]
    stepped.advance(seconds=1)
    telemetry.service.sweep()
    assert states(telemetry) == ["started", "alive"]
    alive = telemetry.records[-1]
    assert (alive["spans_written"], alive["open_spans"], alive["records_dropped"]) == (3, 1, 0)
    held.end()
    telemetry.service.stop()
    stopped = telemetry.records[-1]
    assert (stopped["spans_written"], stopped["open_spans"]) == (4, 0)


def test_an_idle_process_introduces_itself_at_the_first_sweep(telemetry):
    """A server that gets no request is known to run."""
    telemetry.service.sweep()
    telemetry.service.sweep()
    assert states(telemetry) == ["started"]


def test_stop_names_what_is_open_and_says_so_last(slow):
    """Every open span once, then `stopped`; a span that ends afterwards is still written."""
    outer, inner = slow.tracer.open_span("outer"), slow.tracer.open_span("inner")
    slow.service.stop()
    assert starts(slow) == ["outer", "inner"]
    assert slow.records[-1]["state"] == "stopped"
    assert slow.records[-1]["open_spans"] == 2
    inner.end()
    outer.end()
    assert [span["name"] for span in slow.spans] == ["inner", "outer"]


class Filling(testing.MemoryFile):
    """A file that drops lines while it is full."""

    is_full = False

    def write(self, line, /):
        if self.is_full:
            self.lines_dropped += 1
            self.spans_dropped += line.startswith(SPAN_LINE)
        else:
            super().write(line)


def test_a_gap_in_seq_is_a_dropped_record():
    """What could not be written has a number all the same, and is counted."""
    file = Filling()
    provider = TracerProvider(ServiceInstance({"service.name": "s"}, lambda: Sink(file)))
    provider.tracer.open_span("a").end()
    file.is_full = True
    provider.tracer.open_span("lost").end()
    file.is_full = False
    provider.service.stop()
    records = testing.Captured(provider, file).records
    assert [record["seq"] for record in records] == [0, 1, 3]
    assert (records[-1]["records_dropped"], records[-1]["spans_written"]) == (1, 1)


def test_the_sweeper_runs_by_itself_and_ends():
    """A started instance announces without being asked; after stop no thread is left."""
    announced = threading.Event()

    class Watching(testing.MemoryFile):
        def write(self, line, /):
            super().write(line)
            if b'"span_start"' in line:
                announced.set()

    file = Watching()
    before = threading.active_count()
    service = ServiceInstance(
        {"service.name": "s"}, lambda: Sink(file), span_start_after_seconds=0.05
    )
    service.start()
    span = TracerProvider(service).tracer.open_span("held")
    assert announced.wait(10)
    span.end()
    service.stop()
    assert threading.active_count() == before


def test_a_span_that_was_forgotten_is_let_go(slow, stepped, capfd):
    """One that nobody can end any more would be kept for good; its span_start is in the log."""
    slow.tracer.open_span("forgotten")
    held = slow.tracer.open_span("held")
    in_list = [slow.tracer.open_span("in a list")]
    stepped.advance(seconds=AFTER)
    slow.service.sweep()
    assert starts(slow) == ["forgotten", "held", "in a list"]
    stepped.advance(seconds=DEFAULT_PROCESS_INTERVAL_SECONDS)
    slow.service.sweep()
    assert {span.name for span in slow.service.open_spans.values()} == {"held", "in a list"}
    assert slow.records[-1]["open_spans"] == 2
    assert "'forgotten' was dropped without being ended" in capfd.readouterr().err
    held.end()
    in_list.pop().end()
    assert [span["name"] for span in slow.spans] == ["held", "in a list"]


def test_a_span_in_use_is_never_taken_for_forgotten(slow, stepped):
    """Whoever holds it: a block, a suspended task, generator or coroutine, a copied context."""

    @gymlog.trace_fn("rollout", "decorated")
    async def decorated():
        await asyncio.sleep(3600)

    async def in_block():
        with slow.tracer.start_as_current_span("block"):
            await asyncio.sleep(3600)

    async def managed():
        with gymlog.managed_span("rollout", "managed"):
            await asyncio.sleep(3600)

    def stream():
        with gymlog.managed_span("rollout", "generator"):
            yield

    async def main():
        tasks = [asyncio.create_task(work()) for work in (decorated, in_block, managed)]
        generator = stream()
        next(generator)
        await asyncio.sleep(0)
        stepped.advance(seconds=AFTER)
        slow.service.sweep()
        for _ in range(3):
            stepped.advance(seconds=DEFAULT_PROCESS_INTERVAL_SECONDS)
            slow.service.sweep()
        names = {span.name for span in slow.service.open_spans.values()}
        generator.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return names

    names = {"decorated", "block", "managed", "generator"}
    assert asyncio.run(main()) == names
    assert {span["name"] for span in slow.spans} == names


def test_a_span_that_starts_in_the_future_holds_up_no_other(slow, stepped):
    """Its start is the caller's word; those behind it are open for long all the same."""
    future = slow.tracer.open_span("future", start_time=stepped.now + 3600 * 10**9)
    slow.tracer.open_span("stuck").set_attribute("a", 1)
    stepped.advance(seconds=AFTER)
    slow.service.sweep()
    assert starts(slow) == ["stuck"]
    future.end()


@pytest.mark.parametrize("is_sampled", [True, False])
def test_forgotten_spans_do_not_pile_up_where_nothing_is_announced(stepped, is_sampled):
    """With a negative threshold the span_start comes when it is let go; unsampled work has none."""
    sampler = sampler_from("always_on" if is_sampled else "always_off", "")
    with testing.captured(sampler=sampler, keeps_errors=True) as telemetry:
        telemetry.tracer.open_span("forgotten")
        held = telemetry.tracer.open_span("in use")
        telemetry.service.sweep()
        stepped.advance(seconds=DEFAULT_PROCESS_INTERVAL_SECONDS)
        telemetry.service.sweep()
        service = telemetry.service
        kept = [*service.open_spans.values(), *service.held.values()]
        assert [span.name for span in kept] == ["in use"]
        assert starts(telemetry) == (["forgotten"] if is_sampled else [])
        held.end()
