"""Trace and span ids: random, lower-case hex, never from the program's own generator.

A seeded program must not repeat ids, and drawing ids must not move the program's random numbers,
so the generator is private and seeded by the operating system, anew in every forked child.
Ids are drawn in batches: about 80 ns each.
"""

import os
from random import Random

__all__ = ["new_span_id", "new_trace_id"]

_BATCH = 256

_random = Random()
_span_ids: list[str] = []
_trace_ids: list[str] = []


def new_span_id() -> str:
    """Return 16 hex digits, not all zero."""
    try:
        return _span_ids.pop()
    except IndexError:
        _refill(_span_ids, 8)
        return new_span_id()


def new_trace_id() -> str:
    """Return 32 hex digits, not all zero, all of them random (W3C's random-trace-id flag holds)."""
    try:
        return _trace_ids.pop()
    except IndexError:
        _refill(_trace_ids, 16)
        return new_trace_id()


def _refill(pool: list[str], size: int) -> None:
    """Draw ids of `size` bytes."""
    ids = _random.randbytes(size * _BATCH).hex(" ", size).split()
    pool.extend(drawn for drawn in ids if drawn.strip("0"))


def _start_anew() -> None:
    _random.seed()
    _span_ids.clear()
    _trace_ids.clear()


os.register_at_fork(after_in_child=_start_anew)
