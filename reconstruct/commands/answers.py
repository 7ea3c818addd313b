"""What commands that answer a question have in common: `--explain` and `--sql`.

An answer is one query of ours over the relations, shown as a table or as JSON. `--explain` says
what each of its figures means, in the words of the relation that it comes from. `--sql` prints the
query with everything in its place, for `reconstruct query` and for the plain duckdb shell.
"""

import functools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.commands.logs import Logs
from reconstruct.console import Column, Console, Row
from reconstruct.render.text import Line, Part, clean

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["Question", "answer", "explained", "print_sql", "with_details"]

Function = Callable[..., Any]  # Any: click calls commands with what their options say

_PARAMETER: Final = re.compile(r"\$([a-z_]+)")
_INDENT: Final = "    "
_MIN_ROOM: Final = 40
"""Columns for words, however narrow the terminal is."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query of ours, and the values of its `$names`; `$name` stands nowhere else in it."""

    sql: str
    parameters: Mapping[str, object] = field(default_factory=dict)

    def ask(self, engine: "Engine") -> list[dict[str, Any]]:
        """Return the answer, one dict per row."""
        used = set(_PARAMETER.findall(self.sql))
        bound = {name: value for name, value in self.parameters.items() if name in used}
        return engine.rows(self.sql, bound)

    @property
    def text(self) -> str:
        """The query with its values in their places."""
        text = textwrap.dedent(self.sql).strip()
        text = _PARAMETER.sub(self._value, text)
        return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())

    def _value(self, match: re.Match[str]) -> str:
        name = match[1]
        return _literal(self.parameters[name]) if name in self.parameters else match[0]

    def __str__(self) -> str:
        return self.text + ";"


def explained(
    *figures: Column, relation: str | Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Give a command `--explain` and `--sql`; `figures` are what its answer may show.

    A figure without a meaning of its own is a column of `relation` (of the first one that has it
    where several are given), or of the relation before the dot in its key, and means what is said
    there.
    """

    def decorate(function: Function) -> Function:
        relations = (relation,) if isinstance(relation, str) else tuple(relation)

        @click.option(
            "--explain", is_flag=True, help="Say what each figure means; no logs are read."
        )
        @click.option(
            "--sql", "as_sql", is_flag=True, help="Print the SQL that is run, and not its answer."
        )
        @functools.wraps(function)
        def run(logs: Logs, *, explain: bool, as_sql: bool, **options: Any) -> Any:
            if not explain:
                return function(replace(logs, as_sql=as_sql), **options)
            meanings = dict(_meanings(figures, relations))
            if logs.as_json:
                logs.console.json(
                    [{"column": key, "meaning": text} for key, text in meanings.items()]
                )
            else:
                logs.console.lines(_definitions(figures, meanings, logs.console.columns))
            return None

        vars(run)["meanings"] = lambda: dict(_meanings(figures, relations))
        return run

    return decorate


def answer(
    logs: Logs,
    engine: "Engine",
    question: Question,
    columns: Sequence[Column],
    *,
    limit: int,
    noun: str,
    draw: Callable[[Sequence[Row]], None] | None = None,
) -> list[Row]:
    """Show the answer to a question, its first `limit` rows (0: all), or its SQL; return it all.

    `draw` writes rows for people in place of a table.
    """
    if logs.as_sql:
        print_sql(logs, question)
        return []
    rows: list[Row] = list(question.ask(engine))
    logs.show(columns, rows, limit=limit, noun=noun, draw=draw)
    return rows


def with_details(
    console: Console,
    columns: Sequence[Column],
    rows: Sequence[Row],
    details: Callable[[Row], Iterable[str]],
) -> Iterator[Line]:
    """Lay rows out as a table, with a few words under each, three lines at most of any."""
    heading, *lines = console.laid_out(columns, rows)
    yield heading
    room = max(console.columns - len(_INDENT), _MIN_ROOM)
    for row, line in zip(rows, lines, strict=True):
        yield line
        for words in details(row):
            for piece in textwrap.wrap(
                clean(words), room, break_on_hyphens=False, max_lines=3, placeholder=" …"
            ):
                yield (Part(_INDENT + piece, "quiet"),)


def print_sql(logs: Logs, *questions: Question) -> None:
    """Write the SQL of questions, one after the other."""
    logs.console.text("\n\n".join(str(question) for question in questions) + "\n")


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return "'" + str(value).replace("'", "''") + "'"


def _meanings(figures: Sequence[Column], relations: Sequence[str]) -> Iterator[tuple[str, str]]:
    from reconstruct.store.relations import column_comments

    comments = column_comments()
    for figure in figures:
        names = (*(f"{relation}.{figure.key}" for relation in relations), figure.key)
        yield (
            figure.key,
            figure.meaning or next(comments[name] for name in names if name in comments),
        )


def _definitions(
    figures: Sequence[Column], meanings: Mapping[str, str], columns: int
) -> Iterator[Line]:
    room = max(columns - len(_INDENT), _MIN_ROOM)
    for figure in figures:
        yield (Part(figure.heading, "title"), Part(f"  {figure.key}", "quiet"))
        for line in textwrap.wrap(meanings[figure.key], room, break_on_hyphens=False):
            yield (Part(_INDENT + line),)
