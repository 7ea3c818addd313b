"""Meters that are there before the SDK is: what was measured early arrives, once."""

import threading

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gymlog import notices
from gymlog.metrics.meters import LateMeterProvider


class Late:
    """A provider, and the SDK that comes when it is loaded."""

    def __init__(self):
        self.loads = 0
        self.provider = LateMeterProvider(self.load)
        self.meter = self.provider.get_meter("m", "1.0")
        self.renew()

    def renew(self):
        self.reader = InMemoryMetricReader()
        self.sdk = MeterProvider([self.reader], shutdown_on_exit=False)

    def load(self):
        self.loads += 1
        self.provider.bind(self.sdk)

    def values(self):
        """Return {name: value, or (count, sum) of a histogram} of what the SDK has."""
        data = self.reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    (point,) = metric.data.data_points
                    is_number = hasattr(point, "value")
                    found[metric.name] = point.value if is_number else (point.count, point.sum)
        return found


@pytest.fixture
def late():
    late = Late()
    yield late
    late.sdk.shutdown()


def measure_all(meter):
    meter.create_counter("counter").add(2)
    meter.create_up_down_counter("updown").add(-3)
    meter.create_histogram("histogram").record(4)
    meter.create_gauge("gauge").set(5)
    observed = [metrics.Observation(6)]
    meter.create_observable_counter("ocounter", [lambda options: observed])
    meter.create_observable_up_down_counter("oupdown", [lambda options: observed])
    meter.create_observable_gauge("ogauge", [lambda options: observed])


ALL = {
    "counter": 2, "updown": -3, "histogram": (1, 4), "gauge": 5, "ocounter": 6, "oupdown": 6,
    "ogauge": 6,
}  # fmt: skip


def test_what_is_measured_before_the_sdk_is_there_is_not_lost(late):
    """And nothing loads it."""
    measure_all(late.meter)
    assert late.loads == 0
    late.load()
    assert late.values() == ALL


def test_what_is_measured_afterwards_arrives_at_once(late):
    """Through instruments made before and made later."""
    counter = late.meter.create_counter("before")
    late.load()
    counter.add(1)
    measure_all(late.meter)
    assert late.values() == ALL | {"before": 1}


def test_equal_instruments_are_one(late):
    """However often they are made: a program may ask anew for each request."""
    first = late.meter.create_counter("c", "1", "…")
    assert late.meter.create_counter("c", "1", "…") is first
    assert late.provider.get_meter("m", "1.0") is late.meter
    assert late.provider.get_meter("m", "2.0") is not late.meter


def test_very_many_early_measurements_load_the_sdk(late):
    """Rather than being lost or filling the memory."""
    counter = late.meter.create_counter("c")
    for _ in range(10_000):
        counter.add(1)
    assert late.loads == 1
    assert late.values() == {"c": 10_000}


def test_threads_that_measure_while_the_sdk_comes_lose_nothing(late):
    """Each measurement is handed on once."""
    counter = late.meter.create_counter("c")
    begin = threading.Barrier(5)

    def measure():
        begin.wait()
        for _ in range(2_000):
            counter.add(1)

    threads = [threading.Thread(target=measure) for _ in range(4)]
    for thread in threads:
        thread.start()
    begin.wait()
    late.load()
    for thread in threads:
        thread.join()
    assert late.values() == {"c": 8_000}


def test_instruments_move_on_to_another_sdk(late):
    """As in a forked child: the new one has nothing of the old one's."""
    counter = late.meter.create_counter("c")
    late.load()
    counter.add(5)
    late.provider.bind(None)
    counter.add(70)
    late.provider.forget_kept()
    counter.add(1)
    old, _ = late.sdk, late.renew()
    late.load()
    assert late.values() == {"c": 1}
    old.shutdown()


def test_bounds_are_handed_on(late):
    """What the author of a histogram advises."""
    late.meter.create_histogram("h", explicit_bucket_boundaries_advisory=[1.0, 2.0]).record(1.5)
    late.load()
    (scope,) = late.reader.get_metrics_data().resource_metrics[0].scope_metrics
    assert scope.metrics[0].data.data_points[0].explicit_bounds == (1.0, 2.0)
    assert (scope.scope.name, scope.scope.version) == ("m", "1.0")


def test_attributes_and_kinds_are_opentelemetrys(late):
    """Every instrument is what the API says it is."""
    meter = late.meter
    assert isinstance(meter.create_counter("c"), metrics.Counter)
    assert isinstance(meter.create_histogram("h"), metrics.Histogram)
    assert isinstance(meter.create_observable_gauge("g"), metrics.ObservableGauge)
    meter.create_counter("c").add(1, {"a": "x"})
    late.load()
    (scope,) = late.reader.get_metrics_data().resource_metrics[0].scope_metrics
    assert scope.metrics[0].data.data_points[0].attributes == {"a": "x"}


def test_a_bad_name_takes_nothing_else_along(late, capfd):
    """It is told of, whenever the instrument is made, and measures nothing."""
    notices.reset()
    bad = late.meter.create_counter("no name")
    late.meter.create_counter("good").add(1)
    bad.add(1)
    late.load()
    bad.add(1)
    late.meter.create_histogram("").record(1)
    assert late.values() == {"good": 1}
    words = capfd.readouterr().err.splitlines()
    assert [word.partition(":")[2].split(":")[0] for word in words] == [
        " metric 'no name' is left out",
        " metric '' is left out",
    ]


def test_what_is_in_the_background_is_not_needed(late):
    """So that a process that ends at once need not load the SDK for it."""
    assert not late.provider.is_used
    late.provider.background_meter("b").create_counter("c").add(1)
    assert (late.provider.is_used, late.provider.is_needed) == (True, False)
    late.meter.create_counter("c")
    assert late.provider.is_needed
