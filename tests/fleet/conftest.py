"""Demo runs as real processes, and what their logs say, read with nothing but `json`."""

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Run:
    """A demo that is over."""

    folder: Path
    exit_code: int
    stderr: str

    @cached_property
    def lines(self) -> list[bytes]:
        logs = sorted(self.folder.glob("*.log"))
        return [line for log in logs for line in log.read_bytes().splitlines(keepends=True)]

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    def of_type(self, record_type: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["record_type"] == record_type]

    @property
    def spans(self) -> list[dict[str, Any]]:
        return self.of_type("span")

    @property
    def unfinished(self) -> list[dict[str, Any]]:
        ended = {span["span_id"] for span in self.spans}
        return [start for start in self.of_type("span_start") if start["span_id"] not in ended]

    def spans_named(self, name: str, kind: str) -> list[dict[str, Any]]:
        return [span for span in self.spans if (span["name"], span["kind"]) == (name, kind)]

    @staticmethod
    def service(record: dict[str, Any]) -> str:
        return record["resource"]["attributes"]["service.name"]

    def rollouts(self) -> dict[str, list[dict[str, Any]]]:
        """Return the spans of each rollout."""
        rollouts = defaultdict(list)
        for span in self.spans:
            if rollout_id := span["attributes"].get("nemo.gym.rollout.id"):
                rollouts[rollout_id].append(span)
        return rollouts

    def by_instance(self) -> dict[str, list[dict[str, Any]]]:
        """Return the records of each process in the order in which they were written."""
        instances = defaultdict(list)
        for record in self.records:
            instances[record["resource"]["attributes"]["service.instance.id"]].append(record)
        return instances

    def instances_of(self, service: str) -> list[str]:
        """Return the processes of a service that said they started."""
        return [
            resource["service.instance.id"]
            for record in self.of_type("process")
            if record["state"] == "started"
            and (resource := record["resource"]["attributes"])["service.name"] == service
        ]


@pytest.fixture(scope="session")
def environment() -> dict[str, str]:
    """The environment without what would configure telemetry."""
    ours = ("NEMO_", "OTEL_", "GYMLOG_", "SLURM_")
    return {key: value for key, value in os.environ.items() if not key.startswith(ours)}


@pytest.fixture(scope="session")
def command() -> list[str]:
    """`gymlog demo`, without the reader."""
    return [sys.executable, "-m", "gymlog.cli", "demo", "--no-show"]


@pytest.fixture(scope="session")
def run_demo(
    tmp_path_factory: pytest.TempPathFactory, command: list[str], environment: dict[str, str]
) -> Callable[..., Run]:
    """Run `gymlog demo` to its end with small latencies."""

    def run(*options: str, **variables: str) -> Run:
        folder = tmp_path_factory.mktemp("demo")
        done = subprocess.run(
            [*command, "--out", str(folder), "--latency-scale=0.05", *options],
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.stdout == ""
        return Run(folder, done.returncode, done.stderr)

    return run


@pytest.fixture(scope="session")
def healthy(run_demo: Callable[..., Run]) -> Run:
    """A run without faults: 8 rollouts, one process per server."""
    return run_demo("--rollouts=8")


@pytest.fixture(scope="session")
def crowded(run_demo: Callable[..., Run]) -> Run:
    """The default preset, two processes per server, twelve rollouts."""
    return run_demo("--rollouts=12", "--workers=2", "--span-groups=default")


@pytest.fixture(scope="session")
def faulty(run_demo: Callable[..., Run]) -> Run:
    """Faults that leave every rollout able to end."""
    faults = ("slow-host", "error-tool", "bypass", "block")
    return run_demo("--rollouts=16", *(f"--fault={fault}" for fault in faults))


@pytest.fixture(scope="session")
def hung(run_demo: Callable[..., Run]) -> Run:
    """One call of the model server hangs; the server is killed at the end."""
    return run_demo(
        "--rollouts=8",
        "--fault=hang-model",
        "--latency-scale=1",
        "--grace-seconds=1",
    )


@pytest.fixture(scope="session")
def killed(run_demo: Callable[..., Run]) -> Run:
    """The agent server is killed in the middle of the run."""
    return run_demo("--rollouts=24", "--latency-scale=0.3", "--fault=kill")


@pytest.fixture
def shell(tmp_path, healthy, environment):
    """Run a block in a folder with a `logs` folder in it, programs of this environment first."""
    (tmp_path / "logs").symlink_to(healthy.folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment | {"PATH": path, "PYTHONPATH": str(tmp_path)} | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run
