"""What `gymlog demo` does: run the fleet with a progress bar, then let `reconstruct` read its logs.

Its words go to stderr, what `reconstruct` prints to stdout. `reconstruct` is run as a program: the
writer never imports the reader.
"""

import asyncio
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from gymlog.errors import FleetError
from gymlog.fleet.plan import Plan
from gymlog.fleet.progress import Progress
from gymlog.fleet.supervisor import Fleet

__all__ = ["run_demo"]


class _StoppedError(Exception):
    """A signal has ended the run."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_demo(plan: Plan, *, is_shown: bool = True) -> int:
    """Run a plan to its end, show what its logs say unless told not to, return the exit code.

    0 when all rollouts are done or a planted fault explains why not, 1 when something failed that
    none explains, 128 and its number when a signal came.
    """
    console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    if any(plan.folder.glob("*.log")):
        console.print(f"{plan.folder} holds logs of earlier runs, which are shown too")
    try:
        fleet = Fleet(plan)
        progress = asyncio.run(_run(fleet, plan, console))
        is_read = not (plan.has_telemetry and is_shown) or _show_logs(fleet, plan, console)
    except FleetError as error:
        console.print(f"Error: {error}", style="red")
        return 1
    except _StoppedError as stopped:
        console.print(f"Stopped, and so has every process; logs so far: {plan.folder}")
        return 128 + stopped.number
    except KeyboardInterrupt:
        return 128 + signal.SIGINT  # while reconstruct was reading
    is_explained = bool(plan.faults) or not progress.failed
    return 0 if is_read and is_explained else 1


async def _run(fleet: Fleet, plan: Plan, console: Console) -> Progress:
    """Start the fleet, run the rollouts, stop the fleet; a first signal stops, a second kills."""
    main_task = asyncio.current_task()
    assert main_task is not None
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        main_task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)

    try:
        try:
            with console.status("starting the servers"):
                await fleet.start()
            console.print(f"{len(plan.servers())} servers are ready, logs go to {plan.folder}")
            return await _watch(fleet, plan, console)
        finally:
            with console.status("stopping the servers"):
                await fleet.stop()
    except asyncio.CancelledError:
        if not received:
            raise
        raise _StoppedError(received[0]) from None


async def _watch(fleet: Fleet, plan: Plan, console: Console) -> Progress:
    """Show how far the run is until it is over, then its result."""
    began = 0.0
    progress = Progress()
    show = _bar if console.is_terminal else _lines
    with show(console, plan.rollouts) as update:
        async for progress in fleet.drive():
            began = began or time.monotonic()  # the driver is there
            update(progress)
    seconds = time.monotonic() - began
    console.print(f"{progress.done:,} of {plan.rollouts:,} rollouts done in {seconds:.1f} s")
    expected = f" (expected with {', '.join(sorted(plan.faults))})" if plan.faults else ""
    for reason, count in progress.failures.most_common():
        console.print(f"{count:,} failed{expected}: {reason}")
    for line in fleet.ended_early():
        console.print(f"ended early: {line}")
    return progress


@contextmanager
def _bar(console: Console, total: int) -> Iterator[Callable[[Progress], None]]:
    """Show progress as a bar, which goes when the run is over."""
    columns = (
        TextColumn("rollouts"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda progress: bar.update(
            task, completed=progress.ended, description=_in_words(progress)
        )


@contextmanager
def _lines(console: Console, total: int) -> Iterator[Callable[[Progress], None]]:
    """Show progress as a line for each quarter of the run."""
    quarters = 0

    def update(progress: Progress) -> None:
        nonlocal quarters
        if progress.ended * 4 // total > quarters:
            quarters = progress.ended * 4 // total
            console.print(f"rollouts: {progress.ended:,} of {total:,}, {_in_words(progress)}")

    yield update


def _in_words(progress: Progress) -> str:
    failed = f", {progress.failed:,} failed" if progress.failed else ""
    return f"{progress.in_flight:,} in flight{failed}"


def _show_logs(fleet: Fleet, plan: Plan, console: Console) -> bool:
    """Let `reconstruct` show the logs, say what to try next, and return whether it could."""
    for arguments in (["summary"], ["show", "--slowest"]):
        command = [*arguments, str(plan.folder)]
        console.print(f"\n$ reconstruct {shlex.join(command)}", style="bold")
        code = subprocess.run([sys.executable, "-m", "reconstruct.cli", *command], check=False)
        if code.returncode:
            console.print(f"Error: reconstruct ended with exit code {code.returncode}", style="red")
            return False
    folder = shlex.quote(str(plan.folder))
    console.print("\nNext:")
    if fleet.startup_trace_id is not None:
        trace_id = fleet.startup_trace_id[:8]
        console.print(f"  reconstruct show {trace_id} {folder}    how the servers started")
    console.print(
        f"  reconstruct doctor {folder}      what is broken, and where\n"
        f"  reconstruct rollouts {folder}    every rollout, the slowest first\n"
        f"  reconstruct html {folder} -o page.html    one page to look through\n"
        f"  reconstruct export otlp {folder} --endpoint http://localhost:4318\n"
        f"  grep -h '\"trace_id\"' {folder}/*.log | jq -r '\"\\(.trace_id) \\(.name)\"' | sort",
    )
    return True
