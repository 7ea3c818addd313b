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
    "joined",
    "duplicate",
    "recovered",
    "json",
    "text",
    "blank",
    "torn",
    "invalid",
    "bad_encoding",
)
"""In the order of the table's columns."""
DAMAGE: Final = ("recovered", "torn", "invalid", "bad_encoding")
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
@click.option("--strict", is_flag=True, help="Exit with 1 when lines are damaged.")
@limit_option(20, "line")
def command(logs: Logs, line_class: str | None, strict: bool, limit: int) -> int:  # noqa: FBT001  # click passes by keyword
    """Account for every line: how many of each class per file, adding up to the lines read, then
    the damaged ones with their place and the reason.

    Classes: span, span_start, log, metric, process are records; joined: part of a record over
    several lines; duplicate: a record read before; recovered: records among other things; json,
    text, blank: no record; torn: a record that is not whole; invalid: one that breaks its format;
    bad_encoding: not UTF-8.

    \b
    Example: fail a job when lines were damaged
      reconstruct lines logs/ --strict
    """
    with logs.read() as engine:
        counts = engine.rows("SELECT file, class, lines FROM line_classes ORDER BY file, class")
        listed = [line_class] if line_class else list(DAMAGE)
        rejected = _rejected(engine, listed)
        if logs.as_json and line_class:
            logs.show(_REJECTED, rejected, limit=limit, noun=f"{line_class} line")
        elif logs.as_json:
            logs.console.json(counts)
        else:
            _table(logs, counts)
            _problems(logs, engine)
            if rejected:
                logs.console.text("\n")
            logs.show(_REJECTED, rejected, limit=limit, noun=f"{line_class or 'damaged'} line")
        damaged = sum(row["lines"] for row in counts if row["class"] in DAMAGE)
    return 1 if strict and damaged else 0


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
    for row in counts:
        for counter in (files.setdefault(row["file"], Counter()), total):
            counter.update({row["class"]: row["lines"], "lines": row["lines"]})
    rows: list[Row] = [{"file": file, **counter} for file, counter in sorted(files.items())]
    rows.append({"file": f"all {plural(len(files), 'file')}", **total})
    columns = [
        Column("file", "FILE"),
        Column("lines", "LINES", "count"),
        *(Column(name, name.upper(), "count") for name in CLASSES if total[name]),
    ]
    logs.console.table(columns, rows)


def _problems(logs: Logs, engine: "Engine") -> None:
    """Name files that could not be read to their end, and any line that no class accounts for."""
    for row in engine.rows(
        """
        SELECT file.file, file.lines, file.problem, coalesce(sum(class.lines), 0)::BIGINT AS classed
        FROM _files AS file
        LEFT JOIN line_classes AS class USING (file)
        GROUP BY ALL
        ORDER BY file.file
        """
    ):
        if row["problem"]:
            logs.console.say(f"{row['file']}: {row['problem']}")
        if row["classed"] != row["lines"]:
            logs.console.say(
                f"{row['file']}: {count(row['classed'])} lines have a class, "
                f"{count(row['lines'])} were read; please report this"
            )
