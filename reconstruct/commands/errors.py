"""`reconstruct errors`: what broke, how often, in how many rollouts."""

from collections.abc import Iterator, Sequence
from typing import Final

import click

from reconstruct.commands.answers import Question, answer, explained, with_details
from reconstruct.commands.logs import Logs, limit_option, on_logs
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Column, Row
from reconstruct.render.text import plural, short_names

__all__ = ["command"]

_COLUMNS: Final = [
    Column("cause_count", "COUNT", "count", "Spans that failed like this, of themselves."),
    Column("rollout_count", "ROLLOUTS", "count", "Rollouts that they belong to."),
    Column(
        "root_count",
        "ROOTS",
        "count",
        "Roots that failed for them: each span from there down to the cause failed.",
    ),
    Column("cause", "CAUSE"),
    Column("service_name", "SERVICE"),
    Column("name", "SPAN"),
    Column("error_type", "ERROR"),
]
_DETAILS: Final = [
    Column("message", "MESSAGE", meaning="The most frequent of their messages."),
    Column("message_count", "MESSAGES", "count", "How many different messages there are."),
    Column(
        "waited_for",
        "WAITED FOR",
        meaning="What they waited for most often when they failed, and what became of it (see "
        "waited_outcome of the relation error_causes).",
    ),
    Column("trace_id", "FIRST TRACE", meaning="The trace of the earliest of them."),
]


@click.command("errors", short_help="Say what broke, how often, in how many rollouts.")
@on_logs
@explained(*_COLUMNS, *_DETAILS, relation="error_causes")
@selection_options
@limit_option(20, "cause")
def command(logs: Logs, selection: Selection, limit: int) -> None:
    """Say what broke, how often, in how many rollouts: the deepest spans that failed, by what
    they are and their error; what failed above them failed for them. A timeout is the cause of
    what was cancelled or left unfinished below it. Selections are of the spans that are causes.

    \b
    Example: what broke in the agent, as data
      reconstruct errors logs/ --service agent --json
    """
    with logs.read() as engine:
        chosen = selection.of(engine)
        question = Question(
            f"""
            SELECT
                count(*) AS cause_count,
                count(DISTINCT (found.run_id, found.rollout_id))
                    FILTER (found.rollout_id IS NOT NULL) AS rollout_count,
                count(DISTINCT (found.trace_id, found.failed_span_id))
                    FILTER (found.has_reached_root) AS root_count,
                found.cause,
                found.service_name,
                found.name,
                found.error_type,
                mode(found.message ORDER BY found.message) AS message,
                count(DISTINCT found.message) AS message_count,
                mode(
                    found.waited_name || coalesce(' in ' || found.waited_service_name, '')
                        || ', ' || found.waited_outcome
                    ORDER BY found.waited_name, found.waited_service_name, found.waited_outcome
                ) AS waited_for,
                arg_min(
                    found.trace_id,
                    (found.start_time_unix_nano, found.trace_id)
                ) AS trace_id
            FROM error_causes AS found
            JOIN spans AS span USING (trace_id, span_id, occurrence)
            WHERE {chosen.spans}
            GROUP BY found.cause, found.service_name, found.name, found.error_type
            ORDER BY cause_count DESC, found.cause, found.service_name, found.name,
                found.error_type
            """,
            chosen.parameters,
        )
        answer(
            logs,
            engine,
            question,
            _COLUMNS,
            limit=limit,
            noun="error",
            draw=lambda rows: _draw(logs, rows),
        )


def _draw(logs: Logs, rows: Sequence[Row]) -> None:
    names = short_names(row["service_name"] for row in rows)
    shown = [{**row, "service_name": names[row["service_name"]]} for row in rows]
    logs.console.lines(with_details(logs.console, _COLUMNS, shown, _details))


def _details(row: Row) -> Iterator[str]:
    if row["message"]:
        others = row["message_count"] - 1
        more = f" (and {plural(others, 'other message')})" if others else ""
        yield row["message"] + more
    if row["waited_for"]:
        yield f"waited for {row['waited_for']}"
    yield f"{'first: ' if row['cause_count'] > 1 else ''}reconstruct show {row['trace_id']}"
