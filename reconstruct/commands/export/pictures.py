"""What the exports to trace viewers have in common: chosen spans are drawn over time."""

from collections.abc import Callable
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any, Final

import click

from reconstruct.commands.export.chosen import Choice
from reconstruct.commands.export.destination import check_destination, opened, report
from reconstruct.commands.logs import Logs
from reconstruct.commands.selection import Selection
from reconstruct.render.text import plural

if TYPE_CHECKING:
    from reconstruct.export.drawn import Drawn
    from reconstruct.export.timeline import Timeline

__all__ = ["align_option", "draw"]

align_option: Final[Callable[[Any], Any]] = click.option(  # Any: click's decorators
    "--align",
    is_flag=True,
    help="Draw everything where it belongs if hosts' clocks differ (see `reconstruct clocks`): an "
    "estimate.",
)


def draw(
    logs: Logs,
    write: "Callable[[Timeline, IO[bytes]], Drawn]",
    *,
    choice: Choice,
    align: bool,
    output: str,
    is_binary: bool,
) -> None:
    """Write what is chosen with `write`, and say what that was."""
    from reconstruct.export.timeline import Timeline

    check_destination(logs, output, is_binary=is_binary or output.endswith(".gz"))
    with logs.read(keep=("_clock_stretches", "clock_offsets") if align else ()) as engine:
        selection = choice.selection
        chosen = choice.of(engine)
        timeline = Timeline(
            engine,
            None if selection == Selection() else chosen.spans,
            chosen.parameters,
            is_narrow=selection.trace_id is not None or selection.rollout_id is not None,
            is_aligned=align,
            change=None if choice.redaction is None else choice.redaction.row,
        )
        figures, unreadable = timeline.figures, timeline.unreadable
        with opened(logs, engine, output) as out:
            drawn = write(timeline, out)
    if logs.console.is_reader_gone:
        return
    for key, words in _REMARKS.items():
        if figures[key]:
            logs.console.say(words.format(plural(figures[key], "span")))
    if unreadable:
        logs.console.say(f"left out: {plural(unreadable, 'counter value')} that are not finite")
    report(
        logs,
        output,
        f"{plural(drawn.spans, 'span')} in {plural(drawn.lanes, 'lane')} of "
        f"{plural(len(timeline.processes), 'process', 'processes')}, "
        f"{plural(drawn.arrows, 'arrow')}, "
        f"{plural(drawn.instants, 'log record or span event', 'log records and span events')}, "
        f"{plural(drawn.readings, 'counter value')}",
        {
            **asdict(drawn),
            "processes": len(timeline.processes),
            "unfinished": figures["unfinished"],
            "negative": figures["negative"],
            "not_finite": unreadable,
        },
    )


_REMARKS: Final = {
    "unfinished": "{} unfinished: drawn as far as known to be open, and marked [unfinished]",
    "negative": "{} that end before they begin: drawn without length",
}
