"""Fixtures of the tests of what is current."""

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from gymlog import managed_span, span_cm
from gymlog.generators import current_span
from gymlog.testing import Captured

Block = Callable[[Captured, str], contextlib.AbstractContextManager[Any]]  # Any: whichever span

BLOCKS: dict[str, Block] = {
    "managed_span": lambda _, name: managed_span("rollout", name),
    "span_cm": lambda _, name: span_cm(name),
    "start_as_current_span": lambda telemetry, name: telemetry.tracer.start_as_current_span(name),
    "of a library": lambda telemetry, name: telemetry.provider.get_tracer(
        "library"
    ).start_as_current_span(name),
}


@pytest.fixture(params=list(BLOCKS.values()), ids=list(BLOCKS))
def block(request: pytest.FixtureRequest, telemetry: Captured) -> Callable[[str], Any]:
    """Each of the ways to open a span for a block."""
    open_block: Block = request.param
    return lambda name: open_block(telemetry, name)


@pytest.fixture(scope="session")
def run() -> Callable[..., None]:
    """`run(work())` runs a coroutine in a loop that takes no error of a callback or a task."""

    def run(work: Coroutine[Any, Any, object]) -> None:  # Any: a coroutine of anything
        problems: list[dict[str, Any]] = []  # Any: asyncio's own description

        async def main() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
            await work

        asyncio.run(main())
        assert problems == []

    return run


@pytest.fixture(autouse=True)
def nothing_is_left_current(telemetry: Captured) -> Iterator[None]:
    """A test that leaves a span current would change the next one."""
    before = contextvars.copy_context()
    assert current_span() is None
    yield
    assert current_span() is None
    assert len(contextvars.copy_context()) == len(before)
