"""Wall-clock nanoseconds that never run backwards within a span.

A time is the monotonic clock plus an offset measured once, so all times of a process are in one
order and a stepped wall clock makes no negative or false duration. The offset follows the wall
clock when that has been stepped (`reanchor`, called by the sweep); a span keeps the offset it
started with. Tests replace `monotonic_ns` and `offset`.
"""

import time

__all__ = ["monotonic_ns", "now", "offset", "reanchor"]

_STEP_NS = 1_000_000
"""A difference below this is measuring noise; NTP's slewing moves both clocks alike."""

monotonic_ns = time.monotonic_ns


def _measure() -> int:
    """Return wall minus monotonic clock in ns, from the least disturbed of five readings."""
    best = (1 << 63, 0)
    for _ in range(5):
        before = monotonic_ns()
        wall = time.time_ns()
        after = monotonic_ns()
        best = min(best, (after - before, wall - (before + after) // 2))
    return best[1]


offset = _measure()
"""ns to add to `monotonic_ns()`."""


def now() -> int:
    """Return ns since 1970."""
    return monotonic_ns() + offset


def reanchor() -> bool:
    """Follow the wall clock if it was stepped by 1 ms or more; say whether it was."""
    global offset
    measured = _measure()
    if abs(measured - offset) < _STEP_NS:
        return False
    offset = measured
    return True
