"""The limits of OpenTelemetry, and its interfaces: what they keep, drop and take."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.trace import Tracer

from gymlog.spans import Span
from gymlog.tracer import Tracer as GymlogTracer
from gymlog.tracer import TracerProvider
from gymlog.values import Limits

Comparable = dict[str, Any]  # Any: one JSON value
Run = Callable[..., tuple[list[Comparable], object]]

REMOTE = trace.SpanContext(1, 1, is_remote=True)


def over_the_limits(tracer: Tracer) -> None:
    span = tracer.start_span("a", attributes={"a": 1, "b": 2, "c": 3}, links=[])
    span.set_attribute("d", 4)
    span.set_attribute("a", 5)
    for n in range(4):
        span.add_event(f"event {n}", {"a": 1, "b": 2, "c": 3})
        span.add_link(REMOTE, {"a": 1, "b": 2, "c": 3})
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
def test_a_limit_drops_as_many_as_in_the_sdk(
    limit: int, run_on_sdk: Run, run_on_gymlog: Run
) -> None:
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


def test_what_came_first_stays_within_a_limit(run_on_gymlog: Run) -> None:
    """The specification drops what is added over the limit; a known key can still be set."""
    (span,), _ = run_on_gymlog(over_the_limits, limits=Limits(attributes=3, events=2))
    assert span["attributes"] == {"a": 5, "b": 2, "c": 3}
    assert [name for name, *_ in span["events"]] == ["event 0", "event 1"]


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
