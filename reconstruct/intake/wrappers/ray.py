"""What a Ray driver prints of its workers, and how many of their lines it left out.

Words with digits aside, a line like one of another worker within five seconds is held back; only
the latest is printed, with `[repeated Nx across cluster]` behind it: N were held back, N-1 of them
are nowhere. The workers' own files have no prefix and lack nothing.
"""

import re
from typing import Final

from reconstruct.intake.wrappers.layer import Layer, LineWrapper, process_id

__all__ = ["RAY"]

_PREFIX: Final = re.compile(
    rb"\((?:(?P<name>(?:[^()\r\n{}]|\([^()\r\n{}]*\)){1,200}?) )?"
    rb"pid=(?P<pid>\d{1,10})(?:, ip=(?P<ip>[^)\s,]+))?\)(?: |\Z)"
)
_REPEATED: Final = re.compile(
    rb" \[repeated (\d{1,9})x across cluster\]"
    rb"(?: \(Ray deduplicates logs by default\.[^{}]*\))?\s*\Z"
)


def _ray(line: bytes) -> Layer | None:
    match = _PREFIX.match(line)
    if match is None:
        return None
    end, lost = len(line), 0
    if line.rstrip().endswith((b"x across cluster]", b"options.)")):
        repeated = _REPEATED.search(line, match.end())
        if repeated is not None:
            end, lost = repeated.start(), max(int(repeated[1]) - 1, 0)
    name, pid, address = (
        None if match[group] is None else match[group].decode("utf-8", "replace")
        for group in ("name", "pid", "ip")
    )
    return Layer(
        line[match.end() : end],
        source=f"{name} {pid} {address}",
        server=name,
        host=address,
        pid=process_id(pid),
        lost_lines=lost,
    )


RAY: Final = LineWrapper("ray", _ray, b"(")
