"""Which JSON values are records, and of what.

Each module recognises one writer's objects and turns them into rows of `intake.tables`; a new
format is a new module and one entry in `_FORMATS`. Order matters only where two could claim the
same object: the more particular one comes first. A list is what its items are, unless a format in
`_LISTS` knows the list as a whole.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final

from reconstruct.intake.formats import (
    captures,
    datadog,
    dynamo,
    fields,
    go_stdout,
    gymlog,
    jaeger,
    json_logs,
    logfire,
    otel_python,
    otlp,
    plain,
    trace_events,
    zipkin,
)
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.formats.js_console import explain
from reconstruct.intake.formats.text_logs import recognise as recognise_text
from reconstruct.intake.json_text import Json, NotJson
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.tables import Row

__all__ = ["InvalidRecordError", "Record", "explain", "recognise", "recognise_text"]

_FORMATS: Final[tuple[Callable[[dict[str, Json], str | None], Record | None], ...]] = (
    gymlog.recognise,
    otlp.recognise,
    go_stdout.recognise,
    dynamo.recognise,
    otel_python.recognise,
    jaeger.recognise,
    zipkin.recognise,
    datadog.recognise,
    trace_events.recognise,
    captures.recognise,
    plain.recognise,
    json_logs.recognise,
)

_LISTS: Final[tuple[Callable[[list[Json], str | None], Record | None], ...]] = (
    datadog.recognise_list,
    trace_events.recognise_list,
)
"""Formats whose items need each other."""


def recognise(value: Json, server_hint: str | None) -> Record | None:
    """Turn an object, or a list of them, into a record; return None when no format knows it.

    `server_hint` is the name that stood before the value on its line. Raises `InvalidRecordError`
    when a format claims the value, yet nothing of it can be read; when only parts of it cannot, the
    record names them in its `problems`.
    """
    if isinstance(value, list):
        return _recognise_list(value, server_hint)
    if not isinstance(value, dict):
        return None
    for recognise_format in _FORMATS:
        record = recognise_format(value, server_hint)
        if record is not None:
            return record if recognise_format is gymlog.recognise else logfire.understood(record)
    return None


def _recognise_list(items: list[Json], server_hint: str | None) -> Record | None:
    for recognise_list in _LISTS:
        record = recognise_list(items, server_hint)
        if record is not None:
            return record
    if items and all(isinstance(item, list) for item in items):  # traces, each a list of spans
        items = [inner for item in items for inner in item]
    rows: list[tuple[str, Row]] = []
    problems: list[str] = []
    classes: Counter[LineClass] = Counter()
    unknown = 0
    for number, item in enumerate(items, 1):
        try:
            record = recognise(item, server_hint) if isinstance(item, dict) else None
        except (InvalidRecordError, NotJson) as error:
            problems.append(f"item {number}: {error}")
            continue
        if record is None:
            unknown += 1
            continue
        rows += record.rows
        problems += record.problems
        classes[record.line_class] += len(record.rows)
    if not classes:
        if problems:
            raise InvalidRecordError(fields.listed(problems))
        return None
    if unknown:
        problems.append(f"{unknown} of {len(items)} items are no records of a known format")
    return Record(fields.main_class(classes), tuple(rows), tuple(problems))
