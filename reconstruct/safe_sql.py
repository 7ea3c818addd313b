"""SQL that someone else wrote, answered without harm: only questions run, within limits.

Three fences stand behind each other. The text must be one query, and its parsed tree may hold
nothing that changes data or writes a file, as a CTE or an EXPLAIN ANALYZE could. It runs in a
read-only transaction on a connection of its own. And that connection reaches no files, no network
and not its own settings: an `Engine`'s does not once the logs are read, and `connect_read_only`
opens a database file so.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

from reconstruct.errors import InputError, SqlError

__all__ = ["PLANS", "Answer", "Limits", "answer", "connect_read_only"]

Connect = Callable[[], duckdb.DuckDBPyConnection]
Parameters = Sequence[object] | Mapping[str, object]
Row = tuple[Any, ...]  # Any: a row's values are of as many types as its columns

_ROWS_AT_A_TIME: Final = 2_048
"""As many as DuckDB makes at once."""
_MEMORY_LIMIT: Final = "SELECT current_setting('memory_limit')"
_READING: Final = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
"""Parts of a parsed query that do nothing else."""
_GRACE_SECONDS: Final = 5.0
_MESSAGE_LENGTH: Final = 500
_EXCERPT_LENGTH: Final = 200
"""Characters of what DuckDB says that are shown."""
_PLAN_COLUMNS: Final = [("explain_key", "VARCHAR"), ("explain_value", "VARCHAR")]
_AS_TEXT: Final = ("DATE", "TIME", "INTERVAL")
"""Types of which Python's own hold less: nanoseconds, far years, `infinity`, months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one query may take."""

    max_rows: int | None = None
    """Further rows are left out, and `Answer.is_cut` says so; None takes all."""
    timeout_seconds: float = 300.0
    """Of DuckDB's work; while nobody asks for the next rows no time passes."""
    on_stuck: Callable[[str], None] | None = None
    """Called in another thread, with the error's words, when DuckDB goes on regardless for 5 s:
    some functions heed no interrupt. Whoever owns the process may end it there."""


class Answer:
    """The answer to one query: ask once, for `rows` or for `arrow`, while its block is open.

    Whoever reads gets `SqlError` when the query fails or uses up its time or memory on the way.
    """

    def __init__(
        self, clock: "_Clock", question: "_Question", parameters: Parameters | None, limits: Limits
    ) -> None:
        self._clock = clock
        self._connection = clock.connection
        self._text = question.text
        self._parameters = parameters
        self._left = limits.max_rows
        self.is_plan = question.is_plan
        """The answer to an EXPLAIN, whose second column is a drawing of many lines."""
        self.is_cut = False
        """There are more than `max_rows`; known once the rows are read."""
        with clock.running():
            columns = _PLAN_COLUMNS if self.is_plan else self._columns()
        self.names: tuple[str, ...] = tuple(name for name, _ in columns)
        """Of the columns; one may repeat."""
        self.types: tuple[str, ...] = tuple(kind for _, kind in columns)
        """DuckDB's, as `BIGINT`, `JSON` or `VARCHAR[]`."""

    def _columns(self) -> list[tuple[str, str]]:
        try:
            relation = self._connection.sql(self._text, params=self._parameters)
        except duckdb.Error:
            self._connection.execute(self._text, self._parameters)  # fails and says where
            raise
        return list(zip(relation.columns, map(str, relation.types), strict=True))

    def rows(self) -> Iterator[Row]:
        """Yield the rows. JSON is text; so are dates, times and intervals, no digit lost."""
        with self._clock.running():
            self._connection.execute(self._with_times_as_text(), self._parameters)
        while True:
            with self._clock.running():
                rows = self._connection.fetchmany(_ROWS_AT_A_TIME)
            kept = self._kept(len(rows))
            yield from rows[:kept]
            if self.is_cut or not rows:
                return

    def arrow(self, *, has_json: bool = True) -> pa.RecordBatchReader:
        """Return the rows as Arrow batches; JSON is `arrow.json`, or text without `has_json`."""
        with self._clock.running():
            relation = self._connection.sql(self._text, params=self._parameters)
            reader = relation.to_arrow_reader(_ROWS_AT_A_TIME)
        schema = pa.schema(
            field.with_type(pa.json_()) if has_json and kind == "JSON" else field
            for field, kind in zip(reader.schema, self.types, strict=True)
        )
        return pa.RecordBatchReader.from_batches(schema, self._batches(reader, schema))

    def _batches(self, reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        while not self.is_cut:
            with self._clock.running():
                batch = next(reader, None)
            if batch is None:
                return
            kept = batch.slice(0, self._kept(batch.num_rows))
            if kept.num_rows:
                yield kept.cast(schema)

    def _kept(self, rows: int) -> int:
        """Count `rows` more against the limit; return how many of them are within it."""
        if self._left is None:
            return rows
        kept = min(rows, self._left)
        self._left -= kept
        self.is_cut = kept < rows
        return kept

    def _with_times_as_text(self) -> str:
        if not any(kind.startswith(_AS_TEXT) for kind in self.types):
            return self._text
        columns = [f"c{number}" for number in range(len(self.types))]
        chosen = (
            f"CAST({column} AS VARCHAR)" if kind.startswith(_AS_TEXT) else column
            for column, kind in zip(columns, self.types, strict=True)
        )
        # On lines of its own, for the query may end in a comment.
        return f"SELECT {', '.join(chosen)} FROM (\n{self._text}\n) AS t({', '.join(columns)})"


@contextmanager
def answer(
    connect: Connect,
    sql: str,
    parameters: Parameters | None = None,
    *,
    limits: Limits | None = None,
) -> Iterator[Answer]:
    """Answer one query for the block, on a connection of its own that `connect` opens.

    Raises `SqlError` when `sql` is no single query, is wrong, or hits a limit.
    """
    limits = limits or Limits()
    try:
        opened = connect()
    except duckdb.Error as error:
        raise SqlError(f"SQL: {str(error).splitlines()[0]}") from None
    with opened as connection:
        clock = _Clock(connection, limits)
        with clock.running():
            question = _checked(connection, sql)
            connection.execute("BEGIN TRANSACTION READ ONLY")
        yield Answer(clock, question, parameters, limits)


PLANS: Final = {"asof_loop_join_threshold": 0}
"""ASOF joins sort: DuckDB loops where it expects few rows, and is wrong about recursive queries."""


def connect_read_only(
    path: str, *, spill: str, memory_limit: str | None = None
) -> duckdb.DuckDBPyConnection:
    """Open a database file so that no SQL whatsoever changes it or reaches anything else.

    Only its own bytes and the folder `spill` can be read. Raises `InputError` when it is no
    database, or another process writes it.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": False,
        "lock_configuration": True,
        "python_enable_replacements": False,
        "autoload_known_extensions": False,
        "autoinstall_known_extensions": False,
        "temp_directory": spill,
        **PLANS,
    }
    if memory_limit is not None:
        config["memory_limit"] = memory_limit
    try:
        return duckdb.connect(path, read_only=True, config=config)
    except duckdb.Error as error:
        raise InputError(f"{path}: {str(error).splitlines()[0]}") from None


@dataclass(frozen=True, slots=True)
class _Question:
    """One query that only reads; with EXPLAIN before it, a plan."""

    text: str
    is_plan: bool


def _checked(connection: duckdb.DuckDBPyConnection, sql: str) -> _Question:
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise SqlError(
            f"SQL: character {error.start + 1} is a byte that is no UTF-8; write the query in UTF-8"
        ) from None
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        found = f"{len(statements)} statements" if statements else "none"
        raise SqlError(f"SQL: pass one query; this is {found}")
    kind, text = statements[0].type, statements[0].query
    if kind == duckdb.StatementType.MULTI:
        raise SqlError("SQL: name the columns of a PIVOT: PIVOT … ON name IN ('a', 'b') USING …")
    explain = ""
    if kind == duckdb.StatementType.EXPLAIN:
        explain, text = _explained(text)
    elif kind != duckdb.StatementType.SELECT:
        raise SqlError(
            f"SQL: only queries are answered (SELECT, FROM, WITH, DESCRIBE …), not {kind.name}"
        )
    (tree,) = connection.execute("SELECT json_serialize_sql($1)", [text]).fetchone() or ("",)
    parsed = json.loads(tree)
    if parsed["error"] and explain:
        raise SqlError(
            "SQL: only a query can be explained: EXPLAIN SELECT …, EXPLAIN ANALYZE SELECT …"
        )
    if parsed["error"] or not _only_reads(parsed["statements"]):
        raise SqlError("SQL: a query may only read; this one would change data or write a file")
    return _Question(explain + text, bool(explain))


def _explained(text: str) -> tuple[str, str]:
    """Part `EXPLAIN ANALYZE query` into our own words for the first two, and the query."""
    encoded = text.encode()
    starts = [at for at, kind in duckdb.tokenize(text) if kind != duckdb.token_type.comment]
    ends = [*starts[1:], len(encoded)]
    words = [encoded[start:end].split() for start, end in zip(starts[:2], ends[:2], strict=True)]
    analyzes = len(words) > 1 and words[1][:1] and words[1][0].lower() == b"analyze"
    first = 2 if analyzes else 1
    query = encoded[starts[first] :].decode() if len(starts) > first else ""
    return ("EXPLAIN ANALYZE " if analyzes else "EXPLAIN ", query)


def _only_reads(tree: object) -> bool:
    """Say whether every part of a parsed query is one that reads."""
    if isinstance(tree, list):
        return all(map(_only_reads, tree))
    if not isinstance(tree, dict):
        return True
    kind = tree.get("type")
    if isinstance(kind, str) and kind.endswith("_NODE") and kind not in _READING:
        return False
    return all(map(_only_reads, tree.values()))


class _Clock:
    """Counts the time that DuckDB works, interrupts it at the end, and words its errors."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, limits: Limits) -> None:
        self.connection = connection
        self._limits = limits
        self._used = 0.0
        self._is_over = False
        self._rests = threading.Event()
        (self._memory_limit,) = connection.execute(_MEMORY_LIMIT).fetchone() or ("",)

    @contextmanager
    def running(self) -> Iterator[None]:
        timer = threading.Timer(max(self._limits.timeout_seconds - self._used, 0), self._end)
        timer.daemon = True
        self._rests.clear()
        began = time.monotonic()
        timer.start()
        try:
            yield
        except (duckdb.Error, MemoryError, OSError, pa.ArrowException) as error:
            # Arrow's reader gives DuckDB's errors as its own, or as the system's.
            raise self._worded(error) from None
        finally:
            self._rests.set()
            timer.cancel()
            timer.join()
            self._used += time.monotonic() - began

    def _end(self) -> None:
        self._is_over = True
        self.connection.interrupt()
        if not self._rests.wait(_GRACE_SECONDS) and self._limits.on_stuck is not None:
            self._limits.on_stuck(self._over())

    def _over(self) -> str:
        seconds = self._limits.timeout_seconds
        return f"SQL: stopped after {seconds:g} s; ask for less or allow more time"

    def _worded(self, error: Exception) -> SqlError:
        if self._is_over:
            return SqlError(self._over())
        text = str(error).strip()
        if isinstance(error, MemoryError) or text.startswith("Out of Memory Error"):
            return SqlError(
                f"SQL: out of memory; ask for less or raise the memory limit ({self._memory_limit})"
            )
        words, _, rest = text.partition("\n\nLINE ")
        words = " ".join(words.split())
        if len(words) > _MESSAGE_LENGTH:
            words = f"{words[:_MESSAGE_LENGTH]}…"
        number, has_place, excerpt = rest.partition(": ")
        if not has_place:
            return SqlError(f"SQL: {words}")
        line, _, caret = excerpt.partition("\n")
        caret = caret.removeprefix(" " * len(f"LINE {number}: "))  # which stands before the line
        shown = (line[:_EXCERPT_LENGTH], caret[:_EXCERPT_LENGTH])
        return SqlError(f"SQL: line {number}: {words}", excerpt=shown)
