"""The relations as SQL: their order, their texts, and what of it a database of ours runs.

`sql/load.sql` names them in order. The base tables are filled by intake; all others are made from
those, and made anew when those have changed.
"""

import hashlib
import re
from functools import cache
from importlib.resources import files as package_files
from typing import Final

import duckdb

from reconstruct.intake import tables

__all__ = [
    "column_comments",
    "create_base_tables",
    "create_relations",
    "drop_relations",
    "finding_codes",
    "fingerprint",
    "is_made",
    "names",
    "objects_of",
    "relation_sql",
    "sql_of",
]

_READ: Final = ".read "
_SHELL_INTAKE: Final = "_shell_intake"
"""How the plain duckdb shell fills the base tables; intake takes its place."""
_COLUMN_COMMENT: Final = re.compile(
    r"^COMMENT ON COLUMN (\w+\.\w+) IS '((?:[^']|'')*)';$", re.MULTILINE
)
_OBJECT: Final = re.compile(r"^CREATE (?:TABLE|VIEW|MACRO) (\w+)", re.MULTILINE)
_INTAKE_VERSION: Final = 2
"""Raised when intake gives other rows than before for the same lines."""


def relation_sql() -> str:
    """Return the relations for the plain duckdb shell, which read `*.log` there directly."""
    return "\n".join(sql_of(name) for name in names())


@cache
def fingerprint() -> str:
    """Return 32 hex digits that change when a database made before would not fit any more."""
    text = f"{_INTAKE_VERSION} {duckdb.__version__}\n{relation_sql()}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def column_comments() -> dict[str, str]:
    """Return what `relation.column` means, for each that says so."""
    return {
        match[1]: match[2].replace("''", "'") for match in _COLUMN_COMMENT.finditer(relation_sql())
    }


def finding_codes() -> tuple[str, ...]:
    """Return the values of `findings.code`: the names of the files in `sql/findings`."""
    folder = "findings/"
    return tuple(name.removeprefix(folder) for name in names() if name.startswith(folder))


def create_base_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that intake fills, empty."""
    for name in names():
        if name in tables.TABLES:
            connection.execute(sql_of(name))


def create_relations(connection: duckdb.DuckDBPyConnection) -> None:
    """Create everything that is made from the base tables."""
    for name in names():
        if is_made(name):
            connection.execute(sql_of(name))


def drop_relations(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop everything that is made from the base tables."""
    base = ", ".join(f"'{name}'" for name in tables.TABLES)
    found = connection.execute(
        f"""
        SELECT 'VIEW', view_name
        FROM duckdb_views()
        WHERE NOT internal AND database_name = current_database()
        UNION ALL
        SELECT 'TABLE', table_name
        FROM duckdb_tables()
        WHERE database_name = current_database() AND comment IS NOT NULL
            AND table_name NOT IN ({base})
        UNION ALL
        SELECT DISTINCT
            CASE function_type WHEN 'table_macro' THEN 'MACRO TABLE' ELSE 'MACRO' END,
            function_name
        FROM duckdb_functions()
        WHERE NOT internal AND database_name = current_database()
        """
    ).fetchall()
    for kind, name in found:
        connection.execute(f'DROP {kind} "{name}"').fetchall()


def is_made(name: str) -> bool:
    """Say whether a file makes something from the base tables."""
    return name not in tables.TABLES and name != _SHELL_INTAKE


@cache
def objects_of(name: str) -> tuple[str, ...]:
    """Return what a file makes, by their names in SQL."""
    return tuple(_OBJECT.findall(sql_of(name)))


@cache
def names() -> tuple[str, ...]:
    """Return the names of the SQL files in order; those in folders keep the folder."""
    lines = sql_of("load").splitlines()
    return tuple(
        line.removeprefix(_READ).removesuffix(".sql") for line in lines if line.startswith(_READ)
    )


def sql_of(name: str) -> str:
    """Return the text of a file."""
    return package_files("reconstruct").joinpath("sql", f"{name}.sql").read_text("utf-8")
