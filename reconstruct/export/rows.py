"""The rows that a file is made of, streamed from the engine in an order that is always the same."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from reconstruct.safe_sql import Limits

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["ALIASES", "NO_LIMITS", "Row", "span_rows"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
NO_LIMITS: Final = Limits(timeout_seconds=threading.TIMEOUT_MAX)
"""A file takes as long as it takes."""
ALIASES: Final = {"spans": "span", "traces": "trace", "rollouts": "rollout"}
_ORDER: Final = "trace_id, start_time_unix_nano, span_id, occurrence"


def span_rows(
    engine: "Engine",
    condition: str,
    parameters: Mapping[str, object],
    *,
    redacted: Callable[[Row], Row],
) -> Iterator[Row]:
    """Yield the rows of `spans`, trace by trace, by start; JSON columns are text.

    `condition` is SQL over `span`.
    """
    sql = f"SELECT * FROM spans AS span WHERE {condition} ORDER BY {_ORDER}"
    with engine.answer(sql, parameters or None, limits=NO_LIMITS) as answer:
        for batch in answer.arrow(has_json=False):
            yield from map(redacted, batch.to_pylist())
