"""What is drawn of a timeline: spans as slices, their arrows, log records, counters, processes."""

from dataclasses import dataclass
from typing import NamedTuple, TypedDict

__all__ = ["Arrow", "Drawn", "Instant", "Process", "Reading", "Slice"]


class Arrow(TypedDict):
    """One end of an arrow between two slices; the other is equal to it."""

    number: int
    kind: str
    """call: to a child in another process. link: of the span's links."""
    source: int
    """The number of the slice at which it starts."""
    is_lone: bool
    """No other arrow touches the slice at which it ends."""


class Slice(NamedTuple):
    """A span as it is drawn."""

    instance: str
    number: int
    """From 1, by trace id, span id and occurrence."""
    parent: int | None
    """The number of its parent, where that is drawn in the same process."""
    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    kind: str
    state: str
    """As in spans; an unfinished one ends here where it was last known to be open."""
    start: int
    end: int
    offset: int
    """What was taken off its times, and is to be taken off those of its events, ns."""
    rollout_id: str | None
    """The rollout it belongs to, where its attributes do not name it."""
    status_code: str | None
    status_message: str | None
    attributes: str
    """JSON, an object."""
    events: str
    """JSON, a list."""
    links: str
    """JSON, a list."""
    scope_name: str | None
    begun: list[Arrow] | None
    """Arrows that start here."""
    ended: list[Arrow] | None
    """Arrows that end here."""


class Instant(NamedTuple):
    """A log record."""

    instance: str
    time: int
    body: str | None
    attributes: str | None
    """JSON, an object."""
    severity_text: str | None
    severity_number: int | None
    trace_id: str | None
    span_id: str | None
    scope_name: str | None


class Reading(NamedTuple):
    """What a counter is from a time on."""

    instance: str
    name: str
    unit: str | None
    time: int
    value: float


@dataclass(frozen=True, slots=True)
class Process:
    """A service instance as it is drawn."""

    instance: str
    pid: int
    """Its own where no other process here has it too, else a number above all pids."""
    name: str
    labels: tuple[str, ...]
    """Its host and its run, where they are known."""


@dataclass(slots=True)
class Drawn:
    """What a writer has drawn so far."""

    spans: int = 0
    lanes: int = 0
    arrows: int = 0
    instants: int = 0
    """Log records and span events."""
    readings: int = 0
    """Values of counters."""
