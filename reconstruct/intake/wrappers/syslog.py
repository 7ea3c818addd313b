"""Lines of syslog, RFC 3164 or 5424, with and without priority, and what `journalctl` prints.

rsyslog writes control characters as `#` and three octal digits, and `@cee:` before JSON.
"""

import re
from typing import Final

from reconstruct.intake.wrappers.layer import Layer, LineWrapper, process_id

__all__ = ["SYSLOG"]

_RFC5424: Final = re.compile(
    rb"<\d{1,3}>\d{1,2} \S+ (?P<host>\S+) (?P<tag>\S+) (?P<pid>\S+) \S+ "
    rb"(?:-|(?:\[(?:[^\]\\\"]|\"(?:[^\"\\]|\\.)*\"|\\.)*\])+)(?: (?:\xef\xbb\xbf)?|\Z)"
)
_RFC3164: Final = re.compile(
    rb"(?:<\d{1,3}>)?"
    rb"(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    rb"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})? \S+"
    rb"|\d{9,11}\.\d{6}|\[ *\d+\.\d{6}\])"
    rb" (?!(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL) )"
    rb"(?P<host>[^\s:\[\]{}\"]+) (?P<tag>[^\s:\[\]{}\"]+)(?:\[(?P<pid>\d+)\])?:(?: |\Z)"
)
_CEE: Final = re.compile(rb"\s*@cee: ?")
_BROKEN_LINE: Final = re.compile(rb"[{\[]#012")
_CONTROL: Final = re.compile(rb"#(01[125])(?=(?:#01[125]){0,9}\s{0,99}[\"{}\[\]0-9tfn-])")


def _syslog(line: bytes) -> Layer | None:
    match = _RFC3164.match(line) or _RFC5424.match(line)
    if match is None:
        return None
    payload = line[match.end() :]
    if (cookie := _CEE.match(payload)) is not None:
        payload = payload[cookie.end() :]
    if _BROKEN_LINE.match(payload) is not None:
        payload = _CONTROL.sub(lambda octal: bytes([int(octal[1], 8)]), payload)
    host, tag = _text(match["host"]), _text(match["tag"])
    pid = _text(match["pid"])
    return Layer(
        payload,
        source=f"{host} {tag} {pid}",
        server=tag,
        host=host,
        pid=process_id(pid),
    )


def _text(field: bytes | None) -> str | None:
    """Return a header's field; `-` says that there is none."""
    return None if field is None or field == b"-" else field.decode("utf-8", "replace")


SYSLOG: Final = LineWrapper("syslog", _syslog, b"<[0123456789ADFJMNOSTW")
