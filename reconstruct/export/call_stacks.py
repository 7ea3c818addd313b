"""What chosen spans add up to along their call paths: the stacks of a flame graph.

A frame is `service:name`. A stack leads from the topmost span of a rollout, or of a trace, down to
a span (relation `span_paths`); `(missing)` stands above a span whose parent is not in the input.
Weights are ns, and add up to those of the relation to the last one.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from reconstruct.errors import ReconstructError
from reconstruct.render.text import clean

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["WEIGHTS", "CallStacks", "Stack"]

WEIGHTS: Final = {
    "self": "SELECT node, self_time_ns::HUGEINT AS weight FROM _self_times",
    "blame": "SELECT node, sum(blame_ns) AS weight FROM _blames GROUP BY node",
    "duration": "SELECT rowid AS node, duration_ns::HUGEINT AS weight FROM spans",
}
"""What a span can weigh: the time that no child covers; what it holds its root up for; all of it,
counted again in each span above."""
_PATHS: Final = """
WITH
span_path AS MATERIALIZED (
    SELECT node, call_path
    FROM _span_paths
),
chosen AS MATERIALIZED (
    SELECT span.rowid AS node, span.state
    FROM spans AS span
    WHERE {condition}
),
total AS (
    SELECT
        path.call_path,
        sum(weighed.weight)::HUGEINT AS weight,
        count(*) AS spans,
        count(*) FILTER (chosen.state <> 'finished') AS unfinished
    FROM chosen
    JOIN span_path AS path USING (node)
    LEFT JOIN ({weight}) AS weighed USING (node)
    GROUP BY path.call_path
)
SELECT
    path.call_path,
    above.call_path AS parent,
    coalesce(span.service_name || ':', '') || span.name AS frame,
    edge.orphan AND edge.parent IS NULL AS is_orphan,
    coalesce(total.weight, 0)::VARCHAR AS weight,
    coalesce(total.spans, 0) AS spans,
    coalesce(total.unfinished, 0) AS unfinished
FROM (
    SELECT call_path, min(node) AS node
    FROM span_path
    GROUP BY call_path
) AS path
JOIN spans AS span ON span.rowid = path.node
JOIN _rollout_edges AS edge ON edge.node = path.node
LEFT JOIN span_path AS above ON above.node = edge.parent
LEFT JOIN total ON total.call_path = path.call_path
"""
_MISSING: Final = "(missing)"


class Stack(NamedTuple):
    """Frames from the top down, and the ns that those of its spans weigh that end there."""

    frames: tuple[str, ...]
    weight_ns: int


class CallStacks:
    """The stacks of the spans of an engine that `condition` chooses (as `Timeline` has it).

    Raises `ReconstructError` when it chooses none.
    """

    def __init__(
        self,
        engine: "Engine",
        weight: str,
        *,
        condition: str = "TRUE",
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        sql = _PATHS.format(condition=condition, weight=WEIGHTS[weight])
        self._below: dict[int | None, list[int]] = {}
        self._frames: dict[int, tuple[str, ...]] = {}
        self._weights: dict[int, int] = {}
        self.spans = 0
        self.unfinished = 0
        """Of the chosen spans; they have no self time and no duration."""
        with engine.batches(sql, dict(parameters or {}) or None) as batches:
            for batch in batches:
                for row in batch.to_pylist():
                    path = row["call_path"]
                    frame = clean(row["frame"])
                    self._frames[path] = (_MISSING, frame) if row["is_orphan"] else (frame,)
                    self._weights[path] = int(row["weight"])
                    self._below.setdefault(row["parent"], []).append(path)
                    self.spans += row["spans"]
                    self.unfinished += row["unfinished"]
        if not self.spans:
            raise ReconstructError("no span in these logs is what the options choose")

    @property
    def total_ns(self) -> int:
        """What all stacks weigh together."""
        return sum(self._weights.values())

    def __iter__(self) -> Iterator[Stack]:
        """Yield the stacks that weigh something, sorted by their frames, each once."""
        waiting = self._stacked((), self._below.get(None, ()))
        while waiting:
            frames, paths = waiting.pop()
            if weight := sum(self._weights[path] for path in paths):
                yield Stack(frames, weight)
            waiting += self._stacked(
                frames, [below for path in paths for below in self._below.get(path, ())]
            )

    def _stacked(
        self, above: tuple[str, ...], paths: "list[int] | tuple[int, ...]"
    ) -> list[tuple[tuple[str, ...], list[int]]]:
        """Put paths that read the same together, the last first."""
        same: dict[tuple[str, ...], list[int]] = {}
        for path in paths:
            same.setdefault(self._frames[path], []).append(path)
        return [(above + frames, same[frames]) for frames in sorted(same, reverse=True)]
