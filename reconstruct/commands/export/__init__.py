"""`reconstruct export`: traces handed to other programs, one subcommand per destination."""

import click

from reconstruct.commands.export import (
    chrome,
    csv,
    folded,
    jaeger,
    otlp,
    otlp_json,
    parquet,
    perfetto,
    speedscope,
)

__all__ = ["command"]


@click.group("export", short_help="Hand traces to another program.")
def command() -> None:
    """Hand traces to another program."""


for _command in (
    otlp.command,
    perfetto.command,
    chrome.command,
    parquet.command,
    otlp_json.command,
    jaeger.command,
    csv.command,
    folded.command,
    speedscope.command,
):
    command.add_command(_command)
