"""Cells and instruments: nothing measured is lost, and buckets are what the SDK makes of it."""

import math
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.metrics import Histogram as SdkHistogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader

from gymlog.metrics.harvest import Harvest, forget_measurements
from gymlog.metrics.series import (
    MAX_SERIES,
    OVERFLOW,
    Counter,
    Histogram,
    Share,
    UpDownCounter,
    instruments,
)

BOUNDS = (0.005, 0.1, 1, 10)


def histogram(keys=("route",)):
    return Histogram("h", "s", "…", keys, bounds=BOUNDS)


def points_of(harvest, instrument):
    """Collect, and return the points of an instrument."""
    return [
        point
        for stream in harvest.collect()
        if stream.name == instrument.name
        for point in stream.points
    ]


def sdk_points(rounds, temporality):
    """Return what the SDK makes of the same measurements, collected after each round."""
    reader = InMemoryMetricReader({SdkHistogram: temporality})
    provider = MeterProvider([reader], shutdown_on_exit=False)
    sdk = provider.get_meter("m").create_histogram(
        "h", "s", explicit_bucket_boundaries_advisory=BOUNDS
    )
    collected = []
    for values in rounds:
        for value in values:
            sdk.record(value)
        data = reader.get_metrics_data()
        scopes = data.resource_metrics[0].scope_metrics if data else []
        collected.append([p for scope in scopes for p in scope.metrics[0].data.data_points])
    provider.shutdown()
    return collected


finite = st.floats(0, 1e9) | st.sampled_from(BOUNDS)


@pytest.mark.parametrize("is_delta", [True, False])
@settings(max_examples=50)
@given(rounds=st.lists(st.lists(finite, max_size=30), min_size=1, max_size=4))
def test_buckets_are_those_of_the_sdk(is_delta, rounds):
    """Counts, sum, least and greatest, at each collection, as differences or from the start."""
    instruments.clear()
    forget_measurements()
    ours = histogram(())
    harvest = Harvest(is_delta=is_delta)
    temporality = AggregationTemporality.DELTA if is_delta else AggregationTemporality.CUMULATIVE
    for values, expected in zip(rounds, sdk_points(rounds, temporality), strict=True):
        for value in values:
            ours.record(value)
        points = points_of(harvest, ours)
        assert len(points) == len(expected)
        for point, other in zip(points, expected, strict=True):
            assert point.count == other.count
            assert point.bucket_counts == tuple(other.bucket_counts)
            assert point.explicit_bounds == tuple(other.explicit_bounds)
            assert (point.min, point.max) == (other.min, other.max)
            assert point.sum == pytest.approx(other.sum)


@given(st.lists(st.lists(st.integers(-5, 5), max_size=20), max_size=5))
def test_sums_are_sums(rounds):
    """A counter gives differences, one that goes both ways always the total."""
    instruments.clear()
    forget_measurements()
    grows, moves = Counter("grows", "1", "…"), UpDownCounter("moves", "1", "…")
    harvest = Harvest(is_delta=True)
    total, is_measured = 0, False
    for values in rounds:
        for value in values:
            grows.add(abs(value))
            moves.add(value)
        total += sum(values)
        is_measured = is_measured or bool(values)
        streams = {stream.name: stream.points for stream in harvest.collect()}
        assert [p.value for p in streams.get("grows", [])] == (
            [sum(map(abs, values))] if values else []
        )
        assert [p.value for p in streams.get("moves", [])] == ([total] if is_measured else [])


def test_each_set_of_attribute_values_is_a_series():
    """None leaves an attribute out."""
    ours = Histogram("h", "ms", "…", ("method", "status"), bounds=BOUNDS)
    harvest = Harvest(is_delta=True)
    ours.record(1, ("GET", 200))
    ours.record(2, ("GET", None))
    ours.record(3, ("GET", 200))
    assert [(p.attributes, p.count) for p in points_of(harvest, ours)] == [
        ({"method": "GET", "status": 200}, 2),
        ({"method": "GET"}, 1),
    ]


def test_what_is_not_measured_is_not_collected():
    """A quiet series gives no difference, and its interval begins anew."""
    ours = histogram()
    harvest = Harvest(is_delta=True)
    ours.record(1, ("/a",))
    (first,) = points_of(harvest, ours)
    assert points_of(harvest, ours) == []
    ours.record(1, ("/a",))
    (second,) = points_of(harvest, ours)
    assert first.start_time_unix_nano < first.time_unix_nano <= second.start_time_unix_nano


def test_each_reader_gets_everything():
    """One that wants differences and one that does not, whenever they collect."""
    ours = histogram()
    delta, cumulative = Harvest(is_delta=True), Harvest(is_delta=False)
    ours.record(1, ("/a",))
    assert [p.count for p in points_of(delta, ours)] == [1]
    ours.record(20, ("/a",))
    assert [p.count for p in points_of(cumulative, ours)] == [2]
    assert [p.bucket_counts for p in points_of(delta, ours)] == [(0, 0, 0, 0, 1)]
    assert [(p.count, p.max) for p in points_of(cumulative, ours)] == [(2, 20)]


def test_the_exemplar_is_the_greatest_since_the_last_collection(telemetry):
    """With the trace and the span in which it was measured."""
    ours = histogram(())
    harvest = Harvest(is_delta=True)
    spans = []
    for value in (2.0, 5.0, 3.0):
        with telemetry.tracer.start_as_current_span("work") as span:
            ours.record(value)
            spans.append(span.get_span_context())
    ((exemplar,),) = [point.exemplars for point in points_of(harvest, ours)]
    assert (exemplar.value, exemplar.trace_id, exemplar.span_id) == (
        5.0, spans[1].trace_id, spans[1].span_id,
    )  # fmt: skip
    ours.record(1.0)  # outside of a span
    assert [point.exemplars for point in points_of(harvest, ours)] == [()]


def test_a_trace_that_is_not_recorded_is_no_exemplar():
    """Nobody could find it."""
    ours = histogram(())
    harvest = Harvest(is_delta=True)
    ours.record(1.0, (), trace.NonRecordingSpan(trace.SpanContext(1, 2, False)))
    assert [point.exemplars for point in points_of(harvest, ours)] == [()]


def test_an_instrument_has_a_bounded_number_of_series():
    """What finds no room is counted together."""
    ours = Counter("c", "1", "…", ("n",))
    harvest = Harvest(is_delta=True)
    for n in range(MAX_SERIES + 10):
        ours.add(1, (n,))
    points = points_of(harvest, ours)
    assert len(points) == MAX_SERIES + 1
    assert [p.value for p in points if p.attributes == OVERFLOW] == [10]
    assert sum(p.value for p in points) == MAX_SERIES + 10


def test_many_measurements_take_little_room():
    """They are folded without a collection."""
    ours = histogram(())
    harvest = Harvest(is_delta=True)
    for n in range(100_000):
        ours.record(n)
    (cell,) = ours.cells.values()
    assert len(cell.values) + len(cell.folded) < 2_000
    (point,) = points_of(harvest, ours)
    assert (point.count, point.min, point.max) == (100_000, 0, 99_999)
    assert point.sum == sum(range(100_000))


def test_threads_that_measure_and_collect_lose_nothing():
    """Each measurement is in just one collection."""
    ours, hits = histogram(()), Share("s", "1", "…")
    harvest = Harvest(is_delta=True)
    threads = [
        threading.Thread(
            target=lambda: [(ours.record(1.0), hits.count(is_hit=True)) for _ in range(20_000)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    count = 0
    while any(thread.is_alive() for thread in threads):
        count += sum(point.count for point in points_of(harvest, ours))
    count += sum(point.count for point in points_of(harvest, ours))
    assert count == 80_000
    (share,) = points_of(harvest, hits)
    assert share.value == 1


def test_a_share_is_of_all_outcomes_so_far():
    """A gauge between 0 and 1."""
    ours = Share("s", "1", "…")
    harvest = Harvest(is_delta=True)
    assert points_of(harvest, ours) == []
    for is_hit in (True, True, False, True):
        ours.count(is_hit=is_hit)
    assert [p.value for p in points_of(harvest, ours)] == [0.75]
    ours.count(is_hit=False)
    assert [p.value for p in points_of(harvest, ours)] == [0.6]


def test_a_finaliser_may_measure_while_its_thread_collects():
    """There is no lock to wait for: a measurement inside a collection is in the next one."""
    ours = histogram(())
    harvest = Harvest(is_delta=True)

    class Late(float):
        """A value that measures when it is looked at."""

        def __lt__(self, other):
            ours.record(7.0)
            return float.__lt__(self, other)

    ours.record(Late(1.0))
    ours.record(Late(2.0))
    first = sum(p.count for p in points_of(harvest, ours))
    rest = sum(p.count for p in points_of(harvest, ours))
    assert first == 2
    assert rest >= 1


@pytest.mark.parametrize(("unit", "value"), [("s", 1.5), ("ms", 1500.0)])
def test_durations_are_in_the_unit(unit, value):
    """Given as ns of the monotonic clock."""
    ours = Histogram("h", unit, "…", bounds=BOUNDS)
    harvest = Harvest(is_delta=True)
    ours.record_between(1_000_000_000, 2_500_000_000)
    (point,) = points_of(harvest, ours)
    assert math.isclose(point.sum, value)
