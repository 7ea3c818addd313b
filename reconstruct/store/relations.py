"""The relations as SQL: their order, their texts, and what of it a database of ours runs.

`sql/load.sql` names them in order. The base tables are filled by intake; all others are made from
those, and made anew when those have changed.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files as package_files
from typing import Final

import duckdb

from reconstruct.intake import tables

__all__ = [
    "column_comments",
    "comments_of",
    "create_base_tables",
    "definition_of",
    "files_by_object",
    "finding_codes",
    "fingerprint",
    "is_made",
    "is_table",
    "names",
    "needs",
    "objects_of",
    "relation_sql",
    "sql_of",
    "views_of",
    "words_of",
]

_READ: Final = ".read "
_SHELL_INTAKE: Final = "_shell_intake"
"""How the plain duckdb shell fills the base tables; intake takes its place."""
_COMMENT: Final = re.compile(r"^COMMENT ON [A-Z ]+ [\w.]+ IS\s+'(?:[^']|'')*';$", re.MULTILINE)
_COLUMN_COMMENT: Final = re.compile(
    r"^COMMENT ON COLUMN (\w+\.\w+) IS '((?:[^']|'')*)';$", re.MULTILINE
)
_OBJECT: Final = re.compile(r"^CREATE (?:TABLE|VIEW|MACRO) (\w+)", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")
_NO_NAME: Final = re.compile(r"--[^\n]*|'(?:[^']|'')*'")
"""Comments and texts in SQL."""
_VIEW: Final = re.compile(r"^CREATE VIEW (\w+)", re.MULTILINE)
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


def is_made(name: str) -> bool:
    """Say whether a file makes something from the base tables."""
    return name not in tables.TABLES and name != _SHELL_INTAKE


@cache
def objects_of(name: str) -> tuple[str, ...]:
    """Return what a file makes, by their names in SQL."""
    return tuple(_OBJECT.findall(sql_of(name)))


def is_table(name: str) -> bool:
    """Say whether what a file makes holds rows itself."""
    return "\nCREATE TABLE " in sql_of(name)


@cache
def views_of(name: str) -> tuple[str, ...]:
    """Return the names of the views that a file makes."""
    return tuple(_VIEW.findall(sql_of(name)))


@cache
def files_by_object() -> Mapping[str, str]:
    """Return which file makes what: names in SQL, of the base tables too, to names of files."""
    return {made: name for name in names() for made in objects_of(name)}


@cache
def needs() -> Mapping[str, tuple[str, ...]]:
    """Return the files that make relations, in the order in which they can be run, and for each
    those that it may need, told from the names in it: too many at the worst."""
    objects = files_by_object()
    return {
        name: tuple(
            objects[word]
            for word in words_of(_NO_NAME.sub("", definition_of(name)).lower()) & objects.keys()
            if objects[word] != name
        )
        for name in names()
        if is_made(name)
    }


def words_of(text: str) -> set[str]:
    """Return the words of a text: names of relations, if it names some, among them."""
    return set(_WORD.findall(text))


def definition_of(name: str) -> str:
    """Return the text of a file without its comments on what it makes."""
    return _COMMENT.sub("", sql_of(name))


def comments_of(name: str) -> str:
    """Return the comments on what a file makes."""
    return "\n".join(match[0] for match in _COMMENT.finditer(sql_of(name)))


@cache
def names() -> tuple[str, ...]:
    """Return the names of the SQL files in order; those in folders keep the folder."""
    lines = sql_of("load").splitlines()
    return tuple(
        line.removeprefix(_READ).removesuffix(".sql") for line in lines if line.startswith(_READ)
    )


@cache
def sql_of(name: str) -> str:
    """Return the text of a file."""
    return package_files("reconstruct").joinpath("sql", f"{name}.sql").read_text("utf-8")
