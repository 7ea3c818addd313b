"""A bell is heard, also when it rang before anyone waited."""

import threading
import time

from reconstruct.live.bell import Bell


def test_a_ring_ends_the_wait():
    """From another thread, or earlier; however often it rang, it is quiet afterwards."""
    bell = Bell()
    thread = threading.Thread(target=bell.ring)
    thread.start()
    begun = time.monotonic()
    bell.wait(60)
    thread.join()
    for _ in range(100_000):
        bell.ring()
    bell.wait(60)
    assert time.monotonic() - begun < 50
    bell.quiet()
    begun = time.monotonic()
    bell.wait(0.01)
    assert time.monotonic() - begun >= 0.01
