"""Which spans a page shows: a rollout, a trace, the slowest rollouts, a run, or all there is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconstruct.errors import ReconstructError

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["Choice", "everything", "slowest", "traces_of"]

_TRACES: Final = """
    SELECT
        trace_id,
        run_id,
        span_count
    FROM traces
    WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
    ORDER BY start_time_unix_nano, trace_id
"""
_SLOWEST_TRACES: Final = """
    SELECT trace_id
    FROM traces
    WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
    ORDER BY duration_ns DESC, trace_id
    LIMIT $number
"""
_SLOWEST_ROLLOUTS: Final = """
    SELECT
        run_id,
        rollout_id
    FROM rollouts
    WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
    ORDER BY duration_ns DESC, run_id, rollout_id
    LIMIT $number
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a page shows, and what it is called."""

    title: str
    trace_ids: Sequence[str]
    rollouts: Sequence[tuple[str | None, str]] = ()
    """Run and rollout ids; of the traces, only these rollouts' spans. Empty: whole traces."""
    left_out_traces: int = 0
    left_out_spans: int = 0
    """What did not fit the limit."""


def everything(engine: "Engine", run_id: str | None, *, limit: int) -> Choice:
    """Choose all traces, or those of a run, from the start on until `limit` spans; 0 is no limit.

    The first trace is taken whole, whatever its size. Raises `ReconstructError` for none.
    """
    found = engine.rows(_TRACES, {"run_id": run_id})
    if not found:
        of_run = f" of run '{run_id}'" if run_id else ""
        raise ReconstructError(f"no spans{of_run} in these logs")
    taken: list[str] = []
    spans = 0
    for row in found:
        if limit and taken and spans + row["span_count"] > limit:
            break
        taken.append(row["trace_id"])
        spans += row["span_count"]
    run_ids = {row["run_id"] for row in found}
    only_run = run_ids.pop() if len(run_ids) == 1 else None
    return Choice(
        title=f"run {only_run}" if only_run else "all spans",
        trace_ids=taken,
        left_out_traces=len(found) - len(taken),
        left_out_spans=sum(row["span_count"] for row in found) - spans,
    )


def slowest(engine: "Engine", number: int, run_id: str | None) -> Choice:
    """Choose the `number` longest rollouts, or traces where there are no rollouts.

    Raises `ReconstructError` when there is no span.
    """
    asked = {"run_id": run_id, "number": number}
    found = [(row["run_id"], row["rollout_id"]) for row in engine.rows(_SLOWEST_ROLLOUTS, asked)]
    if found:
        words = f"the {len(found)} slowest rollouts" if len(found) > 1 else f"rollout {found[0][1]}"
        return Choice(words, traces_of(engine, found), found)
    trace_ids = [row["trace_id"] for row in engine.rows(_SLOWEST_TRACES, asked)]
    if not trace_ids:
        of_run = f" of run '{run_id}'" if run_id else ""
        raise ReconstructError(f"no spans{of_run} in these logs")
    several = len(trace_ids) > 1
    return Choice(
        f"the {len(trace_ids)} slowest traces" if several else f"trace {trace_ids[0]}", trace_ids
    )


def traces_of(engine: "Engine", rollouts: Sequence[tuple[str | None, str]]) -> list[str]:
    """Return the ids of the traces that hold a span of one of the rollouts."""
    wanted = {"rollouts": [rollout for _, rollout in rollouts]}
    runs = set(rollouts)
    rows = engine.rows(
        """
        SELECT DISTINCT trace_id, run_id, rollout_id
        FROM _rollout_traces
        WHERE rollout_id IN (SELECT unnest($rollouts))
        ORDER BY trace_id
        """,
        wanted,
    )
    return list(
        dict.fromkeys(row["trace_id"] for row in rows if (row["run_id"], row["rollout_id"]) in runs)
    )
