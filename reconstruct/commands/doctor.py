"""`reconstruct doctor`: what is wrong with a run, where, and what to do about it."""

import difflib
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.answers import Question, explained, print_sql
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.commands.selection import Selection, selection_options
from reconstruct.console import Column
from reconstruct.errors import UsageError
from reconstruct.render.text import Line, Part, clean, flow, plural, wrapped

if TYPE_CHECKING:
    from reconstruct.findings import Diagnosis, Finding, FindingGroup

__all__ = ["command"]

_STYLES: Final = {"error": "error", "warning": "warning", "note": "quiet"}
_INDENT: Final = " " * 9
_MIN_ROOM: Final = 40
"""Columns for words, however narrow the terminal is."""
_COLUMNS: Final = [
    Column("code", "FINDING"),
    Column("severity", "SEVERITY"),
    Column("cause", "CAUSE"),
    Column("confidence", "SURE", "share"),
    Column("run_id", "RUN"),
    Column("trace_id", "TRACE"),
    Column("span_id", "SPAN"),
    Column("file", "FILE"),
    Column("line", "LINE"),
    Column("place", "PLACE"),
    Column("message", "MESSAGE"),
    Column("hint", "HINT"),
    Column("evidence", "EVIDENCE"),
]
_FAILING: Final = {
    "error": {"error"},
    "warning": {"error", "warning"},
    "note": {"error", "warning", "note"},
    "never": set[str](),
}
"""What each severity of `--fail-on` means."""


@click.command("doctor", short_help="Find what is broken and where; exit 1 if anything is.")
@on_logs
@explained(*_COLUMNS, relation="findings")
@selection_options
@click.option(
    "--fail-on",
    metavar="WHAT",
    default="warning",
    show_default=True,
    help="Exit with 1 for these: error, warning (and errors), note (anything), never, or codes and "
    "causes of findings, with commas between them.",
)
@click.option(
    "--examples",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Places to show for each kind of finding; 0 shows all.",
)
def command(logs: Logs, selection: Selection, fail_on: str, examples: int) -> int:
    """Find what is broken (propagation, lost lines, work that never ended …), say where and what
    to do. Exit code 1 when there is an error or a warning, or what --fail-on says.

    \b
    Example: check a run in a script, for errors alone
      reconstruct doctor logs/ --fail-on error
    """
    from reconstruct.findings import diagnose, findings_sql

    failing = _failing(fail_on)
    with logs.read(keep=("service_edges", "findings")) as engine:
        # What belongs to no run may well be what is wrong with this one.
        chosen = replace(selection, run_id=None).of(engine)
        if logs.as_sql:
            parameters = {**chosen.parameters, "run": selection.run_id}
            print_sql(logs, Question(findings_sql(chosen.traces), parameters))
            return 0
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
    return 1 if diagnosis.has_any(failing) else 0


def _failing(words: str) -> set[str]:
    """Return the severities, codes and causes that `--fail-on` names."""
    from reconstruct.findings import CAUSES
    from reconstruct.store.relations import finding_codes

    known = [*_FAILING, *finding_codes(), *CAUSES]
    failing: set[str] = set()
    for word in filter(None, (word.strip() for word in words.split(","))):
        if word not in known:
            near = difflib.get_close_matches(word, known, n=3)
            more = f"; did you mean {' or '.join(near)}?" if near else f"; {', '.join(known)}"
            raise UsageError(f"--fail-on knows no '{word}'{more}")
        failing |= _FAILING.get(word, {word})
    return failing


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
    if first.cause not in (None, first.code):
        is_sure = first.confidence in (None, 1)
        sure = "" if is_sure else f", {100 * (first.confidence or 0):.0f} % sure"
        yield (Part(_INDENT), Part(f"cause: {first.cause}{sure}", "quiet"))
    for line in _wrapped(f"→ {first.hint}", columns):
        yield (Part(_INDENT), Part(line, "good"))
    yield ()


def _wrapped(words: str, columns: int) -> list[str]:
    return wrapped(words, max(columns - len(_INDENT), _MIN_ROOM))


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
