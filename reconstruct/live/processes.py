"""Which processes write, and how each of them is: the relation `instances`, kept line by line.

The latest line of a run may be the `stopped` of its first process to go: that means that the run
is over only when nothing followed for `GRACE_NS`. Memory holds the processes that may be alive and
the `_KEPT` that were last heard of.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from reconstruct.intake.owners import Owner
from reconstruct.live.snapshot import ProcessNow

__all__ = ["GRACE_NS", "SILENCE_NS", "Process", "Processes", "RunEnd"]

SILENCE_NS: Final = 60_000_000_000
"""Two process intervals."""
GRACE_NS: Final = 5_000_000_000
_KEPT: Final = 2_000
_GONE: Final = frozenset({"stopped", "dead"})


class RunEnd(NamedTuple):
    """The latest time on any line of a run, and whether the run is over."""

    last_time: int
    is_over: bool


class Process:
    """A service instance, as far as its lines tell."""

    __slots__ = (
        "host_name",
        "instance",
        "is_gone",
        "lag",
        "last_time",
        "open_spans",
        "owner",
        "process_pid",
        "records_dropped",
        "run_id",
        "said",
        "service_name",
        "spans_read",
        "spans_written",
        "state",
        "told_state",
    )

    def __init__(self, instance: str) -> None:
        self.instance = instance
        self.owner: Owner | None = None
        """Of its latest line."""
        self.service_name: str | None = None
        self.run_id: str | None = None
        self.host_name: str | None = None
        self.process_pid: int | None = None
        self.last_time = 0
        self.said: tuple[int, str] | None = None
        """Its latest process record: when, and the state in it."""
        self.spans_read = 0
        self.spans_written: int | None = None
        self.records_dropped: int | None = None
        self.open_spans: int | None = None
        self.lag: tuple[int, float] | None = None
        self.state = "unknown"
        self.told_state: str | None = None
        self.is_gone = False
        """It stopped or died: what it has open is lost."""

    @property
    def has_stopped(self) -> bool:
        """Its latest process record says so."""
        return self.said is not None and self.said[1] == "stopped"


class Processes:
    """All of them, by the key of `instances`."""

    def __init__(self) -> None:
        self._all: dict[str, Process] = {}
        self._forgotten: dict[str | None, tuple[int, bool]] = {}
        """Of each run: the last time of a process no longer kept, and whether it had stopped."""
        self._ends: dict[str | None, RunEnd] = {}
        self._forgotten_dead = 0
        self.runs_changed = 0
        """How often a process that was known turned out to be of another run."""

    def __len__(self) -> int:
        return len(self._all)

    @property
    def newest_time(self) -> int | None:
        """The latest time on any line."""
        forgotten = (last_time for last_time, _ in self._forgotten.values())
        kept = (process.last_time for process in self._all.values())
        return max((*forgotten, *kept), default=None)

    def of(self, owner: Owner, time: int | None) -> Process:
        """Return the process that wrote a line with this owner, at that time."""
        process = self._all.get(owner.instance)
        if process is None:
            process = self._all[owner.instance] = Process(owner.instance)
        if process.owner != owner:
            process.owner = owner
            self._learn(process, owner)
        if time is not None and time > process.last_time:
            process.last_time = time
        return process

    def _learn(self, process: Process, owner: Owner) -> None:
        process.service_name = _greater(process.service_name, owner.service_name)
        process.host_name = _greater(process.host_name, owner.host_name)
        process.process_pid = _greater(process.process_pid, owner.process_pid)
        run = _greater(process.run_id, owner.run_id)
        if run != process.run_id:
            process.run_id = run
            self.runs_changed += 1

    def settle(self, now: int) -> None:
        """Decide the state of each, at `now` (ns since 1970), from all lines so far."""
        ends = dict(self._forgotten)
        for process in self._all.values():
            end = process.last_time, process.has_stopped
            if end > ends.get(process.run_id, (-1, False)):
                ends[process.run_id] = end
        self._ends = {
            run: RunEnd(last_time, has_stopped and now - last_time > GRACE_NS)
            for run, (last_time, has_stopped) in ends.items()
        }
        for process in self._all.values():
            process.state = self._state(process, now)
            process.is_gone = process.state in _GONE
        if len(self._all) > _KEPT:
            self._forget()

    def _state(self, process: Process, now: int) -> str:
        if process.has_stopped:
            return "stopped"
        if process.said is None:
            return "unknown"
        end = self._ends[process.run_id]
        if end.is_over or end.last_time - process.last_time > SILENCE_NS:
            return "dead"
        return "silent" if now - process.last_time > SILENCE_NS else "alive"

    def _forget(self) -> None:
        gone = [process for process in self._all.values() if process.is_gone]
        gone.sort(key=lambda process: process.last_time)
        for process in gone[: len(self._all) - _KEPT]:
            del self._all[process.instance]
            self._forgotten_dead += process.state == "dead"
            end = process.last_time, process.has_stopped
            known = self._forgotten.get(process.run_id, (-1, False))
            self._forgotten[process.run_id] = max(end, known)

    def end_of(self, run_id: str | None) -> RunEnd:
        """Say when a run was last heard of, as of the last `settle`."""
        return self._ends.get(run_id, RunEnd(0, is_over=False))

    def all(self) -> Iterable[Process]:
        """Return each process that is kept."""
        return self._all.values()

    @property
    def alive_count(self) -> int:
        """How many say that they are alive."""
        return sum(process.state == "alive" for process in self._all.values())

    @property
    def died_count(self) -> int:
        """How many have not stopped as they should, and are not heard of."""
        gone = ("dead", "silent")
        kept = sum(process.state in gone for process in self._all.values())
        return kept + self._forgotten_dead

    def now(self, limit: int | None) -> tuple[ProcessNow, ...]:
        """Describe them: those that may be alive first, then by service."""
        order = sorted(
            self._all.values(),
            key=lambda it: (it.is_gone, it.service_name or "", it.instance),
        )
        return tuple(map(_described, order[:limit]))


def _described(process: Process) -> ProcessNow:
    return ProcessNow(
        instance=process.instance,
        service_name=process.service_name,
        run_id=process.run_id,
        host_name=process.host_name,
        process_pid=process.process_pid,
        state=process.state,
        last_time_unix_nano=process.last_time,
        spans_read=process.spans_read,
        spans_written=process.spans_written,
        records_dropped=process.records_dropped,
        open_spans=process.open_spans,
        lag_ms=None if process.lag is None else process.lag[1],
    )


def _greater(one: Any, other: Any) -> Any:  # Any: two of one type, or None
    if other is None or (one is not None and one >= other):
        return one
    return other
