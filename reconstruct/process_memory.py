"""A limit on the memory of a whole process, for what DuckDB's own limit does not count.

One long text or list takes gigabytes beyond it, for example `repeat('x', 2000000000)`. Only for a
process of one's own, such as a command: the limit holds for everything in it.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["memory_at_most"]

_STATM: Final = Path("/proc/self/statm")
_DATA_PAGES: Final = 5
"""Place of the writable pages in it."""
_SLACK: Final = 256 * 1024 * 1024
"""Bytes for what is not the query's: Python, buffers of the output, threads."""


@contextmanager
def memory_at_most(more: int) -> Iterator[None]:
    """Let the process take `more` bytes on top of what it has, for the block.

    An allocation beyond fails, and DuckDB says that it is out of memory. Does nothing where the
    system (macOS) does not tell how much a process has.
    """
    if not _STATM.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    taken = int(_STATM.read_text("ascii").split()[_DATA_PAGES]) * os.sysconf("SC_PAGE_SIZE")
    limits = [limit for limit in before if limit != resource.RLIM_INFINITY]
    lowest = min([taken + more + _SLACK, *limits])
    resource.setrlimit(resource.RLIMIT_DATA, (lowest, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
