"""Which calls carry the context: what the README's table promises of tasks, threads and queues."""

import asyncio
import contextlib
import contextvars
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gymlog import bind, current_rollout_id, rollout_context, span_cm
from gymlog.testing import Captured

Parents = Callable[[Captured], dict[str, str | None]]
Job = Callable[[], Awaitable[None]]


def work(name: str) -> None:
    """Do something, in a span of that name."""
    with span_cm(name):
        pass


@pytest.fixture
def rollouts(telemetry: Captured) -> Callable[[], dict[str, str | None]]:
    """`rollouts()` returns span name -> rollout id."""
    return lambda: {
        line["name"]: line["attributes"].get("nemo.gym.rollout.id") for line in telemetry.spans
    }


def test_callbacks_of_the_loop_are_their_callers(
    telemetry: Captured, parents: Parents, run: Callable[..., None]
) -> None:
    """call_soon, call_later and a future's done callback; the caller's span may have ended."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        late = loop.create_future()
        with span_cm("caller"):
            loop.call_soon(work, "soon")
            loop.call_later(0, work, "later")
            late.add_done_callback(lambda _: work("done"))
        late.set_result(None)
        while len(telemetry.spans) < 4:
            await asyncio.sleep(0)

    run(main())
    assert parents(telemetry) == {
        "caller": None, "soon": "caller", "later": "caller", "done": "caller",
    }  # fmt: skip


def test_bound_functions_in_pools_and_threads(telemetry: Captured, parents: Parents) -> None:
    """As often as they are called, side by side, and after the caller's span has ended."""
    with rollout_context("r-1"), span_cm("caller"):
        bound = bind(work)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(bound, [f"pool {number}" for number in range(20)]))
        pool.submit(work, "bare").result()
    thread = threading.Thread(target=bound, args=("thread",))
    thread.start()
    thread.join()
    found = parents(telemetry)
    assert (found.pop("caller"), found.pop("bare")) == (None, None)
    assert set(found.values()) == {"caller"}
    assert len(found) == 21


def test_a_long_lived_task_belongs_to_who_started_it_its_bound_jobs_to_who_gave_them(
    telemetry: Captured,
    parents: Parents,
    rollouts: Callable[[], dict[str, str | None]],
    run: Callable[..., None],
) -> None:
    """
    first (r-1)    started the worker: bare jobs are its own, whoever gave them
    ├─ first bare, second bare
    └─ first bound
    second (r-2)
    └─ second bound
    """

    async def job(name: str) -> str | None:
        with span_cm(name):
            await asyncio.sleep(0)
            return current_rollout_id()

    async def worker(jobs: asyncio.Queue[Job | None]) -> None:
        while (one := await jobs.get()) is not None:
            await one()

    async def main() -> None:
        jobs: asyncio.Queue[Any] = asyncio.Queue()  # Any: a job or the end
        tasks = []
        for name, rollout_id in (("first", "r-1"), ("second", "r-2")):
            with rollout_context(rollout_id), span_cm(name):
                if not tasks:
                    tasks.append(asyncio.create_task(worker(jobs)))
                bound = bind(job)
                jobs.put_nowait(lambda name=name: job(f"{name} bare"))
                jobs.put_nowait(lambda name=name, bound=bound: bound(f"{name} bound"))
        jobs.put_nowait(None)
        await tasks[0]

    run(main())
    assert parents(telemetry) == {
        "first": None, "second": None, "first bare": "first", "second bare": "first",
        "first bound": "first", "second bound": "second",
    }  # fmt: skip
    assert rollouts()["second bare"] == "r-1"
    assert rollouts()["second bound"] == "r-2"


def test_a_task_in_a_context_of_its_own_belongs_to_nobody(
    telemetry: Captured, parents: Parents, run: Callable[..., None]
) -> None:
    """What a server starts for itself while it serves a request."""

    async def main() -> None:
        async def refresh() -> None:
            work("refresh")

        with rollout_context("r-1"), span_cm("request"):
            await asyncio.create_task(refresh(), context=contextvars.Context())

    run(main())
    assert parents(telemetry) == {"request": None, "refresh": None}
    assert telemetry.span("refresh")["attributes"] == {}


def test_a_bound_coroutine_is_cancelled_and_fails_as_the_plain_one(
    telemetry: Captured, run: Callable[..., None]
) -> None:
    """Its result, its exception and its cancellation go through."""

    @bind
    async def echo(value: object) -> object:
        if isinstance(value, Exception):
            raise value
        with span_cm("echo"):
            await asyncio.sleep(0 if value else 3600)
        return value

    async def main() -> None:
        assert await echo(1) == 1
        with pytest.raises(ValueError, match="bad"):
            await echo(ValueError("bad"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await echo(0)

    run(main())
    assert [line["status"]["code"] for line in telemetry.spans] == ["UNSET", "ERROR"]
    assert telemetry.spans[1]["attributes"]["gymlog.cancelled"] is True


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_eager_tasks(
    telemetry: Captured,
    parents: Parents,
    rollouts: Callable[[], dict[str, str | None]],
    run: Callable[..., None],
) -> None:
    """They begin inside create_task, and are children of their caller all the same.

    caller
    ├─ quick 0 …          never suspended
    ├─ slow 0 …           suspended once
    │  └─ in slow 0 …
    ├─ stream             a generator that an eager task consumes
    └─ after
    """

    async def quick(number: int) -> None:
        with rollout_context(f"r-{number}"), span_cm(f"quick {number}"):
            assert current_rollout_id() == f"r-{number}"

    async def slow(number: int) -> None:
        with rollout_context(f"r-{number}"), span_cm(f"slow {number}"):
            await asyncio.sleep(0)
            work(f"in slow {number}")

    async def stream() -> AsyncIterator[int]:
        with span_cm("stream"):
            yield 1
            yield 2

    async def consume() -> None:
        async for number in stream():
            work(f"consumed {number}")

    async def fail() -> None:
        with span_cm("fails"):
            raise ValueError("bad")

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        with span_cm("caller"):
            async with asyncio.TaskGroup() as group:
                for number in range(3):
                    group.create_task(quick(number))
                    assert current_rollout_id() is None
                    group.create_task(slow(number))
                    assert current_rollout_id() is None
                group.create_task(consume())
            with contextlib.suppress(ValueError):
                await asyncio.create_task(fail())
            work("after")

    run(main())
    found = parents(telemetry)
    assert found.pop("caller") is None
    assert {name: found.pop(f"in {name}") for name in ("slow 0", "slow 1", "slow 2")} == {
        name: name for name in ("slow 0", "slow 1", "slow 2")
    }
    assert set(found.values()) == {"caller"}
    assert len(found) == 11
    assert rollouts()["in slow 2"] == "r-2"
    assert rollouts()["after"] is None
