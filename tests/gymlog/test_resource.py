"""The resource: who this process is, and whose word counts."""

import multiprocessing
import os

import orjson
import pytest

from gymlog import notices, testing
from gymlog.resource import gymlog_version, resource_of


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES", raising=False)
    notices.reset()
    yield
    notices.reset()


def resource(**arguments):
    """Return a resource with defaults for what a test does not say."""
    defaults = {
        "service_name": "nemo-gym",
        "per_server": True,
        "server_name": "agent",
        "server_type": "responses_api_agents",
        "run_id": "run7",
    }
    return resource_of(**{**defaults, **arguments})


def test_the_names_of_a_server():
    """What readers group by."""
    facts = resource()
    assert facts["service.name"] == "nemo-gym/agent"
    assert facts["nemo.gym.service_group"] == "nemo-gym"
    assert facts["nemo.gym.server.name"] == "agent"
    assert facts["nemo.gym.server.type"] == "responses_api_agents"
    assert facts["nemo.run.id"] == "run7"
    assert facts["telemetry.sdk.name"] == "gymlog"
    assert facts["telemetry.sdk.version"] == gymlog_version() != "unknown"
    assert facts["host.name"]


def test_the_machine_is_told_by_its_boot():
    """Processes with equal ids share a clock."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert resource()["gymlog.boot.id"] == file.read().strip()


def test_one_service_name_for_all_when_asked():
    """`service_name_per_server` off; and without a server's name there is nothing to append."""
    assert resource(per_server=False)["service.name"] == "nemo-gym"
    assert resource(server_name=None)["service.name"] == "nemo-gym"
    assert "nemo.gym.server.name" not in resource(server_name=None)


def test_declared_attributes_count_before_detected_ones(monkeypatch):
    """OTEL_RESOURCE_ATTRIBUTES, percent-encoded; the names given to gymlog count before it."""
    monkeypatch.setenv(
        "OTEL_RESOURCE_ATTRIBUTES",
        " host.name = node%2C7 ,deployment=a=b,service.name=other,nemo.run.id=other,,empty=",
    )
    facts = resource()
    assert facts["host.name"] == "node,7"
    assert facts["deployment"] == "a=b"
    assert facts["empty"] == ""
    assert facts["service.name"] == "nemo-gym/agent"
    assert facts["nemo.run.id"] == "run7"
    assert resource(run_id=None)["nemo.run.id"] == "other", "nothing was given that counts more"


def test_a_malformed_declaration_is_told_and_the_rest_stands(monkeypatch, capfd):
    """One line with the part that is wrong."""
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "a=1,nonsense,=x,b=2")
    facts = resource()
    assert (facts["a"], facts["b"]) == ("1", "2")
    assert "'nonsense'" in capfd.readouterr().err


def test_the_callers_attributes_count_most():
    """Of any type; None leaves out."""
    facts = resource(extra={"service.name": "mine", "gpu": 3, "host.name": None, "big": 2**70})
    assert facts["service.name"] == "mine"
    assert facts["gpu"] == 3
    assert "host.name" not in facts
    assert facts["big"] == str(2**70)


def test_what_is_not_utf8_does_not_keep_telemetry_off(monkeypatch):
    """Bytes of an environment variable come as lone surrogates."""
    monkeypatch.setitem(os.environb, b"OTEL_RESOURCE_ATTRIBUTES", b"k\xff=v\xff")
    facts = resource(server_name="agent\udcff")
    assert facts["service.name"] == "nemo-gym/agent\ufffd"
    assert facts["k\ufffd"] == "v\ufffd"
    orjson.dumps(facts)
    with testing.captured(resource=facts) as telemetry:
        telemetry.tracer.open_span("x").end()
    assert telemetry.spans[0]["resource"]["attributes"]["service.name"] == "nemo-gym/agent\ufffd"


def test_long_values_are_cut():
    """A resource is small."""
    assert len(resource(extra={"k": "x" * 10_000})["k"]) == 1024


def _worker_fact(queue):
    queue.put(resource().get("nemo.gym.worker"))


def test_a_process_of_multiprocessing_is_a_worker():
    """uvicorn --workers starts such processes."""
    assert "nemo.gym.worker" not in resource()
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=_worker_fact, args=(queue,))
    process.start()
    assert queue.get() is True
    process.join()
