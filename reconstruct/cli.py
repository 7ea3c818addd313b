"""The command line: which command runs, and which exit code its end becomes.

`summary` is what runs when no command is named. 0 done, 1 answered 'no', 2 usage, 3 input,
4 destination, 130 interrupted. Nothing heavy is imported before a command runs.
"""

import difflib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import click

from reconstruct.commands import (
    clocks,
    diff,
    doctor,
    errors,
    export,
    follow,
    html,
    lines,
    path,
    query,
    repeats,
    rollouts,
    service_map,
    show,
    sql,
    startup,
    stats,
    steps,
    stuck,
    summary,
    traces,
)
from reconstruct.console import Console
from reconstruct.errors import ReconstructError

__all__ = ["main"]

_DEFAULT: Final = "summary"
_INTERRUPTED: Final = 130
_USAGE: Final = 2


class _Commands(click.Group):
    """Commands in the order in which a person meets them; a path alone means `summary`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        return list(self.commands)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for parameter in self.params for name in parameter.opts} | {"--help", "-h"}
        first = args[0] if args else ""
        if first not in own and first not in self.commands:
            self._refuse_mistyped(ctx, first)
            args = [_DEFAULT, *args]
        return super().parse_args(ctx, args)

    def _refuse_mistyped(self, ctx: click.Context, word: str) -> None:
        near = difflib.get_close_matches(word, self.commands, n=1)
        if near and not Path(word).exists():
            ctx.fail(f"no command and no file '{word}'; did you mean '{near[0]}'?")


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Without a command, `reconstruct PATHS…` is `reconstruct summary PATHS…`.",
)
@click.version_option(version("gymlog"), prog_name="reconstruct")
def _reconstruct() -> None:
    """Turn the logs of a gym's servers back into traces.

    PATHS are log files, folders, globs or '-' for stdin; the current folder when left out. Lines
    that are no records are skipped and counted (see `reconstruct lines`).
    """


for _command in (
    summary.command,
    rollouts.command,
    traces.command,
    show.command,
    html.command,
    path.command,
    stats.command,
    errors.command,
    repeats.command,
    diff.command,
    doctor.command,
    clocks.command,
    service_map.command,
    startup.command,
    steps.command,
    stuck.command,
    lines.command,
    follow.command,
    query.command,
    sql.command,
    export.command,
):
    _reconstruct.add_command(_command)


class _NoPandas:
    """Finds no pandas: pyarrow imports it, if it is there, only to tell its objects from others.
    That takes a second, and no command has any."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004
        if name == "pandas":
            raise ModuleNotFoundError(f"{name} is not for commands", name=name)


@contextmanager
def _without_pandas() -> Iterator[None]:
    sys.meta_path.insert(0, _NoPandas)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoPandas)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; words about failures go to stderr."""
    console = Console()
    try:
        with _without_pandas():
            code = _reconstruct.main(
                args=None if arguments is None else list(arguments),
                prog_name="reconstruct",
                standalone_mode=False,
            )
    except ReconstructError as error:
        console.say(f"error: {error}")
        return error.exit_code
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "reconstruct"
        console.say(f"error: {error.format_message()}")
        console.say(f"try: {path} --help")
        return _USAGE
    except (KeyboardInterrupt, click.Abort):
        console.say("interrupted")
        return _INTERRUPTED
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
