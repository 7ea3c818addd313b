"""The rows that a file is made of, streamed from the engine in an order that is always the same."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from reconstruct.safe_sql import Limits

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["ALIASES", "NO_LIMITS", "ORDERS", "Row", "rows_of"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
NO_LIMITS: Final = Limits(timeout_seconds=threading.TIMEOUT_MAX)
"""A file takes as long as it takes."""
ALIASES: Final = {"spans": "span", "traces": "trace", "rollouts": "rollout"}
ORDERS: Final = {
    "spans": "trace_id, start_time_unix_nano, span_id, occurrence",
    "log_records": "time_unix_nano, instance, seq, file, line, body",
    "metric_points": "time_unix_nano, name, instance, seq, file, line, attributes, value",
}


def rows_of(
    engine: "Engine",
    relation: str,
    condition: str,
    parameters: Mapping[str, object],
    *,
    redacted: Callable[[Row], Row],
) -> Iterator[Row]:
    """Yield the rows of a relation in its order of `ORDERS`; JSON columns are text."""
    alias = ALIASES.get(relation, "row")
    sql = f"SELECT * FROM {relation} AS {alias} WHERE {condition} ORDER BY {ORDERS[relation]}"
    with engine.answer(sql, parameters or None, limits=NO_LIMITS) as answer:
        for batch in answer.arrow(has_json=False):
            yield from map(redacted, batch.to_pylist())
