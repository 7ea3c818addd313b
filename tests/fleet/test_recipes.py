"""The published shell recipes work verbatim on the logs of a run (product promise)."""

import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq on the PATH")


def rows(recipe: str, healthy) -> list[str]:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", recipe],
        cwd=healthy.folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_one_trace_id_across_the_services(healthy):
    """The first recipe: a working trace shows one id across several service names."""
    found = rows(
        """cat *.log | grep '"trace_id"' | jq -r '[.trace_id, .resource.attributes."service.name", .kind, .name] | @tsv' | sort""",  # noqa: E501 - verbatim
        healthy,
    )
    services: dict[str, set[str]] = {}
    for row in found:
        trace_id, service, kind, name = row.split("\t")
        assert kind in ("SERVER", "CLIENT", "INTERNAL")
        assert name
        services.setdefault(trace_id, set()).add(service)
    assert len(services) == 8
    assert {len(names) for names in services.values()} == {5}


def test_group_by_trace_id(healthy):
    """The second recipe: `trace_id name` of each line with a trace id, sorted."""
    found = rows(
        """grep -h '"trace_id"' *.log | jq -r '"\\(.trace_id) \\(.name)"' | sort""", healthy
    )
    assert found == sorted(found)
    assert sum(row.endswith(" gym.rollout") for row in found) >= 8


def test_from_a_trace_find_the_rollout(healthy):
    """The third recipe: the rollout id of each span that has one."""
    spans = healthy.folder / "spans.jsonl"
    spans.write_bytes(b"".join(healthy.lines))
    recipe = """jq -r 'select(.attributes."nemo.gym.rollout.id") | .attributes."nemo.gym.rollout.id"' spans.jsonl"""  # noqa: E501 - verbatim
    found = rows(recipe, healthy)
    spans.unlink()
    assert len(set(found)) == 8
    assert len(found) >= len(healthy.spans)
