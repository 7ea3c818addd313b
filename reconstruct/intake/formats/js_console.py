"""Console output of the OpenTelemetry SDK for JavaScript: named, never read.

`ConsoleSpanExporter` prints objects as JavaScript does, over many lines with single quotes and bare
keys, cuts what lies deep to `[Object]` and times to microseconds. It is text to us, not a
damaged record. The one line of each span that says `traceId` names it.
"""

import re
from typing import Final

__all__ = ["JS_CONSOLE", "explain"]

JS_CONSOLE: Final = "a span of OpenTelemetry's console exporter for JavaScript, which is not JSON"
_PROPERTY: Final = "a property as JavaScript or Python prints it, which is not JSON"

_TRACE_ID: Final = re.compile(rb"  traceId: '[0-9a-f]{32}',")
_QUOTED_PROPERTY: Final = re.compile(
    rb"""\s+'[^'\\]{1,200}': (?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[-\w.]+|\[.*\]|[\[{]),?"""
)


def explain(body: bytes) -> str | None:
    """Say why a line, without its prefixes, is text; None when it is no such output."""
    if not body.startswith(b"  "):
        return None
    if _TRACE_ID.fullmatch(body) is not None:
        return JS_CONSOLE
    return _PROPERTY if _QUOTED_PROPERTY.fullmatch(body) is not None else None
