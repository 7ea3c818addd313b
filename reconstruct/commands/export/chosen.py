"""What exports have in common: which rows go, and whether their values do."""

import difflib
import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.commands.selection import Chosen, Selection, selection_options
from reconstruct.errors import UsageError

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.export.redaction import Redaction

__all__ = ["Choice", "choice_options", "condition_on", "relation_types", "unknown_relation"]

Function = Callable[..., Any]  # Any: click calls commands with what their options say

_OF_PROCESSES: Final = frozenset({"instances", "processes"})
"""Relations that say whose the chosen spans are."""
_COLUMNS: Final = """
    SELECT table_name, column_name, data_type
    FROM duckdb_columns()
    WHERE NOT internal AND NOT starts_with(table_name, '_')
    ORDER BY table_name, column_index
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """What the shared options came to."""

    selection: Selection
    redaction: "Redaction | None" = None

    def of(self, engine: "Engine") -> Chosen:
        """Look up what the selection means in these logs; raises as `Selection.of`."""
        return self.selection.of(engine)

    def redacted(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a row as it may leave; Any: as the columns."""
        return row if self.redaction is None else self.redaction.row(row)


def choice_options(function: Function) -> Function:
    """Give a command the options that choose and redact, as its argument `choice`."""

    @selection_options
    @click.option(
        "--redact",
        is_flag=True,
        help="Leave ids, names, times and structure, and of attributes only values that say nothing"
        " of the content (methods, routes, status codes, models, token counts); others, and "
        "messages, become REDACTED.",
    )
    @click.option(
        "--redact-keep", metavar="KEY,…", help="Redact, but leave the values of these attributes."
    )
    @functools.wraps(function)
    def run(
        *arguments: Any,  # Any: the command's own
        selection: Selection,
        redact: bool,
        redact_keep: str | None,
        **options: Any,  # Any: the command's own
    ) -> Any:
        redaction = None
        if redact or redact_keep is not None:
            from reconstruct.export.redaction import KEPT_KEYS, Redaction

            more = {key.strip() for key in (redact_keep or "").split(",")} - {""}
            redaction = Redaction(KEPT_KEYS | more)
        return function(*arguments, choice=Choice(selection, redaction), **options)

    return run


def relation_types(engine: "Engine") -> dict[str, dict[str, str]]:
    """Return DuckDB's types of the columns of each public relation, by their names."""
    types: dict[str, dict[str, str]] = {}
    for row in engine.rows(_COLUMNS):
        types.setdefault(row["table_name"], {})[row["column_name"]] = row["data_type"]
    return types


def unknown_relation(name: str, known: Collection[str]) -> UsageError:
    """Build the error for a relation that there is not; it names those most like it."""
    near = difflib.get_close_matches(name, known, n=3) or sorted(known)
    return UsageError(f"no relation '{name}'; there is {', '.join(near)}")


def condition_on(relation: str, columns: Mapping[str, str], chosen: Chosen) -> str | None:
    """Return which rows of a relation, which the query names `span`, `trace`, `rollout` or `row`,
    belong to what was chosen; None where nothing of them tells.

    The condition uses all of `chosen.parameters`.
    """
    if not chosen.parameters:
        return "TRUE"
    named = {"spans": chosen.spans, "traces": chosen.traces, "rollouts": chosen.rollouts}
    if relation in named:
        return named[relation]
    spans = f"FROM spans AS span WHERE {chosen.spans}"
    if {"trace_id", "span_id"} <= columns.keys():
        return f"(row.trace_id, row.span_id) IN (SELECT (span.trace_id, span.span_id) {spans})"
    if "trace_id" in columns:
        return f"row.trace_id IN (SELECT span.trace_id {spans})"
    if relation in _OF_PROCESSES:
        return f"row.instance IN (SELECT span.instance {spans})"
    if "rollout_id" in columns:
        return (
            "row.rollout_id IN (SELECT rollout.rollout_id FROM rollouts AS rollout "
            f"WHERE {chosen.rollouts})"
        )
    return None
