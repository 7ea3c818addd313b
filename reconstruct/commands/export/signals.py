"""The records of OTLP's signals that an export takes: `--signals`, and what is chosen of each."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import click

from reconstruct.export.otlp.settings import SIGNALS, Signal

if TYPE_CHECKING:
    from reconstruct.commands.export.chosen import Choice
    from reconstruct.commands.selection import Chosen
    from reconstruct.engine import Engine
    from reconstruct.export.otlp.records import Records

__all__ = ["count_unfinished", "records_of", "signals_option"]

_CONDITIONS: Final = {
    "since": "{record}.time_unix_nano >= $since",
    "until": "{record}.time_unix_nano < $until",
    "run_id": "{record}.run_id = $run_id",
    "service": "{record}.service_name IN (SELECT unnest($service))",
    "trace_id": "{record}.trace_id = $trace_id",
    "rollout_id": """(
        {record}.rollout_id = $rollout_id
        OR {record}.trace_id IN (
            SELECT trace_id FROM _rollout_traces WHERE rollout_id = $rollout_id
        )
    )""",
}


def signals_option(default: str, help_text: str) -> Callable[[Any], Any]:  # Any: click's decorators
    """Give a command `--signals`, as its argument `signals`: some of `SIGNALS`, in their order."""
    return click.option(
        "--signals",
        default=default,
        show_default=True,
        callback=_signals,
        metavar="LIST",
        help=f"{help_text}, with commas between: {', '.join(SIGNALS)}. A trace or rollout that is "
        "chosen has no metrics.",
    )


def _signals(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    del context
    asked = [name.strip() for name in value.split(",") if name.strip()]
    if unknown := [name for name in asked if name not in SIGNALS]:
        raise click.BadParameter(f"no signal '{unknown[0]}'; there are {', '.join(SIGNALS)}")
    if not asked:
        raise click.BadParameter(f"name some of {', '.join(SIGNALS)}", param=parameter)
    return tuple(name for name in SIGNALS if name in asked)


def records_of(
    signal: Signal, chosen: "Chosen", choice: "Choice", *, has_unfinished: bool = False
) -> "Records | None":
    """Choose a signal's records; None where what was chosen has none."""
    from reconstruct.export.otlp.records import Records

    change = None if choice.redaction is None else choice.redaction.row
    if signal == "traces":
        condition = (
            chosen.spans if has_unfinished else f"span.state = 'finished' AND {chosen.spans}"
        )
        return Records("traces", condition, chosen.parameters, change)
    is_of_trace = {"trace_id", "rollout_id"} & set(chosen.parameters)
    if signal == "metrics" and is_of_trace:
        return None
    record = "log" if signal == "logs" else "point"
    conditions = [_CONDITIONS[name].format(record=record) for name in chosen.parameters]
    return Records(signal, " AND ".join(conditions) or "TRUE", chosen.parameters, change)


def count_unfinished(engine: "Engine", chosen: "Chosen") -> int:
    """Count the chosen spans that have not ended."""
    sql = f"""
        SELECT count(*) AS spans
        FROM spans AS span
        WHERE span.state <> 'finished' AND ({chosen.spans})
    """
    return int(engine.rows(sql, chosen.parameters)[0]["spans"])
