"""A meter of OpenTelemetry's SDK whose points can be looked at, and waiting without sleeping."""

import threading
import time
from collections.abc import Callable

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader


class Metrics:
    """Metrics that are collected when a test asks."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)
        self.meter = self.provider.get_meter("gymlog")

    def data(self) -> list:
        """Return each metric as the SDK has it."""
        data = self._reader.get_metrics_data()
        resources = [] if data is None else data.resource_metrics
        scopes = [scope for resource in resources for scope in resource.scope_metrics]
        return [metric for scope in scopes for metric in scope.metrics]

    def collect(self) -> dict[str, list]:
        """Return the points of each metric by its name."""
        return {metric.name: list(metric.data.data_points) for metric in self.data()}

    def one(self, name: str):
        """Return the only point of a metric, None when it has none yet."""
        points = self.collect().get(name, [])
        assert len(points) <= 1
        return points[0] if points else None


@pytest.fixture
def metrics():
    """Metrics of the SDK, collected by the test."""
    metrics = Metrics()
    yield metrics
    metrics.provider.shutdown()


def wait_until(is_true: Callable[[], object], seconds: float = 20.0) -> None:
    """Return when a condition holds, which another thread or process brings about."""
    deadline = time.monotonic() + seconds
    turn = threading.Event()
    while not is_true():
        assert time.monotonic() < deadline, "has not come true"
        turn.wait(0.005)


@pytest.fixture(scope="session")
def until():
    """`until(condition)` waits for another thread or process."""
    return wait_until
