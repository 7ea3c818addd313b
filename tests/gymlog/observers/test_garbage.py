"""Garbage collections that really happen."""

import gc
import time

import pytest

from gymlog.observers.garbage import PAUSE_BOUNDS_MS, GarbageCollections


@pytest.fixture
def collections(metrics):
    """The collections of this process; the interpreter's own are off meanwhile."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    collections = GarbageCollections(metrics.meter)
    collections.start()
    yield collections
    collections.stop()
    if was_enabled:
        gc.enable()
    assert collections._on_collection not in gc.callbacks


class Cyclic:
    """Can be freed by the garbage collector alone."""

    def __init__(self):
        self.own = self


def by_generation(points, value="value"):
    return {point.attributes["nemo.gym.gc.generation"]: getattr(point, value) for point in points}


def test_collections_are_counted_by_generation(metrics, collections):
    """Since it was made, however many there were before."""
    for _ in range(10):
        Cyclic()
    gc.collect(0)
    gc.collect(1)
    gc.collect(1)
    found = metrics.collect()
    assert by_generation(found["gym.gc.collections_total"]) == {0: 1, 1: 2, 2: 0}
    assert sum(by_generation(found["gym.gc.collected_total"]).values()) >= 10
    assert by_generation(found["gym.gc.uncollectable_total"]) == {0: 0, 1: 0, 2: 0}
    assert by_generation(found["gym.gc.pause_duration_ms"], "count") == {0: 1, 1: 2}


def test_what_is_due_is_gc_get_count(metrics, collections):
    """Objects of the youngest generation, collections of the others."""
    kept = [[] for _ in range(5_000)]
    now = gc.get_count()
    found = by_generation(metrics.collect()["gym.gc.count"])
    assert found[0] >= len(kept)
    assert (found[1], found[2]) == now[1:]


def test_a_pause_is_as_long_as_the_collection(metrics, collections):
    """Compared with the time that gc.collect() takes from outside."""
    kept = [[] for _ in range(100_000)]
    outside_ms = []
    for _ in range(10):
        started = time.perf_counter()
        gc.collect(2)
        outside_ms.append((time.perf_counter() - started) * 1000)
    (point,) = metrics.collect()["gym.gc.pause_duration_ms"]
    assert point.explicit_bounds == PAUSE_BOUNDS_MS
    assert point.count == 10
    assert point.sum <= sum(outside_ms)
    assert point.max > min(outside_ms) / 2
    assert kept


def test_every_pause_is_in_one_export(metrics, collections):
    """Not twice, and those between the last export and `stop` are in the one after it."""
    gc.collect(0)
    metrics.collect()
    gc.collect(0)
    collections.stop()
    gc.collect(0)
    (point,) = metrics.collect()["gym.gc.pause_duration_ms"]
    assert point.count == 2  # this reader is a cumulative one


def test_nothing_of_the_library_is_called_within_a_collection(metrics, collections):
    """A collection may begin inside a lock of the metrics library."""

    class Histogram:
        def record(self, *args):
            pytest.fail("a lock could be waited for by its own owner")

    collections._pause, histogram = Histogram(), collections._pause
    gc.collect()
    collections._pause = histogram
    (point,) = metrics.collect()["gym.gc.pause_duration_ms"]
    assert point.count == 1


def test_a_forked_child_counts_from_nothing_on(metrics, collections):
    """What there was before is its parent's to tell."""
    gc.collect(0)
    collections.become_new()
    gc.collect(1)
    found = metrics.collect()
    assert by_generation(found["gym.gc.pause_duration_ms"], "count") == {1: 1}
    assert by_generation(found["gym.gc.collections_total"]) == {0: 0, 1: 1, 2: 0}


def test_a_collection_costs_little(collections):
    """Less than 1 µs on the test machine; here: less than 10, in the least disturbed of 20."""

    def seconds():
        started = time.perf_counter()
        for _ in range(100):
            collections._on_collection("start", {"generation": 0})
            collections._on_collection("stop", {"generation": 0})
        return (time.perf_counter() - started) / 100

    assert min(seconds() for _ in range(20)) < 10e-6


def test_pauses_that_nobody_collects_take_no_more_memory(metrics, collections):
    """The oldest go first."""
    for _ in range(20_000):
        collections._on_collection("stop", {"generation": 0})
    assert len(collections._pauses) == 16_384
