"""Lines of ours read by DuckDB itself: those of which it got everything as it stands.

DuckDB's JSON reader is quick and forgiving: 1.7 becomes 2 in an integer, of two equal keys one
vanishes, NaN passes. So a line is vouched for only when its fields, written again in the order of
`gymlog.record`, give the same text; when ids, kinds and times are what they must be; and when each
part that is kept as JSON means the same to every reader. Whatever is not vouched for is left to the
careful path, which gives the same rows for what is (a test compares them).

About 6 µs of one core a line, in memory. Memory holds one batch twice.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from gymlog import semconv
from gymlog.record import LOG, METRIC, SPAN, SPAN_KINDS, STATUS_CODES, Field, FieldType, RecordType
from reconstruct.intake import json_text, ours, tables
from reconstruct.intake.formats import fields
from reconstruct.intake.json_text import NotJson, Rounded
from reconstruct.intake.ours import OurLines
from reconstruct.intake.owners import Owner, Owners

__all__ = ["Voucher"]

_READ_AS: Final = {
    FieldType.TEXT: "VARCHAR",
    FieldType.INT64: "BIGINT",
    FieldType.BOOL: "BOOLEAN",
}
"""Other fields are read as JSON text."""
_MAY_BE_NULL: Final = frozenset({"parent_span_id", "end_time_unix_nano", "status"})
"""Required fields that are null, or absent from a `span_start`."""

_SUSPECT: Final = r":(\{|-?([NI]|[0-9]+[.eE]|[0-9]{20}))"
"""Never in an object of text, booleans and whole numbers alone; quick to look for."""
_ODD: Final = r"[:\[,](\{|-?([NI]|[0-9]{20}|[0-9]{16,}\.))|[\[,]\[|[0-9][eE][+0-9]|0\.00000"
"""A value within a value, numbers that readers write differently. Text that looks so is odd too."""
_NUMBER: Final = r"-?[0-9]{1,18}([.][0-9]+)?(e-?[0-9]{1,2})?"

_HOLDS_ONLY_HEX: Final = "NOT regexp_matches(concat({}), '[^0-9a-f]')"
_ZERO_TRACE: Final = f"'{fields.ZERO_TRACE}'"
_ZERO_SPAN: Final = f"'{fields.ZERO_SPAN}'"
_SCOPE: Final = """(scope IS NULL OR scope::VARCHAR = concat(
    '{"name":"' || (scope->>'name') || '"', ',"version":"' || (scope->>'version') || '"', '}'
))"""
_UNSET: Final = """'{"code":"UNSET"}'"""
_STATUS: Final = f"""CASE
    WHEN status IS NULL OR status::VARCHAR = {_UNSET} THEN TRUE
    ELSE status->>'code' IN {STATUS_CODES} AND status::VARCHAR = concat(
        '{{"code":"', status->>'code', '"', ',"message":"' || (status->>'message') || '"', '}}'
    )
END"""


class _Kind(NamedTuple):
    """A record type of which there may be many, and what its lines must be."""

    table: str
    line_class: str
    """Of a row, in SQL."""
    record_types: tuple[RecordType, ...]
    fields: tuple[Field, ...]
    conditions: tuple[str, ...]
    columns: Mapping[str, str]
    """Columns that are not simply the field of their name."""
    parts: tuple[str, ...]
    """Fields that are kept as JSON text, `attributes` among them."""


_KINDS: Final = (
    _Kind(
        table=tables.SPAN_LINES,
        line_class="record_type",
        record_types=(RecordType.SPAN, RecordType.SPAN_START),
        fields=SPAN,
        conditions=(
            "(record_type = 'span_start') = (end_time_unix_nano IS NULL)",
            "(record_type = 'span_start') = (status IS NULL)",
            "strlen(trace_id) = 32",
            "strlen(span_id) = 16",
            "coalesce(strlen(parent_span_id), 16) = 16",
            _HOLDS_ONLY_HEX.format("trace_id, span_id, parent_span_id"),
            f"trace_id <> {_ZERO_TRACE}",
            f"span_id <> {_ZERO_SPAN}",
            f"coalesce(parent_span_id, '') <> {_ZERO_SPAN}",
            f"kind IN {SPAN_KINDS}",
            "start_time_unix_nano >= 0",
            "coalesce(end_time_unix_nano, 0) >= 0",
            "starts_with(attributes, '{')",
            "coalesce(starts_with(events, '[{'), TRUE)",
            "coalesce(starts_with(links, '[{'), TRUE)",
            _STATUS,
            _SCOPE,
        ),
        columns={
            "status_code": f"""CASE
                WHEN status::VARCHAR = {_UNSET} THEN 'UNSET'
                ELSE status->>'code'
            END""",
            "status_message": f"""CASE
                WHEN status::VARCHAR <> {_UNSET} THEN status->>'message'
            END""",
            "scope_name": "scope->>'name'",
            "scope_version": "scope->>'version'",
            "rollout_id": f"attributes->>'{semconv.ROLLOUT_ID}'",
        },
        parts=("attributes", "events", "links"),
    ),
    _Kind(
        table=tables.LOG_LINES,
        line_class="'log'",
        record_types=(RecordType.LOG,),
        fields=LOG,
        conditions=(
            "time_unix_nano >= 0",
            "coalesce(strlen(trace_id), 32) = 32",
            "coalesce(strlen(span_id), 16) = 16",
            _HOLDS_ONLY_HEX.format("trace_id, span_id"),
            f"coalesce(trace_id, '') <> {_ZERO_TRACE}",
            f"coalesce(span_id, '') <> {_ZERO_SPAN}",
            "starts_with(attributes, '{')",
            _SCOPE,
        ),
        columns={
            "scope_name": "scope->>'name'",
            "scope_version": "scope->>'version'",
            "rollout_id": f"attributes->>'{semconv.ROLLOUT_ID}'",
        },
        parts=("body", "attributes"),
    ),
    _Kind(
        table=tables.METRIC_LINES,
        line_class="'metric'",
        record_types=(RecordType.METRIC,),
        fields=METRIC,
        conditions=(
            "time_unix_nano >= 0",
            "starts_with(attributes, '{')",
            *(
                f"coalesce(regexp_full_match({name}, '{_NUMBER}'), TRUE)"
                for name in ("value", "sum", "min", "max")
            ),
            r"coalesce(regexp_full_match(bucket_counts, '\[[0-9,]+\]'), TRUE)",
            r"coalesce(regexp_full_match(explicit_bounds, '\[[-0-9.,]+\]'), TRUE)",
            "coalesce(starts_with(exemplars, '[{'), TRUE)",
        ),
        columns={
            **{
                name: f"try_cast({name}::VARCHAR AS DOUBLE)"
                for name in ("value", "sum", "min", "max")
            },
            "scope_name": "NULL",
            "scope_version": "NULL",
        },
        parts=("attributes", "bucket_counts", "explicit_bounds", "exemplars"),
    ),
)

_BATCH: Final = "_batch"
_OWNERS: Final = "_owner_texts"
"""The resources that lines were found to state, as text, and their owners' numbers."""
_SAMPLED: Final = 997
"""Of so many lines of a block one is looked at beforehand, for whose lines there are."""


class Voucher:
    """Reads batches of `intake.ours` into the base tables of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, owners: Owners) -> None:
        self._connection = connection
        self._owners = owners
        self._seen_resources: set[str] = set()

    def open(self) -> None:
        """Make room for the resources that lines state."""
        self._execute(f"CREATE OR REPLACE TEMP TABLE {_OWNERS} (resource VARCHAR, owner BIGINT)")

    def read(self, batch: OurLines[Any]) -> list[int]:  # Any: whatever its reader keeps with it
        """Insert the rows of the lines that are vouched for, count these lines by class; return
        `nth` of the others of `ours.TYPES`."""
        lines = batch.table()
        left: list[int] = []
        for kind in _KINDS:
            count = sum(batch.types[each] for each in kind.record_types)
            if not count:
                continue
            self._learn_owners(kind, _sample(lines))
            rest = self._read(kind, lines, count)
            if rest is not None and self._learn_owners(kind, rest):
                rest = self._read(kind, rest, rest.num_rows)
            if rest is not None:
                left += (nth for nth in rest.column("nth").to_pylist() if nth is not None)
        return sorted(left)

    def close(self) -> None:
        """Forget the resources."""
        self._execute(f"DROP TABLE {_OWNERS}")

    def _read(self, kind: _Kind, lines: pa.Table, count: int) -> pa.Table | None:
        """Do so for one kind, of which there are `count` lines, as far as the owners are known;
        return the lines that are left, if any.

        In one transaction, within which the new rows are those with the highest ids.
        """
        (last,) = self._rows(f"SELECT coalesce(max(rowid), -1) FROM {kind.table}")[0]
        is_new = f"rowid > {last}"
        with self._batch(lines):
            inserted = self._insert(kind)
            if not self._delete_repeated_keys(kind, is_new) and inserted == count:
                rest = None
            else:
                rest = self._connection.sql(
                    f"""
                    SELECT nth, text, file, line, byte_offset
                    FROM {_BATCH}
                    ANTI JOIN (SELECT file, line FROM {kind.table} WHERE {is_new})
                        USING (file, line)
                    WHERE {_begins_as(kind)}
                    """
                ).to_arrow_table()
        self._execute(
            f"""
            INSERT INTO {tables.CLASS_COUNTS} BY NAME
            SELECT file, {kind.line_class} AS class, count(*) AS lines
            FROM {kind.table}
            WHERE {is_new}
            GROUP BY ALL
            """
        )
        self._execute("COMMIT")
        return rest

    def _insert(self, kind: _Kind) -> int:
        """Begin a transaction and insert what is vouched for; return how many rows that is."""
        self._execute("BEGIN")
        try:
            ((inserted,),) = self._rows(_insertion(kind, "json_transform({})"))
        except duckdb.InvalidInputException:  # a line that is no JSON: rare, and quick without
            self._execute("ROLLBACK")
            self._execute("BEGIN")
            ((inserted,),) = self._rows(_insertion(kind, "TRY(json_transform({}))"))
        return int(inserted)

    def _delete_repeated_keys(self, kind: _Kind, is_new: str) -> bool:
        """Take out again the rows in whose attributes a key stands twice; say whether any did."""
        found = self._rows(
            f"SELECT DISTINCT json_keys(attributes) FROM {kind.table} WHERE {is_new}"
        )
        repeating = [names for (names,) in found if len(set(names)) < len(names)]
        if repeating:
            self._execute(
                f"DELETE FROM {kind.table} WHERE {is_new} AND json_keys(attributes) IN $repeating",
                {"repeating": repeating},
            )
        return bool(repeating)

    def _learn_owners(self, kind: _Kind, lines: pa.Table) -> bool:
        """Look for resources that are new; say whether there are any."""
        with self._batch(lines):
            stated = self._rows(
                f"""
                SELECT DISTINCT TRY(text->'resource')::VARCHAR
                FROM {_BATCH}
                WHERE {_begins_as(kind)}
                """
            )
        new = {text for (text,) in stated if text is not None} - self._seen_resources
        self._seen_resources |= new
        found = [
            (text, self._owners.number(_owner(text)))
            for text in new
            if text.startswith("{") and _is_sound(text)
        ]
        if found:
            self._connection.executemany(f"INSERT INTO {_OWNERS} VALUES ($1, $2)", found)
        return bool(found)

    @contextmanager
    def _batch(self, rows: pa.Table) -> Iterator[None]:
        """Let SQL know `rows` as `_BATCH` for the block."""
        self._connection.register(_BATCH, rows)
        yield
        self._connection.unregister(_BATCH)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:  # Any: as many types as columns
        return self._connection.execute(sql).fetchall()

    def _execute(self, sql: str, parameters: Mapping[str, object] | None = None) -> None:
        self._connection.execute(sql, parameters).fetchall()


def _begins_as(kind: _Kind) -> str:
    begins = (f"starts_with(text, '{ours.prefix(each)}')" for each in kind.record_types)
    return f"({' OR '.join(begins)})"


def _insertion(kind: _Kind, transform: str) -> str:
    """Insert the rows of the lines in `_BATCH` that are vouched for.

    `transform` calls `json_transform` with its arguments.
    """
    shape = json.dumps({field.name: _READ_AS.get(field.type, "JSON") for field in kind.fields})
    columns = []
    for column, _ in tables.TABLES[kind.table]:
        name = f'"{column}"'
        if column == "owner":
            columns.append("known.owner")
        elif column == "recovered":
            columns.append("FALSE")
        else:
            columns.append(f"{kind.columns.get(column, 'record.' + name)} AS {name}")
    called = transform.format(f"text, '{shape}'")
    conditions = [
        f"{_written(kind)} = record.text",
        *kind.conditions,
        *(f"NOT {_is_odd(part)}" for part in kind.parts),
    ]
    return f"""
        INSERT INTO {kind.table}
        SELECT {", ".join(columns)}
        FROM (
            SELECT *, coalesce({" AND ".join(conditions)}, FALSE) AS is_vouched
            FROM (
                SELECT text, file, line, byte_offset, unnest({called})
                FROM {_BATCH}
                WHERE {_begins_as(kind)}
            ) AS record
        ) AS record
        JOIN {_OWNERS} AS known ON known.resource = record.resource::VARCHAR
        WHERE is_vouched
        """


def _written(kind: _Kind) -> str:
    """Write the fields of a kind as the line that `gymlog` writes."""
    pieces: list[str] = []
    text = "{"
    """What comes next whatever the values are."""
    for field in kind.fields:
        key = f'{"" if text == "{" else ","}"{field.name}":'
        quote = '"' if field.type is FieldType.TEXT else ""
        value = f'record."{field.name}"'
        if field.required and field.name not in _MAY_BE_NULL:
            pieces += [f"'{text}{key}{quote}'", value]
            text = quote
            continue
        if text:
            pieces.append(f"'{text}'")
            text = ""
        piece = f"'{key}{quote}' || {value}" + (f" || '{quote}'" if quote else "")
        if field.name == "parent_span_id":
            piece = f"coalesce({piece}, '{key}null')"
        pieces.append(piece)
    return f"concat({', '.join(pieces)}, '{text}}}', chr(10))"


def _is_odd(part: str) -> str:
    """Say whether a JSON text holds more than text, short numbers and lists of these."""
    text = f"record.{part}::VARCHAR"
    return f"""coalesce(
            ({text})[1] NOT IN ('"', '[', '{{')
            OR ('{part}' <> 'attributes' AND starts_with({text}, '{{'))
            OR contains({text}, '\\u') OR CASE
                WHEN contains({text}, '[') OR regexp_matches({text}, '{_SUSPECT}')
                    THEN regexp_matches({text}, '{_ODD}')
                ELSE FALSE
            END,
            FALSE
        )"""


def _sample(lines: pa.Table) -> pa.Table:
    """Return every `_SAMPLED`th line of each block."""
    blocks = lines.to_batches()
    return pa.Table.from_batches(
        block.take(pa.array(range(0, block.num_rows, _SAMPLED), pa.int64())) for block in blocks
    )


def _owner(resource: str) -> Owner:
    """Return the owner of all lines that state a resource."""
    return fields.owner(json_text.decode(resource.encode()), None, by_pid=False)


def _is_sound(text: str) -> bool:
    """Say whether `text` is JSON just as the careful path would write it."""
    try:
        return json_text.encode(json_text.decode(text.encode())) == text
    except (NotJson, Rounded):
        return False
