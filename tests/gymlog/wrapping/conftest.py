"""Fixtures of the tests of decorated functions."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gymlog import trace_fn
from gymlog.generators import current_span
from gymlog.testing import Captured

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]  # Any: functions of every kind

DECORATORS: dict[str, Callable[[Captured, str], Decorator]] = {
    "trace_fn": lambda _, name: trace_fn("rollout", name),
    "start_as_current_span": lambda telemetry, name: telemetry.tracer.start_as_current_span(name),
}


@pytest.fixture(params=list(DECORATORS.values()), ids=list(DECORATORS))
def traced(request: pytest.FixtureRequest, telemetry: Captured) -> Callable[[str], Decorator]:
    """Both ways to decorate."""
    return functools.partial(request.param, telemetry)


@pytest.fixture(autouse=True)
def nothing_is_left_current() -> Iterator[None]:
    """Whatever a test does with a generator, no span stays current."""
    assert current_span() is None
    yield
    assert current_span() is None


@pytest.fixture(scope="session")
def open_names() -> Callable[[Captured], list[str]]:
    """`open_names(telemetry)` returns the names of the open spans, the oldest first."""
    return lambda telemetry: [span.name for span in telemetry.service.open_spans.values()]
