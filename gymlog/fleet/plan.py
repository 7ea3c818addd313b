"""The plan of one run: how many rollouts on how many servers, and which faults are planted."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

__all__ = ["FAULT_MEANINGS", "SERVER_TYPES", "Fault", "Plan"]

_SLOWDOWN: Final = 5
_HANGING_CALL: Final = 3
_FAILING_EVERY: Final = 3
_BLOCKING_EVERY: Final = 4
_HANG_TIMEOUT_SECONDS: Final = 8.0
"""How long the agent waits for the model when one of its calls is known to hang."""


class Fault(StrEnum):
    """Values of `--fault`."""

    SLOW_HOST = "slow-host"
    ERROR_TOOL = "error-tool"
    HANG_MODEL = "hang-model"
    KILL = "kill"
    BYPASS = "bypass"
    BLOCK = "block"


FAULT_MEANINGS: Final = {
    Fault.SLOW_HOST: f"a second model server is {_SLOWDOWN} times slower than the first",
    Fault.ERROR_TOOL: f"one tool call in {_FAILING_EVERY} fails with status 500",
    Fault.HANG_MODEL: "one call of the model server never returns",
    Fault.KILL: "the agent server is killed (SIGKILL) in the middle of the run",
    Fault.BYPASS: "the agent calls the model without gymlog.request, so traces break",
    Fault.BLOCK: f"one verification in {_BLOCKING_EVERY} blocks the event loop of its server",
}

SERVER_TYPES: Final = {
    "environment": "environment_servers",
    "agent": "responses_api_agents",
    "resources": "resources_servers",
    "model": "responses_api_models",
}
"""Module of `gymlog.fleet` -> what kind of server it is."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, and where its logs go."""

    folder: Path
    rollouts: int = 20
    concurrency: int = 8
    turns: int = 2
    workers: int = 1
    """Processes of each server."""
    seed: int = 0
    faults: frozenset[Fault] = frozenset()
    has_telemetry: bool = True
    span_groups: str = "per_rollout"
    latency_scale: float = 1.0
    ready_seconds: float = 60.0
    """How long a server may take until it answers."""
    grace_seconds: float = 10.0
    """How long the processes may take to stop before they are killed."""

    def servers(self) -> dict[str, str]:
        """Return the module of `gymlog.fleet` that each server runs, by the name of its log."""
        names = {name: name for name in SERVER_TYPES}
        return names | ({"model-2": "model"} if Fault.SLOW_HOST in self.faults else {})

    def server_options(self, urls: Mapping[str, str]) -> dict[str, list[str]]:
        """Return each server's command-line options, given the URL of each."""
        scale = self.latency_scale
        options = {
            "environment": [f"--agent={urls['agent']}"],
            "agent": [f"--resources={urls['resources']}", f"--model={urls['model']}"],
            "resources": [f"--latency-scale={scale}"],
            "model": [f"--latency-scale={scale}"],
        }
        if Fault.SLOW_HOST in self.faults:
            options["agent"] += [f"--model={urls['model-2']}"]
            options["model-2"] = [f"--latency-scale={scale * _SLOWDOWN}"]
        if Fault.ERROR_TOOL in self.faults:
            options["resources"] += [f"--failing-every={_FAILING_EVERY}"]
        if Fault.BLOCK in self.faults:
            options["resources"] += [f"--blocking-every={_BLOCKING_EVERY}"]
        if Fault.HANG_MODEL in self.faults:
            options["model"] += [f"--hanging-call={_HANGING_CALL}"]
            options["agent"] += [f"--model-timeout-seconds={_HANG_TIMEOUT_SECONDS * scale}"]
        if Fault.BYPASS in self.faults:
            options["agent"] += ["--bypass"]
        return options

    def driver_options(self, urls: Mapping[str, str]) -> list[str]:
        """Return the driver's command-line options, given the URL of each server."""
        return [
            f"--environment={urls['environment']}",
            f"--rollouts={self.rollouts}",
            f"--concurrency={self.concurrency}",
            f"--turns={self.turns}",
            f"--seed={self.seed}",
        ]
