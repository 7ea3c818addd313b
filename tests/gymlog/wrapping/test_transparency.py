"""A decorated generator behaves as the plain one, whatever its consumer does."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gymlog import testing, trace_fn
from gymlog.generators import current_span
from gymlog.testing import Captured

OpenNames = Callable[[Captured], list[str]]


class Log:
    """A generator that tells everything that happens to it, and what a driver saw of it."""

    def __init__(self) -> None:
        self.entries: list[object] = []

    def work(self, items: int) -> Generator[int, object, str]:
        try:
            for n in range(items):
                try:
                    self.entries.append(("sent", (yield n)))
                except KeyError as error:
                    self.entries.append(("caught", error.args))
                    yield -1
        except BaseException as error:
            self.entries.append(("leaves", type(error), error.args))
            raise
        finally:
            self.entries.append("finally")
        return "result"

    async def async_work(self, items: int) -> AsyncGenerator[int, object]:
        generator = self.work(items)
        step: Callable[[], int] = lambda: next(generator)  # noqa: E731 - replaced below
        while True:
            try:
                item = step()
            except StopIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                generator.close()
                raise
            except BaseException as error:
                step = functools.partial(generator.throw, error)
            else:
                step = functools.partial(generator.send, sent)


ACTIONS = st.lists(st.sampled_from(["next", "send", "KeyError", "ValueError", "close"]), max_size=6)


def drive(log: Log, generator: Any, actions: list[str]) -> list[object]:  # Any: a generator
    """Do `actions` to a generator as any consumer may."""
    for action in actions:
        with contextlib.suppress(Exception):
            try:
                if action == "next":
                    log.entries.append(("got", next(generator)))
                elif action == "send":
                    log.entries.append(("got", generator.send("x")))
                elif action == "close":
                    generator.close()
                else:
                    error = {"KeyError": KeyError, "ValueError": ValueError}[action](action)
                    log.entries.append(("got", generator.throw(error)))
            except BaseException as error:
                log.entries.append(("raised", type(error), error.args))
                raise
    generator.close()
    return log.entries


async def drive_async(log: Log, generator: Any, actions: list[str]) -> list[object]:
    # Any: an async generator
    for action in actions:
        with contextlib.suppress(Exception):
            try:
                if action == "next":
                    log.entries.append(("got", await anext(generator)))
                elif action == "send":
                    log.entries.append(("got", await generator.asend("x")))
                elif action == "close":
                    await generator.aclose()
                else:
                    error = {"KeyError": KeyError, "ValueError": ValueError}[action](action)
                    log.entries.append(("got", await generator.athrow(error)))
            except BaseException as error:
                log.entries.append(("raised", type(error), error.args))
                raise
    await generator.aclose()
    return log.entries


@given(actions=ACTIONS, items=st.integers(0, 3), is_open=st.booleans())
def test_a_decorated_generator_behaves_as_the_plain_one(
    actions: list[str], items: int, is_open: bool, open_names: OpenNames
) -> None:
    """next, send, throw and close in any order, gate open or closed: nobody sees a difference.

    And no span stays open or current.
    """
    plain, decorated = Log(), Log()
    with testing.captured("all" if is_open else "default") as telemetry:
        work = trace_fn("verify", "work")(decorated.work)
        assert drive(decorated, work(items), actions) == drive(plain, plain.work(items), actions)
        assert open_names(telemetry) == []
        assert len(telemetry.spans) <= is_open
    assert current_span() is None


@settings(max_examples=50)  # each starts an event loop
@given(actions=ACTIONS, items=st.integers(0, 3), is_open=st.booleans())
def test_a_decorated_async_generator_behaves_as_the_plain_one(
    actions: list[str], items: int, is_open: bool, open_names: OpenNames
) -> None:
    """As above."""
    plain, decorated = Log(), Log()

    async def main() -> None:
        work = trace_fn("verify", "work")(decorated.async_work)
        seen = await drive_async(decorated, work(items), actions)
        assert seen == await drive_async(plain, plain.async_work(items), actions)

    with testing.captured("all" if is_open else "default") as telemetry:
        asyncio.run(main())
        assert open_names(telemetry) == []
        assert len(telemetry.spans) <= is_open
    assert current_span() is None
