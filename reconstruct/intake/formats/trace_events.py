"""Chrome's trace events, which Perfetto, VizTracer and PyTorch write too, as spans.

A document is understood only as a whole: what contains an event, what its process is called and
when its clock began may all stand behind it. So events wait in a spool, in memory at first and
then in a temporary file; about 300 bytes an event stay in memory.

Read are complete events (X), pairs (B and E, b and e, S and F), instants (i, I, R, n, T, p) as
events of the span around them or else as log records, and the names in metadata (M). Counters,
flow arrows, samples, objects, memory dumps and ends without a beginning are left out. Ids come
from `args` where they stand there; otherwise the spans of a process are one trace, with ids made
from what the events say, so that they are the same wherever the file lies. Times are µs since
`baseTimeNanoseconds`; without one the writer's own clock counts, as if it had begun in 1970.
"""

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple, Self

from reconstruct.intake.formats import fields, ids, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json, NotJson, decode_encoded, encode
from reconstruct.intake.owners import Owner

__all__ = [
    "LIST_KEY",
    "Placed",
    "TraceEvents",
    "is_trace_event",
    "recognise",
    "recognise_list",
]

LIST_KEY: Final = "traceEvents"

_COMPLETE: Final = "X"
_METADATA: Final = "M"
_BEGIN: Final = frozenset("BbS")
_END: Final = frozenset("EeF")
_INSTANT: Final = frozenset("iIRnTp")
_ASYNC: Final = frozenset("bneSTpF")
_READ: Final = _BEGIN | _END | _INSTANT | {_COMPLETE}
_PHASES: Final = _READ | frozenset("MCPNODvVstfca()")
_EXACT_BELOW: Final = 2.0**43
"""Below it a float of µs is exact to the nanosecond."""
_SPOOL_BYTES: Final = 32 << 20
_BASE_TIME: Final = "baseTimeNanoseconds"
_TRACE_ID: Final = ("trace_id", "traceId")
_SPAN_ID: Final = ("span_id", "spanId")
_PARENT_ID: Final = ("parent_span_id", "parent_id", "parentSpanId")
_CATEGORY: Final = "trace_event.category"


class Placed(NamedTuple):
    """A row, and the line and byte offset of the event that it begins with."""

    line: int
    offset: int
    row: rows.TableRow


def is_trace_event(value: Json) -> bool:
    """Say whether an element of a list is one of these events."""
    if not isinstance(value, dict) or not isinstance(value.get("ph"), str):
        return False
    has_place = "pid" in value or "tid" in value
    return value["ph"] in _PHASES and has_place and ("ts" in value or value["ph"] == _METADATA)


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a whole document into a record."""
    events = value.get(LIST_KEY)
    return _record(events, value, server_hint) if isinstance(events, list) else None


def recognise_list(values: list[Json], server_hint: str | None) -> Record | None:
    """Turn a document that is nothing but the list of events into a record."""
    if not values or not is_trace_event(values[0]):
        return None
    return _record(values, {}, server_hint)


def _record(
    events: list[Json], document: dict[str, Json], server_hint: str | None
) -> Record | None:
    problems: list[str] = []
    with TraceEvents(server_hint) as trace:
        for key, member in document.items():
            trace.learn(key, member)
        for number, event in enumerate(events, 1):
            try:
                trace.add(event, encode(event).encode())
            except (InvalidRecordError, NotJson) as error:
                problems.append(f"event {number}: {error}")
        found = tuple(placed.row for placed in trace.rows())
    if not found:
        if problems:
            raise InvalidRecordError(fields.listed(problems))
        return None
    classes = Counter(rows.class_of(row) for row in found)
    return Record(fields.main_class(classes), found, tuple(problems))


class _Waiting(NamedTuple):
    """An event in the spool. They sort by time, the longer first, then as they were written."""

    start: int
    minus_duration: int
    number: int
    position: int
    length: int
    line: int
    offset: int


_Track = tuple[Json, ...]
"""What nests: the pid and a thread, or the pid and an id that its events share."""


class TraceEvents:
    """The events of one document. A context manager, for the spool's sake."""

    def __init__(self, server_hint: str | None = None) -> None:
        self._server_hint = server_hint
        self._spool = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115  # __exit__ closes it
        self._size = 0
        self._count = 0
        self._tracks: dict[_Track, list[_Waiting]] = {}
        self._processes: dict[Json, str] = {}
        self._threads: dict[_Track, str] = {}
        self._base_time = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the spool."""
        self._spool.close()

    def learn(self, key: str, member: Json) -> None:
        """Take a member of the document that is not its list."""
        found = member if key == _BASE_TIME else fields.members(member).get(_BASE_TIME)
        self._base_time = fields.int64(found) or self._base_time

    def add(self, event: Json, raw: bytes, *, line: int = 0, offset: int = 0) -> None:
        """Take one event, `raw` as JSON. Raises `InvalidRecordError` when it is none."""
        if not is_trace_event(event):
            raise InvalidRecordError("no trace event: ph, ts or pid is missing")
        phase, thread = event["ph"], (_plain(event.get("pid")), _plain(event.get("tid")))
        if phase == _METADATA:
            self._name(event, thread)
        elif phase in _READ:
            start, duration = _times(event, raw)
            track = thread if phase not in _ASYNC else (thread[0], *_shared_id(event))
            waiting = _Waiting(start, -duration, self._count, self._size, len(raw), line, offset)
            self._tracks.setdefault(track, []).append(waiting)
            self._spool.write(raw)
            self._size += len(raw)
            self._count += 1

    def _name(self, event: dict[str, Json], thread: _Track) -> None:
        name = fields.text(fields.members(event.get("args")).get("name"))
        if name and event.get("name") == "process_name":
            self._processes[thread[0]] = name
        elif name and event.get("name") == "thread_name":
            self._threads[thread] = name

    def rows(self) -> Iterator[Placed]:
        """Yield the rows of all events, track by track."""
        starts: dict[Json, int] = {}
        for track, waiting in self._tracks.items():
            start = min(waiting).start
            starts[track[0]] = min(starts.get(track[0], start), start)
        for track, waiting in self._tracks.items():
            pid = track[0]
            name = self._processes.get(pid)
            trace_id = ids.derived(32, "trace events", pid, name, starts[pid] + self._base_time)
            resource: dict[str, Json] = {} if name is None else {"service.name": name}
            if isinstance(pid, int):
                resource["process.pid"] = pid
            attributes = self._thread_attributes(track)
            owner = rows.owner(resource, self._server_hint)
            nesting = _Nesting(
                track, trace_id, attributes=attributes, owner=owner, base_time=self._base_time
            )
            waiting.sort()
            for entry in waiting:
                self._spool.seek(entry.position)
                yield from nesting.take(
                    decode_encoded(self._spool.read(entry.length).decode()), entry
                )
            yield from nesting.rest()

    def _thread_attributes(self, track: _Track) -> dict[str, Json]:
        if len(track) != 2 or track[1] is None:
            return {}
        name = self._threads.get(track)
        return {"thread.id": track[1]} | ({} if name is None else {"thread.name": name})


@dataclass(slots=True)
class _Open:
    """A span that has begun. `end` is known of a complete event from the start."""

    event: dict[str, Json]
    args: dict[str, Json]
    waiting: _Waiting
    end: int | None
    trace_id: str
    span_id: str
    parent_span_id: str | None
    events: list[Json] = field(default_factory=list)


class _Nesting:
    """The spans of one track, taken in the order of time."""

    def __init__(
        self,
        track: _Track,
        trace_id: str,
        *,
        attributes: dict[str, Json],
        owner: Owner,
        base_time: int,
    ) -> None:
        self._track = track
        self._trace_id = trace_id
        self._attributes = attributes
        self._owner = owner
        self._base_time = base_time
        self._stack: list[_Open] = []
        self._interval = (0, 0)
        self._twins: dict[Json, int] = {}
        """How often each name has been seen with the present start and duration."""

    def take(self, event: dict[str, Json], waiting: _Waiting) -> Iterator[Placed]:
        """Take the next event; yield what has ended by then."""
        yield from self._ended(waiting)
        phase = event["ph"]
        args = dict(fields.members(event.get("args")))
        if phase == _COMPLETE:
            self._begin(event, args, waiting, waiting.start - waiting.minus_duration)
        elif phase in _BEGIN:
            self._begin(event, args, waiting, None)
        elif phase in _END:
            yield from self._end(args, waiting.start)
        elif self._stack:
            self._stack[-1].events.append(
                {
                    "time_unix_nano": self._base_time + waiting.start,
                    "name": fields.text(event.get("name")),
                    "attributes": args,
                }
            )
        else:
            yield Placed(waiting.line, waiting.offset, self._log(event, args, waiting))

    def rest(self) -> Iterator[Placed]:
        """Yield what is left: complete events, and spans that never ended."""
        while self._stack:
            yield self._span(self._stack.pop())

    def _ended(self, waiting: _Waiting) -> Iterator[Placed]:
        """Yield complete events that end before this one begins; empty ones end behind it."""
        while self._stack:
            top = self._stack[-1]
            if top.end is None or top.end > waiting.start:
                return
            if top.end == waiting.start == top.waiting.start and not waiting.minus_duration:
                return
            yield self._span(self._stack.pop())

    def _begin(
        self, event: dict[str, Json], args: dict[str, Json], waiting: _Waiting, end: int | None
    ) -> None:
        above = self._stack[-1] if self._stack else None
        trace_id = _taken(args, _TRACE_ID, fields.trace_id)
        trace_id = trace_id or (self._trace_id if above is None else above.trace_id)
        span_id = _taken(args, _SPAN_ID, fields.span_id) or self._own_id(trace_id, event, waiting)
        parent_span_id = _taken(args, _PARENT_ID, fields.span_id)
        if parent_span_id is None and above is not None and above.trace_id == trace_id:
            parent_span_id = above.span_id
        span = _Open(event, args, waiting, end, trace_id, span_id, parent_span_id)
        self._stack.append(span)

    def _own_id(self, trace_id: str, event: dict[str, Json], waiting: _Waiting) -> str:
        interval = (waiting.start, waiting.minus_duration)
        if interval != self._interval:
            self._interval, self._twins = interval, {}
        name = fields.text(event.get("name"))
        twin = self._twins[name] = self._twins.get(name, 0) + 1
        return ids.derived(16, trace_id, *self._track, *interval, name, twin)

    def _end(self, args: dict[str, Json], time: int) -> Iterator[Placed]:
        """End the nearest span that waits for it; complete events above it end with it."""
        if all(span.end is not None for span in self._stack):
            return  # it began before the recording did
        while self._stack:
            span = self._stack.pop()
            is_awaited = span.end is None
            if is_awaited:
                span.end = time
                span.args |= args
            yield self._span(span)
            if is_awaited:
                return

    def _span(self, span: _Open) -> Placed:
        row = rows.span(
            trace_id=span.trace_id,
            span_id=span.span_id,
            parent_span_id=span.parent_span_id,
            name=fields.text(span.event.get("name")) or "unknown",
            start=self._base_time + span.waiting.start,
            end=None if span.end is None else self._base_time + span.end,
            attributes=self._described(span.event, span.args),
            events=span.events,
            owner=self._owner,
        )
        return Placed(span.waiting.line, span.waiting.offset, row)

    def _log(
        self, event: dict[str, Json], args: dict[str, Json], waiting: _Waiting
    ) -> rows.TableRow:
        trace_id = _taken(args, _TRACE_ID, fields.trace_id) or self._trace_id
        span_id = _taken(args, _SPAN_ID, fields.span_id)
        return rows.log(
            time=self._base_time + waiting.start,
            body=fields.text(event.get("name")),
            trace_id=trace_id,
            span_id=span_id,
            attributes=self._described(event, args),
            owner=self._owner,
        )

    def _described(self, event: dict[str, Json], args: dict[str, Json]) -> dict[str, Json]:
        category = event.get("cat")
        return args | ({_CATEGORY: category} if category else {}) | self._attributes


def _plain(value: Json) -> Json:
    """Return a pid or thread id as something to look up by."""
    return encode(value) if isinstance(value, dict | list) else value


def _shared_id(event: dict[str, Json]) -> tuple[Json, ...]:
    """Return what the events of one asynchronous track have in common beside the process."""
    found = event.get("id")
    if found is None:
        found = event.get("id2")
    return _plain(event.get("cat")), _plain(event.get("scope")), _plain(found)


def _times(event: dict[str, Json], raw: bytes) -> tuple[int, int]:
    """Return start and duration, ns, every digit kept."""
    start, duration = event["ts"], event.get("dur")
    if any(isinstance(time, float) and abs(time) >= _EXACT_BELOW for time in (start, duration)):
        exact = json.loads(raw, parse_float=Decimal)
        start, duration = exact["ts"], exact.get("dur")
    if event["ph"] != _COMPLETE:
        return _nanoseconds(start, "ts"), 0
    length = _nanoseconds(duration, "dur")
    if length < 0:
        raise InvalidRecordError("dur is negative")
    return _nanoseconds(start, "ts"), length


def _nanoseconds(microseconds: float | Decimal | Json, field: str) -> int:
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float | Decimal):
        raise InvalidRecordError(f"{field} is missing or no number: {microseconds!s:.60}")
    try:
        nanoseconds = round(microseconds * 1000)
    except (OverflowError, ValueError):
        nanoseconds = 2**63
    if abs(nanoseconds) >= 2**62:
        raise InvalidRecordError(f"{field} is out of range")
    return nanoseconds


def _taken(
    args: dict[str, Json], names: tuple[str, ...], checked: Callable[[Json], str]
) -> str | None:
    """Take an id out of `args`; what is none stays there."""
    for name in names:
        try:
            found = checked(args.get(name))
        except InvalidRecordError:
            continue
        del args[name]
        return found
    return None
