"""A span by itself: what it takes, what it says of an exception, and that it is written once.

That it is an OpenTelemetry span in all else is `tests/contract/test_opentelemetry.py`.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace

from gymlog import record, testing
from gymlog.spans import Span
from gymlog.testing import Captured
from gymlog.values import Limits

START = 1_750_000_000_000_000_000


class Hostile:
    """An object whose every text raises."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


# Facts.


def test_none_is_no_attribute(telemetry: Captured) -> None:
    """None is ignored at the start, later, in an event and in a link, and changes nothing."""
    span = telemetry.tracer.start_span("a", attributes={"none": None, "kept": 1})
    span.set_attribute("kept", None)
    span.add_event("e", {"none": None, "kept": 1})
    span.add_link(span.get_span_context(), {"none": None, "kept": 1})
    span.end()
    line = telemetry.span("a")
    assert line["attributes"] == {"kept": 1}
    assert line["events"][0]["attributes"] == {"kept": 1}
    assert line["links"][0]["attributes"] == {"kept": 1}


def test_a_value_is_taken_when_it_is_set(telemetry: Captured) -> None:
    """What the program does to a list or a mapping afterwards is not on the line."""
    numbers, given = [1, 2], {"numbers": [1]}
    span = telemetry.tracer.start_span("a", attributes=given)
    span.set_attribute("more", numbers)
    span.add_event("e", {"numbers": numbers})
    numbers.append(3)
    given["numbers"].append(2)
    span.end()
    line = telemetry.span("a")
    assert line["attributes"] == {"numbers": [1], "more": [1, 2]}
    assert line["events"][0]["attributes"] == {"numbers": [1, 2]}
    assert given == {"numbers": [1, 2]}


def test_what_is_put_after_the_end_is_no_attribute(telemetry: Captured) -> None:
    """The record may still wait to be sent: it is what it was at the end."""
    span = telemetry.tracer.open_span("a")
    span.put("early", 1)
    span.end()
    span.put("late", 1)
    span.put("late too", "x", 1)
    assert span.attributes == {"early": 1}


@pytest.mark.parametrize("value", [Hostile(), {"a": Hostile()}, [Hostile()], object(), {1: 2}, {1}])
def test_a_value_that_json_cannot_hold_does_no_harm(telemetry: Captured, value: object) -> None:
    """It becomes text, a list or an object; the other attributes stay."""
    span = telemetry.tracer.start_span("a", attributes={"odd": value, "kept": 1})
    span.set_attribute("odd later", value)
    span.add_event("e", {"odd": value})
    span.end()
    attributes = telemetry.span("a")["attributes"]
    assert attributes["kept"] == 1
    assert attributes["odd"] == attributes["odd later"]


def test_texts_are_utf8_and_within_the_limit() -> None:
    """Name, event name, status message and keys too: lone surrogates replaced, values cut."""
    with testing.captured(limits=Limits(characters=10)) as telemetry:
        span = telemetry.tracer.start_span(
            "caf\ud83d", attributes={"k\ud800": "v\udcff" + "x" * 20}
        )
        span.add_event("e\udead", {"a": "y" * 20})
        span.set_status("ERROR", "\ud83e" + "z" * 20)
        span.end()
        (line,) = telemetry.spans
    assert line["name"] == "caf\ufffd"
    assert line["attributes"] == {"k\ufffd": "v\ufffd" + "x" * 7 + "…"}
    assert line["events"][0]["name"] == "e\ufffd"
    assert line["events"][0]["attributes"] == {"a": "y" * 9 + "…"}
    assert line["status"] == {"code": "ERROR", "message": "\ufffd" + "z" * 8 + "…"}


def test_attributes_can_be_read_while_the_span_is_open(telemetry: Captured) -> None:
    """Also through the interface that instrumentation asks for."""
    span = telemetry.tracer.start_span("a", attributes={"a": 1})
    span.set_attribute("b", 2)
    assert dict(span.attributes) == {"a": 1, "b": 2}
    assert (span.name, span.kind, span.status_code) == ("a", "INTERNAL", "UNSET")
    span.set_status(trace.StatusCode.ERROR, "x")
    assert span.status_code == "ERROR"
    assert span.trace_id in repr(span)


def test_a_status_may_be_given_by_name(telemetry: Captured) -> None:
    """An unknown name is no status."""
    for name in ("OK", "ERROR", "UNSET", "FINE"):
        span = telemetry.tracer.start_span(name)
        span.set_status(name)
        span.end()
    assert [line["status"]["code"] for line in telemetry.spans] == ["OK", "ERROR", "UNSET", "UNSET"]


def test_what_limits_cut_is_counted_where_it_was_cut() -> None:
    """On the span for its attributes, events and links; on an event and a link for theirs."""
    limits = Limits(attributes=1, events=1, links=1, event_attributes=1, link_attributes=1)
    with testing.captured(limits=limits) as telemetry:
        span = telemetry.tracer.start_span("a", attributes={"a": 1, "b": 2, "c": 3})
        for _ in range(3):
            span.add_event("e", {"a": 1, "b": 2})
            span.add_link(span.get_span_context(), {"a": 1, "b": 2, "c": 3})
        span.end()
        (line,) = telemetry.spans
    assert line["dropped_attributes_count"] == 2
    assert line["dropped_events_count"] == 2
    assert line["dropped_links_count"] == 2
    assert line["events"][0]["dropped_attributes_count"] == 1
    assert line["links"][0]["dropped_attributes_count"] == 2


def test_nothing_empty_stands_on_the_line(telemetry: Captured) -> None:
    """No events, links, counters, trace state or scope that say nothing."""
    telemetry.tracer.start_span("a").end()
    required = [field.name for field in record.SPAN if field.required]
    assert list(telemetry.span("a")) == required


_NONSENSE: dict[str, Callable[[Any], object]] = {  # Any: a span that is given what it cannot take
    "attributes": lambda span: span.set_attributes(None),
    "link": lambda span: span.add_link(None),
    "status": lambda span: span.set_status(None),
    "exception": lambda span: span.record_exception(None),
}


@pytest.mark.parametrize("call", _NONSENSE.values(), ids=_NONSENSE.keys())
def test_nonsense_does_not_raise(telemetry: Captured, call: Callable[[Span], object]) -> None:
    """Telemetry never breaks its host: what cannot be taken is left out."""
    span = telemetry.tracer.start_span("a")
    call(span)
    span.end()
    assert telemetry.span("a")["status"] == {"code": "UNSET"}


# Times.


def test_times_are_of_the_monotonic_clock() -> None:
    """A wall clock that is set back makes no negative duration, an event lies within its span."""
    with testing.captured() as telemetry, testing.stepped_clock(START) as clock:
        span = telemetry.tracer.start_span("a")
        clock.advance(ns=5)
        span.add_event("e")
        clock.advance(seconds=1)
        span.end()
        (line,) = telemetry.spans
    assert line["start_time_unix_nano"] == START
    assert line["events"][0]["time_unix_nano"] == START + 5
    assert line["end_time_unix_nano"] == START + 1_000_000_005


# Exceptions.


def failed(telemetry: Captured, error: BaseException, **options: bool) -> dict[str, Any]:
    """Return the line of a span that `error` left."""
    with pytest.raises(type(error)) as caught:
        with telemetry.tracer.start_as_current_span("a", **options):  # type: ignore[arg-type]  # two bools
            raise error
    assert caught.value is error
    return telemetry.span("a")


def test_an_exception_is_status_event_and_error_type(telemetry: Captured) -> None:
    """The type with its module, the message, the innermost frames."""
    line = failed(telemetry, asyncio.QueueFull("full"))
    assert line["status"] == {"code": "ERROR", "message": "QueueFull: full"}
    assert line["attributes"] == {"error.type": "QueueFull"}
    (event,) = line["events"]
    assert event["name"] == "exception"
    assert event["attributes"]["exception.type"] == "asyncio.queues.QueueFull"
    assert event["attributes"]["exception.message"] == "full"
    assert event["attributes"]["exception.stacktrace"].endswith("in failed")
    assert line["start_time_unix_nano"] <= event["time_unix_nano"] <= line["end_time_unix_nano"]


def test_an_exception_without_text_has_its_type_for_a_message(telemetry: Captured) -> None:
    """No dangling colon."""
    assert failed(telemetry, ValueError())["status"] == {"code": "ERROR", "message": "ValueError"}


def test_an_exception_whose_text_raises_does_no_harm(telemetry: Captured) -> None:
    """The exception goes on unchanged, its type is told."""

    class NastyError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    line = failed(telemetry, NastyError())
    assert line["status"]["code"] == "ERROR"
    assert "NastyError" in line["status"]["message"]


@pytest.mark.parametrize("error", [KeyboardInterrupt("stop"), SystemExit(3)])
def test_an_interrupted_block_is_an_error(telemetry: Captured, error: BaseException) -> None:
    """Not only an `Exception` ends a block that did not do its work."""
    line = failed(telemetry, error)
    assert line["status"]["code"] == "ERROR"
    assert line["attributes"] == {"error.type": type(error).__name__}


def test_cancelled_work_can_be_told_from_failed_and_from_good_work(telemetry: Captured) -> None:
    """ERROR, marked `gymlog.cancelled`, and no exception event: nothing went wrong here."""
    line = failed(telemetry, asyncio.CancelledError())
    assert line["status"] == {"code": "ERROR", "message": "cancelled"}
    assert line["attributes"] == {"error.type": "CancelledError", "gymlog.cancelled": True}
    assert "events" not in line


def test_an_early_close_is_no_error(telemetry: Captured) -> None:
    """GeneratorExit is told by `error.type` alone."""
    line = failed(telemetry, GeneratorExit())
    assert line["status"] == {"code": "UNSET"}
    assert line["attributes"] == {"error.type": "GeneratorExit"}
    assert "events" not in line


@pytest.mark.parametrize("error", [ValueError("bad"), asyncio.CancelledError()])
def test_what_the_caller_does_not_want_recorded_is_not(
    telemetry: Captured, error: BaseException
) -> None:
    """`record_exception=False, set_status_on_exception=False` leave `error.type` only."""
    line = failed(telemetry, error, record_exception=False, set_status_on_exception=False)
    assert line["status"] == {"code": "UNSET"}
    assert line["attributes"]["error.type"] == type(error).__name__
    assert "events" not in line


def test_an_exception_is_told_in_every_trace_it_passes(telemetry: Captured) -> None:
    """Once per trace: two traces each have their event, two levels of one trace have one."""
    error = ValueError("shared")

    def work(name: str) -> None:
        with telemetry.tracer.start_as_current_span(name):
            with telemetry.tracer.start_as_current_span(f"inside {name}"):
                raise error

    for name in ("one", "two"):
        with pytest.raises(ValueError, match="shared"):
            work(name)
    events = {line["name"]: len(line.get("events", [])) for line in telemetry.spans}
    assert events == {"inside one": 1, "one": 0, "inside two": 1, "two": 0}


def test_an_exception_recorded_by_hand_is_not_told_again(telemetry: Captured) -> None:
    """`record_exception` in a handler that re-raises gives one event, not two."""

    def work(span: Span) -> None:
        try:
            raise ValueError("bad")
        except ValueError as error:
            span.record_exception(error, {"attempt": 1})
            raise

    with pytest.raises(ValueError, match="bad"):
        with telemetry.tracer.start_as_current_span("a") as span:
            work(span)
    (event,) = telemetry.span("a")["events"]
    assert event["attributes"]["attempt"] == 1


# Life.


def test_a_span_is_written_once_whoever_ends_it(telemetry: Captured) -> None:
    """Eight threads end the same spans at the same time."""
    spans = [telemetry.tracer.start_span(f"span {n}") for n in range(200)]
    barrier = threading.Barrier(8)

    def end_all() -> None:
        barrier.wait()
        for span in spans:
            span.end()

    threads = [threading.Thread(target=end_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(line["name"] for line in telemetry.spans) == sorted(span.name for span in spans)
    assert not telemetry.service.open_spans


def test_a_line_is_one_write_that_ends_in_one_newline(telemetry: Captured) -> None:
    """Whatever text the span holds."""
    span = telemetry.tracer.start_span("a\nb\r\n", attributes={"t": "x\ny\u2028\0"})
    span.end()
    write = telemetry.file.writes[-1]
    assert write.endswith(b"\n")
    assert write.count(b"\n") == 1
    assert telemetry.spans[0]["attributes"] == {"t": "x\ny\u2028\0"}


def test_a_span_that_is_not_sampled_is_quiet() -> None:
    """It keeps its ids, takes nothing, writes nothing, and is never announced as open."""
    with testing.captured(sampler=lambda *_: False, span_start_after_seconds=0) as telemetry:
        span = telemetry.tracer.start_span("a", attributes={"a": 1})
        span.set_attribute("b", 2)
        span.add_event("e")
        span.set_status("ERROR", "x")
        span.record_exception(ValueError())
        context = span.get_span_context()
        is_recording = span.is_recording()
        span.end()
        telemetry.service.sweep()
        spans = [line for line in telemetry.records if line["record_type"] != "process"]
    assert spans == []
    assert not is_recording
    assert context.is_valid
    assert not context.trace_flags.sampled


def test_an_open_span_is_announced_with_what_is_known_so_far() -> None:
    """Its `span_start` and its `span` are the same span; only the end adds end and status."""
    with testing.captured(span_start_after_seconds=5) as telemetry:
        with testing.stepped_clock(START) as clock:
            span = telemetry.tracer.start_span("a", kind=trace.SpanKind.CLIENT)
            span.add_event("e", timestamp=1)
            clock.advance(seconds=6)
            telemetry.service.sweep()
            telemetry.service.sweep()
            span.set_attribute("later", 1)
            span.end()
        start, end = (line for line in telemetry.records if line["record_type"] != "process")
    assert (start["record_type"], end["record_type"]) == ("span_start", "span")
    known = ("trace_id", "span_id", "parent_span_id", "name", "kind", "start_time_unix_nano")
    assert [start[key] for key in (*known, "flags", "events", "resource")] == [
        end[key] for key in (*known, "flags", "events", "resource")
    ]
    assert start["attributes"] == {}
    assert end["attributes"] == {"later": 1}


# Whose work.


def test_a_span_names_its_task_where_its_parent_has_another(telemetry: Captured) -> None:
    """Tasks side by side can be told apart; in their parent's task spans say nothing."""

    async def work(name: str) -> None:
        with telemetry.tracer.start_as_current_span(name):
            with telemetry.tracer.start_as_current_span(f"in {name}"):
                pass

    async def main() -> None:
        with telemetry.tracer.start_as_current_span("parent"):
            await work("own")
            await asyncio.gather(
                asyncio.create_task(work("one"), name="first"),
                asyncio.create_task(work("two"), name="second"),
            )

    asyncio.run(main())
    assert {line["name"]: line["attributes"] for line in telemetry.spans} == {
        "parent": {},
        "own": {},
        "in own": {},
        "one": {"gymlog.task.id": "first"},
        "in one": {},
        "two": {"gymlog.task.id": "second"},
        "in two": {},
    }


def test_a_span_names_its_thread_where_its_parent_has_another(telemetry: Captured) -> None:
    """Whether its parent's work is a task or a thread."""

    def work(name: str) -> None:
        telemetry.tracer.start_span(name).end()

    async def main() -> None:
        with telemetry.tracer.start_as_current_span("parent"):
            await asyncio.to_thread(work, "pooled")

    with telemetry.tracer.start_as_current_span("outer"):
        work("own")
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(work, "threaded"), name="helper")
        thread.start()
        thread.join()
    asyncio.run(main())
    assert telemetry.span("own")["attributes"] == {}
    assert telemetry.span("threaded")["attributes"] == {"gymlog.task.id": "helper"}
    assert telemetry.span("pooled")["attributes"]["gymlog.task.id"].startswith("asyncio_")


def test_a_task_that_cannot_say_its_name(telemetry: Captured) -> None:
    """Work goes on, and can still be told from that of others."""

    class Nameless(asyncio.Task[str]):
        def get_name(self) -> str:
            raise AttributeError("no name")

    async def work(name: str) -> str:
        with telemetry.tracer.start_as_current_span(name):
            return name

    async def main() -> list[str]:
        loop = asyncio.get_running_loop()
        with telemetry.tracer.start_as_current_span("parent"):
            return await asyncio.gather(*(Nameless(work(name), loop=loop) for name in ("a", "b")))

    assert asyncio.run(main()) == ["a", "b"]
    names = {telemetry.span(name)["attributes"]["gymlog.task.id"] for name in ("a", "b")}
    assert len(names) == 2
    assert all(name.startswith("Nameless 0x") for name in names)


def test_no_task_is_named_where_there_is_no_room(telemetry: Captured) -> None:
    """The caller's own attributes come first."""
    with testing.captured(limits=Limits(attributes=1)) as captured:

        def work() -> None:
            captured.tracer.start_span("full", attributes={"a": 1}).end()
            captured.tracer.start_span("empty").end()

        with captured.tracer.start_as_current_span("outer"):
            context = contextvars.copy_context()
            thread = threading.Thread(target=context.run, args=(work,), name="helper")
            thread.start()
            thread.join()
        lines = {line["name"]: line for line in captured.spans}
    assert lines["full"]["attributes"] == {"a": 1}
    assert lines["empty"]["attributes"] == {"gymlog.task.id": "helper"}
