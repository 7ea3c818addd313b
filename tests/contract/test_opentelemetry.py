"""The same small programs on OpenTelemetry's SDK and on gymlog: what comes out is equal.

A program gets a tracer and may return what it saw. Its spans are brought into one form and
compared field by field (see `conftest.py`); a program that meets more differences says so beside
its name.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import sampling
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, Tracer

Comparable = dict[str, Any]  # Any: one JSON value
Program = Callable[[Tracer], object]
Run = Callable[..., tuple[list[Comparable], object]]

REMOTE_TRACE, REMOTE_SPAN = 0xABCDEF0123456789ABCDEF0123456789, 0xABCDEF0123456789

EARLY = 10**15


def remote(flags: int = 1, *, is_remote: bool = True, state: str = "a=1,b=2") -> Context:
    """Return the context of work asked for by another process."""
    parent = trace.SpanContext(
        REMOTE_TRACE,
        REMOTE_SPAN,
        is_remote,
        trace.TraceFlags(flags),
        trace.TraceState.from_header([state]),
    )
    return trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())


def names(*spans: trace.Span) -> list[object]:
    return [getattr(span, "name", None) for span in spans]


def fail(span: trace.Span, was_current: list[bool]) -> None:
    was_current.append(trace.get_current_span() is span)
    raise ValueError("bad")


def fail_after_ok(span: trace.Span) -> None:
    span.set_status(StatusCode.OK)
    raise ValueError("bad")


# Programs.


def every_kind(tracer: Tracer) -> None:
    for kind in SpanKind:
        tracer.start_span(kind.name.lower(), kind=kind).end()


def attribute_values(tracer: Tracer) -> None:
    span = tracer.start_span("a", attributes={"text": "x", "flag": True, "whole": 3, "part": 0.5})
    span.set_attribute("list", ["a", "b"])
    span.set_attribute("tuple", (1, 2, 3))
    span.set_attribute("text", "again")
    span.set_attributes({"more": 1, "flag": False, "big": 2**63 - 1, "small": -(2**63)})
    span.set_attribute("empty list", [])
    span.end()


def nesting(tracer: Tracer) -> object:
    with tracer.start_as_current_span("root") as root:
        with tracer.start_as_current_span("first") as first:
            tracer.start_span("leaf").end()
            seen = names(trace.get_current_span(), first)
        with tracer.start_as_current_span("second"):
            seen += names(trace.get_current_span())
        seen += names(trace.get_current_span(), root)
    return [*seen, trace.get_current_span().get_span_context().is_valid]


def two_roots_are_two_traces(tracer: Tracer) -> None:
    tracer.start_span("one").end()
    tracer.start_span("two").end()


def a_started_span_is_not_current(tracer: Tracer) -> object:
    span = tracer.start_span("open")
    is_current = trace.get_current_span() is span
    tracer.start_span("other").end()
    span.end()
    return is_current


def links_at_the_start_and_later(tracer: Tracer) -> None:
    other = tracer.start_span("other")
    far = trace.get_current_span(remote()).get_span_context()
    span = tracer.start_span("linked", links=[Link(other.get_span_context(), {"n": 1})])
    span.add_link(far)
    span.add_link(far, {"why": "retry"})
    span.end()
    other.end()


def links_without_a_span(tracer: Tracer) -> None:
    nothing = trace.INVALID_SPAN_CONTEXT
    span = tracer.start_span("linked", links=[Link(nothing), Link(nothing, {"kept": True})])
    span.add_link(nothing)
    span.add_link(nothing, {"kept": "too"})
    span.add_link(trace.SpanContext(0, 0, True, trace_state=trace.TraceState([("a", "1")])))
    span.end()


def events(tracer: Tracer) -> None:
    span = tracer.start_span("a")
    span.add_event("now")
    span.add_event("given", {"n": 1, "list": [1, 2]}, timestamp=77)
    span.add_event("epoch", timestamp=0)
    span.end()


def recorded_exceptions(tracer: Tracer) -> None:
    span = tracer.start_span("a")
    span.record_exception(ValueError("bad"))
    span.record_exception(KeyError("k"), {"attempt": 2}, timestamp=5)
    span.record_exception(ValueError("x"), {"exception.message": "mine", "exception.type": "T"})
    span.end()


def statuses(tracer: Tracer) -> None:
    ok, error, unset = StatusCode.OK, StatusCode.ERROR, StatusCode.UNSET
    orders: dict[str, list[tuple[StatusCode, str | None]]] = {
        "nothing": [],
        "error": [(error, None)],
        "error with message": [(error, "why")],
        "error with empty message": [(error, "")],
        "ok": [(ok, None)],
        "unset never overrides": [(error, "why"), (unset, None)],
        "error overrides error": [(error, "first"), (error, "second")],
        "error without message overrides": [(error, "first"), (error, None)],
        "ok overrides error": [(error, "why"), (ok, None)],
        "ok is final": [(ok, None), (error, "why"), (unset, None)],
    }
    for name, calls in orders.items():
        span = tracer.start_span(name)
        for code, description in calls:
            span.set_status(code, description)
        span.end()
        span = tracer.start_span(f"{name}, as Status")
        for code, description in calls:
            span.set_status(Status(code, description))
        span.end()


def only_an_error_has_a_message(tracer: Tracer) -> None:
    span = tracer.start_span("ok")
    span.set_status(StatusCode.OK, "ignored")
    span.end()
    span = tracer.start_span("beside a Status")
    span.set_status(Status(StatusCode.ERROR, "counts"), "ignored")
    span.end()


def another_name(tracer: Tracer) -> None:
    span = tracer.start_span("before")
    span.update_name("after")
    span.end()


def given_times(tracer: Tracer) -> None:
    tracer.start_span("a", start_time=100).end(end_time=250)
    tracer.start_span("epoch", start_time=0).end(end_time=0)
    tracer.start_span("backwards", start_time=9).end(end_time=4)
    with tracer.start_as_current_span("block", start_time=7):
        pass


def only_the_first_end_counts(tracer: Tracer) -> None:
    span = tracer.start_span("a", start_time=1)
    span.end(end_time=2)
    span.end(end_time=3)
    with tracer.start_as_current_span("b") as inside:
        inside.end(end_time=4)


def nothing_is_taken_after_the_end(tracer: Tracer) -> object:
    span = tracer.start_span("a", attributes={"kept": 1})
    recording = [span.is_recording()]
    span.end()
    span.set_attribute("late", 1)
    span.set_attributes({"kept": 2})
    span.add_event("late")
    span.add_link(trace.get_current_span(remote()).get_span_context())
    span.set_status(StatusCode.ERROR)
    span.record_exception(ValueError())
    span.update_name("late")
    return [*recording, span.is_recording()]


def a_context_names_the_parent(tracer: Tracer) -> None:
    outer = tracer.start_span("outer")
    with tracer.start_as_current_span("current"):
        tracer.start_span("by context", context=trace.set_span_in_context(outer)).end()
        tracer.start_span("of the empty context", context=Context()).end()
        with tracer.start_as_current_span("block", context=trace.set_span_in_context(outer)):
            tracer.start_span("inside").end()
    outer.end()


def a_block_keeps_the_rest_of_the_current_context(tracer: Tracer) -> object:
    """The context of `context=` gives the parent only; what is current stays."""
    token = context.attach(baggage.set_baggage("who", "me"))
    with tracer.start_as_current_span("block", context=Context()):
        inside = dict(baggage.get_all())
    after = dict(baggage.get_all())
    context.detach(token)
    return [inside, after]


def baggage_set_in_a_block_is_undone_with_it(tracer: Tracer) -> object:
    with tracer.start_as_current_span("block"):
        token = context.attach(baggage.set_baggage("who", "me"))
        tracer.start_span("inside").end()
        inside = dict(baggage.get_all())
        is_current = trace.get_current_span().is_recording()
        context.detach(token)
    return [inside, is_current, dict(baggage.get_all())]


def a_remote_parent(tracer: Tracer) -> object:
    seen: list[object] = []
    for flags in (0, 1, 2, 3):
        parent = remote(flags)
        with tracer.start_as_current_span(f"flags {flags}", context=parent) as span:
            own = span.get_span_context()
            seen.append([own.is_remote, int(own.trace_flags), own.trace_state.to_header()])
            seen.append(own.trace_id == REMOTE_TRACE)
            tracer.start_span(f"child {flags}").end()
    return seen


def a_parent_that_only_carries_ids(tracer: Tracer) -> None:
    tracer.start_span("a", context=remote(is_remote=False, state="")).end()


def an_invalid_parent_is_none(tracer: Tracer) -> None:
    with tracer.start_as_current_span("current"):
        tracer.start_span("a", context=trace.set_span_in_context(trace.INVALID_SPAN)).end()
    half = trace.SpanContext(REMOTE_TRACE, 0, True, trace.TraceFlags(1))
    tracer.start_span(
        "b", context=trace.set_span_in_context(trace.NonRecordingSpan(half), Context())
    ).end()


def use_span(tracer: Tracer) -> object:
    span = tracer.start_span("span")
    with trace.use_span(span):
        tracer.start_span("child").end()
        inside = trace.get_current_span() is span
    still_open = span.is_recording()
    with trace.use_span(span, end_on_exit=True):
        tracer.start_span("second child").end()
    return [inside, still_open, span.is_recording()]


def exceptions_through_use_span(tracer: Tracer) -> None:
    for record, status in ((True, True), (True, False), (False, True), (False, False)):
        span = tracer.start_span(f"{record} {status}")
        with (
            pytest.raises(ValueError, match="bad"),
            trace.use_span(
                span, end_on_exit=True, record_exception=record, set_status_on_exception=status
            ),
        ):
            raise ValueError("bad")


def exceptions_through_blocks(tracer: Tracer) -> None:
    for record, status in ((True, True), (True, False), (False, True), (False, False)):
        with (
            pytest.raises(ValueError, match="bad"),
            tracer.start_as_current_span(
                f"{record} {status}", record_exception=record, set_status_on_exception=status
            ),
        ):
            raise ValueError("bad")


def exceptions_through_the_span_itself(tracer: Tracer) -> object:
    seen: list[bool] = []
    for record, status in ((True, True), (True, False), (False, True), (False, False)):
        with (
            pytest.raises(ValueError, match="bad"),
            tracer.start_span(
                f"{record} {status}", record_exception=record, set_status_on_exception=status
            ) as span,
        ):
            fail(span, seen)
    return seen


def an_exception_after_ok(tracer: Tracer) -> None:
    with pytest.raises(ValueError, match="bad"), tracer.start_as_current_span("a") as span:
        fail_after_ok(span)


def a_handled_exception_leaves_the_outer_block_alone(tracer: Tracer) -> None:
    with tracer.start_as_current_span("outer"):
        with pytest.raises(ValueError, match="bad"), tracer.start_as_current_span("inner"):
            raise ValueError("bad")


def a_block_that_does_not_end_its_span(tracer: Tracer) -> object:
    with tracer.start_as_current_span("a", end_on_exit=False) as span:
        pass
    state = [span.is_recording(), trace.get_current_span() is span]
    span.set_attribute("later", True)
    span.end()
    return state


def an_exception_through_a_block_that_does_not_end_its_span(tracer: Tracer) -> object:
    with (
        pytest.raises(ValueError, match="bad"),
        tracer.start_as_current_span("a", end_on_exit=False) as span,
    ):
        raise ValueError("bad")
    recording = span.is_recording()
    span.end()
    return recording


def decorated_function(tracer: Tracer) -> object:
    @tracer.start_as_current_span("work", kind=SpanKind.CLIENT, attributes={"n": 1})
    def work(a: int, *, b: int = 2) -> object:
        """Do it."""
        tracer.start_span("inside").end()
        return [a, b]

    return [
        work(1),
        work(2, b=3),
        work.__name__,
        work.__doc__,
        trace.get_current_span().is_recording(),
    ]


def decorated_coroutine(tracer: Tracer) -> object:
    @tracer.start_as_current_span("work")
    async def work(a: int) -> object:
        await asyncio.sleep(0)
        tracer.start_span(f"inside {a}").end()
        return a

    async def main() -> object:
        return await asyncio.gather(work(1), work(2))

    return [asyncio.run(main()), inspect.iscoroutinefunction(work)]


def decorated_and_failing(tracer: Tracer) -> None:
    @tracer.start_as_current_span("work", record_exception=False)
    def work() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        work()


def span_contexts_are_values(tracer: Tracer) -> object:
    one, two = tracer.start_span("one"), tracer.start_span("two")
    equal = one.get_span_context() == one.get_span_context()
    different = one.get_span_context() == two.get_span_context()
    one.end()
    two.end()
    after = one.get_span_context() == one.get_span_context()
    return [equal, different, after, one.get_span_context().is_valid]


PROGRAMS: dict[str, Program] = {
    name: program
    for name, program in list(globals().items())
    if inspect.isfunction(program)
    and program.__module__ == __name__
    and list(inspect.signature(program).parameters) == ["tracer"]
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program_gives_what_the_sdk_gives(
    program: Program, run_on_sdk: Run, run_on_gymlog: Run
) -> None:
    """Spans in their order of ending, field by field, and what the program itself saw."""
    assert run_on_gymlog(program) == run_on_sdk(program)


def test_every_program_is_run() -> None:
    """The table fills itself with what takes a tracer, so it must not be empty by a slip."""
    assert len(PROGRAMS) == 33


def test_a_decorated_call_always_ends_its_span(run_on_sdk: Run, run_on_gymlog: Run) -> None:
    """On purpose: with `end_on_exit=False` nobody could, for nobody else has the span."""

    def decorated_without_an_end(tracer: Tracer) -> object:
        spans = []

        @tracer.start_as_current_span("work", end_on_exit=False)
        def work() -> None:
            spans.append(trace.get_current_span())

        work()
        recording = [span.is_recording() for span in spans]
        for span in spans:
            span.end()
        return recording

    ours, theirs = run_on_gymlog(decorated_without_an_end), run_on_sdk(decorated_without_an_end)
    assert ours[0] == theirs[0]
    assert (ours[1], theirs[1]) == ([False], [True])


def test_an_exception_that_leaves_two_blocks_is_an_event_of_the_inner_one_only(
    run_on_sdk: Run, run_on_gymlog: Run
) -> None:
    """On purpose: each level repeats kilobytes in the SDK. Statuses are equal."""

    def an_exception_through_two_blocks(tracer: Tracer) -> None:
        with pytest.raises(ValueError, match="bad"), tracer.start_as_current_span("outer"):
            with tracer.start_as_current_span("inner"):
                raise ValueError("bad")

    ours, _ = run_on_gymlog(an_exception_through_two_blocks)
    theirs, _ = run_on_sdk(an_exception_through_two_blocks)
    assert [len(span["events"]) for span in theirs] == [1, 1]
    assert [len(span["events"]) for span in ours] == [1, 0]
    assert [span | {"events": []} for span in ours] == [span | {"events": []} for span in theirs]


# Sampling.

SAMPLERS: dict[str, sampling.Sampler] = {
    "always_on": sampling.ALWAYS_ON,
    "always_off": sampling.ALWAYS_OFF,
    "parentbased_always_on": sampling.DEFAULT_ON,
    "parentbased_always_off": sampling.DEFAULT_OFF,
}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("program", [nesting, a_remote_parent, a_started_span_is_not_current])
def test_a_sampler_keeps_what_it_keeps_in_the_sdk(
    sampler: str, program: Program, run_on_sdk: Run, run_on_gymlog: Run
) -> None:
    """The same spans are written, with the same flags; ids and trace state travel on."""
    ours, theirs = run_on_gymlog(program, sampler), run_on_sdk(program, SAMPLERS[sampler])
    assert ours[0] == theirs[0]
    if program is a_remote_parent:
        assert ours[1] == theirs[1]
