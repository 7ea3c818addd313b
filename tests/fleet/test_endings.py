"""Whatever ends the supervisor, no process of the fleet is left behind."""

import json
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open (Linux)")

DEADLINE_SECONDS = 20


@dataclass
class Demo:
    """A demo in the middle of its run, and a handle (pidfd) on each process of its fleet."""

    folder: Path
    supervisor: subprocess.Popen[str]
    fleet: list[int]

    def left(self, seconds: float) -> list[int]:
        """Wait for the fleet's processes to end and return those that have not in time."""
        return [handle for handle in self.fleet if not _is_over(handle, seconds)]

    def last_states(self) -> dict[str, str]:
        """Return the state in each log's last line, by the log's name."""
        last = {log.stem: log.read_bytes().splitlines()[-1] for log in self.folder.glob("*.log")}
        return {name: json.loads(line).get("state") for name, line in last.items()}

    def stop(self, number: int) -> str:
        """Send a signal to the supervisor, wait for its end and return its last words."""
        self.supervisor.send_signal(number)
        return self.supervisor.communicate(timeout=DEADLINE_SECONDS)[1]


@pytest.fixture
def demo(request, command, environment, tmp_path) -> Iterator[Demo]:
    """A demo that has a quarter of its rollouts behind it."""
    options = ["--rollouts=400", "--concurrency=16", "--latency-scale=0.1", "--grace-seconds=6"]
    options += getattr(request, "param", ())
    with _started([*command, *options, "--out", str(tmp_path)], environment) as supervisor:
        for line in supervisor.stderr:
            if line.startswith("rollouts: "):
                break
        handles = [os.pidfd_open(pid) for pid in _children(supervisor.pid)]
        yield Demo(tmp_path, supervisor, handles)
        for handle in handles:
            os.close(handle)


@contextmanager
def _started(command, environment) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as supervisor:
        try:
            yield supervisor
        finally:
            supervisor.kill()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_over(handle: int, seconds: float) -> bool:
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    return bool(waiting.poll(seconds * 1000))


def test_a_killed_supervisor_takes_the_fleet_along(demo):
    """kill -9 gives the supervisor no chance, yet each process ends, with its last line."""
    assert len(demo.fleet) == 5
    demo.supervisor.kill()
    assert demo.left(DEADLINE_SECONDS) == []
    states = demo.last_states()
    assert states.pop("supervisor") != "stopped"
    assert set(states.values()) == {"stopped"}


def test_ctrl_c_ends_the_fleet_before_the_demo(demo):
    """After Ctrl-C the demo ends last: every process is over and has said goodbye."""
    assert len(demo.fleet) == 5
    assert "Stopped" in demo.stop(signal.SIGINT)
    assert demo.supervisor.returncode == 130
    assert demo.left(0) == []
    assert set(demo.last_states().values()) == {"stopped"}


@pytest.mark.parametrize("demo", [["--no-telemetry"]], indirect=True, ids=["no-telemetry"])
def test_sigterm_ends_a_fleet_without_telemetry(demo):
    """The same with telemetry off: rollouts run, the logs stay empty, SIGTERM leaves nothing."""
    assert len(demo.fleet) == 5
    assert "Stopped" in demo.stop(signal.SIGTERM)
    assert demo.supervisor.returncode == 143
    assert demo.left(0) == []
    assert {log.stat().st_size for log in demo.folder.glob("*.log")} == {0}
