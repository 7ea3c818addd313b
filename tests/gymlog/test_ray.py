"""Ray workers: each is a service instance of its own, and remote work belongs to its caller.

Runs where Ray is installed; it is no dependency, not even of the tests.
"""

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)

DRIVER = """
import os, sys
import gymlog, ray

@ray.remote
def remote(number, headers):
    import gymlog
    gymlog.init_telemetry("worker")
    with gymlog.carried(headers), gymlog.managed_span("verify", "remote", number=number):
        return os.getpid()

gymlog.init_telemetry("driver")
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=sys.argv[1])
with gymlog.rollout_context("7-0"), gymlog.managed_span("rollout", "gym.rollout"):
    headers = gymlog.carrier()
    pids = ray.get([remote.remote(number, headers) for number in range(40)])
ray.shutdown()
"""


@pytest.fixture
def folder():
    """A folder with a short path: Ray puts sockets there."""
    path = tempfile.mkdtemp(prefix="ray-")
    yield Path(path)
    shutil.rmtree(path, ignore_errors=True)


def test_remote_work(folder, program):
    """
    gym.rollout             written by the driver
    └─ remote (40 times)    written by the workers to their own logs
    """
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, folder],
        capture_output=True,
        env=program.environment(RAY_USAGE_STATS_ENABLED="0"),
        timeout=120,
        check=True,
    )
    logs = (folder / "session_latest" / "logs").glob("worker*.out")
    data = b"".join(path.read_bytes() for path in logs) + done.stdout
    lines = data.splitlines(keepends=True)
    records = program.parse(b"".join(line for line in lines if line.startswith(b'{"record_type"')))
    records.no_gap_no_repeat()
    (rollout,) = records.of("span", "gym.rollout")
    work = records.of("span", "remote")
    assert sorted(span["attributes"]["number"] for span in work) == list(range(40))
    assert {span["parent_span_id"] for span in work} == {rollout["span_id"]}
    assert {span["attributes"]["nemo.gym.rollout.id"] for span in work} == {"7-0"}
    assert len({span["span_id"] for span in work}) == 40
    assert len(work.instances()) == len(records.instances()) - 1 >= 1
