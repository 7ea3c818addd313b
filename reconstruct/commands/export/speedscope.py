"""`reconstruct export speedscope`: call stacks as profiles for speedscope."""

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


@click.command("speedscope", short_help="Write profiles for speedscope.")
@on_logs
@output_option
@weight_option(None)
@selection_options
def command(logs: Logs, *, output: str, weight: str | None, selection: Selection) -> None:
    """Write profiles for https://www.speedscope.app (files stay in the browser): how much time each
    call path, of frames `service:name`, took in all chosen spans. Weights are whole ns and add up
    exactly; a profile of more than 104 days is in µs.

    \b
    Example: where did the time of this run go?
      reconstruct export speedscope logs/ -o run.speedscope.json
    """
    from reconstruct.export import speedscope

    check_destination(logs, output, is_binary=output.endswith(".gz"))
    weights = (weight,) if weight else ("self", "blame")
    with logs.read() as engine:
        profiles = {name: call_stacks(engine, selection, name) for name in weights}
        with opened(logs, engine, output) as out:
            samples = speedscope.write(profiles, out, name=" ".join(logs.paths) or ".")
    if logs.console.is_reader_gone:
        return
    for name, stacks in profiles.items():
        say_unfinished(logs, stacks, name)
    spans, unfinished = stacks.spans, stacks.unfinished
    report(
        logs,
        output,
        f"{plural(spans, 'span')} in {plural(samples, 'stack')} of "
        f"{plural(len(profiles), 'profile')}",
        {
            "spans": spans,
            "stacks": samples,
            "weight_ns": {name: stacks.total_ns for name, stacks in profiles.items()},
            "unfinished": unfinished,
        },
    )
