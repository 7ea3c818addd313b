"""`reconstruct export`: traces handed to other programs, one subcommand per destination."""

import click

from reconstruct.commands.export import otlp

__all__ = ["command"]


@click.group("export", short_help="Hand traces to another program.")
def command() -> None:
    """Hand traces to another program."""


for _command in (otlp.command,):
    command.add_command(_command)
