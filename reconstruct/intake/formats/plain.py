"""Spans as plain objects: ids, a name and a start at the top level, in whatever writer's words.

Home-made writers mix our names with those of the OpenTelemetry SDK. Times are ISO text or epoch
numbers; an end that is null says that the span is still open.
"""

from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import Record
from reconstruct.intake.json_text import Json
from reconstruct.intake.ledger import LineClass

__all__ = ["recognise"]

_START = ("start_time_unix_nano", "start_time")
_END = ("end_time_unix_nano", "end_time")


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn an object with ids, a name and a start into a span."""
    if "trace_id" not in value or "span_id" not in value or "name" not in value:
        return None
    start_field = next((field for field in _START if field in value), None)
    if start_field is None:
        return None
    get = value.get
    end_time = next((value[field] for field in _END if value.get(field) is not None), None)
    is_start = end_time is None
    status = fields.members(get("status"))
    scope = fields.members(get("scope"))
    attributes = fields.members(get("attributes"))
    code = status.get("code", status.get("status_code"))
    message = status.get("message", status.get("description"))
    start = fields.time(value[start_field], start_field)
    end = None if is_start else fields.time(end_time, "end_time")
    row = (
        "span_start" if is_start else "span",
        None,
        fields.trace_id(get("trace_id")),
        fields.span_id(get("span_id")),
        fields.parent_span_id(get("parent_span_id", get("parent_id"))),
        fields.required_text(get("name"), "name"),
        fields.kind(get("kind")),
        start,
        end,
        fields.int64(get("flags")),
        fields.text(get("trace_state")),
        None if is_start else fields.status_code(code),
        fields.text(message),
        fields.json_object(attributes),
        fields.json_list(get("events")),
        fields.json_list(get("links")),
        None,
        None,
        None,
        fields.text(scope.get("name")),
        fields.text(scope.get("version")),
        fields.rollout_id(attributes),
        fields.owner(fields.members(get("resource")), server_hint, by_pid=True),
    )
    line_class = LineClass.SPAN_START if is_start else LineClass.SPAN
    return Record(line_class, ((tables.SPAN_LINES, row),))
