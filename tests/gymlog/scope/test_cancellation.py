"""Work that is cancelled, timed out or interrupted: marked as such, and nothing stays current."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from gymlog import span_cm
from gymlog.generators import current_span
from gymlog.testing import Captured

Parents = Callable[[Captured], dict[str, str | None]]


async def hang() -> None:
    """Wait for what never comes."""
    await asyncio.get_running_loop().create_future()


def test_a_cancelled_task_has_one_record_that_says_so(
    telemetry: Captured,
    block: Callable[[str], Any],
    run: Callable[..., None],
    parents: Parents,
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
        line["attributes"].pop("gymlog.task.id", None)
        assert line["attributes"] == {"error.type": "CancelledError", "gymlog.cancelled": True}
    assert telemetry.span("caller")["status"] == {"code": "UNSET"}


def test_a_timeout_is_told_on_both_sides_of_it(
    telemetry: Captured, block: Callable[[str], Any], run: Callable[..., None]
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


def test_work_that_survives_its_cancellation_is_fine(
    telemetry: Captured, run: Callable[..., None]
) -> None:
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


def test_a_failing_task_group_marks_who_failed_and_who_was_cancelled(
    telemetry: Captured,
    run: Callable[..., None],
    parents: Parents,
) -> None:
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
