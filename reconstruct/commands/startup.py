"""`reconstruct startup`: where the time of a fleet's start went, and which server held it up."""

from collections import defaultdict
from typing import Any, Final

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.logs import Logs, limit_option, on_logs
from reconstruct.commands.selection import Chosen, Selection, selection_options
from reconstruct.console import Column
from reconstruct.render.text import plural

__all__ = ["command"]

Rows = list[dict[str, Any]]  # Any: a column's value is whatever the relation holds

_START: Final = (
    "trace_id", "run_id", "service_name", "start_time_unix_nano", "end_time_unix_nano",
    "duration_ns", "outcome", "stage", "server_count", "ready_count", "held_up_by", "message",
)  # fmt: skip
_SERVER: Final = (
    "server_name", "server_type", "start_time_unix_nano", "ready_unix_nano", "duration_ns",
    "outcome", "has_held_up", "behind_ns", "instance", "stage", "stage_ns", "is_stage_over",
    "noticed_after_ns", "process_count", "message", "own_message",
)  # fmt: skip
_STAGE: Final = (
    "part", "instance", "process_pid", "stage", "start_time_unix_nano", "end_time_unix_nano",
    "duration_ns", "share", "is_unfinished", "message",
)  # fmt: skip


def _heading(key: str) -> str:
    return key.replace("_", " ").upper()


_FIGURES: Final = (
    *(Column(key, _heading(key)) for key in _START),
    Column("stages", "STAGES", meaning="The supervisor's stages: rows of startup_stages."),
    Column(
        "servers",
        "SERVERS",
        meaning="Rows of startup_servers, each with the stages of its processes.",
    ),
    *(Column(f"startup_servers.{key}", _heading(key)) for key in _SERVER),
    *(Column(f"startup_stages.{key}", _heading(key)) for key in _STAGE),
)


@click.command("startup", short_help="Show where start-up time went, and who held it up.")
@on_logs
@explained(*_FIGURES, relation="startups")
@selection_options
@limit_option(5, "start")
def command(logs: Logs, selection: Selection, limit: int) -> None:
    """Show where the time of each start of the fleet went: the stages of its supervisor, servers
    and workers, and the server that it waited for; of a start that failed, which servers were not
    ready and what they were doing. The latest start comes first.

    \b
    Example: what did the fleet wait for when it last started, for a script
      reconstruct startup logs/ --limit 1 --json
    """
    with logs.read() as engine:
        chosen = selection.of(engine)
        questions = (_starts(chosen), _servers(chosen), _stages(chosen))
        if logs.as_sql:
            print_sql(logs, *questions)
            return
        starts = _nested(*(question.ask(engine) for question in questions))
    shown = starts[:limit] if limit else starts
    if logs.as_json:
        logs.console.json(shown)
    else:
        from reconstruct.render.startup import startup

        for start in shown:
            logs.console.lines(startup(start, columns=logs.console.columns))
        if not starts:
            logs.console.say("no start in these logs; is the span group 'startup' on?")
    if left := len(starts) - len(shown):
        logs.console.say(f"… {plural(left, 'earlier start')}; --limit 0 shows all")


def _starts(chosen: Chosen) -> Question:
    return Question(
        f"""
        SELECT {", ".join(_START)}
        FROM startups
        WHERE {_is_chosen(chosen)}
        ORDER BY start_time_unix_nano DESC, trace_id
        """,
        chosen.parameters,
    )


def _servers(chosen: Chosen) -> Question:
    return Question(
        f"""
        SELECT trace_id, {", ".join(_SERVER)}
        FROM startup_servers
        WHERE {_is_chosen(chosen)}
        ORDER BY trace_id, start_time_unix_nano, server_name, span_id
        """,
        chosen.parameters,
    )


def _stages(chosen: Chosen) -> Question:
    return Question(
        f"""
        SELECT trace_id, server_name, {", ".join(_STAGE)}
        FROM startup_stages
        WHERE {_is_chosen(chosen)}
        ORDER BY trace_id, server_name, part, instance, position, span_id
        """,
        chosen.parameters,
    )


def _is_chosen(chosen: Chosen) -> str:
    return f"trace_id IN (SELECT trace_id FROM traces AS trace WHERE {chosen.traces})"


def _nested(starts: Rows, servers: Rows, stages: Rows) -> Rows:
    """Put the stages into their servers, and these into their starts."""
    stages_of: dict[tuple[str, str | None], Rows] = defaultdict(list)
    for stage in stages:
        owner = stage.pop("trace_id"), stage.pop("server_name")
        stages_of[owner].append(stage)
    servers_of: dict[str, Rows] = defaultdict(list)
    for server in servers:
        trace_id = server.pop("trace_id")
        servers_of[trace_id].append(server | {"stages": stages_of[trace_id, server["server_name"]]})
    return [
        start
        | {"stages": stages_of[start["trace_id"], None], "servers": servers_of[start["trace_id"]]}
        for start in starts
    ]
