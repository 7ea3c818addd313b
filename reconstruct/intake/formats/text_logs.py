"""Text that names its trace: `trace_id=` with 32 hex digits, as structlog's console and the log
format of OpenTelemetry's instrumentation print it.

The whole line is the body: of a text for people only the ids, a time at its start and the name of a
level are sure enough to be taken out.
"""

import re
from typing import Final

from reconstruct.intake.formats import fields, rows
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.formats.json_logs import SEVERITIES
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.times import to_unix_nano

__all__ = ["recognise"]

_TELLTALE: Final = b"trace_id="
_TRACE: Final = re.compile(r"\btrace_id=['\"]?(?:0x)?([0-9a-fA-F]{32})\b")
_SPAN: Final = re.compile(r"\bspan_id=['\"]?(?:0x)?([0-9a-fA-F]{16})\b")
_TIME: Final = re.compile(
    r"[\s\[]*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)"
)
_LEVEL: Final = re.compile(
    rf"\[({'|'.join(SEVERITIES)}) *\]|\b({'|'.join(name.upper() for name in SEVERITIES)})\b"
)
_HEAD: Final = 120
"""A level stands among the first characters, or the word is part of the message."""


def recognise(line: bytes, server_hint: str | None) -> Record | None:
    """Turn a line of text into a log record if it names a trace."""
    if _TELLTALE not in line:
        return None
    text = line.decode("utf-8", "replace").strip()
    trace, span = _TRACE.search(text), _SPAN.search(text)
    if trace is None:
        return None
    try:
        trace_id = fields.trace_id(trace[1])
        span_id = None if span is None else fields.span_id(span[1])
    except InvalidRecordError:  # all zeros: there was no span
        return None
    time, level = _TIME.match(text), _LEVEL.search(text, 0, _HEAD)
    severity = None if level is None else level[1] or level[2]
    row = rows.log(
        time=None if time is None else to_unix_nano(time[1]),
        body=text,
        severity_number=None if severity is None else SEVERITIES[severity.lower()],
        severity_text=severity,
        trace_id=trace_id,
        span_id=span_id,
        owner=rows.owner({}, server_hint),
    )
    return Record(LineClass.LOG, (row,))
