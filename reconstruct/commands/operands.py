"""What `reconstruct diff` compares: two cohorts of rollouts, or two trees, from what was typed.

Two words are both paths, or both ids that come before the PATHS; a path is what exists. Conditions
take the place of the words. Whatever could mean two things is refused in one line that says which.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from reconstruct.commands.answers import Question
from reconstruct.commands.ids import rollout_run, trace_id_of
from reconstruct.commands.selection import Chosen
from reconstruct.commands.subjects import is_path
from reconstruct.errors import ReconstructError, UsageError

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.tree import Trace

__all__ = [
    "Cohort",
    "Cohorts",
    "Comparands",
    "Tree",
    "Trees",
    "by_condition",
    "comparands",
    "found",
    "split",
]

_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?) ?%?")


@dataclass(frozen=True, slots=True)
class Cohort:
    """Some of the rollouts, or traces: a condition on that relation, and the files they lie in."""

    label: str
    condition: str = "TRUE"
    files: tuple[str, ...] = ()
    is_typed: bool = False
    """The condition is someone else's SQL."""


@dataclass(frozen=True, slots=True)
class Tree:
    """One rollout, or one trace where `rollout_id` is None."""

    label: str
    trace_ids: tuple[str, ...]
    """Its traces; empty for all of the rollout."""
    run_id: str | None = None
    rollout_id: str | None = None

    def traces(self, engine: "Engine") -> "Sequence[Trace]":
        """Return its spans."""
        from reconstruct.tree import rollout_traces, trace_tree

        if self.rollout_id is None:
            return [trace_tree(engine, trace_id) for trace_id in self.trace_ids]
        traces = rollout_traces(engine, self.rollout_id, self.run_id)
        # Two runs of one id may each have a rollout of that id.
        return [
            trace for trace in traces if trace.trace_id in (self.trace_ids or (trace.trace_id,))
        ]


class Cohorts(NamedTuple):
    """Two of many."""

    a: Cohort
    b: Cohort


class Trees(NamedTuple):
    """Two of one."""

    a: Tree
    b: Tree


def by_condition(
    where_a: str | None, where_b: str | None, slowest: str | None, *, failed: bool
) -> Cohorts | None:
    """Return the cohorts that options name, the one that is the measure first; None for none."""
    named = [slowest is not None, failed, where_a is not None or where_b is not None]
    if sum(named) > 1:
        raise click.UsageError("--slowest, --failed and --where-… each name both cohorts; take one")
    if slowest is not None:
        match = _PERCENT.fullmatch(slowest.strip())
        if match is None or not 0 < float(match[1]) < 100:
            raise click.UsageError(f"--slowest '{slowest}' is no share; write 10%")
        return Cohorts(
            Cohort("the rest", f"duration_ns < {_slow(match[1])}"),
            Cohort(f"the slowest {match[1]} %", f"duration_ns >= {_slow(match[1])}"),
        )
    if failed:
        return Cohorts(
            Cohort("without an error", "error_count = 0"),
            Cohort("with an error", "error_count > 0"),
        )
    if where_a is None and where_b is None:
        return None
    return Cohorts(_typed(where_a, where_b), _typed(where_b, where_a))


def _typed(condition: str | None, other: str | None) -> Cohort:
    if condition is None:
        return Cohort("the rest", f"(\n{other}\n) IS NOT TRUE")
    return Cohort(condition, condition, is_typed=True)


def _slow(percent: str) -> str:
    """Write the duration of the fastest of the slowest, as SQL."""
    place = f"ceil(count(*) * {percent} / 100)::BIGINT"
    return f"(SELECT list_sort(list(duration_ns), 'DESC')[{place}] FROM chosen)"


def split(words: Sequence[str]) -> tuple[tuple[str, str], tuple[str, ...]]:
    """Part the words of a command line into A and B, and the PATHS of the logs."""
    if len(words) < 2:
        raise click.UsageError(
            "compare what? give two runs, rollouts, traces, folders or files; or --slowest, "
            "--failed, --where-b"
        )
    a, b, *paths = words
    if is_path(a) != is_path(b):
        path, other = (a, b) if is_path(a) else (b, a)
        raise click.UsageError(
            f"'{path}' is a path and '{other}' is none; give two paths, or two ids before the PATHS"
        )
    if not is_path(a):
        return (a, b), tuple(paths)
    if paths:
        raise click.UsageError(f"'{a}' and '{b}' are compared, and '{paths[0]}' is a third path")
    if "-" in (a, b):
        raise click.UsageError("stdin cannot be one of two; write it to a file")
    return (a, b), (a, b)


def found(engine: "Engine", words: tuple[str, str], run_id: str | None) -> Cohorts | Trees:
    """Look up what A and B are in the logs.

    Raises `UsageError` when a word means several things or the two are of different kinds,
    `ReconstructError` when nothing has an id.
    """
    if is_path(words[0]):
        return _of_files(words)
    a, b = (_named(engine, word, run_id) for word in words)
    if a == b:
        raise UsageError(f"'{words[0]}' and '{words[1]}' are the same; there is nothing to compare")
    if isinstance(a, Cohort) and isinstance(b, Cohort):
        return Cohorts(a, b)
    if isinstance(a, Tree) and isinstance(b, Tree):
        return Trees(a, b)
    run, other = words if isinstance(a, Cohort) else words[::-1]
    raise UsageError(f"'{run}' is a run and '{other}' is none; compare two of a kind")


def _named(engine: "Engine", word: str, run_id: str | None) -> Cohort | Tree:
    is_run = bool(engine.rows("SELECT 1 FROM instances WHERE run_id = $1 LIMIT 1", [word]))
    own_run, slash, rollout_id = word.rpartition("/")
    run = rollout_run(engine, rollout_id if slash else word, own_run if slash else run_id)
    if is_run and run is not None:
        raise UsageError(f"'{word}' is a run and a rollout; name the rollout as RUN/ROLLOUT")
    if is_run:
        return Cohort(f"run {word}", "run_id = '" + word.replace("'", "''") + "'")
    if run is not None:
        rollout = rollout_id if slash else word
        label = f"rollout {rollout}" + (f" of run {run[0]}" if slash else "")
        return Tree(label, (), run[0], rollout)
    trace_id = trace_id_of(engine, word, run_id)
    return Tree(f"trace {trace_id}", (trace_id,))


def _of_files(words: tuple[str, str]) -> Cohorts:
    from reconstruct.intake import files

    a, b = ({file.name for file in files.search([word]).files} for word in words)
    if both := a & b:
        raise UsageError(f"{min(both)} is in A and in B; compare logs that have no file in common")
    return Cohorts(
        Cohort(words[0], files=tuple(sorted(a))), Cohort(words[1], files=tuple(sorted(b)))
    )


@dataclass(frozen=True, slots=True)
class Comparands:
    """Two cohorts looked up in the logs."""

    noun: str
    """rollout; trace where the logs have no rollouts."""
    begin: str
    """The beginning of a query: it names the relation `cohort`, which says what is compared."""
    labels: tuple[str, str]
    size_a: int
    size_b: int
    shared: int
    """How many are in both."""

    def ask(self, engine: "Engine", sql: str) -> list[dict[str, Any]]:  # Any: as the columns
        """Answer a query over the relation `cohort`. It only reads, whatever the conditions are."""
        return _ask(engine, self.begin + sql)

    def trees(self, engine: "Engine") -> Trees | None:
        """Return the only rollout of each, when there is only one of each."""
        if (self.size_a, self.size_b) != (1, 1):
            return None
        rows = self.ask(engine, "FROM cohort ORDER BY cohort, trace_id")
        a, b = ([row for row in rows if row["cohort"] == name] for name in "AB")
        return Trees(_only(a, self.labels[0]), _only(b, self.labels[1]))


def comparands(engine: "Engine", cohorts: Cohorts, chosen: Chosen) -> Comparands:
    """Look up two cohorts among what is chosen.

    Raises `SqlError` for a condition that is none, `ReconstructError` for a cohort that nothing
    belongs to, `UsageError` for logs that share a trace.
    """
    noun = "rollout" if engine.rows("SELECT 1 FROM _rollout_traces LIMIT 1") else "trace"
    for cohort in cohorts:
        if cohort.is_typed:
            condition = cohort.condition
            _ask(engine, f"SELECT count(*) FROM {noun}s AS {noun} WHERE (\n{condition}\n)")
    condition = chosen.rollouts if noun == "rollout" else chosen.traces
    members = "    UNION ALL\n".join(
        _members(noun, name, cohort) for name, cohort in zip("AB", cohorts, strict=True)
    )
    begin = Question(
        f"""
WITH
chosen AS MATERIALIZED (
    SELECT *
    FROM {noun}s AS {noun}
    WHERE {condition.strip()}
),
cohort AS MATERIALIZED (
{members})
""",
        chosen.parameters,
    ).text
    (sizes,) = _ask(engine, begin + _SIZES)
    for name, cohort in zip("ab", cohorts, strict=True):
        if not sizes[f"size_{name}"]:
            raise ReconstructError(
                f"nothing to compare: no {noun} is {name.upper()}, {cohort.label}"
            )
    if sizes["shared"] and cohorts[0].files:
        raise UsageError(
            f"trace {sizes['shared_trace']} has spans in {cohorts[0].label} and in "
            f"{cohorts[1].label}; compare logs of two runs"
        )
    labels = (cohorts[0].label, cohorts[1].label)
    return Comparands(noun, begin, labels, sizes["size_a"], sizes["size_b"], sizes["shared"])


_SIZES: Final = """
SELECT
    count(DISTINCT unit) FILTER (cohort = 'A') AS size_a,
    count(DISTINCT unit) FILTER (cohort = 'B') AS size_b,
    count(DISTINCT unit) FILTER (in_both) AS shared,
    min(trace_id) FILTER (in_both) AS shared_trace
FROM (
    SELECT
        cohort,
        trace_id,
        unit,
        min(cohort) OVER (PARTITION BY unit, trace_id)
            < max(cohort) OVER (PARTITION BY unit, trace_id) AS in_both
    FROM (
        SELECT
            cohort,
            trace_id,
            CASE
                WHEN rollout_id IS NULL THEN trace_id
                ELSE concat_ws(chr(31), run_id, rollout_id)
            END AS unit
        FROM cohort
    )
)
"""


def _members(noun: str, name: str, cohort: Cohort) -> str:
    """Write the query of the members of a cohort."""
    conditions = []
    if noun == "rollout":
        columns, relation = "run_id, rollout_id, trace_id", "_rollout_traces"
        among = (
            f"(SELECT (run_id, rollout_id) FROM chosen AS rollout WHERE (\n{cohort.condition}\n))"
        )
        conditions.append(f"(run_id, rollout_id) IN {among}")
    else:
        columns, relation = "run_id, NULL::VARCHAR AS rollout_id, trace_id", "chosen AS trace"
        conditions.append(f"(\n{cohort.condition}\n)")
    if cohort.files:
        names = ", ".join("'" + file.replace("'", "''") + "'" for file in cohort.files)
        conditions.append(f"trace_id IN (SELECT trace_id FROM spans WHERE file IN ({names}))")
    where = "\n        AND ".join(conditions)
    return f"    SELECT '{name}' AS cohort, {columns}\n    FROM {relation}\n    WHERE {where}\n"


def _only(rows: Sequence[dict[str, Any]], label: str) -> Tree:  # Any: as the columns
    row = rows[0]
    if row["rollout_id"] is None:
        return Tree(f"trace {row['trace_id']}", (row["trace_id"],))
    name = f"rollout {row['rollout_id']}, {label}"
    return Tree(name, tuple(each["trace_id"] for each in rows), row["run_id"], row["rollout_id"])


def _ask(engine: "Engine", sql: str) -> list[dict[str, Any]]:  # Any: as the columns
    with engine.answer(sql) as answer:
        return [dict(zip(answer.names, row, strict=True)) for row in answer.rows()]
