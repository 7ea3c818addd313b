"""Where an export that is one file goes: `-o FILE`, packed if it ends in .gz, or stdout."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, cast

import click

from reconstruct.commands.logs import Logs, spare_logs
from reconstruct.errors import UsageError

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["check_destination", "opened", "output_option", "report"]

STDOUT: Final = "-"
_LEVEL: Final = 6

output_option: Final[Callable[[Any], Any]] = click.option(  # Any: click's decorators
    "-o",
    "--output",
    metavar="FILE",
    default=STDOUT,
    help="Write into this file, whole or not at all; one that ends in .gz is packed. `-`, or "
    "nothing, is stdout.",
)


def check_destination(logs: Logs, output: str, *, is_binary: bool) -> None:
    """Refuse, before the logs are read, what cannot go well. Raises `UsageError`."""
    if output != STDOUT:
        return
    if logs.as_json:
        raise UsageError("--json says on stdout what was written; name a file with -o")
    if is_binary and logs.console.is_terminal:
        raise UsageError("this is nothing to look at; name a file with -o")


@contextmanager
def opened(logs: Logs, engine: "Engine", output: str) -> Iterator[IO[bytes]]:
    """Open the destination for the block; never one of the logs.

    The block ends early when whoever reads stdout closes it.
    """
    if output == STDOUT:
        with logs.console.binary() as out:
            yield out
        return
    from reconstruct.export.whole_file import whole_file

    spare_logs(engine, output)
    with whole_file(output) as out:
        if not output.endswith(".gz"):
            yield out
            return
        # Without a name and a time in it, equal contents are equal files.
        with gzip.GzipFile("", "wb", compresslevel=_LEVEL, fileobj=out, mtime=0) as packed:
            yield cast("IO[bytes]", packed)


def report(logs: Logs, output: str, words: str, figures: dict[str, object]) -> None:
    """Say on stderr what was written; with `--json` on stdout too."""
    if logs.as_json:
        logs.console.json({"output": output, **figures})
    logs.console.say(f"exported {words}" + ("" if output == STDOUT else f" to {output}"))
