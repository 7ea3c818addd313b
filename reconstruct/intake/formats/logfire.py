"""What Logfire writes as spans that are none: the beginning of a span, and log records.

A pending span has a fresh id, its parent is the span that has begun, and that span's parent stands
in an attribute: it becomes the beginning of that span. A log becomes a log record in its parent.
Rows of any format that carries spans go through here.
"""

from collections import Counter
from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.formats import fields, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json, decode_encoded

__all__ = ["understood"]

_SPAN_TYPE: Final = "logfire.span_type"
_QUOTED_SPAN_TYPE: Final = f'"{_SPAN_TYPE}"'
_PENDING_PARENT: Final = "logfire.pending_parent_id"
_COLUMNS: Final = [name for name, _ in tables.TABLES[tables.SPAN_LINES]][4:]
_ATTRIBUTES: Final = _COLUMNS.index("attributes")
_OWNER: Final = _COLUMNS.index("rollout_id") + 1
_SEVERITIES: Final = (
    (21, "FATAL"),
    (17, "ERROR"),
    (13, "WARN"),
    (9, "INFO"),
    (5, "DEBUG"),
    (1, "TRACE"),
)


def understood(record: Record) -> Record:
    """Return `record` with Logfire's pending spans and logs as what they are."""
    if not any(_is_logfire(row) for row in record.rows):
        return record
    found: list[rows.TableRow] = []
    problems = list(record.problems)
    for row in record.rows:
        try:
            found.append(_understood(row) if _is_logfire(row) else row)
        except InvalidRecordError as error:
            problems.append(str(error))
    if not found:
        raise InvalidRecordError(fields.listed(problems))
    line_class = fields.main_class(Counter(rows.class_of(row) for row in found))
    return Record(line_class, tuple(found), tuple(problems))


def _is_logfire(row: rows.TableRow) -> bool:
    return row[0] == tables.SPAN_LINES and _QUOTED_SPAN_TYPE in row[1][_ATTRIBUTES]


def _understood(table_row: rows.TableRow) -> rows.TableRow:
    row = table_row[1]
    span = dict(zip(_COLUMNS, row, strict=True))
    attributes = fields.members(decode_encoded(span["attributes"]))
    span_type = attributes.get(_SPAN_TYPE)
    if span_type == "pending_span":
        if span["parent_span_id"] is None:
            raise InvalidRecordError("a pending span names no span that it is the beginning of")
        begun = span | {
            "record_type": "span_start",
            "span_id": span["parent_span_id"],
            "parent_span_id": fields.parent_span_id(attributes.get(_PENDING_PARENT)),
            "end_time_unix_nano": None,
            "status_code": None,
        }
        return tables.SPAN_LINES, tuple(begun.values())
    if span_type == "log":
        number = fields.int64(attributes.get("logfire.level_num"))
        return rows.log(
            time=span["start_time_unix_nano"],
            body=attributes.get("logfire.msg", span["name"]),
            severity_number=number,
            severity_text=_severity_text(number),
            attributes=attributes | _exception(span["events"]),
            trace_id=span["trace_id"],
            span_id=span["parent_span_id"],
            flags=span["flags"],
            scope_name=span["scope_name"],
            owner=row[-1],
        )
    return table_row


def _exception(events: str | None) -> dict[str, Json]:
    """Return what the exception that was logged says of itself."""
    found: dict[str, Json] = {}
    for event in map(fields.members, decode_encoded(events or "[]")):
        if event.get("name") == "exception":
            found |= fields.members(event.get("attributes"))
    return found


def _severity_text(number: int | None) -> str | None:
    if number is None:
        return None
    return next((name for least, name in _SEVERITIES if number >= least), None)
