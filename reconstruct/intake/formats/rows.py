"""Rows of spans and log records by the names of their columns, for formats that are read seldom.

The formats whose lines come by the million write their tuples themselves.
"""

from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row

__all__ = ["TableRow", "class_of", "log", "owner", "span"]

TableRow = tuple[str, Row]
"""The name of a table of `intake.tables`, and a row of it without the place columns."""


def span(
    *,
    trace_id: str,
    span_id: str,
    parent_span_id: str | None,
    name: str,
    start: int,
    end: int | None,
    owner: Owner,
    kind: str = "INTERNAL",
    flags: int | None = None,
    trace_state: str | None = None,
    status: str = "UNSET",
    status_message: str | None = None,
    attributes: dict[str, Json] | None = None,
    events: list[Json] | None = None,
    links: list[Json] | None = None,
    scope_name: str | None = None,
    scope_version: str | None = None,
) -> TableRow:
    """Return the row of a span; without an `end` (ns since 1970) it is one that has only begun."""
    is_start = end is None
    attributes = attributes or {}
    row = (
        "span_start" if is_start else "span",
        None,
        trace_id,
        span_id,
        parent_span_id,
        name,
        kind,
        start,
        end,
        flags,
        trace_state,
        None if is_start else status,
        status_message,
        fields.json_object(attributes),
        fields.json_list(events),
        fields.json_list(links),
        None,
        None,
        None,
        scope_name,
        scope_version,
        fields.rollout_id(attributes),
        owner,
    )
    return tables.SPAN_LINES, row


def log(
    *,
    time: int | None,
    body: Json,
    owner: Owner,
    severity_number: int | None = None,
    severity_text: str | None = None,
    attributes: dict[str, Json] | None = None,
    trace_id: str | None = None,
    span_id: str | None = None,
    flags: int | None = None,
    scope_name: str | None = None,
) -> TableRow:
    """Return the row of a log record; `time` in ns since 1970, None where the line has none."""
    attributes = attributes or {}
    row = (
        None,
        time,
        severity_number,
        severity_text,
        fields.json_value(body),
        fields.json_object(attributes),
        trace_id,
        span_id,
        flags,
        None,
        scope_name,
        None,
        fields.rollout_id(attributes),
        owner,
    )
    return tables.LOG_LINES, row


def class_of(row: TableRow) -> LineClass:
    """Return the class of a line on which this row of a span or log record stands alone."""
    return LineClass.LOG if row[0] == tables.LOG_LINES else LineClass(row[1][0])


def owner(attributes: dict[str, Json], server_hint: str | None) -> Owner:
    """Return the owner's columns of a resource with these attributes."""
    return fields.owner({"attributes": attributes}, server_hint, by_pid=True)
