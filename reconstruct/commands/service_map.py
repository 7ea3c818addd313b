"""`reconstruct map`: who calls whom, how often, how long, and what has no other half."""

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Final, Literal

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.logs import Logs, align_option, on_logs
from reconstruct.commands.selection import Chosen, Selection, selection_options
from reconstruct.console import Column, Row
from reconstruct.render.text import Line, Part, clean, count, fit, plural, width

__all__ = ["command"]

_EDGE: Final = (
    Column("client", "CLIENT"),
    Column("client_instance", "CLIENT INSTANCE"),
    Column("server", "SERVER"),
    Column("server_instance", "SERVER INSTANCE"),
    Column("kind", "KIND"),
    Column("calls", "CALLS", "count"),
    Column("failed_calls", "FAILED", "count"),
    Column("attempts", "ATTEMPTS", "count"),
    Column("failed_attempts", "FAILED ATTEMPTS", "count"),
    Column("unpaired_calls", "UNPAIRED", "count"),
    Column("unfinished_calls", "UNFINISHED", "count"),
    Column("duration_p50_ns", "P50", "duration"),
    Column("duration_p95_ns", "P95", "duration"),
    Column("duration_p99_ns", "P99", "duration"),
    Column("gap_p50_ns", "GAP", "duration"),
    Column("gap_p95_ns", "GAP P95", "duration"),
    Column("negative_gaps", "NEGATIVE GAPS", "count"),
)
_HALF: Final = (
    Column("side", "SIDE"),
    Column("reason", "REASON"),
    Column("service_name", "SERVICE"),
    Column("name", "SPAN"),
    Column("peer", "PEER"),
    Column("halves", "HALVES", "count", meaning="Halves of which all this is true."),
    Column("trace_id", "TRACE", meaning="Trace of the earliest of these halves."),
)
_RELATIONS: Final = ("service_edges", "instance_edges", "unpaired_halves")
_ID: Final = 8
"""Digits of a trace id that are shown."""
_MIN_ROOM: Final = 24
"""Columns for names, however narrow the terminal is."""
_INSTANCES: Final = {"client_instance", "server_instance"}


@click.command("map", short_help="Draw who calls whom, and what has no other half.")
@on_logs
@align_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="What to draw with: this terminal, Mermaid or Graphviz.",
)
@click.option("--instances", is_flag=True, help="Draw processes, not services.")
@click.option("--unpaired", is_flag=True, help="List the halves of calls that lack the other one.")
@explained(*_EDGE, *_HALF, relation=_RELATIONS)
@selection_options
def command(
    logs: Logs,
    form: Literal["text", "mermaid", "dot"],
    selection: Selection,
    *,
    instances: bool,
    unpaired: bool,
) -> None:
    """Draw who calls whom: services, databases and external addresses, with calls, failures,
    durations and the time between client and server. What the logs do not show has places of its
    own: callers outside (entry), callers whose span is missing, calls that name no address.

    \b
    Example: which processes call which, replicas apart
      reconstruct map logs/ --instances
    """
    if form != "text" and (logs.as_json or unpaired):
        raise click.UsageError("--format draws the map; leave out --json and --unpaired with it")
    with logs.read(keep=() if instances or unpaired else ("service_edges",)) as engine:
        chosen = selection.of(engine)
        question = _halves(chosen) if unpaired else _edges(chosen, by_instance=instances)
        if logs.as_sql:
            print_sql(logs, question)
            return
        rows: list[Row] = list(question.ask(engine))
    if logs.as_json:
        logs.console.json(rows)
    elif unpaired:
        logs.console.lines(_listed(rows, logs.console.columns))
        if not rows:
            logs.console.say("every call has both halves")
    else:
        _draw(logs, form, rows)


def _draw(logs: Logs, form: Literal["text", "mermaid", "dot"], rows: list[Row]) -> None:
    from reconstruct.render.call_graph import graph
    from reconstruct.render.diagrams import dot, mermaid
    from reconstruct.render.service_map import service_map

    edges = graph(rows)
    if form != "text":
        diagram = mermaid(edges) if form == "mermaid" else dot(edges)
        logs.console.text("".join(f"{line}\n" for line in diagram))
        return
    logs.console.lines(service_map(edges, columns=logs.console.columns))
    if not rows:
        logs.console.say("no calls between services")
    elif left := sum(row["unpaired_calls"] for row in rows):
        words = f"{plural(left, 'call has', 'calls have')} one half only; --unpaired says why"
        logs.console.lines([(Part(words, "quiet"),)])


def _listed(rows: list[Row], columns: int) -> Iterator[Line]:
    """Each reason, and below it the spans that it is true of, by service and name."""
    halves = max((width(count(row["halves"])) for row in rows), default=0)
    longest = max((width(_where(row)) for row in rows), default=0)
    room = min(longest, max(columns - halves - _ID - 12, _MIN_ROOM))
    for reason, some in groupby(rows, lambda row: str(row["reason"])):
        group = list(some)
        total = sum(row["halves"] for row in group)
        noun = plural(total, f"{group[0]['side']} half", f"{group[0]['side']} halves")
        words = textwrap.wrap(f"{noun}: {reason}", columns, break_on_hyphens=False)
        yield from ((Part(line, "title"),) for line in words)
        for row in group:
            yield (
                Part(f"  {fit(count(row['halves']), halves, right=True)}  "),
                Part(fit(_where(row), room)),
                Part(f"  trace {row['trace_id'][:_ID]}", "quiet"),
            )
        yield ()


def _where(row: Row) -> str:
    peer = f" to {row['peer']}" if row["peer"] else ""
    return clean(f"{row['name']} in {row['service_name'] or '-'}{peer}")


def _edges(chosen: Chosen, *, by_instance: bool) -> Question:
    relation = "instance_edges" if by_instance else "service_edges"
    names = [c.key for c in _EDGE if by_instance or c.key not in _INSTANCES]
    return Question(
        f"""
        SELECT {", ".join(names)}
        FROM {_of(relation, chosen)}
        ORDER BY ALL
        """,
        chosen.parameters,
    )


def _of(relation: str, chosen: Chosen) -> str:
    """The relation, or what it is of the chosen traces only."""
    if not chosen.parameters:
        return relation
    return f"""{relation}_of(
            (
                SELECT coalesce(list(trace_id), [])
                FROM traces AS trace
                WHERE {chosen.traces}
            )
        )"""


def _halves(chosen: Chosen) -> Question:
    return Question(
        f"""
        SELECT side, kind, reason, service_name, name, peer, count(*) AS halves,
            arg_min(trace_id, (start_time_unix_nano, trace_id)) AS trace_id
        FROM unpaired_halves
        WHERE trace_id IN (SELECT trace_id FROM traces AS trace WHERE {chosen.traces})
        GROUP BY side, kind, reason, service_name, name, peer
        ORDER BY sum(count(*)) OVER (PARTITION BY reason) DESC, reason, halves DESC,
            side, kind, service_name, name, peer
        """,
        chosen.parameters,
    )
