"""Prefixes of programs that keep several servers running: NeMo Gym, docker compose, honcho."""

import re
import string
from typing import Final

from reconstruct.intake.wrappers.layer import Layer, LineWrapper

__all__ = ["COMPOSE", "GYM", "HONCHO"]

_GYM: Final = re.compile(rb"(?:\((?![^()]{0,200}\bpid=\d)([^()\r\n]{1,200})\) )+")
_COMPOSE: Final = re.compile(rb"([A-Za-z0-9][\w.-]{0,100}) *\|(?: |\Z)")
_HONCHO: Final = re.compile(rb"\d\d:\d\d:\d\d(?:\.\d+)? +([A-Za-z0-9][\w.-]{0,100}) *\|(?: |\Z)")


def _gym(line: bytes) -> Layer | None:
    """`(server name) `, any number of times where two writers' buffers met: the nearest counts."""
    return _named(_GYM, line)


def _compose(line: bytes) -> Layer | None:
    return _named(_COMPOSE, line)


def _honcho(line: bytes) -> Layer | None:
    """Also foreman; overmind leaves the time out and is like docker compose."""
    return _named(_HONCHO, line)


def _named(prefix: re.Pattern[bytes], line: bytes) -> Layer | None:
    match = prefix.match(line)
    if match is None:
        return None
    name = match[1].decode("utf-8", "replace")
    return Layer(line[match.end() :], source=name, server=name)


GYM: Final = LineWrapper("gym", _gym, b"(")
COMPOSE: Final = LineWrapper("compose", _compose, (string.ascii_letters + string.digits).encode())
HONCHO: Final = LineWrapper("honcho", _honcho, b"012")
