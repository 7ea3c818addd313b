"""`reconstruct summary`: what the logs hold, where the time went, what to look at next."""

from collections.abc import Iterator, Mapping
from typing import Final

import click

from reconstruct.commands.lines import DAMAGE
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Column, Row
from reconstruct.render.text import (
    Line,
    Part,
    clean,
    count,
    duration,
    instant,
    plural,
    short_names,
    size,
)

__all__ = ["command"]

_SERVICES: Final = 8
_SHARES: Final = 4
"""So many services are named at once; `--json` has all of them."""

_SLOW_COLUMNS: Final = [
    Column("duration_ns", "DURATION", "duration"),
    Column("span_count", "SPANS", "count"),
    Column("error_count", "ERRORS", "count"),
    Column("open_count", "UNFINISHED", "count"),
    Column("shares", "WHERE ITS TIME WENT"),
]
_NAME_COLUMNS: Final = [
    Column("name", "SPAN NAMES"),
    Column("service_name", "SERVICE"),
    Column("span_count", "SPANS", "count"),
    Column("self_time_ns", "SELF TIME", "duration"),
    Column("share", "SHARE", "share"),
]
_FINDING_COLUMNS: Final = [
    Column("severity", "FIRST FINDINGS"),
    Column("code", "CODE"),
    Column("count", "COUNT", "count"),
    Column("place", "WHERE"),
]


@click.command("summary", short_help="Say what the logs hold and where the time went.")
@on_logs
@selection_options
def command(logs: Logs, selection: Selection) -> None:
    """Say what the logs hold: files and lines, spans, traces, rollouts; the slowest rollouts and
    where their time went; the span names with the most self time (time not covered by children);
    the first findings.

    \b
    Example: the same without the word summary
      reconstruct logs/
    """
    from reconstruct.commands.facts import facts_of

    with logs.read(keep=("_self_times", "service_edges", "findings")) as engine:
        facts = facts_of(engine, selection.of(engine))
    if logs.as_json:
        logs.console.json(facts)
        return
    names = short_names(row["service_name"] for row in facts["services"])
    logs.console.lines(_overview(facts, names))
    slowest = [_with_shares(row, names) for row in facts["slowest"]]
    busiest = [{**row, "service_name": names[row["service_name"]]} for row in facts["names"]]
    subject = (
        Column("rollout_id", "SLOWEST ROLLOUTS")
        if facts["rollout_count"]
        else Column("trace_id", "SLOWEST TRACES")
    )
    tables = (
        ([subject, *_SLOW_COLUMNS], slowest),
        (_NAME_COLUMNS, busiest),
        (_FINDING_COLUMNS, facts["first_findings"]),
    )
    for columns, rows in tables:
        if rows:
            logs.console.text("\n")
            logs.console.table(columns, rows)


def _with_shares(row: Row, names: Mapping[str | None, str]) -> Row:
    """Add the words: `policy_model 71 %, tools 20 %, …`."""
    spent = [service for service in row["services"] if service["self_time_ns"]]
    total = sum(service["self_time_ns"] for service in spent)
    words = [
        f"{names[service['service_name']]} {100 * service['self_time_ns'] / total:.0f} %"
        for service in spent[:_SHARES]
    ]
    return {**row, "shares": ", ".join(words) + (", …" if len(spent) > _SHARES else "")}


def _overview(facts: Row, names: Mapping[str | None, str]) -> Iterator[Line]:
    classes = facts["line_classes"]
    read = f"{plural(facts['file_count'], 'file')}, {size(facts['byte_count'])}, "
    read += plural(facts["line_count"], "line")
    kinds = ", ".join(f"{count(lines)} {name}" for name, lines in classes.items())
    yield _line("read", f"{read}: {kinds}" if kinds else read)
    for row in facts["unreadable"]:
        yield _line("", f"{row['file']}: {row['problem']}", "warning")
    if damaged := sum(classes.get(name, 0) for name in DAMAGE):
        yield _line("damaged", f"{plural(damaged, 'line')}; see `reconstruct lines`", "warning")
    if not facts["span_count"]:
        yield _line("found", "no spans", "warning")
        return
    found = f"{plural(facts['span_count'], 'span')} in {plural(facts['trace_count'], 'trace')}"
    if facts["rollout_count"]:
        found += f", {plural(facts['rollout_count'], 'rollout')}"
    if facts["run_count"]:
        found += f" of {plural(facts['run_count'], 'run')}"
    yield _line("found", f"{found}, by {plural(facts['process_count'], 'process', 'processes')}")
    shown = [names[row["service_name"]] for row in facts["services"][:_SERVICES]]
    if left := len(facts["services"]) - len(shown):
        shown.append(f"{count(left)} more")
    yield _line("services", ", ".join(shown))
    start, end = facts["start_time_unix_nano"], facts["end_time_unix_nano"]
    yield _line("time", f"{instant(start)}, {duration(end - start)}")
    errors, unfinished = facts["error_count"], facts["open_count"]
    yield _line("errors", f"{plural(errors, 'span')} with errors", "error" if errors else "")
    words = plural(unfinished, "span")
    if unfinished:
        words += "; shares and self times leave them out"
    yield _line("unfinished", words, "warning" if unfinished else "")
    findings = ", ".join(plural(number, severity) for severity, number in facts["findings"].items())
    is_broken = facts["findings"]["error"] or facts["findings"]["warning"]
    more = "; `reconstruct doctor` says more" if facts["first_findings"] else ""
    yield _line("findings", findings + more, "warning" if is_broken else "")


def _line(heading: str, words: str, style: str = "") -> Line:
    return (Part(f"{heading:<12}", "quiet"), Part(clean(words), style))
