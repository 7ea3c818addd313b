"""`reconstruct diff`: what is different between two runs, cohorts, rollouts or traces."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.diff_figures import FIGURES
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.operands import (
    Cohorts,
    Comparands,
    Trees,
    by_condition,
    comparands,
    found,
    split,
)
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Row
from reconstruct.errors import UsageError
from reconstruct.render.text import Part, clean, duration, flow, instant, plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["command"]

_SAMPLE: Final = 2_000
"""Of a larger cohort, so many rollouts' attributes are looked at."""
_KEPT: Final = ("_self_times", "_rollout_sections", "_span_paths", "call_paths")
_RANKED: Final = 10
_DRAWN: Final = 200
"""What is shown when `--limit` is left out: of each ranking, of a tree."""

_PATHS: Final = """
SELECT part, service_name, name, call_path, parent_call_path, depth, calls, rollouts_a, rollouts_b,
    spans_a, spans_b, failed_a, failed_b, duration_p50_a_ns, duration_p50_b_ns, duration_p95_a_ns,
    duration_p95_b_ns, self_time_a_ns, self_time_b_ns, blame_a_ns, blame_b_ns, difference_ns, ratio,
    low_ns, high_ns, is_real
FROM path_changes_of('cohort')
ORDER BY part = 'whole' DESC, abs(difference_ns) DESC, difference_ns, calls, call_path, part
"""
_ATTRIBUTES: Final = f"""
SELECT kind, scope, service_name, name, key, value, value_count, rollouts_a, rollouts_b, share_a,
    share_b, p50_a, p50_b, distance, is_real
FROM attribute_changes_of('cohort', most := {_SAMPLE})
WHERE kind = 'id' OR distance > 0
ORDER BY kind = 'id', is_real DESC NULLS LAST, distance DESC, key, value, service_name, name, scope
"""


@click.command("diff", short_help="Say what differs between two runs, cohorts or traces.")
@on_logs
@click.option("--where-a", metavar="SQL", help="A: the rollouts with this condition on `rollouts`.")
@click.option(
    "--where-b", metavar="SQL", help="B: the same; when only one is given, the other is the rest."
)
@click.option("--slowest", metavar="SHARE", help="B: the slowest 10%, say; A: the rest.")
@click.option("--failed", is_flag=True, help="B: those with an ERROR span; A: those without.")
@click.option(
    "--tolerance",
    metavar="SHARE",
    default="25%",
    show_default=True,
    help="A span is slower by more than 1 ms and this share of the longer of two.",
)
@click.option(
    "--identity",
    "keys",
    metavar="KEY",
    multiple=True,
    help="An attribute that tells spans of one name apart, as turn, step, attempt, stage and the "
    "route do; repeatable.",
)
@explained(*FIGURES)
@selection_options
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    help=f"Show so many rows, 0 all; {_RANKED} of each ranking and {_DRAWN} spans of a tree when "
    "left out.",
)
def command(
    logs: Logs,
    where_a: str | None,
    where_b: str | None,
    slowest: str | None,
    failed: bool,  # noqa: FBT001  # click passes by keyword
    tolerance: str,
    keys: tuple[str, ...],
    selection: Selection,
    limit: int | None,
) -> None:
    """Say what differs between A and B. The first two words are A and B: two folders or files, or
    two runs, rollouts (RUN/ROLLOUT where several runs have it) or traces before the PATHS of the
    logs. Without the two words, --slowest, --failed or --where-… part the rollouts into A and B.

    Two rollouts or traces are one tree: spans that were added, removed or moved, that are slower or
    faster, that failed or say something else. Of many, the change of the mean duration is taken
    apart by call path, with what chance could do, and attributes are ranked by how much their
    values differ. Conditions are SQL on `rollouts`, or `traces` where there are no rollouts.

    \b
    Example: what do the slowest rollouts do otherwise?
      reconstruct diff --slowest 10% logs/
    """
    share = _share(tolerance)
    cohorts = by_condition(where_a, where_b, slowest, failed=failed)
    words, paths = ("", ""), logs.paths
    if cohorts is None:
        words, paths = split(logs.paths)
    with logs.read(paths) as engine:
        both = cohorts or found(engine, words, selection.run_id)
        if isinstance(both, Cohorts):
            compared = comparands(engine, both, selection.of(engine))
            trees = compared.trees(engine)
            if trees is None:
                _show_cohorts(logs, engine, compared, _RANKED if limit is None else limit)
                return
            both = trees
        else:
            selection.run_of("A and B are")
        _show_trees(logs, engine, both, share, keys, _DRAWN if limit is None else limit)


def _share(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?%", text.strip())
    if match is None:
        raise click.UsageError(f"--tolerance '{text}' is no share; write 25%")
    return float(match[1]) / 100


def _show_cohorts(logs: Logs, engine: "Engine", compared: Comparands, limit: int) -> None:
    from reconstruct.render.cohorts import attribute_lines, heading, path_lines

    if logs.as_sql:
        print_sql(logs, *(Question(compared.begin + sql) for sql in (_PATHS, _ATTRIBUTES)))
        return
    if compared.shared:
        logs.console.say(
            f"{plural(compared.shared, compared.noun)} in A and in B: the intervals are too narrow"
        )
    said = len(engine.notices)
    with logs.console.busy("adding up"):
        engine.keep(*_KEPT)
        paths = compared.ask(engine, _PATHS)
        attributes = compared.ask(engine, _ATTRIBUTES)
    for notice in engine.notices[said:]:
        logs.console.say(notice)
    columns, noun = logs.console.columns, compared.noun
    sample = _SAMPLE if max(compared.size_a, compared.size_b) > _SAMPLE else 0
    if logs.as_json:
        _write_json(logs, compared, paths, attributes, limit)
        if sample:
            logs.console.say(f"attributes are an estimate, from {sample:,} {noun}s of a side")
        return
    logs.console.lines(
        [
            *heading(paths[0], noun, compared.labels, columns),
            (),
            *path_lines(paths, noun, columns, max_rows=limit),
            (),
            *attribute_lines(attributes, noun, columns, max_rows=limit, sample=sample),
        ]
    )


def _write_json(
    logs: Logs,
    compared: Comparands,
    paths: Sequence[Row],
    attributes: Sequence[Row],
    limit: int,
) -> None:
    values = [row for row in attributes if row["kind"] != "id"]
    ids = [row for row in attributes if row["kind"] == "id"]
    shown_paths, shown_values = (paths[: limit + 1], values[:limit]) if limit else (paths, values)
    sizes = (compared.size_a, compared.size_b)
    logs.console.json(
        {
            "compared": [
                {"side": side, "what": label, f"{compared.noun}s": size}
                for side, label, size in zip("AB", compared.labels, sizes, strict=True)
            ],
            "paths": shown_paths,
            "attributes": [*shown_values, *ids],
        }
    )
    left = len(paths) - len(shown_paths), len(values) - len(shown_values)
    if any(left):
        words = f"{plural(left[0], 'more path')} and {plural(left[1], 'more value')}"
        logs.console.say(f"… {words}; --limit 0 shows all")


def _show_trees(
    logs: Logs,
    engine: "Engine",
    trees: Trees,
    tolerance: float,
    keys: tuple[str, ...],
    limit: int,
) -> None:
    from reconstruct.compare.differences import CHANGES, compare
    from reconstruct.render.differences import tree_of_differences

    if logs.as_sql:
        raise UsageError("two trees are not compared by SQL; --sql is for cohorts")
    a, b = (tree.traces(engine) for tree in trees)
    comparison = compare(a, b, tolerance=tolerance, keys=keys)
    if logs.as_json:
        pairs = list(comparison.walk())
        logs.console.json(
            {
                "compared": [
                    {"side": side, "what": tree.label}
                    for side, tree in zip("AB", trees, strict=True)
                ],
                "counts": {
                    "unchanged": sum(not pair.changes for pair in pairs),
                    **{change: comparison.count(change) for change in CHANGES},
                },
                "is_exact": comparison.is_exact,
                "spans": [pair.facts() for pair in pairs],
            }
        )
        return
    for side, tree, traces in zip("AB", trees, (a, b), strict=True):
        length = max(trace.end_time_unix_nano for trace in traces) - min(
            trace.start_time_unix_nano for trace in traces
        )
        facts = (
            instant(min(trace.start_time_unix_nano for trace in traces)),
            duration(length),
            plural(sum(trace.span_count for trace in traces), "span"),
        )
        head = (Part(f"{side}  ", "title"), Part(clean(tree.label), "title"))
        logs.console.lines(flow([head, *((Part(fact),) for fact in facts)], logs.console.columns))
    logs.console.lines([()])
    columns = logs.console.columns
    logs.console.lines(tree_of_differences(comparison, columns=columns, max_rows=limit))
