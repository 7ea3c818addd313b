"""Generators: what they open is theirs, what their consumer opens is not.

caller                 "after" is always a child of "caller",
├─ stream              however and wherever "stream" was closed
└─ after
"""

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import span_cm, testing
from gymlog.generators import current_span
from gymlog.testing import Captured

Parents = Callable[[Captured], dict[str, str | None]]


def test_a_generator_that_is_left_early(
    telemetry: Captured,
    block: Callable[[str], Any],
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """One record, not an error, and what comes after is the caller's."""

    async def stream() -> AsyncIterator[int]:
        with block("stream"):
            yield 1
            yield 2

    async def main() -> None:
        with block("caller"):
            async for _ in stream():
                break
            with block("after"):
                pass
            while len(telemetry.spans) < 2:
                await asyncio.sleep(0)

    run(main())
    assert parents(telemetry) == {"caller": None, "stream": "caller", "after": "caller"}
    line = telemetry.span("stream")
    assert line["status"] == {"code": "UNSET"}
    assert line["attributes"] == {"error.type": "GeneratorExit"}
    assert line["end_time_unix_nano"] >= line["start_time_unix_nano"]


def test_a_generator_that_is_left_early_at_the_very_end(
    telemetry: Captured, run: Callable[..., None]
) -> None:
    """The loop ends before it could close the generator: that is no cancelled work either."""

    async def stream() -> AsyncIterator[int]:
        with span_cm("stream"):
            yield 1
            yield 2

    async def main() -> None:
        with span_cm("caller"):
            async for _ in stream():
                break

    run(main())
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}


def test_a_generator_that_is_closed_in_another_task(
    telemetry: Captured, block: Callable[[str], Any], capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture, run: Callable[..., None], parents: Parents,
) -> None:  # fmt: skip
    """`__anext__` in task A, `aclose` in task B: no error, no noise."""

    async def stream() -> AsyncIterator[int]:
        with block("stream"):
            yield 1
            yield 2

    async def main() -> None:
        with block("caller"):
            iterator: Any = stream()  # Any: aclose belongs to generators
            assert await asyncio.create_task(anext(iterator)) == 1
            await asyncio.create_task(iterator.aclose())
            with block("after"):
                pass

    run(main())
    assert parents(telemetry) == {"caller": None, "stream": "caller", "after": "caller"}
    assert telemetry.span("stream")["status"] == {"code": "UNSET"}
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_generator_that_the_loop_closes(
    telemetry: Captured, block: Callable[[str], Any], capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture, run: Callable[..., None], parents: Parents,
) -> None:  # fmt: skip
    """It is dropped, or still held when the loop shuts its generators down."""
    held = []

    async def stream(name: str) -> AsyncIterator[int]:
        with block(name):
            yield 1
            yield 2

    async def main() -> None:
        with block("caller"):
            await anext(stream("dropped"))
            held.append(stream("held"))
            await anext(held[0])
            with block("after"):
                pass

    run(main())
    gc.collect()
    assert parents(telemetry) == {
        "caller": None, "dropped": "caller", "held": "caller", "after": "caller",
    }  # fmt: skip
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_a_suspended_generators_span_is_not_its_consumers(
    telemetry: Captured,
    block: Callable[[str], Any],
    parents: Parents,
) -> None:
    """
    caller
    ├─ stream
    │  └─ step 0, step 1       opened by the generator
    └─ use 0, use 1            opened by its consumer
    """

    def stream() -> Iterator[int]:
        with block("stream"):
            for n in range(2):
                with block(f"step {n}"):
                    pass
                yield n

    with block("caller") as caller:
        for n in stream():
            assert current_span() is caller
            with block(f"use {n}"):
                pass
    assert parents(telemetry) == {
        "caller": None, "stream": "caller",
        "step 0": "stream", "step 1": "stream", "use 0": "caller", "use 1": "caller",
    }  # fmt: skip


def test_generators_within_generators(
    telemetry: Captured,
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """Every level's spans belong to it; the consumer's to the consumer."""

    async def inner() -> AsyncIterator[int]:
        with span_cm("inner"):
            for n in range(2):
                yield n

    async def outer() -> AsyncIterator[int]:
        with span_cm("outer"):
            async for n in inner():
                with span_cm(f"between {n}"):
                    pass
                yield n

    async def main() -> None:
        with span_cm("caller"):
            async for n in outer():
                with span_cm(f"use {n}"):
                    await asyncio.sleep(0)

    run(main())
    assert parents(telemetry) == {
        "caller": None, "outer": "caller", "inner": "outer",
        "between 0": "outer", "between 1": "outer", "use 0": "caller", "use 1": "caller",
    }  # fmt: skip


def test_what_runs_within_a_generators_step_is_its_own(
    telemetry: Captured,
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """Also a function that it calls, and a task that it starts."""

    async def work(name: str) -> None:
        with span_cm(name):
            await asyncio.sleep(0)

    async def stream() -> AsyncIterator[int]:
        with span_cm("stream"):
            await work("called")
            await asyncio.gather(work("task one"), work("task two"))
            yield 1

    async def main() -> None:
        with span_cm("caller"):
            async for _ in stream():
                pass

    run(main())
    found = parents(telemetry)
    assert {found[name] for name in ("called", "task one", "task two")} == {"stream"}


def test_tasks_after_a_generator_that_was_left_early_are_the_callers(
    telemetry: Captured,
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """
    caller
    ├─ stream          left early, closed by the loop in another task
    └─ task            started afterwards
    """

    async def stream() -> AsyncIterator[int]:
        with span_cm("stream"):
            yield 1
            yield 2

    async def work() -> None:
        with span_cm("task"):
            pass

    async def main() -> None:
        with span_cm("caller"):
            async for _ in stream():
                break
            await asyncio.create_task(asyncio.sleep(0))
            assert len(telemetry.spans) == 1
            await asyncio.gather(work())

    run(main())
    assert parents(telemetry) == {"caller": None, "stream": "caller", "task": "caller"}


def test_a_generator_that_outlives_its_caller_brings_nothing_back(
    telemetry: Captured, parents: Parents
) -> None:
    """Its span ends when it is closed; no span is current then, and "after" is a root."""

    def stream() -> Iterator[int]:
        with span_cm("stream"):
            yield 1
            yield 2

    def in_a_thread() -> None:
        iterator: Any = stream()  # Any: close belongs to generators
        with span_cm("caller"):
            next(iterator)
        iterator.close()
        with span_cm("after"):
            pass

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    assert parents(telemetry) == {"caller": None, "stream": "caller", "after": None}


@given(st.lists(st.sampled_from(["one", "two"]), max_size=8), st.booleans())
def test_consumers_that_take_turns_never_get_a_generators_span(
    parents: Parents, turns: list[str], close: bool
) -> None:
    """Two generators advanced in any order: each "use" is the caller's child."""

    def stream(name: str) -> Iterator[int]:
        with span_cm(name):
            yield from range(3)

    def work() -> None:
        with span_cm("caller"):
            streams: dict[str, Any] = {  # Any: close belongs to generators
                name: stream(name) for name in ("one", "two")
            }
            for n, name in enumerate(turns):
                next(streams[name], None)
                with span_cm(f"use {n}"):
                    pass
            if close:
                for iterator in streams.values():
                    iterator.close()
            streams.clear()

    with testing.captured() as telemetry:
        contextvars.Context().run(work)
        found = parents(telemetry)
    assert {found[f"use {n}"] for n in range(len(turns))} <= {"caller"}
    assert found["caller"] is None
