"""`reconstruct export jaeger`: traces as a JSON file that Jaeger's page opens."""

import click

from reconstruct.commands.export.chosen import Choice, choice_options
from reconstruct.commands.export.destination import (
    check_destination,
    opened,
    output_option,
    report,
)
from reconstruct.commands.export.signals import count_unfinished
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.render.text import plural

__all__ = ["command"]


@click.command("jaeger", short_help="Write traces as Jaeger's JSON.")
@on_logs
@choice_options
@output_option
def command(logs: Logs, *, choice: Choice, output: str) -> None:
    """Write finished spans as the JSON of Jaeger's query API, which its page opens from a file.
    Jaeger's times are whole microseconds, so nanoseconds are lost, and attributes of links have no
    place; both are counted. Unfinished spans are held back.

    \b
    Example: one rollout, for Jaeger's page
      reconstruct export jaeger logs/ --rollout 1-0 -o rollout.json
    """
    from reconstruct.export.jaeger import Losses, document
    from reconstruct.export.rows import span_rows

    check_destination(logs, output, is_binary=output.endswith(".gz"))
    losses = Losses()
    with logs.read() as engine:
        chosen = choice.of(engine)
        held_back = count_unfinished(engine, chosen)
        with opened(logs, engine, output) as out:
            rows = span_rows(
                engine,
                f"({chosen.spans}) AND span.state = 'finished'",
                chosen.parameters,
                redacted=choice.redacted,
            )
            for piece in document(rows, losses):
                out.write(piece.encode(errors="replace"))
    if logs.console.is_reader_gone:
        return
    say = logs.console.say
    if losses.cut_times:
        say(f"{plural(losses.cut_times, 'span')} lost nanoseconds: Jaeger's times are whole µs")
    if losses.bare_links:
        say(f"{plural(losses.bare_links, 'link')} lost what was said of them: Jaeger has no place")
    if held_back:
        say(f"held back: {plural(held_back, 'unfinished span')}")
    report(
        logs,
        output,
        f"{plural(losses.spans, 'span')} of {plural(losses.traces, 'trace')}",
        {
            "traces": losses.traces,
            "spans": losses.spans,
            "cut_times": losses.cut_times,
            "bare_links": losses.bare_links,
            "held_back": held_back,
        },
    )
