"""The supervisor: starts the fleet's processes, drives one run, and ends every process.

It binds each server's port before it starts anything, so that every process can be told all
addresses at once. Each process has a session of its own (a Ctrl-C in the terminal reaches the
supervisor alone), writes straight into its own file, and holds one end of a lifeline, by which it
also ends when the supervisor is killed.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from gymlog import TelemetryConfig, configure_telemetry_env
from gymlog.errors import FleetError
from gymlog.fleet.plan import Fault, Plan
from gymlog.fleet.progress import Progress
from gymlog.fleet.sockets import listen, local_url, raise_open_files_limit

__all__ = ["Fleet"]

_READY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Member:
    """One process of the fleet, and the supervisor's end of its lifeline."""

    name: str
    process: asyncio.subprocess.Process
    ended: asyncio.Task[int]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def outcome(self) -> str:
        """How it ended, in words."""
        code = self.ended.result()
        return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


class Fleet:
    """The processes of one run: `start` the servers, `drive` the rollouts, `stop` all there is."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._members: list[_Member] = []
        self._urls: dict[str, str] = {}
        self._environ: dict[str, str] = {}

    async def start(self) -> None:
        """Start the servers and wait until each of them serves; raises FleetError."""
        plan = self._plan
        try:
            plan.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FleetError(f"logs cannot go to {plan.folder}: {error.strerror}") from error
        raise_open_files_limit()
        self._environ = _environ(plan)
        servers = plan.servers()
        # Ours are closed as soon as the servers have theirs: else a caller of a killed server
        # would wait in the queue of a socket that nobody serves.
        with ExitStack() as ours:
            sockets = {log_name: _bind(plan.workers, ours) for log_name in servers}
            self._urls = {log_name: local_url(own[0]) for log_name, own in sockets.items()}
            options = plan.server_options(self._urls)
            for log_name, module in servers.items():
                for listener in sockets[log_name]:
                    await self._spawn(module, log_name, options[log_name], listener)
        await asyncio.gather(*(self._until_ready(member) for member in self._members))
        await asyncio.gather(*(_check_health(name, url) for name, url in self._urls.items()))

    async def drive(self) -> AsyncIterator[Progress]:
        """Run the rollouts; yield how far they are several times a second, last the result.

        Raises FleetError when the driver ends before the rollouts have.
        """
        driver = await self._spawn("driver", "driver", self._plan.driver_options(self._urls))
        is_kill_ahead = Fault.KILL in self._plan.faults
        progress = Progress()
        while line := await driver.reader.readline():
            progress = Progress.of(json.loads(line))
            if is_kill_ahead and self._is_time_to_kill(progress):
                is_kill_ahead = False
                self._kill("agent")
            yield progress
        if not progress.is_over:
            raise await self._early_end(driver)

    def ended_early(self) -> list[str]:
        """Return which servers' processes are gone, and how each of them ended."""
        return [
            f"{member.name} (pid {member.process.pid}): {member.outcome}"
            for member in self._members
            if member.name != "driver" and member.ended.done()
        ]

    async def stop(self) -> None:
        """End every process: SIGINT, SIGTERM after half of the grace, SIGKILL at its end.

        When it is cancelled, it kills at once.
        """
        try:
            for number in (signal.SIGINT, signal.SIGTERM):
                alive = self._alive()
                for member in alive:
                    with suppress(ProcessLookupError):
                        member.process.send_signal(number)
                if alive:
                    patience = self._plan.grace_seconds / 2
                    await asyncio.wait([member.ended for member in alive], timeout=patience)
        finally:
            for member in self._alive():
                _kill_group(member)
            for member in self._members:
                await member.ended
                member.writer.close()
                with suppress(OSError):
                    await member.writer.wait_closed()
            self._members.clear()

    async def _spawn(
        self,
        module: str,
        log_name: str,
        options: Sequence[str],
        listener: socket.socket | None = None,
    ) -> _Member:
        """Start `python -m gymlog.fleet.<module>` with its stdout and stderr in files."""
        ours, theirs = socket.socketpair()
        inherited = [theirs.fileno()]
        command = [sys.executable, "-m", f"gymlog.fleet.{module}", *options]
        command += [f"--lifeline-fd={theirs.fileno()}"]
        if listener is not None:
            inherited.append(listener.fileno())
            command += [f"--socket-fd={listener.fileno()}"]
            command += ["--worker"] if self._plan.workers > 1 else []
        with ExitStack() as stack:
            stack.enter_context(theirs)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stack.enter_context(_append(self._plan.folder / f"{log_name}.log")),
                stderr=stack.enter_context(_append(self._stderr(log_name))),
                pass_fds=inherited,
                start_new_session=True,
                env=self._environ,
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        ended = asyncio.create_task(process.wait())
        member = _Member(log_name, process, ended, reader, writer)
        self._members.append(member)
        return member

    async def _until_ready(self, member: _Member) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS):
                if not await member.reader.readline():
                    raise await self._early_end(member)
        except TimeoutError:
            raise FleetError(
                f"{member.name} was not ready after {_READY_SECONDS:g} s; "
                f"see {self._stderr(member.name)}"
            ) from None

    async def _early_end(self, member: _Member) -> FleetError:
        """Return the error for a process that is over too early, with its own last words."""
        await member.ended
        path = self._stderr(member.name)
        words = path.read_text(errors="replace").strip().splitlines()
        last = f": {words[-1]}" if words else ""
        return FleetError(f"{member.name} ended with {member.outcome}{last}; see {path}")

    def _is_time_to_kill(self, progress: Progress) -> bool:
        """Say whether the run is in its middle third and the agent has work that its log shows."""
        share = progress.ended / self._plan.rollouts
        if share < 1 / 3:
            return False
        return share >= 2 / 3 or _has_open_spans(self._plan.folder / "agent.log")

    def _kill(self, name: str) -> None:
        for member in self._alive():
            if member.name == name:
                _kill_group(member)

    def _alive(self) -> list[_Member]:
        return [member for member in self._members if not member.ended.done()]

    def _stderr(self, log_name: str) -> Path:
        return self._plan.folder / f"{log_name}.stderr"


def _environ(plan: Plan) -> dict[str, str]:
    """Return the environment of the fleet's processes; the run's id is minted here, once."""
    switch = {"NEMO_GYM_OTEL_ENABLED": "1" if plan.has_telemetry else "0"}
    if plan.has_telemetry:
        configure_telemetry_env(
            TelemetryConfig(enabled=True, service_name="gym", span_groups=plan.span_groups)
        )
    # A server that is to be killed says at once what it begins, so that all it had open is known.
    after = "0" if Fault.KILL in plan.faults else "1"
    return {"GYMLOG_SPAN_START_AFTER_SECONDS": after, **os.environ, **switch}


def _bind(workers: int, stack: ExitStack) -> list[socket.socket]:
    """Return a listening socket for each worker of a server, all on one free port."""
    first = stack.enter_context(listen(is_shared=workers > 1))
    port = first.getsockname()[1]
    others = [stack.enter_context(listen(port, is_shared=True)) for _ in range(workers - 1)]
    return [first, *others]


def _append(path: Path) -> BinaryIO:
    """Open a file for appending without a buffer: each write of a process is one of the file's."""
    return path.open("ab", buffering=0)


async def _check_health(name: str, url: str) -> None:
    """Ask a server that said it is ready for its health, as an outsider would."""
    address = url.removeprefix("http://")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET /health HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        async with asyncio.timeout(_READY_SECONDS):
            status_line = await reader.readline()
    except TimeoutError:
        raise FleetError(f"{name} at {url} does not answer GET /health") from None
    finally:
        writer.close()
    if b" 200 " not in status_line:
        raise FleetError(f"{name} at {url} answers GET /health with {status_line!r}")


def _has_open_spans(log: Path) -> bool:
    """Say whether a log has a `span_start` line of a span whose `span` line is not there."""
    started: set[str] = set()
    ended: set[str] = set()
    for line in log.read_bytes().splitlines(keepends=True):
        if not (line.startswith(b'{"record_type":"span') and line.endswith(b"\n")):
            continue  # another record, or one that is being written
        record = json.loads(line)
        (ended if record["record_type"] == "span" else started).add(record["span_id"])
    return not started <= ended


def _kill_group(member: _Member) -> None:
    """Kill a process with whatever it started: its session is its own."""
    with suppress(ProcessLookupError, PermissionError):  # macOS: not permitted once it is a zombie
        os.killpg(member.process.pid, signal.SIGKILL)
