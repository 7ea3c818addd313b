"""`reconstruct export perfetto`: a trace file for the Perfetto UI."""

import click

from reconstruct.commands.export.chosen import Choice, choice_options
from reconstruct.commands.export.destination import output_option
from reconstruct.commands.export.pictures import align_option, draw
from reconstruct.commands.logs import Logs, on_logs

__all__ = ["command"]


@click.command("perfetto", short_help="Write a trace for the Perfetto UI.")
@on_logs
@output_option
@align_option
@choice_options
def command(logs: Logs, *, output: str, align: bool, choice: Choice) -> None:
    """Write a trace file for https://ui.perfetto.dev (it stays in the browser): processes with
    their spans in lanes, arrows for calls and links, log records, span events and metrics. Times
    are exact. What a span carries stands in its arguments.

    This needs `pip install 'gymlog[perfetto]'`; `export chrome` does not.

    \b
    Example: the whole run, start of the servers included
      reconstruct export perfetto logs/ -o run.pftrace
    """
    from reconstruct.export import perfetto

    draw(logs, perfetto.write, choice=choice, align=align, output=output, is_binary=True)
