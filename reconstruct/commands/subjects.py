"""The one rollout or trace that a command is about: named by an id, or the slowest."""

import glob
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reconstruct.commands.ids import rollout_run, trace_id_of
from reconstruct.commands.selection import Selection
from reconstruct.errors import ReconstructError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconstruct.engine import Engine
    from reconstruct.tree import Trace

__all__ = ["Subject", "is_path", "named", "slowest"]


@dataclass(frozen=True, slots=True)
class Subject:
    """One rollout of a run, in all its traces; or one trace, where `rollout_id` is None."""

    trace_ids: tuple[str, ...]
    run_id: str | None = None
    rollout_id: str | None = None

    @property
    def words(self) -> str:
        """What it is called."""
        if self.rollout_id is None:
            return f"trace {self.trace_ids[0]}"
        return f"rollout {self.rollout_id}"

    def traces(self, engine: "Engine", *, align: bool = False) -> "Sequence[Trace]":
        """Return its spans; `align` as of `tree.rollout_traces`."""
        from reconstruct.tree import rollout_traces, trace_tree

        if self.rollout_id is None:
            return [trace_tree(engine, trace_id, align=align) for trace_id in self.trace_ids]
        return rollout_traces(engine, self.rollout_id, self.run_id, align=align)


def is_path(word: str) -> bool:
    """Say whether a word of the command line is one of the PATHS: one that exists, a pattern, -."""
    return word == "-" or Path(word).exists() or glob.has_magic(word)


def named(engine: "Engine", wanted: str, run_id: str | None) -> Subject:
    """Return what an id means: a rollout id, or the first digits of a trace id.

    Raises `UsageError` when it means several, `ReconstructError` when it means nothing.
    """
    if run := rollout_run(engine, wanted, run_id):
        return _rollout(engine, wanted, run[0])
    return Subject((trace_id_of(engine, wanted, run_id),))


def slowest(engine: "Engine", selection: Selection) -> Subject:
    """Return the longest rollout of what is chosen, or the longest trace where there are none.

    Raises `ReconstructError` when no span is chosen.
    """
    chosen = selection.of(engine)
    for row in engine.rows(
        f"""
        SELECT rollout_id, run_id
        FROM rollouts AS rollout
        WHERE {chosen.rollouts}
        ORDER BY duration_ns DESC, run_id, rollout_id
        LIMIT 1
        """,
        chosen.parameters,
    ):
        return _rollout(engine, row["rollout_id"], row["run_id"])
    for row in engine.rows(
        f"""
        SELECT trace_id
        FROM traces AS trace
        WHERE {chosen.traces}
        ORDER BY duration_ns DESC, trace_id
        LIMIT 1
        """,
        chosen.parameters,
    ):
        return Subject((row["trace_id"],))
    if selection == Selection():
        raise ReconstructError("no spans in these logs")
    if selection == Selection(run_id=selection.run_id):
        raise ReconstructError(f"no span of run '{selection.run_id}' in these logs")
    raise ReconstructError("no span in these logs is what the options choose")


def _rollout(engine: "Engine", rollout_id: str, run_id: str | None) -> Subject:
    traces = engine.rows(
        """
        SELECT trace_id
        FROM _rollout_traces
        WHERE rollout_id = $rollout_id AND run_id IS NOT DISTINCT FROM $run_id::VARCHAR
        ORDER BY trace_id
        """,
        {"rollout_id": rollout_id, "run_id": run_id},
    )
    return Subject(tuple(row["trace_id"] for row in traces), run_id, rollout_id)
