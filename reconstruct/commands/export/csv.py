"""`reconstruct export csv`: one relation for a spreadsheet."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from reconstruct.commands.export.chosen import (
    Choice,
    choice_options,
    condition_on,
    relation_types,
    unknown_relation,
)
from reconstruct.commands.export.destination import (
    check_destination,
    opened,
    output_option,
    report,
)
from reconstruct.commands.logs import Logs, on_logs
from reconstruct.errors import UsageError
from reconstruct.render.text import plural

if TYPE_CHECKING:
    from reconstruct.safe_sql import Answer

__all__ = ["command"]


@click.command("csv", short_help="Write one relation as CSV.")
@on_logs
@choice_options
@output_option
@click.option("--relation", metavar="NAME", default="spans", show_default=True, help="Which one.")
@click.option("--raw", is_flag=True, help="Leave text that a spreadsheet would run as it is.")
def command(logs: Logs, *, choice: Choice, output: str, relation: str, raw: bool) -> None:
    """Write one relation as CSV (RFC 4180, UTF-8, a line of names first). A text that a spreadsheet
    would run as a formula gets a ' before it, and NUL becomes U+FFFD; numbers stay numbers. To get
    the texts back, leave out a ' that stands before one of = + - @, a tab or a carriage return, or
    write with --raw.

    \b
    Example: the rollouts, for a spreadsheet
      reconstruct export csv logs/ --relation rollouts -o rollouts.csv
    """
    from reconstruct.export.rows import ALIASES, NO_LIMITS
    from reconstruct.render.records import texts

    check_destination(logs, output, is_binary=output.endswith(".gz"))
    with logs.read() as engine:
        types = relation_types(engine)
        if relation not in types:
            raise unknown_relation(relation, types)
        chosen = choice.of(engine)
        condition = condition_on(relation, types[relation], chosen)
        if condition is None:
            raise UsageError(f"rows of {relation} are not told by what was chosen; export it whole")
        sql = (
            f'SELECT * FROM "{relation}" AS {ALIASES.get(relation, "row")} WHERE {condition} '
            "ORDER BY ALL"
        )
        rows = 0
        asked = engine.answer(sql, chosen.parameters or None, limits=NO_LIMITS)
        with asked as answer, opened(logs, engine, output) as out:
            lines = texts(answer.names, _rows(answer, choice), "csv", is_raw=raw)
            for rows, line in enumerate(lines):  # noqa: B007  # the first line is the names
                out.write(line.encode(errors="replace"))
    if not logs.console.is_reader_gone:
        figures: dict[str, object] = {"relation": relation, "rows": rows}
        report(logs, output, f"{plural(rows, 'row')} of {relation}", figures)


def _rows(answer: "Answer", choice: Choice) -> Iterator[Sequence[object]]:
    for row in answer.rows():
        redacted = choice.redacted(dict(zip(answer.names, row, strict=True)))
        yield list(redacted.values())
