"""The logs a command works on: the arguments all of them share, the engine over the files."""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.console import Color, Column, Console, Row
from reconstruct.errors import UsageError
from reconstruct.render.text import plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = [
    "SORTS",
    "Logs",
    "align_option",
    "color_option",
    "limit_option",
    "on_logs",
    "paths_argument",
    "run_option",
    "sort_option",
    "spare_logs",
    "wrapper_option",
]

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
    wrapper: str | None = None
    store: Path | bool = False
    """Where to keep what was read; True is beside the logs, where that is worth it."""
    as_sql: bool = False
    """The SQL is asked for, not its answer."""
    align: bool = False
    """Times are to be those that one clock would have had."""

    @contextmanager
    def read(
        self, paths: tuple[str, ...] | None = None, *, keep: Sequence[str] = ()
    ) -> "Iterator[Engine]":
        """Load the files into an engine for the block; a bar on stderr shows how far it is.

        `paths` takes the place of the argument where a command found something else in it; `keep`
        names what is computed once and kept for the next command (`Engine.keep`).
        """
        from reconstruct.engine import Engine

        with self.console.progress("reading") as progress:
            engine = Engine.read(
                list(self.paths if paths is None else paths) or ["."],
                memory_limit=self.memory_limit,
                progress=progress,
                wrapper=self.wrapper,
                store=self.store,
                align=self.align,
            )
        with engine:
            if keep:
                with self.console.busy("adding up"):
                    engine.keep(*keep)
            for notice in engine.notices:
                self.console.say(notice)
            if self.align:
                from reconstruct.commands.alignment import moves_in_words

                for words in moves_in_words(engine.moved_clocks):
                    self.console.say(words)
            yield engine

    def show(
        self,
        columns: Sequence[Column],
        rows: Sequence[Row],
        *,
        limit: int,
        noun: str,
        draw: Callable[[Sequence[Row]], None] | None = None,
    ) -> None:
        """Write the first `limit` rows (0: all) as a table or as JSON; say how many are left.

        `draw` writes them for people in place of the table.
        """
        shown = rows[:limit] if limit else rows
        if self.as_json:
            self.console.json(shown)
        elif rows:
            draw(shown) if draw else self.console.table(columns, shown)
        else:
            self.console.say(f"no {noun}s")
        if left := len(rows) - len(shown):
            self.console.say(f"… {plural(left, f'more {noun}')}; --limit 0 shows all")


paths_argument: Final = click.argument("paths", nargs=-1, metavar="[PATHS]...")
color_option: Final = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour; auto is: on a terminal, unless NO_COLOR is set.",
)
wrapper_option: Final = click.option(
    "--wrapper",
    metavar="NAME",
    help="What stands around the lines: docker, cri, journald …, or none. Told from the lines "
    "when left out; a wrong name lists them all.",
)


def on_logs(function: Function) -> Function:
    """Give a command the shared arguments, as its first argument `logs`."""

    @paths_argument
    @click.option("--json", "as_json", is_flag=True, help="Write JSON instead of a table.")
    @color_option
    @click.option(
        "--memory-limit",
        metavar="SIZE",
        help="DuckDB's memory, for example 4GB, less what Python takes while large logs are read.",
    )
    @wrapper_option
    @click.option(
        "--store",
        metavar="DIR",
        type=click.Path(file_okay=False, path_type=Path),
        help="Keep what was read in this folder: the next time only what is new is read. When left "
        "out, in .reconstruct beside the logs, if they are large.",
    )
    @click.option("--no-store", is_flag=True, help="Keep nothing, and use nothing that was kept.")
    @functools.wraps(function)
    def run(
        paths: tuple[str, ...],
        as_json: bool,  # noqa: FBT001  # click passes by keyword
        color: Color,
        memory_limit: str | None,
        wrapper: str | None,
        store: Path | None,
        no_store: bool,  # noqa: FBT001  # click passes by keyword
        **options: Any,  # Any: the command's own options
    ) -> Any:
        if store is not None and no_store:
            raise click.UsageError("--store and --no-store contradict each other")
        logs = Logs(
            paths,
            as_json,
            Console(color=color),
            memory_limit,
            wrapper,
            False if no_store else store or True,
        )
        return function(logs, **options)

    return run


def spare_logs(engine: "Engine", output: str) -> None:
    """Raise `UsageError` when the file that is to be written is one of the logs."""
    target = Path(output)
    for row in engine.rows("SELECT file FROM _files"):
        log = Path(row["file"])
        if target.exists() and log.exists() and target.samefile(log):
            raise UsageError(f"'{output}' is one of the logs; write somewhere else")


def align_option(function: Function) -> Function:
    """Give a command whose first argument is `logs` the option `--align`."""

    @click.option(
        "--align",
        is_flag=True,
        help="Move times to what one clock would have had (`reconstruct clocks`), an estimate.",
    )
    @functools.wraps(function)
    def run(logs: Logs, *, align: bool, **options: Any) -> Any:  # Any: the command's own
        return function(replace(logs, align=align), **options)

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
