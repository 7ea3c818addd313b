"""What one wrapper says about a line, and what a wrapper is."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reconstruct.intake.json_text import Json

__all__ = ["Layer", "LineWrapper", "ObjectWrapper", "Origin", "process_id"]

_PID: Final = re.compile(r"[0-9]{1,10}")
_REMEMBERED: Final = 1024


class Layer(NamedTuple):
    """A line without one wrapper, and what the wrapper told. Hints are None where it told none."""

    payload: bytes
    """The text as the program wrote it; spaces at both ends are its own."""
    source: str = ""
    """Who wrote it, as exactly as this wrapper knows: pieces of a line are joined per source."""
    server: str | None = None
    host: str | None = None
    pid: int | None = None
    continues: bool = False
    """The payload is a piece; the next one of this source goes on."""
    lost_lines: int = 0
    """So many lines like this one were left out by whoever wrapped it."""
    note: str | None = None
    """What was put right in the payload."""
    problem: str | None = None
    """Why there is no payload."""


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """What all wrappers of a line told: who wrote it, from the outermost to the innermost, and of
    each hint the one nearest to the record."""

    sources: tuple[str, ...] = ()
    server: str | None = None
    host: str | None = None
    pid: int | None = None
    wrappers: tuple[str, ...] = ()
    """Names, from the outermost to the innermost."""
    _inner: dict[tuple[object, ...], "Origin"] = field(default_factory=dict, repr=False)
    """What `within` has returned: lines of one origin follow each other."""

    def within(self, wrapper: str, layer: Layer) -> "Origin":
        """Return the origin of what was inside `layer` of the wrapper with this name."""
        key = wrapper, layer.source, layer.server, layer.host, layer.pid
        inner = self._inner.get(key)
        if inner is None:
            if len(self._inner) >= _REMEMBERED:
                self._inner.clear()
            inner = self._inner[key] = Origin(
                (*self.sources, f"{wrapper} {layer.source}"),
                self.server if layer.server is None else layer.server,
                self.host if layer.host is None else layer.host,
                self.pid if layer.pid is None else layer.pid,
                (*self.wrappers, wrapper),
            )
        return inner

    def of_server(self, server: str) -> "Origin":
        """Return the same origin with another server."""
        return Origin(self.sources, server, self.host, self.pid, self.wrappers)


@dataclass(frozen=True, slots=True)
class LineWrapper:
    """A way to wrap text. `take_off` returns None for a line that is not wrapped so."""

    name: str
    take_off: Callable[[bytes], Layer | None]
    starts: bytes
    """The bytes with which such a line can begin; empty: any."""
    is_vague: bool = False
    """Ordinary text looks alike: it is believed only where most lines have it."""


@dataclass(frozen=True, slots=True)
class ObjectWrapper:
    """A way to wrap text in an object. `take_off` returns None for one that is none."""

    name: str
    take_off: Callable[[dict[str, Json]], Layer | None]
    field: str
    """The field with the text; an object without it is none."""


def process_id(text: str | None) -> int | None:
    """Return the number that `text` is; None when it is none that a process can have."""
    return int(text) if text is not None and _PID.fullmatch(text) is not None else None
