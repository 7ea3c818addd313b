"""The driver: runs rollouts against the environment server, so many at a time.

Each rollout is one request inside `rollout_context`; the whole run is one `gym.job` span when that
group is open, and else each rollout is a trace of its own. Rollouts that fail are counted by
reason and never end the run.
"""

import argparse
import asyncio
import logging
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import aiohttp

from gymlog import (
    GymSpanGroup,
    clock,
    init_telemetry,
    managed_span,
    request,
    rollout_context,
    shutdown_telemetry,
)
from gymlog.fleet.lifeline import Lifeline, exit_on_signals
from gymlog.fleet.progress import Progress
from gymlog.metrics import instruments
from gymlog.metrics.instruments import QUEUE_WAIT_DURATION, ROLLOUTS_COMPLETED

__all__ = ["Driver", "Rollout", "rollouts"]

_ROLLOUTS_PER_TASK: Final = 4
_STREAMED_EVERY: Final = 4
_TELL_SECONDS: Final = 0.1

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One attempt at a task."""

    task: int
    index: int
    seed: int
    turns: int

    @property
    def id(self) -> str:
        return f"{self.task}-{self.index}"

    def body(self) -> dict[str, object]:
        """Return what the environment's `/run` takes."""
        question = {"role": "user", "content": f"What is the weather like? (task {self.task})"}
        return {
            "_ng_task_index": self.task,
            "_ng_rollout_index": self.index,
            "responses_create_params": {
                "model": "policy",
                "input": [question],
                "max_tool_calls": self.turns - 1,
                "seed": self.seed,
                "stream": self.index % _STREAMED_EVERY == _STREAMED_EVERY - 1,
            },
        }


def rollouts(count: int, *, turns: int, seed: int) -> Iterator[Rollout]:
    """Yield `count` rollouts, several per task, each with a seed of its own."""
    for number in range(count):
        task, index = divmod(number, _ROLLOUTS_PER_TASK)
        own_seed = random.Random(f"{seed}/{task}/{index}").getrandbits(31)
        yield Rollout(task, index, own_seed, turns)


class Driver:
    """Runs rollouts against the environment server at a URL."""

    def __init__(self, environment: str, *, timeout_seconds: float) -> None:
        self.progress = Progress()
        self._url = f"{environment}/run"
        self._timeout_seconds = timeout_seconds
        self._began_ns = 0

    async def run(self, todo: Iterator[Rollout], *, concurrency: int) -> None:
        """Run all rollouts of `todo`, at most `concurrency` at a time."""

        async def work() -> None:
            for rollout in todo:  # shared: each takes the next
                await self._run_one(rollout)

        self._began_ns = clock.monotonic_ns()
        with managed_span(GymSpanGroup.JOB, "gym.job"):
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(work())

    async def _run_one(self, rollout: Rollout) -> None:
        if instruments.are_on:
            QUEUE_WAIT_DURATION.record_since(self._began_ns, ("rollout_driver",))
        self.progress.in_flight += 1
        try:
            with rollout_context(rollout.id):
                failure = await self._failure(rollout)
                if failure is not None:
                    _log.warning("rollout %s failed: %s", rollout.id, failure)
        finally:
            self.progress.in_flight -= 1
        if instruments.are_on:
            ROLLOUTS_COMPLETED.add(1, ("success" if failure is None else "failure",))
        if failure is None:
            self.progress.done += 1
        else:
            self.progress.failures[failure] += 1

    async def _failure(self, rollout: Rollout) -> str | None:
        """Run one rollout and return why it failed, or None."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                response = await request(
                    "POST",
                    self._url,
                    json=rollout.body(),
                    _internal=True,
                    _max_connection_retries=2,
                )
                async with response:
                    await response.read()
        except TimeoutError:
            return f"no answer in {self._timeout_seconds:g} s"
        except aiohttp.ClientError as error:
            return type(error).__name__
        return None if response.status == 200 else f"status {response.status}"


async def _drive(arguments: argparse.Namespace, lifeline: Lifeline) -> Progress:
    """Run the rollouts; SIGINT and SIGTERM cancel those in flight."""
    main_task = asyncio.current_task()
    assert main_task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, main_task.cancel)

    driver = Driver(arguments.environment, timeout_seconds=arguments.timeout_seconds)
    teller = asyncio.create_task(_tell(driver.progress, lifeline))
    try:
        todo = rollouts(arguments.rollouts, turns=arguments.turns, seed=arguments.seed)
        await driver.run(todo, concurrency=min(arguments.concurrency, arguments.rollouts))
    finally:
        teller.cancel()
    return driver.progress


async def _tell(progress: Progress, lifeline: Lifeline) -> None:
    while True:
        lifeline.tell(**progress.message())
        await asyncio.sleep(_TELL_SECONDS)


def main() -> None:
    """Run as `python -m gymlog.fleet.driver`."""
    parser = argparse.ArgumentParser(
        prog="python -m gymlog.fleet.driver", description="Runs rollouts against an environment."
    )
    parser.add_argument("--environment", required=True, metavar="URL")
    parser.add_argument("--rollouts", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=8, help="rollouts in flight at a time")
    parser.add_argument("--turns", type=int, default=2, help="model calls of a rollout")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout-seconds", type=float, default=900.0, help="bound of a rollout")
    parser.add_argument("--lifeline-fd", type=int, help="end when this inherited socket closes")
    arguments = parser.parse_args()

    exit_on_signals()
    lifeline = Lifeline(arguments.lifeline_fd)
    init_telemetry("driver", "driver")
    try:
        progress = asyncio.run(_drive(arguments, lifeline))
    except asyncio.CancelledError:
        sys.exit(130)
    finally:
        shutdown_telemetry()
    progress.is_over = True
    lifeline.tell(**progress.message())
    if arguments.lifeline_fd is None:
        sys.stderr.write(f"{progress.done} rollouts done, {progress.failed} failed\n")


if __name__ == "__main__":
    main()
