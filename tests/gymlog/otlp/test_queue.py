"""The way to a receiver: bounded, never in the way of a call site, every loss counted."""

import queue
import signal
import threading
import time
from contextlib import contextmanager

import pytest

from gymlog.otlp.encoding import trace_request
from gymlog.otlp.queue import ExportQueue
from gymlog.otlp.receiver import Outcome

SECONDS = 20
"""More than anything here takes; what is not there by then hangs."""

RESOURCE = {"service.name": "agent"}


class Receiver:
    """Keeps what it is sent; `answer` decides how a request ends, and may wait."""

    destination = "here"

    def __init__(self):
        self.requests = []
        self.arrived = queue.SimpleQueue()
        self.is_closed = False
        self.answer = lambda names: Outcome(0)

    def send(self, request, count):
        names = [span.name for one in request.resource_spans[0].scope_spans for span in one.spans]
        assert len(names) == count
        self.arrived.put(names)
        outcome = self.answer(names)
        self.requests.append(names)
        return outcome

    def close(self):
        self.is_closed = True

    @property
    def names(self):
        return [name for names in self.requests for name in names]


@pytest.fixture
def receiver():
    return Receiver()


@contextmanager
def running(receiver, **options):
    """Run a queue that sends to a receiver; it has ended when the block is left."""
    settings = {"max_records": 100, "batch_records": 10, "delay_seconds": 3600.0, **options}
    exports = ExportQueue("spans", lambda: receiver, trace_request, lambda: RESOURCE, **settings)
    try:
        yield exports
    finally:
        exports.end()(time.monotonic() + SECONDS)


def after(event):
    """Return an answer that waits for an event."""
    return lambda names: Outcome(0 if event.wait(SECONDS) else len(names))


def names(count):
    return [f"span {number}" for number in range(count)]


def test_a_full_request_goes_at_once_and_the_rest_at_the_end(receiver, span_record):
    """In the order in which they came."""
    with running(receiver) as exports:
        for number in range(25):
            exports.put(span_record(number))
        assert receiver.arrived.get(timeout=SECONDS) == names(10)
    assert receiver.names == names(25)
    assert max(map(len, receiver.requests)) == 10
    assert (exports.dropped, exports.failed, receiver.is_closed) == (0, 0, True)


def test_what_fills_no_request_goes_after_the_delay(receiver, span_record):
    """And what comes later after the next one."""
    with running(receiver, delay_seconds=0.01) as exports:
        for number in range(2):
            exports.put(span_record(number))
            assert receiver.arrived.get(timeout=SECONDS) == [f"span {number}"]


def test_flush_sends_what_waits_and_the_queue_goes_on(receiver, span_record):
    """It says whether that was done in time."""
    with running(receiver) as exports:
        exports.put(span_record(0))
        assert exports.flush(SECONDS)
        assert receiver.names == names(1)
        exports.put(span_record(1))
    assert receiver.names == names(2)


def test_what_finds_no_room_is_dropped_and_counted(receiver, span_record, capfd):
    """While a request is under way the queue takes so many, and not one more; one notice."""
    may_go = threading.Event()
    receiver.answer = after(may_go)
    with running(receiver, max_records=20) as exports:
        for number in range(10):
            exports.put(span_record(number))
        receiver.arrived.get(timeout=SECONDS)
        for number in range(10, 45):
            exports.put(span_record(number))
        assert exports.dropped == 15
        may_go.set()
    assert receiver.names == names(30)
    (said,) = capfd.readouterr().err.splitlines()
    assert "export_dropped" in said


def test_each_record_is_sent_or_counted(receiver, span_record):
    """Whoever puts them, and whatever becomes of the requests."""
    outcomes = iter([Outcome(0), Outcome(10, "no"), Outcome(3, "some")] * 10_000)
    receiver.answer = lambda names: Outcome(min(next(outcomes).lost, len(names)))
    lost = []
    kept = receiver.answer

    def answer(names):
        outcome = kept(names)
        lost.append(outcome.lost)
        return outcome

    receiver.answer = answer
    with running(receiver, max_records=50) as exports:
        threads = [
            threading.Thread(target=lambda: [exports.put(span_record(n)) for n in range(2_000)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert exports.failed == sum(lost)
    assert len(receiver.names) + exports.dropped == 8_000
    assert exports.dropped > 0


@pytest.mark.parametrize("error", [OSError("gone"), None])
def test_a_receiver_that_fails_is_one_notice_and_a_count(error, receiver, span_record, capfd):
    """Whether it says so or raises; the queue goes on."""

    def answer(names):
        if error is not None:
            raise error
        return Outcome(len(names), "no tenant")

    receiver.answer = answer
    with running(receiver) as exports:
        for number in range(30):
            exports.put(span_record(number))
    assert (exports.failed, exports.dropped) == (30, 0)
    (said,) = capfd.readouterr().err.splitlines()
    assert "here" in said
    assert ("gone" if error else "no tenant") in said


def test_without_a_receiver_records_are_counted(span_record, capfd):
    """One cannot be made; the next is tried."""
    tries = []

    def make():
        tries.append(1)
        raise ValueError("bad certificate")

    exports = ExportQueue("spans", make, trace_request, lambda: RESOURCE, batch_records=10)
    for number in range(20):
        exports.put(span_record(number))
    exports.end()(time.monotonic() + SECONDS)
    assert (exports.failed, len(tries)) == (20, 2)
    assert "bad certificate" in capfd.readouterr().err


def test_what_otlp_cannot_say_is_counted(receiver, span_record):
    """Its neighbours go."""
    with running(receiver) as exports:
        exports.put(span_record(0))
        exports.put(span_record(1, start_time_unix_nano=-1))
    assert (receiver.names, exports.failed) == (names(1), 1)


def test_large_records_go_in_several_requests(receiver, span_record):
    """Receivers refuse what is over 4 MiB; a large one goes by itself."""
    with running(receiver) as exports:
        for number in range(10):
            exports.put(span_record(number, attributes={"text": "x" * 300_000}))
        exports.put(span_record(10, attributes={"text": "x" * 3_000_000}))
    assert receiver.names == names(11)
    assert max(map(len, receiver.requests)) == 3


def test_the_end_waits_no_longer_than_it_may(receiver, span_record, capfd):
    """For a receiver that does not answer: what it has, and what waits, is counted."""
    may_go = threading.Event()
    receiver.answer = after(may_go)
    exports = ExportQueue(
        "spans", lambda: receiver, trace_request, lambda: RESOURCE, batch_records=10
    )
    for number in range(25):
        exports.put(span_record(number))
    receiver.arrived.get(timeout=SECONDS)
    began = time.monotonic()
    exports.end()(time.monotonic() + 0.2)
    assert time.monotonic() - began < 5
    assert (exports.failed, exports.dropped) == (10, 15)
    exports.put(span_record(99))
    assert exports.dropped == 16, "after the end, too"
    may_go.set()
    exports._thread.join(SECONDS)
    assert (exports.failed, exports.dropped) == (10, 16), "each is counted once"
    assert "before the end" in capfd.readouterr().err


def test_the_end_waits_a_second_for_a_receiver_that_took_nothing(receiver, span_record):
    """A dead one does not hold up a process for the whole of its timeout."""
    receiver.answer = lambda names: Outcome(len(names), "refused")
    may_end = threading.Event()
    exports = ExportQueue("spans", lambda: receiver, trace_request, lambda: RESOURCE)
    exports.put(span_record(0))
    assert exports.flush(SECONDS)
    receiver.answer = after(may_end)
    exports.put(span_record(1))
    began = time.monotonic()
    exports.end()(began + 3600)
    assert time.monotonic() - began < 10
    assert exports.failed == 2
    may_end.set()


def test_a_signal_handler_may_put_while_the_same_thread_puts(receiver, span_record):
    """No lock is held in `put`, not even on the way of a record that is dropped."""
    put_by_handler = []

    def handler(*_):
        exports.put(span_record(1))
        put_by_handler.append(1)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with running(receiver, max_records=15) as exports:
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            count = 0
            while len(put_by_handler) < 50:
                exports.put(span_record(0))
                count += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(receiver.names) + exports.dropped == count + len(put_by_handler)


def test_a_put_waits_for_nothing(receiver, span_record):
    """A receiver that hangs costs a call site nothing: 10,000 puts while it does."""
    may_go = threading.Event()
    receiver.answer = after(may_go)
    with running(receiver) as exports:
        for number in range(10_000):
            exports.put(span_record(number))
        assert not may_go.is_set()
        assert exports.dropped >= 10_000 - 100 - 2 * 10
        may_go.set()
