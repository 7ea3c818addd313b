"""`reconstruct export`: traces handed to other programs, one subcommand per destination."""

import click

from reconstruct.commands.export import chrome, folded, otlp, perfetto, speedscope

__all__ = ["command"]


@click.group("export", short_help="Hand traces to another program.")
def command() -> None:
    """Hand traces to another program."""


for _command in (
    chrome.command,
    folded.command,
    otlp.command,
    perfetto.command,
    speedscope.command,
):
    command.add_command(_command)
