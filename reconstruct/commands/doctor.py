"""`reconstruct doctor`: what is wrong with a run, where, and what to do about it."""

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.render.text import Line, Part, clean, flow, plural

if TYPE_CHECKING:
    from reconstruct.findings import Diagnosis, Finding, FindingGroup

__all__ = ["command"]

_STYLES: Final = {"error": "error", "warning": "warning", "note": "quiet"}
_INDENT: Final = " " * 9
_MIN_ROOM: Final = 40
"""Columns for words, however narrow the terminal is."""


@click.command("doctor", short_help="Find what is broken and where; exit 1 if anything is.")
@on_logs
@selection_options
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Places to show for each kind of finding; 0 shows all.",
)
def command(logs: Logs, selection: Selection, examples: int) -> int:
    """Find what is broken (propagation, lost lines, work that never ended …), say where and what
    to do. Exit code 1 when there is an error or a warning; notes do not count.

    \b
    Example: check a run in a script
      reconstruct doctor logs/ && echo fine
    """
    from reconstruct.findings import diagnose

    with logs.read(keep=("service_edges", "findings")) as engine:
        # What belongs to no run may well be what is wrong with this one.
        chosen = replace(selection, run_id=None).of(engine)
        diagnosis = diagnose(engine, selection.run_id, only=(chosen.traces, chosen.parameters))
        spans = engine.rows(
            f"SELECT count(*) AS n FROM spans AS span WHERE {chosen.spans}", chosen.parameters
        )[0]["n"]
    if logs.as_json:
        found = [finding for group in diagnosis.groups for finding in group.findings]
        logs.console.json([asdict(finding) for finding in found])
    else:
        columns = logs.console.columns
        for group in diagnosis.groups:
            logs.console.lines(_described(group, examples, columns))
        logs.console.lines([_verdict(diagnosis, spans)])
    return 1 if diagnosis.is_broken else 0


def _described(group: "FindingGroup", examples: int, columns: int) -> Iterator[Line]:
    """Head, the first finding's words, places, then what to do; further words are alike."""
    first = group.example
    times = f" ×{group.count:,}" if group.count > 1 else ""
    run = f"   (run {first.run_id})" if first.run_id else ""
    severity = Part(f"{first.severity:<{len(_INDENT)}}", _STYLES[first.severity])
    for line in _wrapped(f"{first.code}{times}   {first.place}{run}", columns):
        yield (severity, Part(line, "title"))
        severity = Part(_INDENT)
    for line in _wrapped(first.message, columns):
        yield (Part(_INDENT), Part(line))
    shown = group.findings[:examples] if examples else group.findings
    for finding in shown:
        yield from flow(_where(finding), columns, _INDENT)
    if left := group.count - len(shown):
        yield (Part(_INDENT), Part(f"… {left:,} more; --examples 0 shows all", "quiet"))
    for line in _wrapped(f"→ {first.hint}", columns):
        yield (Part(_INDENT), Part(line, "good"))
    yield ()


def _wrapped(words: str, columns: int) -> list[str]:
    room = max(columns - len(_INDENT), _MIN_ROOM)
    return textwrap.wrap(clean(words), room, break_on_hyphens=False, break_long_words=False)


def _where(finding: "Finding") -> Iterator[Line]:
    if finding.file is not None:
        line = "" if finding.line is None else f":{finding.line}"
        yield (Part(f"{clean(finding.file)}{line}", "quiet"),)
    if finding.trace_id is not None:
        yield (Part(f"trace {clean(finding.trace_id)}", "quiet"),)
    if finding.span_id is not None:
        yield (Part(f"span {clean(finding.span_id)}", "quiet"),)


def _verdict(diagnosis: "Diagnosis", spans: int) -> Line:
    counts = ", ".join(plural(diagnosis.count(severity), severity) for severity in _STYLES)
    if diagnosis.is_broken:
        return (Part(f"Broken: {counts}.", "error"),)
    if not spans:
        return (Part("Nothing to judge: no spans in these logs.", "warning"),)
    return (Part(f"Nothing is broken in {plural(spans, 'span')}: {counts}.", "good"),)
