"""`reconstruct export jaeger`: traces as a JSON file that Jaeger's page opens."""

from io import TextIOWrapper

import click

from reconstruct.commands.export.chosen import Choice, choice_options
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.render.text import count, plural

__all__ = ["command"]


@click.command("jaeger", short_help="Write traces as Jaeger's JSON.")
@on_logs
@choice_options
@click.option("-o", "--output", metavar="FILE", required=True, help="Written whole or not at all.")
def command(logs: Logs, choice: Choice, output: str) -> None:
    """Write finished spans as the JSON of Jaeger's query API, which its page opens from a file.
    Jaeger's times are whole microseconds, so nanoseconds are lost, and attributes of links have no
    place; both are counted. Unfinished spans are held back.

    \b
    Example: one rollout, for Jaeger's page
      reconstruct export jaeger logs/ --rollout 1-0 -o rollout.json
    """
    from reconstruct.export.jaeger import Losses, document
    from reconstruct.export.rows import rows_of
    from reconstruct.export.whole_file import whole_file

    losses = Losses()
    with logs.read() as engine:
        chosen = choice.of(engine)
        where = f"({chosen.spans}) AND span.state"
        held_back = engine.rows(
            f"SELECT count(*) AS spans FROM spans AS span WHERE {where} <> 'finished'",
            chosen.parameters or None,
        )[0]["spans"]
        with whole_file(output) as out:
            text = TextIOWrapper(out, "utf-8", newline="")
            rows = rows_of(
                engine,
                "spans",
                f"{where} = 'finished'",
                chosen.parameters,
                redacted=choice.redacted,
            )
            text.writelines(document(rows, losses))
            text.detach()  # it is closed by whoever opened it
    say = logs.console.say
    if losses.cut_times:
        say(f"{plural(losses.cut_times, 'span')} lost nanoseconds: Jaeger's times are whole µs")
    if losses.bare_links:
        say(f"{plural(losses.bare_links, 'link')} lost what was said of them: Jaeger has no place")
    if logs.as_json:
        logs.console.json(
            {
                "file": output,
                "traces": losses.traces,
                "spans": losses.spans,
                "cut_times": losses.cut_times,
                "bare_links": losses.bare_links,
                "held_back": held_back,
            }
        )
    say(
        f"exported {plural(losses.spans, 'span')} of {plural(losses.traces, 'trace')} to {output}; "
        f"held back {count(held_back)} unfinished"
    )
