"""`reconstruct show`: one rollout or trace as a waterfall."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconstruct.commands import subjects
from reconstruct.commands.alignment import aligned_facts, clock_notice, moved_clocks
from reconstruct.commands.logs import Logs, limit_option, on_logs, run_option
from reconstruct.commands.selection import Selection
from reconstruct.console import Row

if TYPE_CHECKING:
    from reconstruct.tree import Span

__all__ = ["command"]


@click.command("show", short_help="Draw one rollout or trace as a waterfall.")
@on_logs
@click.option("--slowest", is_flag=True, help="Take the longest rollout, or trace; no ID then.")
@run_option
@click.option(
    "--align",
    is_flag=True,
    help="Draw spans where they belong if hosts' clocks differ (see `reconstruct clocks`): an "
    "estimate.",
)
@limit_option(500, "span")
def command(logs: Logs, *, slowest: bool, run_id: str | None, align: bool, limit: int) -> None:
    """Draw one rollout or trace as a waterfall. The first word is its ID: a rollout id, or the
    first digits of a trace id. Several traces of a rollout stand on one time axis.

    \b
    Example: where did the slowest rollout spend its time?
      reconstruct show --slowest logs/
    """
    if not slowest and not logs.paths:
        raise click.UsageError("which one? give a rollout id or the start of a trace id")
    if not slowest and len(logs.paths) == 1 and Path(logs.paths[0]).exists():
        raise click.UsageError(
            f"'{logs.paths[0]}' is a path; put a rollout id or the start of a trace id before it, "
            "or --slowest"
        )
    paths = logs.paths if slowest else logs.paths[1:]
    with logs.read(paths, keep=("_clock_stretches", "clock_offsets") if align else ()) as engine:
        if slowest:
            subject = subjects.slowest(engine, Selection(run_id=run_id))
        else:
            subject = subjects.named(engine, logs.paths[0], run_id)
        traces = subject.traces(engine, align=align)
        if not align and (words := clock_notice(engine, traces)):
            logs.console.say(words)
        if logs.as_json:
            spans = [span for trace in traces for span in trace.walk()]
            logs.console.json([_facts(span, is_aligned=align) for span in spans])
            return
        from reconstruct.render.waterfall import waterfall

        notes = list(moved_clocks(engine, traces)) if align else []
        drawn = waterfall(traces, columns=logs.console.columns, max_rows=limit, notes=notes)
        logs.console.lines(drawn)


def _facts(span: "Span", *, is_aligned: bool) -> Row:
    """The span as one flat object: what the tree says about it, then its own columns."""
    names = [name for name in span.__dataclass_fields__ if name not in ("children", "offset_ns")]
    facts = {name: getattr(span, name) for name in names}
    return aligned_facts({**facts, "offset_ns": span.offset_ns}) if is_aligned else facts
