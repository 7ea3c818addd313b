"""Which span is current: in blocks, in tasks, in threads, and in context managers."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from opentelemetry import trace

from gymlog import current_rollout_id, managed_span, rollout_context, span_cm
from gymlog.generators import current_span
from gymlog.testing import Captured

Parents = Callable[[Captured], dict[str, str | None]]


# A block.


def test_a_block_is_left_in_the_context_it_was_entered_in(
    telemetry: Captured,
    block: Callable[[str], Any],
    parents: Parents,
) -> None:
    """Nested, in sequence, and after an exception."""
    with block("outer") as outer:
        for name in ("one", "two"):
            with contextlib.suppress(ValueError), block(name):
                raise ValueError("bad")
        assert trace.get_current_span() is outer
    assert parents(telemetry) == {"outer": None, "one": "outer", "two": "outer"}


def test_blocks_can_be_left_in_another_order(telemetry: Captured, parents: Parents) -> None:
    """ExitStack closes in reverse; a plain pair of enter and exit need not."""
    with contextlib.ExitStack() as stack:
        for name in ("a", "b", "c"):
            stack.enter_context(span_cm(name))
    assert parents(telemetry) == {"a": None, "b": "a", "c": "b"}


# Generators that are context managers mean their consumer's block.


def test_the_block_of_a_contextmanager_is_in_its_span(
    telemetry: Captured,
    block: Callable[[str], Any],
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """Of contextlib, sync and async, nested in each other."""

    @contextlib.contextmanager
    def manager() -> Iterator[None]:
        with block("manager"):
            yield

    @contextlib.asynccontextmanager
    async def async_manager() -> AsyncIterator[None]:
        with block("async manager"):
            with manager():
                yield

    async def main() -> None:
        async with async_manager():
            with block("inside"):
                await asyncio.sleep(0)
        with block("after"):
            pass

    run(main())
    assert parents(telemetry) == {
        "async manager": None, "manager": "async manager", "inside": "manager", "after": None,
    }  # fmt: skip


def test_an_exception_goes_through_a_contextmanager(telemetry: Captured) -> None:
    """It is marked on the manager's span."""

    @contextlib.contextmanager
    def manager() -> Iterator[None]:
        with span_cm("manager"):
            yield

    with pytest.raises(ValueError, match="bad"), manager():
        raise ValueError("bad")
    assert telemetry.span("manager")["status"]["code"] == "ERROR"


# Tasks.


def test_tasks_are_children_of_where_they_were_started(
    telemetry: Captured,
    block: Callable[[str], Any],
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """gather, TaskGroup, and a background task that outlives its parent."""
    background = []

    async def work(name: str) -> None:
        with block(name):
            await asyncio.sleep(0)
            with block(f"in {name}"):
                await asyncio.sleep(0)

    async def main() -> None:
        with block("caller"):
            await asyncio.gather(work("a"), work("b"))
            async with asyncio.TaskGroup() as group:
                group.create_task(work("c"))
                group.create_task(work("d"))
            background.append(asyncio.create_task(work("e")))
        with block("after"):
            await background[0]

    run(main())
    assert parents(telemetry) == {
        "caller": None, "after": None,
        **dict.fromkeys("abcde", "caller"),
        **{f"in {name}": name for name in "abcde"},
    }  # fmt: skip


def test_many_tasks_do_not_mix(telemetry: Captured, run: Callable[..., None]) -> None:
    """Each has its own current span and rollout at every await."""

    async def work(n: int) -> None:
        with rollout_context(f"r-{n}"), span_cm(f"work {n}") as span:
            for step in range(5):
                await asyncio.sleep(0)
                assert current_span() is span
                with span_cm(f"step {n} {step}"):
                    await asyncio.sleep(0)
                    assert current_rollout_id() == f"r-{n}"

    async def main() -> None:
        await asyncio.gather(*(work(n) for n in range(20)))

    run(main())
    assert len({line["trace_id"] for line in telemetry.spans}) == 20
    for line in telemetry.spans:
        assert line["attributes"]["nemo.gym.rollout.id"] == f"r-{line['name'].split()[1]}"


# Threads (C06).


def test_which_calls_carry_the_context_into_a_thread(
    telemetry: Captured,
    run: Callable[..., None],
    parents: Parents,
) -> None:
    """to_thread and a copied context do, a bare executor does not, and never with a stale one.

    One pool thread serves both requests, so that what A left there would be seen in B.
    """

    def cpu(form: str) -> None:
        with managed_span("rollout", f"{form} for {current_rollout_id()}"):
            pass

    async def serve(rollout: str, pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        with rollout_context(rollout), span_cm(f"h{rollout}"):
            copied = contextvars.copy_context()
            await asyncio.to_thread(cpu, "to_thread")
            await loop.run_in_executor(pool, contextvars.copy_context().run, cpu, "copied")
            await loop.run_in_executor(pool, cpu, f"bare, under {rollout},")
        # The caller's span has ended; the work is still its own.
        await loop.run_in_executor(pool, copied.run, cpu, "late")

    async def main() -> None:
        with ThreadPoolExecutor(max_workers=1) as pool:
            asyncio.get_running_loop().set_default_executor(pool)
            for rollout in ("r-A", "r-B"):
                await serve(rollout, pool)

    run(main())
    found = parents(telemetry)
    for rollout in ("r-A", "r-B"):
        for form in ("to_thread", "copied", "late"):
            name = f"{form} for {rollout}"
            assert found[name] == f"h{rollout}"
            assert telemetry.span(name)["attributes"]["nemo.gym.rollout.id"] == rollout
        bare = telemetry.span(f"bare, under {rollout}, for None")
        assert bare["parent_span_id"] is None
        assert "nemo.gym.rollout.id" not in bare["attributes"]
    assert len({line["trace_id"] for line in telemetry.spans}) == 4


def test_a_new_thread_starts_without_a_current_span(telemetry: Captured, parents: Parents) -> None:
    """As contextvars do; a copied context carries it."""

    def work(name: str) -> None:
        with span_cm(name):
            pass

    with span_cm("caller"):
        copied = contextvars.copy_context()
        threads = [
            threading.Thread(target=work, args=("bare",)),
            threading.Thread(target=copied.run, args=(work, "copied")),
        ]
        for thread in threads:
            thread.start()
            thread.join()
    assert parents(telemetry) == {"caller": None, "bare": None, "copied": "caller"}


def test_a_block_that_is_entered_again_is_another_span(telemetry, block):
    """With its own id, attributes and rollout; nothing of the first is left on it."""
    again = block("again")
    with rollout_context("1-0"), again as span:
        span.set_attribute("first", 1)
    with rollout_context("2-0"), again:
        pass
    first, second = telemetry.spans
    assert first["span_id"] != second["span_id"]
    assert first["attributes"] == {"first": 1, "nemo.gym.rollout.id": "1-0"}
    assert second["attributes"] == {"nemo.gym.rollout.id": "2-0"}
