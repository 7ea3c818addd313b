"""`reconstruct export folded`: call stacks with their weights, for flame graphs."""

import click

from reconstruct.commands.export.destination import (
    check_destination,
    opened,
    output_option,
    report,
)
from reconstruct.commands.export.flames import call_stacks, say_unfinished, weight_option
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.render.text import plural

__all__ = ["command"]


@click.command("folded", short_help="Write folded stacks for flame graphs.")
@on_logs
@output_option
@weight_option("self")
@selection_options
def command(logs: Logs, *, output: str, weight: str, selection: Selection) -> None:
    """Write folded stacks: a line for each call path, its frames `service:name` from the top down,
    and its weight in ns. flamegraph.pl, inferno and speedscope draw them. The weights add up to
    those of the chosen spans exactly.

    \b
    Example: what to speed up, as a flame graph
      reconstruct export folded logs/ --weight blame > stacks.txt
    """
    from reconstruct.export import folded

    check_destination(logs, output, is_binary=output.endswith(".gz"))
    with logs.read() as engine:
        stacks = call_stacks(engine, selection, weight)
        with opened(logs, engine, output) as out:
            lines = folded.write(stacks, out)
    if logs.console.is_reader_gone:
        return
    say_unfinished(logs, stacks, weight)
    report(
        logs,
        output,
        f"{plural(stacks.spans, 'span')} in {plural(lines, 'stack')}",
        {"spans": stacks.spans, "stacks": lines, "weight": weight, "weight_ns": stacks.total_ns,
         "unfinished": stacks.unfinished},
    )  # fmt: skip
