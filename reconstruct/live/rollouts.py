"""Which rollouts are going on, which have ended, and how.

A rollout is open while one of its spans is open. It is also open while the span that it began with
has not come (in one of its traces, each of its spans has a parent that is of the rollout too or is
not there), unless its run is over or went on for 60 s without it: that span is in no log. It is
lost when the span that it began with was announced and its process stopped or died before its end.
Else it is finished.

Memory holds what is not finished, and of the finished ones those that ended last; of the others
only counts and the slowest are kept.
"""

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from operator import attrgetter
from typing import Final

from reconstruct.live.processes import SILENCE_NS, Processes
from reconstruct.live.snapshot import Event, FinishedRollout, OpenRollout
from reconstruct.live.traces import Group, Part, Span, Traces

__all__ = ["Fate", "Rollouts"]

_NS: Final = 1_000_000_000
_RECENT_SECONDS: Final = 60
_SLOWEST: Final = 100
_MOST_UNSETTLED: Final = 1_000
"""Of those that are over, unless a process is heard of again."""


class Fate(StrEnum):
    """How it is with a rollout."""

    OPEN = "open"
    FINISHED = "finished"
    LOST = "lost"


class _Rollout:
    """A rollout of a run: its parts, one or more per trace."""

    __slots__ = ("duration", "fate", "finished_second", "parts", "rollout_id", "run_id", "weight")

    def __init__(self, run_id: str | None, rollout_id: str) -> None:
        self.run_id = run_id
        self.rollout_id = rollout_id
        self.parts: dict[Group, Part] = {}
        self.fate: Fate | None = None
        self.finished_second: int | None = None
        self.duration = 0
        """Of a finished one, ns."""
        self.weight = 0
        """Spans of it among those that are kept of finished rollouts."""

    def spans(self) -> Iterator[Span]:
        for part in self.parts.values():
            yield from part.unfinished

    @property
    def start(self) -> int:
        return min(part.start for part in self.parts.values())

    @property
    def end(self) -> int:
        """The latest end; of a span that was lost, the last sign of its process."""
        end = max(part.end for part in self.parts.values())
        lasts = (span.process.last_time for span in self.spans() if span.process.is_gone)
        return max((end, *lasts))

    @property
    def span_count(self) -> int:
        return sum(part.span_count for part in self.parts.values())

    @property
    def error_count(self) -> int:
        return sum(part.error_count for part in self.parts.values())

    def finished(self) -> FinishedRollout:
        return FinishedRollout(
            run_id=self.run_id,
            rollout_id=self.rollout_id,
            start_time_unix_nano=self.start,
            duration_ns=self.end - self.start,
            span_count=self.span_count,
            error_count=self.error_count,
        )

    def facts(self) -> dict[str, str | int | float | None]:
        done = self.finished()
        return {
            "run_id": done.run_id,
            "rollout_id": done.rollout_id,
            "duration_ns": done.duration_ns,
            "span_count": done.span_count,
            "error_count": done.error_count,
        }

    def now(self) -> OpenRollout:
        open_spans = [span for span in self.spans() if not span.process.is_gone]
        innermost = max(open_spans, key=lambda span: (span.start, span.name), default=None)
        lasts = (part.last for part in self.parts.values() if part.last is not None)
        after = max(lasts, default=None)
        return OpenRollout(
            run_id=self.run_id,
            rollout_id=self.rollout_id,
            start_time_unix_nano=self.start,
            span_name=None if innermost is None else innermost.name,
            service_name=None if innermost is None else innermost.process.service_name,
            after=None if innermost is not None or after is None else after[1],
            span_count=self.span_count,
            open_count=len(open_spans),
            error_count=self.error_count,
        )


_Key = tuple[str | None, str]


class Rollouts:
    """Every rollout, by run and id. At most about `kept` spans of finished ones are kept."""

    def __init__(self, traces: Traces, processes: Processes, kept: int) -> None:
        self._traces = traces
        self._processes = processes
        self._kept = kept
        self._runs_seen = 0
        self._all: dict[_Key, _Rollout] = {}
        self._unsettled: dict[_Key, _Rollout] = {}
        """Those that time alone, or a sign of life, may change."""
        self._settled: OrderedDict[_Key, _Rollout] = OrderedDict()
        self._weight = 0
        self._forgotten: Counter[Fate] = Counter()
        self._forgotten_slowest: list[FinishedRollout] = []
        self._slowest: tuple[FinishedRollout, ...] | None = None
        """As last ranked; None when that is out of date."""
        self._per_second: Counter[int] = Counter()

    def settle(self) -> list[Event]:
        """Decide the fate of each, from all lines so far; return what has ended since.

        Costs as much as there are rollouts with new lines or not finished.
        """
        if self._runs_seen != self._processes.runs_changed:
            self._runs_seen = self._processes.runs_changed
            self._traces.changed.update(self._traces.groups())
        changed: dict[_Key, None] = dict.fromkeys(self._unsettled)
        groups, self._traces.changed = self._traces.changed, set()
        for group in groups:
            changed.update(dict.fromkeys(self._sort(group)))
        events = [event for key in changed if (event := self._decide(key)) is not None]
        self._trim()
        return events

    def _sort(self, group: Group) -> set[_Key]:
        """Put the parts of a group where they belong; return the rollouts that have changed."""
        rollout_id = group.rollout_id
        before = {(run_id, rollout_id) for run_id in group.parts}
        group.parts = group.evaluate()
        now = {(run_id, rollout_id) for run_id in group.parts}
        for key in now:
            rollout = self._all.get(key)
            if rollout is None:
                rollout = self._all[key] = self._unsettled[key] = _Rollout(*key)
            rollout.parts[group] = group.parts[key[0]]
        for key in before - now:
            rollout = self._all[key]
            del rollout.parts[group]
            if not rollout.parts:  # its run became known: it is another rollout now
                if rollout.finished_second is not None:
                    self._per_second[rollout.finished_second] -= 1
                self._slowest = None
                self._remove(rollout)
        if not now:
            self._traces.forget(group)
        return before | now

    def _decide(self, key: _Key) -> Event | None:
        """Say how it is with a rollout now; return an event when it has ended."""
        rollout = self._all.get(key)
        if rollout is None:
            return None
        before = rollout.fate
        rollout.fate = fate = self._fate(rollout)
        rollout.duration = rollout.end - rollout.start
        self._count_end(rollout)
        if Fate.FINISHED in (before, fate):
            self._slowest = None
        if all(part.has_top and not part.unfinished for part in rollout.parts.values()):
            self._unsettled.pop(key, None)
            self._settled[key] = rollout
            weight = rollout.span_count
            self._weight += weight - rollout.weight
            rollout.weight = weight
        elif key in self._settled:
            del self._settled[key]
            self._weight -= rollout.weight
            rollout.weight = 0
            self._unsettled[key] = rollout
        if fate is before or fate is Fate.OPEN:
            return None
        return Event(f"rollout_{fate}", rollout.end, rollout.facts())

    def _fate(self, rollout: _Rollout) -> Fate:
        fate = Fate.FINISHED
        for part in rollout.parts.values():
            if any(not span.process.is_gone for span in part.unfinished):
                return Fate.OPEN
            if part.has_open_top:
                fate = Fate.LOST
            elif not part.has_top:
                end = self._processes.end_of(part.run_id)
                if not end.is_over and end.last_time - part.end <= SILENCE_NS:
                    return Fate.OPEN
        return fate

    def _count_end(self, rollout: _Rollout) -> None:
        """Keep the counts of finished rollouts per second of the last minute."""
        second = rollout.end // _NS if rollout.fate is Fate.FINISHED else None
        if second == rollout.finished_second:
            return
        if rollout.finished_second is not None:
            self._per_second[rollout.finished_second] -= 1
        if second is not None:
            self._per_second[second] += 1
        rollout.finished_second = second

    def _trim(self) -> None:
        while self._weight > self._kept and self._settled:
            self._forget(next(iter(self._settled.values())))
        over = [rollout for rollout in self._unsettled.values() if rollout.fate is not Fate.OPEN]
        if len(over) > _MOST_UNSETTLED:
            over.sort(key=lambda rollout: rollout.end)
            for rollout in over[: len(over) - _MOST_UNSETTLED]:
                self._forget(rollout)
        if len(self._per_second) > 2 * _RECENT_SECONDS:
            newest = sorted(self._per_second)[-_RECENT_SECONDS - 1 :]
            self._per_second = Counter({second: self._per_second[second] for second in newest})

    def _forget(self, rollout: _Rollout) -> None:
        """Keep only what the counts and the slowest need."""
        assert rollout.fate is not None, "it was decided"
        self._forgotten[rollout.fate] += 1
        if rollout.fate is Fate.FINISHED:
            self._forgotten_slowest.append(rollout.finished())
            if len(self._forgotten_slowest) > 10 * _SLOWEST:  # ranking is not for each of them
                self._forgotten_slowest = _slowest(self._forgotten_slowest, _SLOWEST)
        for group in rollout.parts:
            del group.parts[rollout.run_id]
            if not group.parts:
                self._traces.forget(group)
        self._remove(rollout)

    def _remove(self, rollout: _Rollout) -> None:
        key = rollout.run_id, rollout.rollout_id
        del self._all[key]
        self._unsettled.pop(key, None)
        if self._settled.pop(key, None) is not None:
            self._weight -= rollout.weight

    def count(self, fate: Fate) -> int:
        """Say how many there are, or were."""
        unsettled = sum(rollout.fate is fate for rollout in self._unsettled.values())
        settled = len(self._settled) if fate is Fate.FINISHED else 0
        return unsettled + settled + self._forgotten[fate]

    def finished_within(self, seconds: int, now: int) -> int:
        """Count the rollouts that ended in the last `seconds`, at most 60, before `now` (ns)."""
        last = now // _NS
        return sum(self._per_second[second] for second in range(last - seconds + 1, last + 1))

    def open(self, limit: int | None) -> tuple[OpenRollout, ...]:
        """Describe those that are open, the oldest first."""
        found = [rollout for rollout in self._unsettled.values() if rollout.fate is Fate.OPEN]
        oldest = heapq.nsmallest(
            len(found) if limit is None else limit,
            found,
            key=lambda it: (it.start, it.run_id or "", it.rollout_id),
        )
        return tuple(rollout.now() for rollout in oldest)

    def slowest(self, limit: int) -> tuple[FinishedRollout, ...]:
        """Describe the finished ones that took longest, at most 100."""
        if self._slowest is None:
            finished = [it for it in self._unsettled.values() if it.fate is Fate.FINISHED]
            finished += self._settled.values()
            longest = heapq.nlargest(_SLOWEST, finished, key=attrgetter("duration"))
            found = [rollout.finished() for rollout in longest]
            self._slowest = tuple(_slowest([*found, *self._forgotten_slowest], _SLOWEST))
        return self._slowest[:limit]


def _slowest(rollouts: Iterable[FinishedRollout], limit: int) -> list[FinishedRollout]:
    return heapq.nsmallest(
        limit, rollouts, key=lambda it: (-it.duration_ns, it.run_id or "", it.rollout_id)
    )
