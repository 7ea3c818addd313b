"""`reconstruct sql`: the relations for the plain duckdb shell."""

import click

from reconstruct.console import Console

__all__ = ["command"]


@click.command("sql", short_help="Print the relations for the duckdb shell.")
def command() -> None:
    """Print the relations as SQL for the plain duckdb shell, where they read *.log.

    \b
    Example: the same tables without this program
      reconstruct sql > relations.sql
    """
    from reconstruct.engine import relation_sql

    Console().text(relation_sql())
