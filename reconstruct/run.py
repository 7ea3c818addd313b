"""The logs of a run in Python: relations and queries as Arrow, polars, pandas or plain rows.

Nothing is computed before it is asked for, and asking twice computes twice. Objects may be shared
between threads: each question has a connection of its own.
"""

import difflib
import html
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa

from reconstruct.commands.ids import rollout_run, trace_id_of, unknown
from reconstruct.engine import Engine
from reconstruct.errors import UsageError
from reconstruct.json_columns import reader_of
from reconstruct.render.records import distinct
from reconstruct.render.text import count, plain
from reconstruct.safe_sql import Answer, Limits
from reconstruct.tree import Trace, rollout_traces, trace_tree

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["Paths", "Relation", "Result", "Run", "Spans", "Store"]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""Files, folders, globs, or `-` for stdin."""
Store = str | os.PathLike[str] | bool
"""A folder, whether there may be one beside the logs, or none."""
Parameters = Sequence[object] | Mapping[str, object]
Row = dict[str, Any]  # Any: a row's values are of as many types as its columns

_NO_LIMITS: Final = Limits(timeout_seconds=threading.TIMEOUT_MAX)
_SHOWN_ROWS: Final = 20
_SHOWN_CHARACTERS: Final = 80
"""What a notebook shows of a result."""


class Result:
    """The rows of one query. Every way to read them raises `SqlError` when the query fails."""

    def __init__(
        self,
        engine: Engine,
        sql: str,
        parameters: Parameters | None = None,
        *,
        limits: Limits = _NO_LIMITS,
    ) -> None:
        self._engine = engine
        self._sql = sql
        self._parameters = parameters
        self._limits = limits

    def _ask(self, *, max_rows: int | None = None) -> AbstractContextManager[Answer]:
        limits = replace(self._limits, max_rows=max_rows)
        return self._engine.answer(self._sql, self._parameters, limits=limits)

    @property
    def columns(self) -> dict[str, str]:
        """Name and DuckDB type of each column."""
        with self._ask() as answer:
            return dict(zip(distinct(answer.names), answer.types, strict=True))

    def arrow(self) -> pa.Table:
        """Return a pyarrow table; JSON is text, times are int64 ns since 1970."""
        with self._ask() as answer:
            table = answer.arrow(has_json=False).read_all()
            return table.rename_columns(distinct(answer.names))

    def polars(self) -> "pl.DataFrame":
        """Return a polars data frame. Raises `UsageError` without polars."""
        try:
            import polars as pl
        except ImportError:
            raise UsageError("polars is not installed; `arrow` and `rows` need nothing") from None

        frame = pl.from_arrow(self.arrow())
        assert isinstance(frame, pl.DataFrame), "a table becomes a data frame"
        return frame

    def pandas(self) -> "pd.DataFrame":
        """Return a pandas data frame, integers with gaps as `Int64`, exact.

        Raises `UsageError` without pandas.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UsageError("pandas is not installed; `arrow` and `rows` need nothing") from None

        exact: dict[pa.DataType, object] = {
            pa.int64(): pd.Int64Dtype(),
            pa.int32(): pd.Int32Dtype(),
        }
        return self.arrow().to_pandas(types_mapper=exact.get)

    def rows(self) -> list[Row]:
        """Return a dict a row; JSON columns are Python's dicts, lists and values."""
        return list(self._each())

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows one by one; `list` asks for the length too, `rows` does not."""
        return self._each()

    def _each(self) -> Iterator[Row]:
        with self._ask() as answer:
            names = distinct(answer.names)
            for values in map(reader_of(answer.types), answer.rows()):
                yield dict(zip(names, values, strict=True))

    def __len__(self) -> int:
        with self._ask() as answer:
            if answer.is_plan:  # which no query can count
                return sum(1 for _ in answer.rows())
        counted = f"SELECT count(*) FROM (\n{self._sql}\n)"
        with self._engine.answer(counted, self._parameters, limits=self._limits) as answer:
            return int(next(answer.rows())[0])

    def __bool__(self) -> bool:
        return next(self._each(), None) is not None

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {' '.join(self._sql.split())[:_SHOWN_CHARACTERS]}>"

    def _repr_html_(self) -> str:
        with self._ask(max_rows=_SHOWN_ROWS) as answer:
            rows = list(answer.rows())
            head = _html_row("th", distinct(answer.names))
        body = "".join(_html_row("td", row) for row in rows)
        more = (
            f"<p>… the first {_SHOWN_ROWS} of {count(len(self))} rows</p>" if answer.is_cut else ""
        )
        return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>{more}"


class Relation(Result):
    """A relation of the run, as the README lists them, or some of its rows."""

    def __init__(
        self, engine: Engine, name: str, wanted: Mapping[str, object] | None = None
    ) -> None:
        self.name = name
        self._wanted = dict(wanted or {})
        conditions = [
            f'"{column}" {_CONDITIONS[_kind(value)]}'.format(f"${column}")
            for column, value in self._wanted.items()
        ]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        bound = {
            column: list(value) if _kind(value) == "some" else value  # type: ignore[call-overload]  # a kind of collection then
            for column, value in self._wanted.items()
            if value is not None
        }
        super().__init__(engine, f'FROM "{name}"{where}', bound or None)

    def where(self, **columns: object) -> "Relation":
        """Return the rows whose columns have these values; a list is any of them, None is null.

        Raises `UsageError` for a column that the relation has not. `Run.sql` can ask for more.
        """
        known = self.columns
        for column in columns:
            if column not in known:
                raise UsageError(f"{self.name} has no column '{column}'{_near(column, known)}")
        return Relation(self._engine, self.name, self._wanted | columns)


class Spans(Result):
    """The spans of one trace or rollout, in the order of their tree.

    `depth` and `self_time_ns` stand before the columns of the relation `spans`. Printed, it is a
    waterfall.
    """

    def __init__(
        self,
        engine: Engine,
        traces: Sequence[Trace],
        rollout_id: str | None,
        run_id: str | None,
    ) -> None:
        trace_ids = [trace.trace_id for trace in traces]
        bound = {"trace_ids": trace_ids, "rollout_id": rollout_id, "run_id": run_id}
        super().__init__(engine, _SPANS, bound)
        self.traces = traces
        """The same as nested objects, one a trace."""

    def __str__(self) -> str:
        from reconstruct.render.waterfall import waterfall

        return plain(waterfall(self.traces))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


class Run:
    """The relations over a set of logs. Close it, or use it as a context manager."""

    def __init__(self, engine: Engine) -> None:
        self._opened: Engine | None = engine

    @property
    def _engine(self) -> Engine:
        if self._opened is None:
            raise UsageError("these logs were closed; open them again")
        return self._opened

    @classmethod
    def read(
        cls,
        paths: Paths,
        *,
        memory_limit: str | None = None,
        wrapper: str | None = None,
        store: Store = False,
    ) -> Self:
        """Read logs, as `reconstruct.open` does."""
        listed = [paths] if isinstance(paths, str | os.PathLike) else paths
        names = [os.fspath(path) for path in listed]
        place = store if isinstance(store, bool) else Path(store)
        return cls(Engine.read(names, memory_limit=memory_limit, wrapper=wrapper, store=place))

    @property
    def spans(self) -> Relation:
        """A row a span, finished or not."""
        return Relation(self._engine, "spans")

    @property
    def traces(self) -> Relation:
        """A row a trace."""
        return Relation(self._engine, "traces")

    @property
    def rollouts(self) -> Relation:
        """A row a rollout of a run."""
        return Relation(self._engine, "rollouts")

    @property
    def relations(self) -> dict[str, str]:
        """Every relation's name, and what one row of it is."""
        return {row["name"]: row["comment"] for row in self._engine.rows(_RELATIONS)}

    def relation(self, name: str) -> Relation:
        """Return any relation by its name. Raises `UsageError` for an unknown one."""
        known = self.relations
        if name not in known:
            raise UsageError(f"no relation '{name}'{_near(name, known)}")
        return Relation(self._engine, name)

    def sql(
        self, query: str, parameters: Parameters | None = None, *, timeout_seconds: float = 300.0
    ) -> Result:
        """Ask one query (DuckDB's SQL) over the relations; `$1`, `?` or `$name` are parameters.

        It only reads. Raises `SqlError` at once when it is wrong, and later when it takes more than
        `timeout_seconds`.
        """
        limits = Limits(timeout_seconds=timeout_seconds)
        with self._engine.answer(query, parameters, limits=limits):
            return Result(self._engine, query, parameters, limits=limits)

    def trace(self, trace_id: str) -> Spans:
        """Return one trace, by its id, the first digits of it, or a traceparent header.

        Raises `ReconstructError` when there is none, `UsageError` when there are several.
        """
        found = trace_id_of(self._engine, trace_id)
        traces = [trace_tree(self._engine, found)]
        return Spans(self._engine, traces, None, None)

    def rollout(self, rollout_id: str, run_id: str | None = None) -> Spans:
        """Return one rollout, from however many traces.

        Raises `ReconstructError` when there is none, `UsageError` when several runs have one of
        that id and `run_id` does not choose.
        """
        found = rollout_run(self._engine, rollout_id, run_id)
        if found is None:
            raise unknown(self._engine, rollout_id, run_id)
        (run_id,) = found
        traces = rollout_traces(self._engine, rollout_id, run_id)
        return Spans(self._engine, traces, rollout_id, run_id)

    def close(self) -> None:
        """Free the memory and the spilled files; again is no error."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


_CONDITIONS: Final = {"null": "IS NULL", "some": "IN (SELECT unnest({}))", "one": "= {}"}
_SPANS: Final = """
    WITH span AS MATERIALIZED (
        SELECT *
        FROM spans
        WHERE trace_id IN (SELECT unnest($trace_ids))
    )
    SELECT tree.depth, own.self_time_ns, span.*
    FROM span_tree_of($trace_ids) AS tree
    JOIN span ON span.rowid = tree.node
    LEFT JOIN _self_times_of($trace_ids) AS own ON own.node = tree.node
    WHERE $rollout_id::VARCHAR IS NULL
        OR tree.node IN (
            SELECT node
            FROM _rollout_spans
            WHERE rollout_id = $rollout_id
                AND run_id IS NOT DISTINCT FROM $run_id::VARCHAR
                AND trace_id IN (SELECT unnest($trace_ids))
        )
    ORDER BY min(span.start_time_unix_nano) OVER (PARTITION BY tree.trace_id), tree.trace_id,
        tree.path
"""
_RELATIONS: Final = """
    SELECT name, comment
    FROM (
        SELECT table_name AS name, comment FROM duckdb_tables()
        UNION ALL
        SELECT view_name, comment FROM duckdb_views() WHERE NOT internal
    )
    WHERE NOT starts_with(name, '_')
    ORDER BY name
"""


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return "some" if isinstance(value, list | tuple | set | frozenset) else "one"


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3)
    return f"; did you mean {' or '.join(near)}?" if near else f"; there are {', '.join(known)}"


def _html_row(cell: str, values: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{cell}>{_html_text(value)}</{cell}>' for value in values)}</tr>"


def _html_text(value: object) -> str:
    text = "" if value is None else str(value)
    return html.escape(f"{text[:_SHOWN_CHARACTERS]}…" if len(text) > _SHOWN_CHARACTERS else text)
