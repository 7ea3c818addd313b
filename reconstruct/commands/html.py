"""`reconstruct html`: spans as one HTML file to look at in a browser."""

from typing import TYPE_CHECKING

import click

from reconstruct.commands import subjects
from reconstruct.commands.export.destination import check_destination, opened, output_option
from reconstruct.commands.logs import Logs, on_logs, run_option
from reconstruct.render.text import plural, size

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.viewer.choice import Choice

__all__ = ["command"]


@click.command("html", short_help="Write spans as one HTML file to look through.")
@on_logs
@output_option
@click.option(
    "--slowest",
    metavar="N",
    type=click.IntRange(min=1),
    help="Only the N longest rollouts, or traces; no ID then.",
)
@run_option
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=100_000,
    show_default=True,
    help="Without ID and --slowest, take whole traces from the start on until so many spans; 0 "
    "takes all.",
)
def command(
    logs: Logs, *, output: str, slowest: int | None, run_id: str | None, limit: int
) -> None:
    """Write spans as one HTML file that opens in any browser and asks no network: a waterfall, a
    flame view, the run's rollouts and who calls whom. The first word may be an ID: a rollout id,
    or the first digits of a trace id. Without one, all spans are shown.

    \b
    Example: what did the three slowest rollouts do?
      reconstruct html --slowest 3 logs/ > slowest.html
    """
    check_destination(logs, output, is_binary=True)
    wanted = logs.paths[0] if logs.paths and not subjects.is_path(logs.paths[0]) else None
    if wanted is not None and slowest is not None:
        raise click.UsageError(f"--slowest and '{wanted}' contradict each other")
    with logs.read(logs.paths if wanted is None else logs.paths[1:]) as engine:
        from reconstruct.viewer.contents import contents
        from reconstruct.viewer.page import page
        from reconstruct.viewer.payload import payload

        with logs.console.busy("laying out"):
            found = contents(engine, _choice(engine, wanted, slowest, run_id, limit))
            text = page(f"{found.title} – reconstruct", payload(found))
        data = text.encode()
        with opened(logs, engine, output) as out:
            out.write(data)
    for note in found.notes:
        logs.console.say(note)
    if output == "-":
        return
    if logs.as_json:
        logs.console.json(
            {"file": output, "bytes": len(data), "spans": len(found.spans), "notes": found.notes}
        )
        return
    logs.console.say(f"wrote {plural(len(found.spans), 'span')} to {output} ({size(len(data))})")


def _choice(
    engine: "Engine", wanted: str | None, number: int | None, run_id: str | None, limit: int
) -> "Choice":
    from reconstruct.viewer.choice import Choice, everything, slowest

    if wanted is not None:
        subject = subjects.named(engine, wanted, run_id)
        rollouts = [] if subject.rollout_id is None else [(subject.run_id, subject.rollout_id)]
        return Choice(subject.words, subject.trace_ids, rollouts)
    if number is not None:
        return slowest(engine, number, run_id)
    return everything(engine, run_id, limit=limit)
