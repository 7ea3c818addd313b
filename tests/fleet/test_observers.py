"""A real fleet observed: by each process itself, and its memory by the supervisor."""

from collections import defaultdict

import pytest


@pytest.fixture(scope="module")
def profiled(run_demo):
    """A run whose supervisor samples memory; everything is sampled and collected often."""
    return run_demo(
        "--rollouts=4",
        "--workers=2",
        NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED="1",
        NEMO_GYM_OTEL_MEMORY_PROFILING_INTERVAL_SECONDS="0.1",
        NEMO_GYM_OTEL_EVENT_LOOP_SAMPLE_INTERVAL_SECONDS="0.05",
        OTEL_METRIC_EXPORT_INTERVAL="250",
    )


def points(run, name):
    return [one for one in run.of_type("metric") if one["name"] == name]


def test_each_server_process_has_its_memory(profiled):
    """Two of each server, by name, type and pid, in the supervisor's log."""
    assert profiled.exit_code == 0, profiled.stderr
    usage = points(profiled, "gym.server.memory.usage")
    assert {profiled.service(one) for one in usage} == {"gym/supervisor"}
    pids = defaultdict(set)
    for one in usage:
        facts = one["attributes"]
        pids[facts["nemo.gym.server.name"], facts["nemo.gym.server.type"]].add(facts["process.pid"])
        assert facts["memory.type"] in ("rss", "pss")
        assert 10_000_000 < one["value"] < 2_000_000_000
    assert {server: len(of_server) for server, of_server in pids.items()} == {
        ("environment", "environment_servers"): 2,
        ("agent", "responses_api_agents"): 2,
        ("model", "responses_api_models"): 2,
        ("resources", "resources_servers"): 2,
    }
    started = {
        one["resource"]["attributes"]["process.pid"]
        for one in profiled.of_type("process")
        if one["state"] == "started"
    }
    assert set().union(*pids.values()) <= started
    assert {one["value"] for one in points(profiled, "gym.server.processes")} == {1}


def test_the_hosts_memory_is_beside_it(profiled):
    """From the supervisor alone."""
    (total,) = {one["value"] for one in points(profiled, "gym.host.memory.total")}
    for name in ("usage", "available", "sampled_peak"):
        values = points(profiled, f"gym.host.memory.{name}")
        assert values
        assert all(0 < one["value"] < total for one in values)


def test_memory_is_not_sampled_unless_asked_for(healthy):
    """It costs a walk over all processes of the host, every second."""
    assert healthy.of_type("process"), "telemetry is on"
    assert points(healthy, "gym.host.memory.usage") == []
    assert points(healthy, "gym.server.memory.usage") == []


@pytest.mark.parametrize(
    "name",
    [
        "gym.event_loop.lag_ms",
        "gym.gc.collections_total",
        "process.cpu.time",
        "process.memory.usage",
        "process.thread.count",
        "process.open_file_descriptor.count",
    ],
)
def test_each_process_observes_itself(profiled, name):
    """The supervisor and every process of a server, without a word in their code."""
    long_lived = {
        one["resource"]["attributes"]["service.instance.id"]
        for one in profiled.of_type("process")
        if profiled.service(one) != "gym/driver" and one["state"] == "started"
    }
    observed = {
        one["resource"]["attributes"]["service.instance.id"] for one in points(profiled, name)
    }
    assert len(long_lived) == 9
    assert long_lived <= observed
