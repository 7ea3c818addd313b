"""Records on their way to a receiver: a bounded queue, and a thread that empties it.

A call site appends one record, 0.2 µs, and waits for nothing. Records are made into requests and
sent by the queue's own thread: when they fill a request, when the schedule delay is over, and at
the end. What finds no room is dropped and counted, and so is what the receiver does not take. A
queue belongs to the process that made it: a forked child makes its own.
"""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, set_value

from gymlog.notices import notice
from gymlog.otlp.encoding import Request
from gymlog.otlp.receiver import Outcome, Receiver, quietly

__all__ = ["Encode", "ExportQueue"]

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record
Encode = Callable[[Sequence[Record], Mapping[str, object]], tuple[Request, int]]

_REQUEST_BYTES: Final = 1_000_000
"""Encoded bytes of a request of several records: many receivers refuse more than 4 MiB, some
proxies before them more than 1 MiB."""

_LAST_TRY_SECONDS: Final = 1.0
"""How long the end waits for a receiver that took nothing the last time."""


_FORK_WAIT_SECONDS: Final = 0.5
"""How long a fork waits for requests under way: gRPC's state would be torn in the child."""


class _Order(NamedTuple):
    """An order to send all that waits."""

    done: "SimpleQueue[None]"
    is_last: bool


class ExportQueue:
    """The records of one signal that are to be sent."""

    def __init__(
        self,
        what: str,
        make_receiver: Callable[[], Receiver],
        encode: Encode,
        resource: Callable[[], Mapping[str, object]],
        *,
        max_records: int = 2048,
        batch_records: int = 512,
        delay_seconds: float = 5.0,
    ) -> None:
        """`what` names the records for people; `resource` is asked when something is sent."""
        self.dropped = self.failed = 0
        """Records that had no room, or no time at the end; records that were not taken."""
        self._what = what
        self._make_receiver = make_receiver
        self._encode = encode
        self._resource = resource
        self._max_records = max_records
        self._batch_records = min(batch_records, max_records)
        self._delay_seconds = delay_seconds
        self._waiting: deque[Record] = deque()
        self._receiver: Receiver | None = None
        self._sending = 0
        """Records that are in none of the counts, nor waiting."""
        self._is_failing = False
        self._is_woken = False
        # Unlike threading.Event, this can be used in a signal handler that interrupts its use.
        self._orders: SimpleQueue[_Order | None] = SimpleQueue()
        self._lock = threading.RLock()
        self._wire = threading.Lock()
        """Held while a request is under way."""
        _queues.add(self)
        self._thread = threading.Thread(target=self._run, name=f"gymlog-otlp-{what}", daemon=True)
        self._thread.start()

    def put(self, record: Record) -> None:
        """Let a record wait to be sent; it must not change any more."""
        waiting = self._waiting
        if len(waiting) >= self._max_records:
            self._drop(1, "arrive faster than OTLP takes them")
            return
        waiting.append(record)
        if len(waiting) >= self._batch_records and not self._is_woken:
            self._is_woken = True
            self._orders.put(None)

    def flush(self, seconds: float) -> bool:
        """Send what waits; say whether all was dealt with in time."""
        return self._await(self._order(is_last=False), time.monotonic() + seconds)

    def end(self) -> Callable[[float], None]:
        """Begin to send what waits, for the last time; from now on records are dropped.

        Returns what waits for it, up to a reading of the monotonic clock; what was not sent by
        then is given up and counted.
        """
        self._max_records = 0
        done = self._order(is_last=True)

        def finish(deadline: float) -> None:
            if self._is_failing:
                deadline = min(deadline, time.monotonic() + _LAST_TRY_SECONDS)
            if not self._await(done, deadline):
                self._give_up()

        return finish

    def _order(self, *, is_last: bool) -> "SimpleQueue[None]":
        done: SimpleQueue[None] = SimpleQueue()
        self._orders.put(_Order(done, is_last))
        return done

    def _await(self, done: "SimpleQueue[None]", deadline: float) -> bool:
        if not self._thread.is_alive():
            return not self._waiting
        try:
            done.get(timeout=max(0.0, deadline - time.monotonic()))
        except Empty:
            return False
        return True

    def _give_up(self) -> None:
        with self._lock:
            self.failed += self._sending
            self._sending = 0
        left_over = self._take(len(self._waiting))
        if left_over:
            self._drop(len(left_over), "could not all be sent before the end")

    def _drop(self, count: int, why: str) -> None:
        with self._lock:
            self.dropped += count
        notice(
            f"otlp queue {self._what}",
            f"{self._what} {why}; those are dropped, and counted in the process records "
            "(export_dropped)",
        )

    def _take(self, count: int) -> list[Record]:
        taken = []
        try:
            for _ in range(count):
                taken.append(self._waiting.popleft())  # noqa: PERF401 - it may be empty sooner
        except IndexError:
            pass
        return taken

    # In the thread.

    def _run(self) -> None:
        attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))  # noqa: FBT003 - a context's value
        due = time.monotonic() + self._delay_seconds
        while True:
            order = self._next_order(due)
            self._is_woken = False
            is_due = order is not None or time.monotonic() >= due
            left = len(self._waiting)  # what arrives meanwhile has its own turn
            with quietly():
                while left >= (1 if is_due else self._batch_records):
                    batch = self._next_batch(min(left, self._batch_records))
                    if not batch:
                        break  # all was given up
                    left -= len(batch)
                    self._send(batch)
            if order is not None:
                order.done.put(None)
                if order.is_last:
                    break
            if is_due:
                due = time.monotonic() + self._delay_seconds
        if self._receiver is not None:
            with quietly(), suppress(Exception):  # there is nobody left to tell
                self._receiver.close()

    def _next_order(self, due: float) -> _Order | None:
        try:
            return self._orders.get(timeout=max(0.0, due - time.monotonic()))
        except Empty:
            return None

    def _next_batch(self, count: int) -> list[Record]:
        with self._lock:
            batch = self._take(count)
            self._sending = len(batch)
        return batch

    def _send(self, batch: list[Record]) -> None:
        try:
            with self._wire:
                if self._receiver is None:
                    self._receiver = self._make_receiver()
                outcome = self._deliver(self._receiver, batch)
        except Exception as error:  # noqa: BLE001 - the host must not notice
            outcome = Outcome(len(batch), f"{type(error).__name__}: {error}")
        with self._lock:
            is_given_up, self._sending = not self._sending, 0
        self._is_failing = outcome.lost == len(batch)
        if outcome.lost and not is_given_up:
            self._lose(outcome)

    def _deliver(self, receiver: Receiver, batch: list[Record]) -> Outcome:
        request, unsendable = self._encode(batch, self._resource())
        if request.ByteSize() > _REQUEST_BYTES and len(batch) > 1:
            middle = len(batch) // 2
            halves = [self._deliver(receiver, part) for part in (batch[:middle], batch[middle:])]
            return Outcome(sum(half.lost for half in halves), halves[0].words or halves[1].words)
        outcome = receiver.send(request, len(batch) - unsendable)
        words = outcome.words or ("OTLP has no form for them" if unsendable else "")
        return Outcome(outcome.lost + unsendable, words)

    def _lose(self, outcome: Outcome) -> None:
        with self._lock:
            self.failed += outcome.lost
        destination = "a receiver" if self._receiver is None else self._receiver.destination
        notice(
            f"otlp {self._what}",
            f"{self._what} did not reach {destination}: {outcome.words or 'no reason given'}; "
            "they are counted in the process records (export_failed)",
        )


# One of each per process.

_queues: "weakref.WeakSet[ExportQueue]" = weakref.WeakSet()


class _Held(threading.local):
    def __init__(self) -> None:
        self.locks: list[threading.Lock] = []


_held: Final = _Held()


def _before_fork() -> None:
    deadline = time.monotonic() + _FORK_WAIT_SECONDS
    for one in list(_queues):
        if one._wire.acquire(timeout=max(0.0, deadline - time.monotonic())):
            _held.locks.append(one._wire)


def _after_fork() -> None:
    while _held.locks:
        _held.locks.pop().release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
