"""The supervisor: starts the fleet's processes, drives one run, and ends every process.

It binds each server's port before it starts anything, so that every process can be told all
addresses at once. Each process has a session of its own (a Ctrl-C in the terminal reaches the
supervisor alone), writes straight into its own file, and holds one end of a lifeline, by which it
also ends when the supervisor is killed. What the supervisor itself writes, the trace of the start,
goes to a file too: its stdout is the user's.
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
from typing import TYPE_CHECKING, BinaryIO

from gymlog import (
    StartupTrace,
    TelemetryConfig,
    configure_telemetry_env,
    get_telemetry,
    init_telemetry,
    shutdown_telemetry,
)
from gymlog.errors import FleetError, FleetTimeoutError
from gymlog.fleet.plan import SERVER_TYPES, Fault, Plan
from gymlog.fleet.progress import Progress
from gymlog.fleet.sockets import listen, local_url, raise_open_files_limit
from gymlog.startup import StartingServer

if TYPE_CHECKING:
    from gymlog.observers.memory import MemoryProfiler

__all__ = ["Fleet"]


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
        self._log: BinaryIO | None = None
        self._profiler: MemoryProfiler | None = None
        self.startup_trace_id: str | None = None
        """The trace of the start, once all servers are ready; None when it is not written."""

    async def start(self) -> None:
        """Start the servers and wait until each of them answers; raises FleetError."""
        with StartupTrace() as startup:
            startup.stage("load_config")
            self._prepare()
            startup.stage("init_telemetry")
            self._init_telemetry()
            startup.stage("spawn_servers")
            starting = await self._spawn_servers(startup)
            startup.stage("wait_for_servers")
            await asyncio.gather(*(self._until_ready(*one) for one in starting.items()))
            self.startup_trace_id = startup.trace_id
        self._profile_memory()

    def _prepare(self) -> None:
        folder = self._plan.folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FleetError(f"logs cannot go to {folder}: {error.strerror}") from error
        raise_open_files_limit()
        self._environ = _environ(self._plan)

    def _init_telemetry(self) -> None:
        """Switch telemetry on in this process too, with its lines in a file like the others'."""
        if self._plan.has_telemetry:
            self._log = _append(self._plan.folder / "supervisor.log")
            os.environ.update(self._environ)
            init_telemetry("supervisor", "supervisor", fd=self._log.fileno())

    async def _spawn_servers(self, startup: StartupTrace) -> dict[str, StartingServer]:
        """Start every process of the servers; return the servers by the names of their logs."""
        plan = self._plan
        servers = plan.servers()
        starting: dict[str, StartingServer] = {}
        # Ours are closed as soon as the servers have theirs: else a caller of a killed server
        # would wait in the queue of a socket that nobody serves.
        with ExitStack() as ours:
            sockets = {log_name: _bind(plan.workers, ours) for log_name in servers}
            self._urls = {log_name: local_url(own[0]) for log_name, own in sockets.items()}
            options = plan.server_options(self._urls)
            for log_name, module in servers.items():
                server = starting[log_name] = startup.server(log_name, SERVER_TYPES[module])
                for listener in sockets[log_name]:
                    await self._spawn(
                        module, log_name, options[log_name], listener=listener, server=server
                    )
        return starting

    def _profile_memory(self) -> None:
        """Sample the memory of the host and of the servers, when the settings ask for that."""
        handle = get_telemetry()
        if handle is None or not handle.config.metrics_enabled:
            return
        profiling = handle.config.memory_profiling
        if not profiling.enabled:
            return
        from gymlog.observers.memory import MemoryProfiler, ServerProcess

        modules = self._plan.servers()
        self._profiler = MemoryProfiler(handle.meter, profiling.interval_seconds)
        self._profiler.start(
            ServerProcess(member.name, SERVER_TYPES[modules[member.name]], member.process.pid)
            for member in self._members
        )

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
        if self._profiler is not None:
            self._profiler.stop()
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
            if self._log is not None:
                shutdown_telemetry()
                self._log.close()
                self._log = None

    async def _spawn(
        self,
        module: str,
        log_name: str,
        options: Sequence[str],
        *,
        listener: socket.socket | None = None,
        server: StartingServer | None = None,
    ) -> _Member:
        """Start `python -m gymlog.fleet.<module>` with its stdout and stderr in files."""
        ours, theirs = socket.socketpair()
        inherited = [theirs.fileno()]
        command = [sys.executable, "-m", f"gymlog.fleet.{module}", *options]
        command += [f"--lifeline-fd={theirs.fileno()}"]
        is_worker = listener is not None and self._plan.workers > 1
        if listener is not None:
            inherited.append(listener.fileno())
            command += [f"--socket-fd={listener.fileno()}", *(["--worker"] if is_worker else [])]
        handed = server.environment(is_worker=is_worker) if server is not None else {}
        with ExitStack() as stack:
            stack.enter_context(theirs)
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stack.enter_context(_append(self._plan.folder / f"{log_name}.log")),
                stderr=stack.enter_context(_append(self._stderr(log_name))),
                pass_fds=inherited,
                start_new_session=True,
                env=self._environ | handed,
            )
        reader, writer = await asyncio.open_connection(sock=ours)
        ended = asyncio.create_task(process.wait())
        member = _Member(log_name, process, ended, reader, writer)
        self._members.append(member)
        if server is not None:
            ended.add_done_callback(lambda _: self._server_ended(log_name, server))
        return member

    def _server_ended(self, name: str, server: StartingServer) -> None:
        if not any(member.name == name for member in self._alive()):
            server.stopped()

    async def _until_ready(self, name: str, server: StartingServer) -> None:
        """Wait until each process of a server says that it serves, then until one answers."""
        limit = self._plan.ready_seconds
        with server:
            try:
                async with asyncio.timeout(limit):
                    for member in self._members:
                        if member.name == name and not await member.reader.readline():
                            raise await self._early_end(member)
                    await _check_health(name, self._urls[name])
            except TimeoutError:
                raise FleetTimeoutError(
                    f"{name} was not ready after {limit:g} s; see {self._stderr(name)}"
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
    # What the supervisor would say of itself would stand in the midst of the demo's own words.
    defaults = {"GYMLOG_SPAN_START_AFTER_SECONDS": after, "GYMLOG_VERBOSE": "0"}
    if Fault.BLOCK in plan.faults:
        defaults["GYMLOG_EVENT_LOOP_STALL_SECONDS"] = "0.25"
    return {**defaults, **os.environ, **switch}


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
    """Ask a server that said it is ready for its health, as an outsider would.

    Waits for the answer as long as it takes; raises FleetError when it is no good one.
    """
    address = url.removeprefix("http://")
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"GET /health HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        status_line = await reader.readline()
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
