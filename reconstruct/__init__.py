"""Traces from logs: reads the lines of a gym's servers and answers where the time went.

    with reconstruct.open("logs/*.log") as run:
        slow = run.rollouts.polars().sort("duration_ns").tail(3)

Importing this package loads nothing heavy; the command line is in `reconstruct.cli`.
"""

from typing import TYPE_CHECKING, Any

from reconstruct.errors import (
    DestinationError,
    InputError,
    ReconstructError,
    SqlError,
    UsageError,
)

if TYPE_CHECKING:
    from reconstruct.run import Paths, Relation, Result, Run, Spans, Store

__all__ = [
    "DestinationError",
    "InputError",
    "ReconstructError",
    "Relation",
    "Result",
    "Run",
    "Spans",
    "SqlError",
    "UsageError",
    "open",
]


def open(  # noqa: A001  # read as `reconstruct.open`
    paths: "Paths" = ".",
    *,
    memory_limit: str | None = None,
    wrapper: str | None = None,
    store: "Store" = False,
) -> "Run":
    """Read logs: files, folders, globs, or `-` for stdin; one or several.

    `memory_limit` is DuckDB's, for example `4GB`; what is beyond is spilled into a private folder.
    `wrapper` is the command line's `--wrapper`. `store` is a folder to keep what was read in, so
    that only what is new is read the next time; True is `.reconstruct` beside large logs. Raises
    `InputError` when there is nothing to read.
    """
    from reconstruct.run import Run

    return Run.read(paths, memory_limit=memory_limit, wrapper=wrapper, store=store)


def __getattr__(name: str) -> Any:  # Any: the attribute of another module
    if name not in __all__:
        raise AttributeError(f"module 'reconstruct' has no attribute '{name}'")
    from reconstruct import run

    return getattr(run, name)
