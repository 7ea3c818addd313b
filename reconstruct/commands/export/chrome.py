"""`reconstruct export chrome`: Chrome's trace events."""

import click

from reconstruct.commands.export.chosen import Choice, choice_options
from reconstruct.commands.export.destination import output_option
from reconstruct.commands.export.pictures import align_option, draw
from reconstruct.commands.logs import Logs, on_logs

__all__ = ["command"]


@click.command("chrome", short_help="Write Chrome's trace events (JSON).")
@on_logs
@output_option
@align_option
@choice_options
def command(logs: Logs, *, output: str, align: bool, choice: Choice) -> None:
    """Write Chrome's trace events, JSON that Perfetto, chrome://tracing and Speedscope open:
    what `export perfetto` writes, in a file that is larger and needs no further package. Times are
    µs with three decimals after `baseTimeNanoseconds`, so exact. `reconstruct` reads it back.

    \b
    Example: one rollout
      reconstruct export chrome logs/ --rollout 1-0 -o rollout.json.gz
    """
    from reconstruct.export import chrome

    draw(logs, chrome.write, choice=choice, align=align, output=output, is_binary=False)
