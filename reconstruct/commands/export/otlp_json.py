"""`reconstruct export otlp-json`: spans, logs and metrics as OTLP/JSON lines in a file."""

from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.export.chosen import Choice, choice_options
from reconstruct.commands.export.destination import (
    check_destination,
    opened,
    output_option,
    report,
)
from reconstruct.commands.export.signals import count_unfinished, records_of, signals_option
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.render.text import count, plural

if TYPE_CHECKING:
    from reconstruct.export.otlp.settings import Signal

__all__ = ["command"]

_NAMED: Final = 10
"""So many records that OTLP cannot say are named."""


@click.command("otlp-json", short_help="Write OTLP/JSON lines into a file.")
@on_logs
@choice_options
@output_option
@signals_option("traces", "What is written")
def command(logs: Logs, *, choice: Choice, output: str, signals: "tuple[Signal, ...]") -> None:
    """Write finished spans as OTLP/JSON: an export request on each line, as a collector's file
    exporter writes and its file receiver reads; what `export otlp` sends over http/json. Unfinished
    spans are held back.

    \b
    Example: spans and log records of one rollout, for a colleague
      reconstruct export otlp-json logs/ --rollout 1-0 --signals traces,logs -o rollout.jsonl
    """
    from reconstruct.export.otlp.forms import JsonForm
    from reconstruct.export.otlp.sending import packed
    from reconstruct.export.otlp.signals import KINDS

    check_destination(logs, output, is_binary=output.endswith(".gz"))
    written: dict[Signal, int] = {}
    left_out = []
    with logs.read() as engine:
        chosen = choice.of(engine)
        held_back = count_unfinished(engine, chosen)
        with opened(logs, engine, output) as out:
            for signal in signals:
                records = records_of(signal, chosen, choice)
                if records is None:
                    left_out.append(f"left out: {signal}, which belong to no trace or rollout")
                    continue
                form = JsonForm(KINDS[signal])
                for batch in packed(
                    records.items(engine, form, lambda keys: [True] * len(keys)), form
                ):
                    out.write(form.request(batch) + b"\n")
                written[signal] = records.total - len(records.unsent)
                unsaid = records.unsent
                left_out += [f"left out: {one.what}: {one.words}" for one in unsaid[:_NAMED]]
                if len(unsaid) > _NAMED:
                    left_out.append(f"left out: {count(len(unsaid) - _NAMED)} more like these")
    if logs.console.is_reader_gone:
        return
    for words in left_out:
        logs.console.say(words)
    if held_back:
        logs.console.say(f"held back: {plural(held_back, 'unfinished span')}")
    parts = ", ".join(plural(number, KINDS[signal].noun) for signal, number in written.items())
    figures: dict[str, object] = {str(signal): number for signal, number in written.items()}
    report(logs, output, parts or "nothing", {**figures, "held_back": held_back})
