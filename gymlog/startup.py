"""How a fleet starts: the supervisor's trace of it, and each server's part in that trace.

    gym.startup                            supervisor
    ├ gym.startup.<stage>                  its stages, one after the other
    └ gym.startup.server                   one per server: spawned until it answers
      ├ gym.server.startup                 the server: spawned until it serves
      │ └ gym.server.startup.<stage>       its stages, one after the other
      └ gym.server.startup.worker          each uvicorn worker, with stages likewise

The supervisor hands its servers the parent and the time in the environment (NEMO_GYM_STARTUP_*).
A start that fails, takes too long or is interrupted is written too, with the stage that it did
not finish; only one that ends ready is measured, whatever span groups are open. All of it may be
used before telemetry is on and with it off, and never raises.
"""

import os
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from gymlog import clock, startup_metrics
from gymlog.environment import NotAcceptedError, as_text, is_telemetry_env_enabled, read
from gymlog.notices import notice
from gymlog.semconv import PROCESS_PID, SERVER_NAME, SERVER_TYPE, SERVER_WORKER, WORKER
from gymlog.setup import before_shutdown, get_telemetry, init_telemetry
from gymlog.timeline import Outcome, Timeline, outcome_of

__all__ = ["ServerStartup", "StartingServer", "StartupTrace"]

_TRACEPARENT: Final = "NEMO_GYM_STARTUP_TRACEPARENT"
_SPAWN_NS: Final = "NEMO_GYM_STARTUP_SPAWN_NS"
_SETUP_DONE_NS: Final = "NEMO_GYM_STARTUP_SETUP_DONE_NS"
_SERVE_NS: Final = "NEMO_GYM_STARTUP_SERVE_NS"

_REPLACED_AFTER_NS: Final = 60_000_000_000
"""A worker that was created so long after its server handed over replaces one that died."""

_unfinished: "dict[_Start, None]" = {}
"""In the order in which they began; a forked child has none of its parent's."""
os.register_at_fork(after_in_child=_unfinished.clear)

_own: "tuple[int, ServerStartup] | None" = None
"""This process's id and its own start."""


class _Harmless:
    """A block whose errors stop here: the host must not notice."""

    def __enter__(self) -> None:
        return

    def __exit__(self, exc_type: object, exc_val: BaseException | None, exc_tb: object) -> bool:
        if not isinstance(exc_val, Exception):
            return False
        notice("startup", f"a start is not traced: {type(exc_val).__name__}: {exc_val}")
        return True


_harmless: Final = _Harmless()


class _Start:
    """What the three kinds of start have in common: a timeline and how it ends."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        _unfinished[self] = None
        before_shutdown(_end_all)

    @property
    def outcome(self) -> str | None:
        """ready, timeout, failed or interrupted; None while the start goes on."""
        outcome = self._timeline.outcome
        return None if outcome is None else str(outcome)

    @property
    def trace_id(self) -> str | None:
        """The trace that this is written to, None when it is not (yet)."""
        span = self._timeline.span
        return None if span is None else span.trace_id

    def ready(self) -> None:
        """End the start well; only the first end of a start counts."""
        self._end(Outcome.READY)

    def failed(self, error: BaseException | str | None = None) -> None:
        """End the start; an exception says how.

        TimeoutError: timeout. KeyboardInterrupt, a cancellation, SystemExit with no exit code or
        a signal's (128 and more): interrupted. Anything else, and text: failed.
        """
        outcome = outcome_of(error) if isinstance(error, BaseException) else Outcome.FAILED
        self._end(outcome, error)

    def _end(self, outcome: Outcome, error: BaseException | str | None = None) -> None:
        if self._timeline.outcome is None:
            _unfinished.pop(self, None)
            with _harmless:
                self._close(outcome, error)

    def _close(self, outcome: Outcome, error: BaseException | str | None) -> None:
        self._timeline.end(outcome, error)

    def _block_ends(self) -> None:
        """End as a `with` block does that no exception leaves."""
        self.ready()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if exc_val is None:
            self._block_ends()
        else:
            self.failed(exc_val)


class StartupTrace(_Start):
    """The start of a fleet as its supervisor sees it; begins when it is made.

    As a context manager it is ready at the end of its block, or ends as the exception says that
    leaves it.
    """

    def __init__(self) -> None:
        super().__init__(Timeline("gym.startup", {}))
        self._servers: list[StartingServer] = []

    def stage(self, name: str) -> None:
        """Begin a stage, and so end the one before; the first one began with the start."""
        with _harmless:
            self._timeline.stage(name)

    def server(self, name: str, server_type: str) -> "StartingServer":
        """Begin to start a server; to be called right before it is spawned."""
        server = StartingServer(self, name, server_type)
        self._servers.append(server)
        return server

    def _close(self, outcome: Outcome, error: BaseException | str | None) -> None:
        for server in self._servers:
            server._end(Outcome.INTERRUPTED, "its supervisor waits no longer")
        super()._close(outcome, error)

    def _count_active(self) -> None:
        startup_metrics.set_active(sum(server.is_active for server in self._servers))


class StartingServer(_Start):
    """A server on its way, as its supervisor sees it: spawned until it answers.

    As a context manager around the wait for its answer it is ready at the end of the block, or
    ends as the exception says that leaves it.
    """

    def __init__(self, trace: StartupTrace, name: str, server_type: str) -> None:
        self._facts = {SERVER_NAME: name, SERVER_TYPE: server_type}
        super().__init__(Timeline("gym.startup.server", self._facts, parent=trace._timeline))
        self._trace = trace
        self.is_active = False
        with _harmless:
            self._timeline.open()

    def environment(self, *, is_worker: bool = False) -> dict[str, str]:
        """Return what to add to the environment of the server's process, which starts now.

        `is_worker` is for one of several equal processes that have no main process above them.
        Empty when telemetry is off here.
        """
        span = self._timeline.span
        if span is None and get_telemetry() is None:
            return {}
        now = str(clock.now())
        handed = {_SPAWN_NS: now} | ({_SERVE_NS: now} if is_worker else {})
        if span is not None:
            handed[_TRACEPARENT] = f"00-{span.trace_id}-{span.span_id}-{span.flags:02x}"
        return handed

    def stopped(self) -> None:
        """Say that the server is no more; one that was ready is no longer counted as active."""
        if self.is_active:
            self.is_active = False
            with _harmless:
                self._trace._count_active()

    def _close(self, outcome: Outcome, error: BaseException | str | None) -> None:
        super()._close(outcome, error)
        if outcome is Outcome.READY:
            self.is_active = True
            self._trace._count_active()
            startup_metrics.record_server(self._timeline, self._facts)


class ServerStartup(_Start):
    """A server's own start; make it with `from_environment`, as early as the process can.

    Its first stage reaches back to the spawn: interpreter_start (after venv_setup where a launch
    shell says when that was done), in a uvicorn worker worker_start. It is written as soon as
    telemetry is on; when it fails before that, telemetry is switched on for it.

    As a context manager around all that the server does it ends, unless it was ready before, as
    the exception says that leaves the block; without one it has failed.
    """

    def __init__(self, server_name: str, server_type: str | None, *, is_worker: bool) -> None:
        self._server_name = server_name
        self._server_type = server_type
        self._is_worker = is_worker
        self._facts: dict[str, str | bool] = {SERVER_NAME: server_name, SERVER_WORKER: is_worker}
        if server_type is not None:
            self._facts[SERVER_TYPE] = server_type
        began_ns = _worker_began_ns() if is_worker else read(_SPAWN_NS, _as_ns)
        super().__init__(
            Timeline(
                "gym.server.startup.worker" if is_worker else "gym.server.startup",
                {**self._facts, PROCESS_PID: os.getpid()},
                began_ns=began_ns,
                traceparent=read(_TRACEPARENT, as_text) or "",
            )
        )
        if is_worker:
            self.stage("worker_start")
        elif began_ns is not None:  # else it was started by hand, and nobody knows when
            setup_done_ns = read(_SETUP_DONE_NS, _as_ns)
            if setup_done_ns is not None:
                self.stage("venv_setup")
            with _harmless:
                self._timeline.stage("interpreter_start", setup_done_ns)

    @classmethod
    def from_environment(cls, server_name: str, server_type: str | None = None) -> "ServerStartup":
        """Return the start of this process, with what its supervisor has handed over.

        Later calls return the first one's: a process that multiprocessing starts may load the
        same program twice.
        """
        global _own
        if _own is None or _own[0] != os.getpid():
            is_worker = read(_SERVE_NS, _as_ns) is not None
            _own = os.getpid(), cls(server_name, server_type, is_worker=is_worker)
        return _own[1]

    def stage(self, name: str) -> None:
        """Begin a stage, and so end the one before."""
        with _harmless:
            self._timeline.stage(name)

    def hand_over_to_workers(self) -> None:
        """End the start of a main process right before its uvicorn workers start.

        Their own starts begin now, with `from_environment` in each of them.
        """
        os.environ[_SERVE_NS] = str(clock.now())
        self.ready()

    def _close(self, outcome: Outcome, error: BaseException | str | None) -> None:
        if outcome is not Outcome.READY and is_telemetry_env_enabled():
            facts = {WORKER: True} if self._is_worker else None
            init_telemetry(self._server_name, self._server_type, facts)
        super()._close(outcome, error)
        if outcome is Outcome.READY:
            startup_metrics.record_stages(self._timeline, self._facts)

    def _block_ends(self) -> None:
        self.failed("it ended before it was ready")


def _end_all(cause: BaseException | None) -> None:
    """End every start that goes on when telemetry ends."""
    for start in list(_unfinished):
        start.failed(cause or "the process ended before it was ready")


def _worker_began_ns() -> int | None:
    """Return when this worker's start began; uvicorn replaces workers that die, at any time."""
    handed_ns = read(_SERVE_NS, _as_ns)
    created_ns = _process_created_ns()
    if handed_ns is None or created_ns is None or created_ns - handed_ns < _REPLACED_AFTER_NS:
        return handed_ns
    return created_ns


def _process_created_ns() -> int | None:
    """Return when the operating system created this process; None where it does not say."""
    try:
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        after_boot_ns = int(fields[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return clock.now() - time.clock_gettime_ns(time.CLOCK_BOOTTIME) + after_boot_ns
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def _as_ns(text: str) -> int:
    """Accept ns since 1970 that an int64 holds."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) < 1 << 63):
        raise NotAcceptedError("nanoseconds since 1970")
    return int(text)
