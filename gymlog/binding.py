"""Taking the context along where Python does not: threads, pools, other loops, other processes."""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar, cast

from gymlog.rollout import is_valid_rollout_id, reset, set_rollout_id
from gymlog.semconv import ROLLOUT_ID

__all__ = ["bind", "carried", "carrier"]

P = ParamSpec("P")
R = TypeVar("R")


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` bound to the context of now: span, rollout, and every context variable.

    For `executor.submit(bind(f), …)`, `loop.run_in_executor(None, bind(f))`,
    `Thread(target=bind(f))`, and for a job that a long-lived task does. Each call runs in a copy of
    its own, so calls may overlap and leave nothing behind; the spans of `function` are children of
    the span that is current here, also when that has ended by then. A coroutine function stays
    one; each of its calls is a task.
    """
    import inspect

    context = copy_context()

    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    async def bound_coroutine(*args: P.args, **kwargs: P.kwargs) -> Any:  # Any: what R awaits to
        import asyncio

        coroutine = cast("Coroutine[Any, Any, Any]", function(*args, **kwargs))
        return await asyncio.create_task(coroutine, context=context.copy())

    if inspect.iscoroutinefunction(function):
        return cast("Callable[P, R]", bound_coroutine)
    return bound


def carrier() -> dict[str, str]:
    """Return the context of now as W3C headers: span, rollout and baggage, all of it text.

    For work that another process does without HTTP: an argument of a remote function or of a
    spawned process, a field of a message in a queue. That process opens `carried` with it.
    """
    from gymlog.propagation import inject_current

    headers: dict[str, str] = {}
    inject_current(headers)
    return headers


@contextmanager
def carried(headers: Mapping[str, str]) -> Iterator[None]:
    """Make a block work of whoever took `headers` from `carrier`, in this process or another.

    Spans in the block are children of the span that was current there, in its rollout. Headers
    that break a rule of W3C's are passed over, as in a request.
    """
    from opentelemetry import baggage, context

    from gymlog.propagation import Propagator

    extracted = Propagator().extract(headers)
    rollout_id = baggage.get_baggage(ROLLOUT_ID, extracted)
    # Where the headers have none it is what the host put into its baggage, whatever that is.
    is_one = isinstance(rollout_id, str) and is_valid_rollout_id(rollout_id)
    rollout = set_rollout_id(str(rollout_id)) if is_one else None
    token = context.attach(extracted)
    try:
        yield
    finally:
        context.detach(token)
        if rollout is not None:
            reset(rollout)
