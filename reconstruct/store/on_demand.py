"""Relations that are made when a query first names them.

DuckDB plans a view when it makes it; all of ours together take a second and more, as long as small
logs take to be read. So a database in memory begins with the base tables alone. Which relations a
query needs is told from its words, and theirs from the words of their SQL: too many at the worst.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import duckdb

from reconstruct.store import relations

__all__ = ["OnDemand"]

_WORD: Final = re.compile(r"\w+")
_SOURCE: Final = re.compile(r"\b(?:from|join)\s+\"?(\w+)")
_NAMED: Final = re.compile(
    r"\b(\w+)\"?\s*(?:\([\w\s,\"]*\)\s*)?as\s+(?:not\s+materialized\s+|materialized\s+)?\("
)
_CATALOG: Final = re.compile(
    r"\b(?:duckdb_\w+|pragma_\w+|pg_\w+|information_schema|sqlite_master|show|describe|desc"
    r"|summarize|query|query_table)\b"
)
"""What may be about any relation."""


class OnDemand:
    """Makes the relations of one database; threads may share it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._missing = dict.fromkeys(_files())

    def make_for(self, sql: str, values: Iterable[object] = ()) -> None:
        """Make what a query needs, its parameters' `values` included: one may name a relation."""
        if not self._missing:
            return
        words = _words(sql)
        for value in values:
            if isinstance(value, str):
                words |= _words(value)
        with self._lock:
            for name in _needed(sql.lower(), words):
                if name in self._missing:
                    self._connection.execute(relations.sql_of(name))
                    del self._missing[name]


def _needed(sql: str, words: set[str]) -> list[str]:
    """Return the names of files, in their order."""
    files = _files()
    sources = set(_SOURCE.findall(sql)) - set(_NAMED.findall(sql)) - {"unnest", "range"}
    if _CATALOG.search(sql) or sources - _objects().keys():
        return list(files)  # a mistyped name is compared with all there are
    found: set[str] = set()
    waiting = [_objects()[word] for word in words & _objects().keys()]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += files.get(name, ())
    return [name for name in files if name in found]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


@cache
def _objects() -> Mapping[str, str]:
    """What each file makes, base tables too: name in SQL to name of the file."""
    return {made: name for name in relations.names() for made in relations.objects_of(name)}


@cache
def _files() -> Mapping[str, tuple[str, ...]]:
    """The files that make relations, in the order in which they can be run; each needs others."""
    objects = _objects()
    return {
        name: tuple(
            objects[word]
            for word in _words(relations.sql_of(name)) & objects.keys()
            if objects[word] != name
        )
        for name in relations.names()
        if relations.is_made(name)
    }
