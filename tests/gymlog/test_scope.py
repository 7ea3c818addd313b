"""Which span is current where: blocks, generators, tasks, threads, and work that is cancelled.

caller                 "after" is always a child of "caller",
├─ stream              however and wherever "stream" was closed
└─ after
"""

import asyncio
import contextlib
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from gymlog import current_rollout_id, managed_span, rollout_context, span_cm, testing
from gymlog.scope import current_span
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


def run(work: Coroutine[Any, Any, object]) -> None:  # Any: a coroutine of anything
    """Run a coroutine in a loop that calls every error of a callback or a task an error."""
    problems: list[dict[str, Any]] = []  # Any: asyncio's own description

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
        await work

    asyncio.run(main())
    assert problems == []


def parents(telemetry: Captured) -> dict[str, str | None]:
    """Return span name -> name of the parent, of all spans."""
    names = {line["span_id"]: line["name"] for line in telemetry.spans}
    assert len(names) == len(telemetry.spans)
    return {line["name"]: names.get(line["parent_span_id"]) for line in telemetry.spans}


@pytest.fixture(autouse=True)
def nothing_is_left_current(telemetry: Captured) -> Iterator[None]:
    """A test that leaves a span current would change the next one."""
    before = contextvars.copy_context()
    assert current_span() is None
    yield
    assert current_span() is None
    assert len(contextvars.copy_context()) == len(before)


# A block.


def test_a_block_is_left_in_the_context_it_was_entered_in(
    telemetry: Captured, block: Callable[[str], Any]
) -> None:
    """Nested, in sequence, and after an exception."""
    with block("outer") as outer:
        for name in ("one", "two"):
            with contextlib.suppress(ValueError), block(name):
                raise ValueError("bad")
        assert trace.get_current_span() is outer
    assert parents(telemetry) == {"outer": None, "one": "outer", "two": "outer"}


def test_blocks_can_be_left_in_another_order(telemetry: Captured) -> None:
    """ExitStack closes in reverse; a plain pair of enter and exit need not."""
    with contextlib.ExitStack() as stack:
        for name in ("a", "b", "c"):
            stack.enter_context(span_cm(name))
    assert parents(telemetry) == {"a": None, "b": "a", "c": "b"}


# Generators (C03).


def test_a_generator_that_is_left_early(telemetry: Captured, block: Callable[[str], Any]) -> None:
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


def test_a_generator_that_is_left_early_at_the_very_end(telemetry: Captured) -> None:
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
    caplog: pytest.LogCaptureFixture,
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
    caplog: pytest.LogCaptureFixture,
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
    telemetry: Captured, block: Callable[[str], Any]
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


def test_generators_within_generators(telemetry: Captured) -> None:
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


def test_what_runs_within_a_generators_step_is_its_own(telemetry: Captured) -> None:
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


def test_tasks_after_a_generator_that_was_left_early_are_the_callers(telemetry: Captured) -> None:
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


def test_a_generator_that_outlives_its_caller_brings_nothing_back(telemetry: Captured) -> None:
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
    turns: list[str], close: bool
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


# Generators that are context managers mean their consumer's block.


def test_the_block_of_a_contextmanager_is_in_its_span(
    telemetry: Captured, block: Callable[[str], Any]
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
    telemetry: Captured, block: Callable[[str], Any]
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


def test_many_tasks_do_not_mix(telemetry: Captured) -> None:
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


def test_which_calls_carry_the_context_into_a_thread(telemetry: Captured) -> None:
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


def test_a_new_thread_starts_without_a_current_span(telemetry: Captured) -> None:
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


# Cancellation (C08).


async def hang() -> None:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()


def test_a_cancelled_task_has_one_record_that_says_so(
    telemetry: Captured, block: Callable[[str], Any]
) -> None:
    """The cancellation goes on, every open level is ended, the caller's span is current again."""

    async def call() -> None:
        with block("outer"), block("call"):
            await hang()

    async def main() -> None:
        with block("caller") as caller:
            task = asyncio.create_task(call())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert current_span() is caller

    run(main())
    assert parents(telemetry) == {"caller": None, "outer": "caller", "call": "outer"}
    for name in ("call", "outer"):
        line = telemetry.span(name)
        assert line["status"] == {"code": "ERROR", "message": "cancelled"}
        assert line["attributes"] == {"error.type": "CancelledError", "gymlog.cancelled": True}
    assert telemetry.span("caller")["status"] == {"code": "UNSET"}


def test_a_timeout_is_told_on_both_sides_of_it(
    telemetry: Captured, block: Callable[[str], Any]
) -> None:
    """Inside it the work is cancelled, outside it has timed out."""

    async def call() -> None:
        with block("outside"):
            async with asyncio.timeout(0):
                with block("inside"):
                    await hang()

    async def main() -> None:
        with block("caller"):
            with pytest.raises(TimeoutError):
                await call()

    run(main())
    inside, outside = telemetry.span("inside"), telemetry.span("outside")
    assert inside["attributes"] == {"error.type": "CancelledError", "gymlog.cancelled": True}
    assert outside["attributes"] == {"error.type": "TimeoutError"}
    assert outside["status"]["code"] == "ERROR"
    assert telemetry.span("caller")["status"] == {"code": "UNSET"}


def test_work_that_survives_its_cancellation_is_fine(telemetry: Captured) -> None:
    """What was caught inside the block did not leave it."""

    async def call() -> None:
        with span_cm("call"):
            with contextlib.suppress(asyncio.CancelledError):
                await hang()

    async def main() -> None:
        task = asyncio.create_task(call())
        await asyncio.sleep(0)
        task.cancel()
        await task

    run(main())
    assert telemetry.span("call")["status"] == {"code": "UNSET"}
    assert telemetry.span("call")["attributes"] == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1), GeneratorExit()])
def test_whatever_leaves_a_block_goes_on_unchanged(
    telemetry: Captured, block: Callable[[str], Any], error: BaseException
) -> None:
    """One record that names it, and the caller's span is current again."""
    with block("caller") as caller:
        with pytest.raises(type(error)) as caught, block("call"):
            raise error
        assert caught.value is error
        assert current_span() is caller
    line = telemetry.span("call")
    assert line["attributes"] == {"error.type": type(error).__name__}
    assert telemetry.span("caller")["status"] == {"code": "UNSET"}


def test_a_failing_task_group_marks_who_failed_and_who_was_cancelled(telemetry: Captured) -> None:
    """
    caller            ERROR, ExceptionGroup
    ├─ failing        ERROR, ValueError
    └─ waiting        ERROR, cancelled
    """

    async def failing() -> None:
        with span_cm("failing"):
            await asyncio.sleep(0)
            raise ValueError("bad")

    async def waiting() -> None:
        with span_cm("waiting"):
            await hang()

    async def work() -> None:
        with span_cm("caller"):
            async with asyncio.TaskGroup() as group:
                group.create_task(waiting())
                group.create_task(failing())

    async def main() -> None:
        with pytest.raises(ExceptionGroup):
            await work()

    run(main())
    assert parents(telemetry) == {"caller": None, "failing": "caller", "waiting": "caller"}
    types = {line["name"]: line["attributes"]["error.type"] for line in telemetry.spans}
    assert types == {
        "caller": "ExceptionGroup", "failing": "ValueError", "waiting": "CancelledError",
    }  # fmt: skip
    assert telemetry.span("waiting")["attributes"]["gymlog.cancelled"]
