"""Taking the context along where Python does not: threads, pools, callbacks of other loops."""

from collections.abc import Callable
from contextvars import copy_context
from typing import ParamSpec, TypeVar

__all__ = ["bind"]

P = ParamSpec("P")
R = TypeVar("R")


def bind(function: Callable[P, R]) -> Callable[P, R]:
    """Return `function` bound to the context of now: span, rollout, and every context variable.

    For `executor.submit(bind(f), …)`, `loop.run_in_executor(None, bind(f))` and
    `Thread(target=bind(f))`. Each call runs in a copy of its own, so calls may overlap and leave
    nothing behind; the spans of `function` are children of the span that is current here, also
    when that has ended by then.
    """
    context = copy_context()

    def bound(*args: P.args, **kwargs: P.kwargs) -> R:
        return context.copy().run(function, *args, **kwargs)

    return bound
