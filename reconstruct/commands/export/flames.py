"""What the exports to flame graphs have in common: chosen spans, added up along their calls."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from reconstruct.commands.logs import Logs
from reconstruct.commands.selection import Selection
from reconstruct.render.text import plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine
    from reconstruct.export.call_stacks import CallStacks

__all__ = ["call_stacks", "say_unfinished", "weight_option"]


def weight_option(default: str | None) -> Callable[[Any], Any]:  # Any: click's decorators
    """Give a command `--weight`."""
    return click.option(
        "--weight",
        type=click.Choice(["self", "blame", "duration"]),
        default=default,
        show_default=default is not None,
        help="Of a span: the time that none of its children covers; what it holds up its root for; "
        "or its whole duration, which counts again in each span above."
        + ("" if default else "  [default: self and blame, a profile each]"),
    )


def call_stacks(engine: "Engine", selection: Selection, weight: str) -> "CallStacks":
    """Return the stacks of what is chosen."""
    from reconstruct.export.call_stacks import CallStacks

    chosen = selection.of(engine)
    return CallStacks(engine, weight, condition=chosen.spans, parameters=chosen.parameters)


def say_unfinished(logs: Logs, stacks: "CallStacks", weight: str) -> None:
    """Say which spans weigh nothing because they never ended."""
    if stacks.unfinished and weight != "blame":
        logs.console.say(f"{plural(stacks.unfinished, 'span')} unfinished: without {weight} weight")
