"""The same small programs on OpenTelemetry's SDK and on gymlog: what comes out is equal.

A program gets a tracer and may return what it saw. Its spans are brought into one form (ids become
names, times that were not given become "now") and compared field by field. `_comparable` lists
what gymlog does otherwise on purpose; a program that meets more says so beside its name.
"""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, sampling
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, Tracer

from gymlog.samplers import sampler_from
from gymlog.spans import Span
from gymlog.testing import captured
from gymlog.tracer import Tracer as GymlogTracer
from gymlog.tracer import TracerProvider
from gymlog.values import Limits

Comparable = dict[str, Any]  # Any: one JSON value
Program = Callable[[Tracer], object]

REMOTE_TRACE, REMOTE_SPAN = 0xABCDEF0123456789ABCDEF0123456789, 0xABCDEF0123456789
EARLY = 10**15
"""Times below are a program's own; all others are "now"."""


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


# Comparing.


def _comparable(spans: list[Comparable]) -> list[Comparable]:
    """Give ids names, forget times that were not given, leave out what gymlog does on purpose.

    On purpose: `error.type` stands on a span that an exception left; an exception's stack has
    frames without source text; the deprecated `exception.escaped` is not written.
    """
    span_names = {span["span_id"]: span["name"] for span in spans}
    traces: dict[str, int] = {f"{REMOTE_TRACE:032x}": -1}

    def when(time: int) -> object:
        return time if time < EARLY else "now"

    return [
        {
            **span,
            "trace_id": traces.setdefault(span["trace_id"], len(traces)),
            "span_id": None,
            "parent": span_names.get(span["parent"], span["parent"]),
            "start": when(span["start"]),
            "end": when(span["end"]),
            "attributes": without(span["attributes"], "error.type"),
            "events": [
                [name, when(time), without(attributes, "exception.escaped", "exception.stacktrace")]
                for name, time, attributes in span["events"]
            ],
            "links": [
                [traces.setdefault(trace_id, len(traces)), span_names.get(span_id, span_id), *rest]
                for trace_id, span_id, *rest in span["links"]
            ],
        }
        for span in spans
    ]


def without(attributes: Comparable, *keys: str) -> Comparable:
    return {key: value for key, value in attributes.items() if key not in keys}


def plain(attributes: Any) -> Comparable:  # Any: the SDK's mapping
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in attributes.items()
    }


def of_sdk(span: ReadableSpan) -> Comparable:
    """Bring a span of the SDK into the form that `of_line` gives."""
    own, parent = span.get_span_context(), span.parent
    assert own is not None
    return {
        "trace_id": f"{own.trace_id:032x}",
        "span_id": f"{own.span_id:016x}",
        "parent": f"{parent.span_id:016x}" if parent else None,
        "is_parent_remote": bool(parent and parent.is_remote),
        "flags": int(own.trace_flags),
        "trace_state": own.trace_state.to_header(),
        "name": span.name,
        "kind": span.kind.name,
        "start": span.start_time,
        "end": span.end_time,
        "status": [span.status.status_code.name, span.status.description or ""],
        "attributes": plain(span.attributes),
        "events": [[event.name, event.timestamp, plain(event.attributes)] for event in span.events],
        "links": [
            [
                f"{link.context.trace_id:032x}",
                f"{link.context.span_id:016x}",
                plain(link.attributes),
                link.context.trace_state.to_header(),
            ]
            for link in span.links
        ],
        "dropped": [span.dropped_attributes, span.dropped_events, span.dropped_links],
    }


def of_line(line: Comparable) -> Comparable:
    """Bring a span's line into the form that `of_sdk` gives."""
    assert line["flags"] & 0x100, "whether the parent is remote is always known"
    counters = ("dropped_attributes_count", "dropped_events_count", "dropped_links_count")
    return {
        "trace_id": line["trace_id"],
        "span_id": line["span_id"],
        "parent": line["parent_span_id"],
        "is_parent_remote": bool(line["flags"] & 0x200),
        "flags": line["flags"] & 0xFF,
        "trace_state": line.get("trace_state", ""),
        "name": line["name"],
        "kind": line["kind"],
        "start": line["start_time_unix_nano"],
        "end": line["end_time_unix_nano"],
        "status": [line["status"]["code"], line["status"].get("message", "")],
        "attributes": line["attributes"],
        "events": [
            [event["name"], event["time_unix_nano"], event["attributes"]]
            for event in line.get("events", [])
        ],
        "links": [
            [link["trace_id"], link["span_id"], link["attributes"], link.get("trace_state", "")]
            for link in line.get("links", [])
        ],
        "dropped": [line.get(counter, 0) for counter in counters],
    }


def run_on_sdk(
    program: Program, sampler: sampling.Sampler | None = None, limits: SpanLimits | None = None
) -> tuple[list[Comparable], object]:
    exporter = InMemorySpanExporter()
    provider = SdkTracerProvider(
        sampler=sampler or sampling.DEFAULT_ON,
        resource=Resource({}),
        shutdown_on_exit=False,
        span_limits=limits,
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    seen = program(provider.get_tracer("program"))
    return _comparable([of_sdk(span) for span in exporter.get_finished_spans()]), seen


def run_on_gymlog(
    program: Program, sampler: str | None = None, limits: Limits | None = None
) -> tuple[list[Comparable], object]:
    with captured(sampler=sampler_from(sampler, "") if sampler else None, limits=limits) as ours:
        seen = program(ours.provider.get_tracer("program"))
        return _comparable([of_line(line) for line in ours.spans]), seen


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program_gives_what_the_sdk_gives(program: Program) -> None:
    """Spans in their order of ending, field by field, and what the program itself saw."""
    assert run_on_gymlog(program) == run_on_sdk(program)


def test_every_program_is_run() -> None:
    """The table fills itself with what takes a tracer, so it must not be empty by a slip."""
    assert len(PROGRAMS) == 33


def test_a_decorated_call_always_ends_its_span() -> None:
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


def test_an_exception_that_leaves_two_blocks_is_an_event_of_the_inner_one_only() -> None:
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


# Limits.


def over_the_limits(tracer: Tracer) -> None:
    span = tracer.start_span("a", attributes={"a": 1, "b": 2, "c": 3}, links=[])
    span.set_attribute("d", 4)
    span.set_attribute("a", 5)
    far = trace.get_current_span(remote()).get_span_context()
    for n in range(4):
        span.add_event(f"event {n}", {"a": 1, "b": 2, "c": 3})
        span.add_link(far, {"a": 1, "b": 2, "c": 3})
    span.end()


@pytest.mark.parametrize(
    "limit",
    [
        0,
        1,
        2,
        3,
        4,
        9,
    ],
)
def test_a_limit_drops_as_many_as_in_the_sdk(limit: int) -> None:
    """Attributes, events and links: how many stay and how many are counted as dropped."""
    (ours,), _ = run_on_gymlog(
        over_the_limits,
        limits=Limits(
            attributes=limit, events=limit, links=limit, event_attributes=2, link_attributes=1
        ),
    )
    (theirs,), _ = run_on_sdk(
        over_the_limits,
        limits=SpanLimits(
            max_span_attributes=limit,
            max_events=limit,
            max_links=limit,
            max_event_attributes=2,
            max_link_attributes=1,
        ),
    )
    assert [len(ours[field]) for field in ("attributes", "events", "links")] == [
        len(theirs[field]) for field in ("attributes", "events", "links")
    ]
    assert [len(event[2]) for event in ours["events"]] == [
        len(event[2]) for event in theirs["events"]
    ]
    assert [len(link[2]) for link in ours["links"]] == [len(link[2]) for link in theirs["links"]]
    assert ours["dropped"][1:] == theirs["dropped"][1:]
    # The SDK drops "a" for "d" and then "b" for "a"; the specification lets the newcomer go.
    assert ours["dropped"][0] == max(0, 4 - limit) + (limit == 0)


def test_what_came_first_stays_within_a_limit() -> None:
    """The specification drops what is added over the limit; a known key can still be set."""
    (span,), _ = run_on_gymlog(over_the_limits, limits=Limits(attributes=3, events=2))
    assert span["attributes"] == {"a": 5, "b": 2, "c": 3}
    assert [name for name, *_ in span["events"]] == ["event 0", "event 1"]


# Sampling.

SAMPLERS: dict[str, sampling.Sampler] = {
    "always_on": sampling.ALWAYS_ON,
    "always_off": sampling.ALWAYS_OFF,
    "parentbased_always_on": sampling.DEFAULT_ON,
    "parentbased_always_off": sampling.DEFAULT_OFF,
}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("program", [nesting, a_remote_parent, a_started_span_is_not_current])
def test_a_sampler_keeps_what_it_keeps_in_the_sdk(sampler: str, program: Program) -> None:
    """The same spans are written, with the same flags; ids and trace state travel on."""
    ours, theirs = run_on_gymlog(program, sampler), run_on_sdk(program, SAMPLERS[sampler])
    assert ours[0] == theirs[0]
    if program is a_remote_parent:
        assert ours[1] == theirs[1]


# The interfaces.

INTERFACES = [
    (GymlogTracer, trace.Tracer),
    (Span, trace.Span),
    (TracerProvider, trace.TracerProvider),
]


@pytest.mark.parametrize(
    ("ours", "api", "method"),
    [
        (ours, api, name)
        for ours, api in INTERFACES
        for name, member in vars(api).items()
        if inspect.isfunction(member)
        and (not name.startswith("_") or name in ("__enter__", "__exit__"))
    ],
)
def test_a_method_takes_what_the_interface_takes(ours: type, api: type, method: str) -> None:
    """The same parameters, in the same order, with the same defaults."""

    def parameters(of: type) -> list[tuple[str, object]]:
        return [
            (parameter.name, () if parameter.default is None else parameter.default)
            for parameter in inspect.signature(getattr(of, method)).parameters.values()
        ]

    assert issubclass(ours, api)
    assert parameters(ours) == parameters(api)
