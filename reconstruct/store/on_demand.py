"""Relations that are made when a query first names them.

Making all takes half a second, as long as small logs take to be read. So a database in memory
begins with the base tables alone. Which relations a query needs is told from its words, and theirs
from the words of their SQL: too many at the worst.
"""

import re
import threading
from collections.abc import Iterable
from typing import Final

import duckdb

from reconstruct.store import relations
from reconstruct.store.making import Maker

__all__ = ["OnDemand"]

_SOURCE: Final = re.compile(r"(?<!\bdistinct\s)\b(?:from|join)\s+\"?(\w+)")
_NAMED: Final = re.compile(
    r"\b(\w+)\"?\s*(?:\([\w\s,\"]*\)\s*)?as\s+(?:not\s+materialized\s+|materialized\s+)?\("
)
_CATALOG: Final = re.compile(
    r"\b(?:duckdb_\w+|pragma_\w+|pg_\w+|information_schema|sqlite_master)\b|\bquery(?:_table)?\s*\("
    r"|^\s*(?:show|describe|desc|summarize|explain)\b|\(\s*(?:show|describe|desc|summarize)\b"
)
"""What may be about any relation, and about its comments."""


class OnDemand:
    """Makes the relations of one database; threads may share it."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._maker = Maker(connection)
        self._lock = threading.Lock()
        self._missing = dict.fromkeys(relations.needs())
        self._without_comments: list[str] = []

    def make_for(self, sql: str, values: Iterable[object] = ()) -> None:
        """Make what a query needs, its parameters' `values` included: one may name a relation."""
        sql = sql.lower()
        is_about_any = _CATALOG.search(sql) is not None
        if not (self._missing or (is_about_any and self._without_comments)):
            return
        words = relations.words_of(sql)
        for value in values:
            if isinstance(value, str):
                words |= relations.words_of(value.lower())
        with self._lock:
            for name in relations.needs() if is_about_any else _needed(sql, words):
                if name in self._missing:
                    self._maker.make(name)
                    del self._missing[name]
                    self._without_comments.append(name)
            if is_about_any:
                for name in self._without_comments:
                    self._connection.execute(relations.comments_of(name))
                self._without_comments.clear()

    def close(self) -> None:
        """Let go of the database."""
        self._maker.close()


def _needed(sql: str, words: set[str]) -> list[str]:
    """Return the names of files, in their order; `sql` and `words` are lower-case."""
    files, objects = relations.needs(), relations.files_by_object()
    sources = set(_SOURCE.findall(sql)) - set(_NAMED.findall(sql)) - {"unnest", "range"}
    if sources - objects.keys():
        return list(files)  # a mistyped name is compared with all there are
    found: set[str] = set()
    waiting = [objects[word] for word in words & objects.keys()]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += files.get(name, ())
    return [name for name in files if name in found]
