"""The logs a command works on: the arguments all of them share, the engine over the files."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.console import Color, Column, Console, Row
from reconstruct.render.text import plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["SORTS", "Logs", "limit_option", "on_logs", "run_option", "sort_option"]

SORTS: Final = {
    "duration": "duration_ns DESC",
    "start": "start_time_unix_nano",
    "spans": "span_count DESC",
    "errors": "error_count DESC",
}
"""What `--sort` means, in SQL."""

Function = Callable[..., Any]  # Any: click calls commands with what their options say


@dataclass(frozen=True, slots=True)
class Logs:
    """What the shared arguments came to."""

    paths: tuple[str, ...]
    as_json: bool
    console: Console
    memory_limit: str | None

    @contextmanager
    def read(self, paths: tuple[str, ...] | None = None) -> "Iterator[Engine]":
        """Load the files into an engine for the block; a bar on stderr shows how far it is.

        `paths` takes the place of the argument where a command found something else in it.
        """
        from reconstruct.engine import Engine

        with self.console.progress("reading") as progress:
            engine = Engine.read(
                list(self.paths if paths is None else paths) or ["."],
                memory_limit=self.memory_limit,
                progress=progress,
            )
        with engine:
            yield engine

    def show(
        self, columns: Sequence[Column], rows: Sequence[Row], *, limit: int, noun: str
    ) -> None:
        """Write the first `limit` rows (0: all) as a table or as JSON; say how many are left."""
        shown = rows[:limit] if limit else rows
        if self.as_json:
            self.console.json(shown)
        elif rows:
            self.console.table(columns, shown)
        else:
            self.console.say(f"no {noun}s")
        if left := len(rows) - len(shown):
            self.console.say(f"… {plural(left, f'more {noun}')}; --limit 0 shows all")


def on_logs(function: Function) -> Function:
    """Give a command the shared arguments, as its first argument `logs`."""

    @click.argument("paths", nargs=-1, metavar="[PATHS]...")
    @click.option("--json", "as_json", is_flag=True, help="Write JSON instead of a table.")
    @click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colour; auto is: on a terminal, unless NO_COLOR is set.",
    )
    @click.option("--memory-limit", metavar="SIZE", help="DuckDB's memory, for example 4GB.")
    @functools.wraps(function)
    def run(
        paths: tuple[str, ...],
        as_json: bool,  # noqa: FBT001  # click passes by keyword
        color: Color,
        memory_limit: str | None,
        **options: Any,  # Any: the command's own options
    ) -> Any:
        return function(Logs(paths, as_json, Console(color=color), memory_limit), **options)

    return run


def limit_option(default: int, noun: str) -> Callable[[Function], Function]:
    """Give a command `--limit`."""
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=default,
        show_default=True,
        help=f"Show so many {noun}s; 0 shows all.",
    )


sort_option: Final = click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="duration",
    show_default=True,
    help="Longest, earliest, largest or worst first.",
)
run_option: Final = click.option(
    "--run", "run_id", metavar="RUN", help="Only this run (nemo.run.id)."
)
