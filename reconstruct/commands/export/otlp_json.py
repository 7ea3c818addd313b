"""`reconstruct export otlp-json`: spans, logs and metrics as OTLP/JSON lines in a file."""

from collections.abc import Iterable, Iterator
from typing import Final

import click

from reconstruct.commands.export.chosen import Choice, choice_options, condition_on
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.console import Row
from reconstruct.errors import UsageError
from reconstruct.render.text import count, plural

__all__ = ["command"]

_NOUNS: Final = {"traces": "span", "logs": "log record", "metrics": "metric point"}


@click.command("otlp-json", short_help="Write OTLP/JSON lines into a file.")
@on_logs
@choice_options
@click.option("-o", "--output", metavar="FILE", required=True, help="Written whole or not at all.")
@click.option(
    "--signals",
    metavar="NAME,…",
    default="traces",
    show_default=True,
    help="What is written: traces, logs, metrics.",
)
def command(logs: Logs, choice: Choice, output: str, signals: str) -> None:
    """Write finished spans as OTLP/JSON: an export request on each line, as a collector's file
    exporter writes and its file receiver reads. Unfinished spans are held back. Metric points
    belong to no trace: with --trace or --rollout they are left out.

    \b
    Example: spans and log records of one rollout, for a colleague
      reconstruct export otlp-json logs/ --rollout 1-0 --signals traces,logs -o rollout.jsonl
    """
    from reconstruct.export.otlp_json import SIGNALS, documents
    from reconstruct.export.rows import rows_of
    from reconstruct.export.whole_file import whole_file

    wanted = list(dict.fromkeys(name.strip() for name in signals.split(",") if name.strip()))
    if not wanted or not set(wanted) <= SIGNALS.keys():
        raise UsageError(f"--signals {signals}: write some of traces, logs, metrics")
    written: dict[str, int] = {}
    with logs.read() as engine:
        chosen = choice.of(engine)
        held_back = engine.rows(
            f"SELECT count(*) AS spans FROM spans AS span WHERE ({chosen.spans}) "
            "AND span.state <> 'finished'",
            chosen.parameters or None,
        )[0]["spans"]
        with whole_file(output) as out:
            for signal in wanted:
                relation = SIGNALS[signal].relation
                columns = {"trace_id": "", "span_id": ""} if signal == "logs" else {}
                condition = condition_on(relation, columns, chosen)
                if condition is None:
                    logs.console.say(f"left out: {signal}, which belong to no trace or rollout")
                    continue
                if signal == "traces":
                    condition = f"({condition}) AND span.state = 'finished'"
                rows = _Counted(
                    rows_of(
                        engine, relation, condition, chosen.parameters, redacted=choice.redacted
                    )
                )
                out.writelines(documents(rows, signal))
                written[signal] = rows.count
    if logs.as_json:
        logs.console.json({"file": output, **written, "held_back": held_back})
    parts = ", ".join(plural(number, _NOUNS[signal]) for signal, number in written.items())
    held = f"; held back {count(held_back)} unfinished" if "traces" in wanted else ""
    logs.console.say(f"exported {parts or 'nothing'} to {output}{held}")


class _Counted:
    """Rows, counted as they pass."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row
