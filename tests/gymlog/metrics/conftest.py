"""Fixtures of the metrics' tests: instruments that nobody else has, and lines in memory."""

from contextlib import contextmanager

import pytest

from gymlog import notices, testing
from gymlog.metrics import harvest, instruments, series
from gymlog.metrics.collector import Collector


@pytest.fixture(autouse=True)
def _fresh():
    """No measurement, instrument or notice of one test is left to the next."""
    notices.reset()
    harvest.forget_measurements()
    before = list(series.instruments)
    yield
    series.instruments[:] = before
    instruments.switch(on=False)
    harvest.forget_measurements()
    notices.reset()


@pytest.fixture
def telemetry():
    """Telemetry with every span group, into memory."""
    with testing.captured() as captured:
        yield captured


@pytest.fixture
def collecting(telemetry):
    """`with collecting(…) as collector` collects when told to, and at the end."""

    @contextmanager
    def collecting(**options):
        collector = Collector(telemetry.service, interval_seconds=3600, **options)
        collector.start()
        try:
            yield collector
        finally:
            collector.stop()

    return collecting


@pytest.fixture
def points(telemetry):
    """`points(name)` returns the `metric` records of a name so far."""

    def points(name=None):
        return [
            record
            for record in telemetry.records
            if record["record_type"] == "metric" and name in (None, record["name"])
        ]

    return points
