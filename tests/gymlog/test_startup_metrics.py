"""Durations of starts and the count of active servers, through OpenTelemetry's SDK."""

from types import SimpleNamespace

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gymlog import ServerStartup, StartupTrace, startup, startup_metrics, testing

T0 = 1_750_000_000_000_000_000


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands at T0 until it is moved; no start of this process yet."""
    monkeypatch.setattr(startup, "_own", None)
    with testing.stepped_clock(T0) as clock:
        yield clock
    startup._unfinished.clear()


@pytest.fixture
def config():
    """What counts of the configuration."""
    return SimpleNamespace(metrics_enabled=True)


@pytest.fixture
def points(monkeypatch, config):
    """Metrics on, spans off; call it for the points so far: name -> list of points."""
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    handle = SimpleNamespace(meter=provider.get_meter("gymlog"), config=config)
    monkeypatch.setattr(startup_metrics, "get_telemetry", lambda: handle)

    def collect():
        data = reader.get_metrics_data()
        return {
            metric.name: list(metric.data.data_points)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    yield collect
    provider.shutdown()


def test_a_servers_start_is_measured_by_its_supervisor(points, clock):
    """In ms, by server, in buckets that reach an hour; whether its span is written or not."""
    with StartupTrace().server("model", "responses_api_models"):
        clock.advance(seconds=1_900)
    (point,) = points()["gym.server.startup_duration_ms"]
    assert (point.count, point.sum) == (1, 1_900_000)
    assert dict(point.attributes) == {
        "nemo.gym.server.name": "model",
        "nemo.gym.server.type": "responses_api_models",
    }
    assert (point.explicit_bounds[0], point.explicit_bounds[-1]) == (100, 3_600_000)
    assert point.bucket_counts[-2] == 1


def test_a_server_measures_each_stage_of_its_start(points, clock, monkeypatch):
    """When it is ready, those that were over before telemetry was on included."""
    monkeypatch.setenv("NEMO_GYM_STARTUP_SPAWN_NS", str(T0 - 2_000_000_000))
    own = ServerStartup.from_environment("model")
    own.stage("uvicorn_startup")
    clock.advance(seconds=0.5)
    assert points() == {}
    own.ready()
    found = points()["gym.server.startup_stage_duration_ms"]
    assert {point.attributes["nemo.gym.startup.stage"]: point.sum for point in found} == {
        "interpreter_start": 2_000,
        "uvicorn_startup": 500,
    }
    assert {point.attributes["nemo.gym.server.worker"] for point in found} == {False}
    assert found[0].explicit_bounds[-1] == 3_600_000


def test_a_measurement_leads_to_its_span(points, clock):
    """Where spans are written too."""
    with testing.captured() as telemetry:
        with StartupTrace().server("model", "t"):
            clock.advance(seconds=1)
        ServerStartup.from_environment("model").ready()
    (exemplar,) = points()["gym.server.startup_duration_ms"][0].exemplars
    span = telemetry.span("gym.startup.server")
    assert f"{exemplar.trace_id:032x}" == span["trace_id"]
    assert f"{exemplar.span_id:016x}" == span["span_id"]


def test_active_servers_are_those_that_answer(points, clock):
    """One more when a server is ready, one less when it stops, however often that is said."""
    started = StartupTrace()
    servers = [started.server(name, "t") for name in ("agent", "model", "broken")]
    seen = []
    for step in (
        servers[0].ready,
        servers[1].ready,
        servers[2].failed,
        servers[2].stopped,
        servers[0].stopped,
        servers[0].stopped,
        servers[1].stopped,
    ):
        step()
        (point,) = points()["gym.servers.active"]
        seen.append(point.value)
    assert seen == [1, 2, 2, 2, 1, 1, 0]


def test_starts_that_fail_are_not_measured(points, clock):
    """Their length is that of somebody's patience."""
    StartupTrace().server("model", "t").failed(TimeoutError())
    own = ServerStartup.from_environment("model")
    own.stage("load_config")
    own.failed("no model")
    assert points() == {}


def test_with_metrics_off_nothing_is_measured(points, config, clock):
    """Although telemetry is on."""
    config.metrics_enabled = False
    server = StartupTrace().server("model", "t")
    server.ready()
    ServerStartup.from_environment("model").ready()
    server.stopped()
    assert points() == {}
