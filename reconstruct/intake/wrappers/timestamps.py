"""A time before each line: `docker logs -t`, `kubectl logs --timestamps`, svlogd, tai64n."""

import re
from typing import Final

from reconstruct.intake.wrappers.layer import Layer, LineWrapper

__all__ = ["STAMP_IN_A_LINE", "TIMESTAMPS", "without_stamp"]

_STAMP: Final = re.compile(
    rb"(?:\d{4}-\d\d-\d\d[T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|@[0-9a-f]{24})"
    rb"(?: |\Z)"
)
_DOCKER_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d) ")
_PIECE_BYTES: Final = 16_384
STAMP_IN_A_LINE: Final = "docker's time inside it was taken out"


def _timestamps(line: bytes) -> Layer | None:
    match = _STAMP.match(line)
    if match is None:
        return None
    payload = line[match.end() :]
    if len(payload) > _PIECE_BYTES and (pieces := _pieces(payload)):
        return Layer(b"".join(pieces), note=STAMP_IN_A_LINE)
    return Layer(payload)


def _pieces(payload: bytes) -> list[bytes]:
    """Cut at the times that `docker logs -t` puts every 16 KiB into a long line; else empty."""
    pieces: list[bytes] = []
    start = 0
    while (match := _DOCKER_STAMP.match(payload, start + _PIECE_BYTES)) is not None:
        pieces.append(payload[start : match.start()])
        start = match.end()
    return [*pieces, payload[start:]] if pieces else []


def without_stamp(piece: bytes) -> bytes:
    """Take off the time that some versions of docker put before a line's further pieces."""
    match = _DOCKER_STAMP.match(piece)
    return piece if match is None else piece[match.end() :]


TIMESTAMPS: Final = LineWrapper("timestamps", _timestamps, b"@0123456789")
