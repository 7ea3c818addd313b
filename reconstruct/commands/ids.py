"""Which rollout or trace an id that someone typed means; what to say when that is not clear."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Final

from reconstruct.errors import ReconstructError, UsageError
from reconstruct.render.text import count, instant

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["rollout_run", "trace_id_of", "unknown"]

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CANDIDATES: Final = 8
"""So many ids are named where one is not enough."""


def rollout_run(engine: "Engine", rollout_id: str, run_id: str | None) -> tuple[str | None] | None:
    """Find the run of a rollout (in a tuple: it may have none); None for no such rollout.

    Raises `UsageError` when several runs have one of that id and `run_id` does not choose.
    """
    runs = engine.rows(
        """
        SELECT run_id, start_time_unix_nano
        FROM rollouts
        WHERE rollout_id = $rollout_id AND ($run_id::VARCHAR IS NULL OR run_id = $run_id)
        ORDER BY start_time_unix_nano, run_id
        """,
        {"rollout_id": rollout_id, "run_id": run_id},
    )
    if len(runs) > 1:
        named = _listed(f"{row['run_id']} ({instant(row['start_time_unix_nano'])})" for row in runs)
        raise UsageError(f"rollout '{rollout_id}' is in {len(runs)} runs; add --run: {named}")
    return (runs[0]["run_id"],) if runs else None


def trace_id_of(engine: "Engine", wanted: str, run_id: str | None = None) -> str:
    """Complete the first digits of a trace id, or take it out of a traceparent header or a UUID.

    Raises `UsageError` when several traces start so, `ReconstructError` when none does.
    """
    traces = engine.rows(
        """
        SELECT trace_id
        FROM traces
        WHERE starts_with(trace_id, $prefix) AND ($run_id::VARCHAR IS NULL OR run_id = $run_id)
        ORDER BY trace_id
        """,
        {"prefix": _digits(wanted), "run_id": run_id},
    )
    if len(traces) > 1:
        named = _listed(row["trace_id"] for row in traces)
        raise UsageError(f"{count(len(traces))} traces start with '{wanted}': {named}")
    if not traces:
        raise unknown(engine, wanted, run_id)
    return str(traces[0]["trace_id"])


def _digits(wanted: str) -> str:
    text = wanted.strip().lower().removeprefix("0x")
    if header := _TRACEPARENT.fullmatch(text):
        return header[1]
    return text.replace("-", "") if _UUID.fullmatch(text) else text


def unknown(engine: "Engine", wanted: str, run_id: str | None = None) -> ReconstructError:
    """Build the error for an id that nothing has; it names the ids most like it."""
    near = engine.rows(
        """
        SELECT id
        FROM (
            SELECT rollout_id AS id, run_id FROM rollouts
            UNION
            SELECT trace_id, run_id FROM traces
        )
        WHERE $run_id::VARCHAR IS NULL OR run_id = $run_id
        GROUP BY id
        ORDER BY jaro_winkler_similarity(id, $id) DESC, id
        LIMIT 3
        """,
        {"id": wanted, "run_id": run_id},
    )
    where = f"run '{run_id}'" if run_id else "these logs"
    if not near:
        return ReconstructError(f"no rollout or trace '{wanted}': no spans in {where}")
    named = _listed(row["id"] for row in near)
    return ReconstructError(f"no rollout or trace '{wanted}' in {where}; most like it: {named}")


def _listed(ids: Iterable[str]) -> str:
    waiting = iter(ids)
    named = ", ".join(islice(waiting, _CANDIDATES))
    left = sum(1 for _ in waiting)
    return f"{named} … {count(left)} more" if left else named
