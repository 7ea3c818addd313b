"""Which spans make up a rollout, while they still come: the relation `_rollout_spans`, kept.

A span is of the rollout that its own attributes name, else of that of the nearest ancestor with
one, else of the only one of its trace. Children mostly come before their parents, so a span may
find its rollout later. A trace may be a single rollout or a whole run; a line costs the same.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from reconstruct.live.processes import Process

__all__ = ["Group", "Part", "Span", "Trace", "Traces"]

_SPAN_BITS: Final = 64


class Span:
    """A span, finished or not (`end` is None); `group` is the rollout's, once that is known."""

    __slots__ = ("end", "group", "is_error", "name", "parent", "process", "rollout_id", "start")

    def __init__(
        self,
        *,
        parent: int | None,
        name: str,
        start: int,
        end: int | None,
        is_error: bool,
        rollout_id: str | None,
        process: Process,
    ) -> None:
        self.parent = parent
        self.name = name
        self.start = start
        self.end = end
        self.is_error = is_error
        self.rollout_id = rollout_id
        self.process = process
        self.group: Group | None = None

    @property
    def run_id(self) -> str | None:
        """The run of its process."""
        return self.process.run_id

    def says_the_same(self, other: "Span") -> bool:
        """Say whether this is the same record, read twice."""
        return (self.name, self.start, self.end, self.is_error, self.parent) == (
            other.name,
            other.start,
            other.end,
            other.is_error,
            other.parent,
        )


class Part:
    """What the spans of a group come to that are of one run. Mostly there is one part.

    `has_top`: the span it began with is there: one without a parent, or whose parent is not of the
    part. `has_open_top`: such a span has no end.
    """

    __slots__ = (
        "end",
        "error_count",
        "has_open_top",
        "has_top",
        "last",
        "run_id",
        "span_count",
        "start",
        "trace_id",
        "unfinished",
    )

    def __init__(self, run_id: str | None, trace_id: str, first: Span) -> None:
        self.run_id = run_id
        self.trace_id = trace_id
        self.span_count = 0
        self.error_count = 0
        self.start = first.start
        self.end = first.start
        self.last: tuple[int, str] | None = None
        """End and name of the span that ended last."""
        self.unfinished: list[Span] = []
        self.has_top = False
        self.has_open_top = False

    def add(self, span: Span) -> None:
        """Count one span."""
        self.span_count += 1
        self.start = min(self.start, span.start)
        if span.end is None:
            self.unfinished.append(span)
            self.end = max(self.end, span.start)
            return
        self.error_count += span.is_error
        if self.last is None or (span.end, span.name) > self.last:
            self.last = span.end, span.name
        self.end = max(self.end, span.end)


class Group:
    """The spans of one rollout in one trace."""

    __slots__ = ("members", "missing", "parts", "rollout_id", "trace")

    def __init__(self, trace: "Trace", rollout_id: str) -> None:
        self.trace = trace
        self.rollout_id = rollout_id
        self.members: dict[int, Span] = {}
        self.missing: set[int] = set()
        """Parents that have not come, which its trace tells it of."""
        self.parts: dict[str | None, Part] = {}
        """By run, as of the last `evaluate`."""

    def evaluate(self) -> dict[str | None, Part]:
        """Work out the parts anew, from every span of the group."""
        trace = self.trace
        trace.unwatch(self)
        parts: dict[str | None, Part] = {}
        only_run = trace.run_id
        for span in self.members.values():
            run_id = span.run_id or only_run
            part = parts.get(run_id)
            if part is None:
                part = parts[run_id] = Part(run_id, trace.trace_id, span)
            part.add(span)
            if span.parent is not None:
                parent = trace.spans.get(span.parent)
                if parent is None:
                    self.missing.add(span.parent)
                    continue
                if parent.group is self and (parent.run_id or only_run) == run_id:
                    continue
            part.has_top = True
            part.has_open_top = part.has_open_top or span.end is None
        trace.watch(self)
        return parts


class Trace:
    """The spans of a trace that are still kept, and how they find their rollouts."""

    __slots__ = (
        "_children",
        "_watchers",
        "groups",
        "has_several",
        "processes",
        "spans",
        "trace_id",
    )

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id
        self.spans: dict[int, Span] = {}
        self.groups: dict[str, Group] = {}
        self.has_several = False
        """It holds, or has held, more than one rollout."""
        self.processes: set[Process] = set()
        self._children: dict[int, set[int]] = {}
        """Of spans without a rollout: by their parent, be it known or not."""
        self._watchers: dict[int, set[Group]] = {}

    @property
    def run_id(self) -> str | None:
        """The only run of its spans; None when there are several, or none."""
        runs = {process.run_id for process in self.processes} - {None}
        return runs.pop() if len(runs) == 1 else None

    def join(self, process: Process) -> set[Group]:
        """Know that a process writes spans of it; return the groups that this tells the run of."""
        if process in self.processes:
            return set()
        before = self.run_id
        self.processes.add(process)
        return set() if self.run_id == before else set(self.groups.values())

    def watch(self, group: Group) -> None:
        """Tell `insert` to name this group when one of its missing parents comes."""
        for span_id in group.missing:
            self._watchers.setdefault(span_id, set()).add(group)

    def unwatch(self, group: Group) -> None:
        """Take back what `watch` has asked for."""
        for span_id in group.missing:
            watchers = self._watchers.get(span_id)
            if watchers is not None:
                watchers.discard(group)
                if not watchers:
                    del self._watchers[span_id]
        group.missing.clear()

    def insert(self, span_id: int, span: Span) -> set[Group]:
        """Add a span; return the groups for which something is different now."""
        self.spans[span_id] = span
        changed = self.join(span.process)
        changed.update(self._watchers.get(span_id, ()))
        if span.rollout_id is None:
            parent = None if span.parent is None else self.spans.get(span.parent)
            if parent is not None and parent.group is not None:
                self._adopt(span_id, span, parent.group, changed)
            elif self.groups and not self.has_several:
                self._adopt(span_id, span, next(iter(self.groups.values())), changed)
            elif span.parent is not None:
                self._children.setdefault(span.parent, set()).add(span_id)
            return changed
        group = self.groups.get(span.rollout_id)
        if group is None:
            group = self._begin(span.rollout_id, changed)
        self._adopt(span_id, span, group, changed)
        return changed

    def _begin(self, rollout_id: str, changed: set[Group]) -> Group:
        """Begin the group of a rollout that is new in this trace."""
        group = Group(self, rollout_id)
        others = list(self.groups.values())
        self.groups[rollout_id] = group
        if others and not self.has_several:
            self.has_several = True
            changed |= self.sort_anew()
        elif not self.has_several:
            self._children.clear()
            for span_id, span in self.spans.items():
                if span.rollout_id is None:
                    span.group = group
                    group.members[span_id] = span
        return group

    def _adopt(self, span_id: int, span: Span, group: Group, changed: set[Group]) -> None:
        """Make a span a member, and what is below it and has no rollout of its own."""
        found = [(span_id, span)]
        while found:
            span_id, span = found.pop()
            span.group = group
            group.members[span_id] = span
            for child_id in self._children.pop(span_id, ()):
                child = self.spans.get(child_id)
                if child is not None and child.group is None:
                    found.append((child_id, child))
        changed.add(group)

    def sort_anew(self) -> set[Group]:
        """Find the rollout of every span again; costs as much as there are spans."""
        self._children.clear()
        for group in self.groups.values():
            group.members.clear()
        for span_id, span in self.spans.items():
            span.group = None
            if span.rollout_id is not None and span.rollout_id not in self.groups:
                self.groups[span.rollout_id] = Group(self, span.rollout_id)
            elif span.rollout_id is None and span.parent is not None:
                self._children.setdefault(span.parent, set()).add(span_id)
        changed = set(self.groups.values())
        only = None if self.has_several else next(iter(self.groups.values()), None)
        for span_id, span in self.spans.items():
            mine = only if span.rollout_id is None else self.groups[span.rollout_id]
            if mine is not None:
                self._adopt(span_id, span, mine, changed)
        return changed

    def remove(self, span_id: int) -> None:
        """Forget a span without a rollout."""
        span = self.spans.pop(span_id)
        siblings = None if span.parent is None else self._children.get(span.parent)
        if siblings is not None and span.parent is not None:
            siblings.discard(span_id)
            if not siblings:
                del self._children[span.parent]

    def forget(self, group: Group) -> None:
        """Forget the spans of a rollout that is over."""
        self.unwatch(group)
        for span_id in group.members:
            del self.spans[span_id]
        del self.groups[group.rollout_id]
        self.has_several = True


class Traces:
    """All traces with spans that are kept, and the groups for which something is different.

    Finished spans without a rollout are kept as long as there are at most `kept` of them.
    """

    def __init__(self, kept: int) -> None:
        self._traces: dict[str, Trace] = {}
        self._loose: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._kept = kept
        self.changed: set[Group] = set()

    def add(self, trace_id: str, span_id: int, span: Span) -> bool:
        """Add a span as its line tells it; say whether it tells more than was known."""
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = Trace(trace_id)
        known = trace.spans.get(span_id)
        if known is None:
            self._insert(trace, span_id, span)
            return True
        if span.end is None:
            return False
        if known.end is None:
            self._end(trace, span_id, known, span)
            return True
        if known.says_the_same(span):
            return False
        copy_id = span_id
        while (other := trace.spans.get(copy_id)) is not None:
            if other.says_the_same(span):
                return False
            copy_id += 1 << _SPAN_BITS
        self._insert(trace, copy_id, span)
        return True

    def _insert(self, trace: Trace, span_id: int, span: Span) -> None:
        had_several = trace.has_several
        self.changed |= trace.insert(span_id, span)
        if trace.has_several is not had_several:
            self._keep_loose(trace)
        elif span.group is None and span.end is not None:
            self._keep(trace, span_id)

    def _keep_loose(self, trace: Trace) -> None:
        for span_id, span in list(trace.spans.items()):
            if span.group is None and span.end is not None:
                self._keep(trace, span_id)

    def _keep(self, trace: Trace, span_id: int) -> None:
        """Keep a finished span without a rollout, in the place of the oldest one."""
        self._loose[trace.trace_id, span_id] = None
        while len(self._loose) > self._kept:
            (trace_id, oldest), _ = self._loose.popitem(last=False)
            old = self._traces.get(trace_id)
            if old is not None and (span := old.spans.get(oldest)) and span.group is None:
                old.remove(oldest)
                self._drop_if_empty(old)

    def _end(self, trace: Trace, span_id: int, known: Span, span: Span) -> None:
        """Let the line of an ended span take the place of the one that announced it."""
        known.name, known.start, known.end = span.name, span.start, span.end
        known.is_error, known.process = span.is_error, span.process
        self.changed |= trace.join(span.process)
        before = known.rollout_id, known.parent
        known.rollout_id, known.parent = span.rollout_id, span.parent
        if before == (None, span.parent) and known.group is None:
            trace.remove(span_id)
            self._insert(trace, span_id, known)
        elif before != (span.rollout_id, span.parent):
            self._move(trace)
        if known.group is not None:
            self.changed.add(known.group)
        else:
            self._keep(trace, span_id)

    def _move(self, trace: Trace) -> None:
        """Sort the spans of a trace anew: one of them turned out to be somewhere else."""
        rollouts = {span.rollout_id for span in trace.spans.values()} - {None}
        trace.has_several = trace.has_several or len(rollouts) > 1
        self.changed |= trace.sort_anew()
        self._keep_loose(trace)

    def forget(self, group: Group) -> None:
        """Forget the spans of a rollout that is over."""
        trace = group.trace
        trace.forget(group)
        self.changed.discard(group)
        self._drop_if_empty(trace)

    def _drop_if_empty(self, trace: Trace) -> None:
        if not trace.spans and not trace.groups:
            self._traces.pop(trace.trace_id, None)

    def groups(self) -> Iterable[Group]:
        """Return every group there is."""
        for trace in self._traces.values():
            yield from trace.groups.values()
