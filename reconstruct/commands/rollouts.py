"""`reconstruct rollouts`: the rollouts in the logs, one row each, and what their time went to."""

from collections.abc import Sequence
from typing import Final

import click

from reconstruct.commands.answers import Question, answer, explained, print_sql
from reconstruct.commands.logs import SORTS, Logs, align_option, limit_option, on_logs, sort_option
from reconstruct.commands.selection import Chosen, Selection, selection_options
from reconstruct.commands.why import COLUMNS, MEASURED, show_each, show_list
from reconstruct.console import Column

__all__ = ["command"]

_COLUMNS: Final = [
    Column("rollout_id", "ROLLOUT"),
    Column("run_id", "RUN"),
    Column("start_time_unix_nano", "START", "instant"),
    Column("duration_ns", "DURATION", "duration"),
    Column("trace_count", "TRACES", "count"),
    Column("span_count", "SPANS", "count"),
    Column("error_count", "ERRORS", "count"),
    Column("open_count", "UNFINISHED", "count"),
]
_KEPT: Final = ("_rollout_sections", "_span_works", "_rollout_work", "rollout_shares")
_LONGEST: Final = 8
"""Stretches of time to name of a rollout."""


@click.command("rollouts", short_help="List rollouts, the longest first, and say why.")
@on_logs
@align_option
@sort_option
@click.option(
    "--why",
    is_flag=True,
    help="Say what the time of each went to, and what it spent more on than the median rollout of "
    "its run; of one --rollout in detail.",
)
@explained(*_COLUMNS, *COLUMNS, relation="rollout_shares")
@selection_options
@limit_option(20, "rollout")
def command(logs: Logs, sort: str, why: bool, selection: Selection, limit: int) -> None:  # noqa: FBT001  # click passes by keyword
    """List rollouts, the longest first.

    With --why the time of each is divided among what it waited for: models, tools, verification,
    queues … These shares add up to its duration, however many calls ran side by side.

    \b
    Example: what took the ten longest rollouts so long?
      reconstruct rollouts logs/ --why --limit 10
    """
    with logs.read(keep=_KEPT if why else ()) as engine:
        chosen = selection.of(engine)
        if not why:
            question = _question("rollouts", _COLUMNS, chosen, sort)
            answer(logs, engine, question, _COLUMNS, limit=limit, noun="rollout")
            return
        columns = [*_COLUMNS, *COLUMNS]
        question = _question("rollout_shares", columns, chosen, sort)
        details = [Question(text, chosen.parameters) for text in (_MEDIANS, _STRETCHES)]
        is_one = selection.rollout_id is not None
        if logs.as_sql and is_one:
            print_sql(logs, question, *details)
        elif logs.as_json or logs.as_sql:
            answer(logs, engine, question, columns, limit=limit, noun="rollout")
        elif is_one:
            rows, medians, stretches = (each.ask(engine) for each in (question, *details))
            show_each(logs, rows, medians=medians, stretches=stretches, limit=_LONGEST)
        else:
            show_list(logs, question.ask(engine), limit=limit)


def _question(relation: str, columns: Sequence[Column], chosen: Chosen, sort: str) -> Question:
    return Question(
        f"""
        SELECT {", ".join(column.key for column in columns)}
        FROM {relation} AS rollout
        WHERE {chosen.rollouts}
        ORDER BY {SORTS[sort]}, run_id, rollout_id
        """,
        chosen.parameters,
    )


_MEDIANS: Final = f"""
    SELECT run_id, count(*) AS rollouts,
        {", ".join(f"quantile_disc({key}, 0.5) AS {key}" for key in MEASURED)}
    FROM rollout_shares
    GROUP BY run_id
"""
_STRETCHES: Final = """
    SELECT work.run_id, work.start_time_unix_nano, work.duration_ns, work.spent_on, span.name,
        span.service_name
    FROM rollout_work AS work
    LEFT JOIN spans AS span USING (trace_id, span_id, occurrence)
    WHERE work.rollout_id = $rollout_id
    ORDER BY work.duration_ns DESC, work.run_id, work.start_time_unix_nano
"""
