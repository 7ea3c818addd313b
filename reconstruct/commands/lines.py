"""`reconstruct lines`: what became of every line that was read."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from reconstruct.commands.logs import Logs, limit_option, on_logs
from reconstruct.console import Column, Row
from reconstruct.render.text import count, plural

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["CLASSES", "DAMAGE", "command"]

CLASSES: Final = (
    "span",
    "span_start",
    "log",
    "metric",
    "process",
    "model_call",
    "joined",
    "duplicate",
    "recovered",
    "json",
    "text",
    "blank",
    "torn",
    "invalid",
    "bad_encoding",
    "oversize",
)
"""In the order of the table's columns."""
DAMAGE: Final = ("recovered", "torn", "invalid", "bad_encoding", "oversize")
"""Lines from which something was lost, or may have been."""

_REJECTED: Final = [
    Column("place", "PLACE"),
    Column("class", "CLASS"),
    Column("reason", "REASON"),
    Column("sample", "LINE"),
]


@click.command("lines", short_help="Account for every line; list the damaged ones.")
@on_logs
@click.option(
    "--class",
    "line_class",
    type=click.Choice(CLASSES[CLASSES.index("duplicate") :]),
    help="List the lines of this class instead of the damaged ones.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Exit with 1 when lines are damaged or files could not be read whole; say which.",
)
@limit_option(20, "line")
def command(logs: Logs, line_class: str | None, strict: bool, limit: int) -> int:  # noqa: FBT001  # click passes by keyword
    """Account for every line: how many of each class per file, adding up to the lines read, then
    the damaged ones with their place and the reason.

    Classes: span, span_start, log, metric, process, model_call are records; joined: part of a
    record over several lines; duplicate: a record read before; recovered: records among other
    things; json, text, blank: no record; torn: a record that is not whole; invalid: one that breaks
    its format; bad_encoding: not UTF-8; oversize: too long to be read. WRAPPER: what most lines of
    a file are in, from the outside in.

    \b
    Example: fail a job when lines were damaged
      reconstruct lines logs/ --strict
    """
    with logs.read() as engine:
        counts = engine.rows(
            """
            SELECT class.file, class.class, class.lines, max(file.wrapper) AS wrapper
            FROM line_classes AS class
            LEFT JOIN _files AS file USING (file)
            GROUP BY ALL
            ORDER BY class.file, class.class
            """
        )
        if logs.as_json and not line_class:
            logs.console.json(counts)
        elif not logs.as_json:
            _table(logs, counts)
        if strict or not logs.as_json:
            _problems(logs, engine)
        if line_class or not (strict or logs.as_json):
            rejected = _rejected(engine, [line_class] if line_class else list(DAMAGE))
            if rejected and not logs.as_json:
                logs.console.text("\n")
            logs.show(_REJECTED, rejected, limit=limit, noun=f"{line_class or 'damaged'} line")
        unread = engine.rows(
            "SELECT file, problem FROM _files WHERE problem IS NOT NULL ORDER BY file"
        )
        damage = _damage(counts, unread)
        if strict:
            _complain(logs, _rejected(engine, list(DAMAGE)), limit)
            logs.console.say(f"damaged: {damage}" if damage else "no damaged lines")
    return 1 if strict and damage else 0


def _complain(logs: Logs, damaged: Sequence[Row], limit: int) -> None:
    """Say of each damaged line where it is and what is wrong with it."""
    shown = damaged[:limit] if limit else damaged
    for row in shown:
        logs.console.say(f"{row['place']}: {row['class']}: {row['reason']}")
    if left := len(damaged) - len(shown):
        logs.console.say(f"… {plural(left, 'more damaged line')}; --limit 0 shows all")


def _damage(counts: Sequence[Row], unread: Sequence[Row]) -> str:
    """Name the classes of damaged lines and how many there are, and of how many files something
    is missing; empty when nothing is."""
    lines: Counter[str] = Counter()
    for row in counts:
        lines[row["class"]] += row["lines"]
    found = [f"{count(lines[name])} {name}" for name in DAMAGE if lines[name]]
    if unread:
        found.append(f"{plural(len(unread), 'file')} not read whole")
    return ", ".join(found)


def _rejected(engine: "Engine", classes: list[str]) -> list[Row]:
    rows = engine.rows(
        """
        SELECT file, line, byte_offset, class, reason, sample
        FROM rejected_lines
        WHERE class IN (SELECT unnest($classes))
        ORDER BY file, line, byte_offset
        """,
        {"classes": classes},
    )
    return [{**row, "place": f"{row['file']}:{row['line']}"} for row in rows]


def _table(logs: Logs, counts: Sequence[Row]) -> None:
    """One row per file and one for all of them; only the classes that occur are columns."""
    files: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    wrappers = {row["file"]: row["wrapper"] for row in counts if row["wrapper"] is not None}
    for row in counts:
        for counter in (files.setdefault(row["file"], Counter()), total):
            counter.update({row["class"]: row["lines"], "lines": row["lines"]})
    rows: list[Row] = [
        {"file": file, "wrapper": wrappers.get(file), **counter}
        for file, counter in sorted(files.items())
    ]
    rows.append({"file": f"all {plural(len(files), 'file')}", **total})
    columns = [
        Column("file", "FILE"),
        *([Column("wrapper", "WRAPPER")] if wrappers else []),
        Column("lines", "LINES", "count"),
        *(Column(name, name.upper(), "count") for name in CLASSES if total[name]),
    ]
    logs.console.table(columns, rows)


def _problems(logs: Logs, engine: "Engine") -> None:
    """Name what was left out or not read to its end, and any line that no class accounts for."""
    for skipped in engine.skipped:
        logs.console.say(
            f"left out {plural(skipped.count, 'file')}, {skipped.reason}: {skipped.example}"
            + (" …" if skipped.count > 1 else "")
        )
    for row in engine.rows(
        """
        SELECT
            file.file,
            file.lines,
            file.problem,
            file.pending_bytes,
            coalesce(sum(class.lines), 0)::BIGINT AS classed
        FROM _files AS file
        LEFT JOIN line_classes AS class USING (file)
        GROUP BY ALL
        ORDER BY file.file
        """
    ):
        if row["problem"]:
            logs.console.say(f"{row['file']}: {row['problem']}")
        if row["pending_bytes"]:
            logs.console.say(
                f"{row['file']}: ends in {count(row['pending_bytes'])} bytes of a line that is "
                "being written; they are left for the next time"
            )
        if row["classed"] != row["lines"]:
            logs.console.say(
                f"{row['file']}: {count(row['classed'])} lines have a class, "
                f"{count(row['lines'])} were read; please report this"
            )
