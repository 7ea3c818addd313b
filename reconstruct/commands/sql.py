"""`reconstruct sql`: the relations for the plain duckdb shell, or a reference of them."""

import click

from reconstruct.console import Console

__all__ = ["command"]


@click.command("sql", short_help="Print the relations for the duckdb shell.")
@click.option(
    "--logs",
    metavar="GLOB",
    help="The files that the shell is to read.  [default: *.log, or the variable `logs`]",
)
@click.option("--reference", is_flag=True, help="Print what each relation and column means.")
def command(logs: str | None, reference: bool) -> None:  # noqa: FBT001  # click passes by keyword
    """Print the relations as SQL for the plain duckdb shell (1.5 or later), where they read the
    lines of gymlog. Lines of other formats, and wrapped ones, need `reconstruct query`.

    \b
    Example: the same tables without this program
      reconstruct sql > relations.sql
    """
    if reference:
        if logs is not None:
            raise click.UsageError("--reference reads no logs")
        from reconstruct.reference import reference as text

        Console().text(text())
        return
    from reconstruct.engine import relation_sql

    if logs is not None:
        quoted = logs.replace("'", "''")
        Console().text(f"SET VARIABLE logs = '{quoted}';\n")
    Console().text(relation_sql())
