"""Which wrapper a line of a file is in.

Most wrappers have a form that nothing else has: each line says itself that it is in one, and lines
of several kinds may follow each other. A few look like ordinary text (`n1: …`). Those are believed
as the outermost layer only, and only where three of four lines nearby have the form and records
follow right behind it; elsewhere a record behind such text is found as one among other things.
"""

import re
from collections.abc import Iterable
from typing import Final

from reconstruct.intake.json_text import Json
from reconstruct.intake.wrappers import NONE, OF_LINES, OF_OBJECTS
from reconstruct.intake.wrappers.layer import Layer, LineWrapper

__all__ = ["MAX_DEPTH", "Found", "Unwrapper", "without_escapes"]

Found = tuple[str, Layer]
"""A wrapper's name, and the layer that it took off."""

_ESCAPES: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[=>78cM])")
_CLEAR: Final = tuple(wrapper for wrapper in OF_LINES if not wrapper.is_vague)
_BY_START: Final = tuple(
    tuple(wrapper for wrapper in _CLEAR if start in wrapper.starts) for start in range(256)
)
_VAGUE: Final = tuple(wrapper for wrapper in OF_LINES if wrapper.is_vague)
_MOST: Final = 0.75
_NEARBY: Final = 64
_HEAD_BYTES: Final = 512
MAX_DEPTH: Final = 16
"""So many layers are taken off a line."""


class Unwrapper:
    """Takes layers off the lines of a file.

    `forced`: the only wrapper to try as the outermost. `before`: so many lines of the file come
    before those that it is shown.
    """

    __slots__ = (
        "_before",
        "_clear",
        "_is_forced",
        "_is_sniffed",
        "_max_depth",
        "_nearby",
        "_objects",
        "_vague",
        "_vague_ones",
    )

    def __init__(self, forced: str | None = None, *, before: int = 0) -> None:
        self._clear, self._vague_ones, self._objects = _CLEAR, _VAGUE, OF_OBJECTS
        self._is_forced = forced is not None
        if forced is not None:
            self._clear = tuple(wrapper for wrapper in _CLEAR if wrapper.name == forced)
            self._vague_ones = tuple(wrapper for wrapper in _VAGUE if wrapper.name == forced)
            self._objects = tuple(wrapper for wrapper in OF_OBJECTS if wrapper.name == forced)
        self._max_depth = 0 if forced == NONE else MAX_DEPTH
        self._nearby: list[tuple[int, bytes]] = []
        self._before = before
        self._vague: LineWrapper | None = None
        self._is_sniffed = False

    def look_at(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Remember the next lines, with their numbers, as what is nearby: the latest 64.

        Numbers that are left out count as lines in no wrapper. What is remembered is looked at when
        a line is in no clear wrapper.
        """
        self._nearby += [(number, line[:_HEAD_BYTES]) for number, line in lines]
        if (surplus := len(self._nearby) - _NEARBY) > 0:
            self._before = self._nearby[surplus - 1][0]
            del self._nearby[:surplus]
        self._is_sniffed = False

    def of_line(self, content: bytes, depth: int) -> Found | None:
        """Take a layer off text that lies `depth` layers deep; None when it is in no wrapper."""
        if depth >= self._max_depth:
            return None
        for wrapper in self._clear if self._is_forced and not depth else _beginning(content):
            layer = wrapper.take_off(content)
            if layer is not None:
                return wrapper.name, layer
        if depth or not self._vague_ones or content.startswith(b"{"):
            return None
        if not self._is_sniffed:
            self._vague = self._sniffed()
            self._is_sniffed = True
        layer = None if self._vague is None else self._vague.take_off(content)
        return None if self._vague is None or layer is None else (self._vague.name, layer)

    def of_object(self, value: Json, depth: int) -> Found | None:
        """Take a layer off a JSON value that lies `depth` layers deep; None when it is none.

        Raises `Rounded` and `NotJson` as `json_text.encode` does.
        """
        if type(value) is not dict or depth >= self._max_depth:
            return None
        for wrapper in OF_OBJECTS if depth else self._objects:
            if wrapper.field in value and (layer := wrapper.take_off(value)) is not None:
                return wrapper.name, layer
        return None

    def _sniffed(self) -> LineWrapper | None:
        """Return the vague wrapper that most lines nearby are in.

        One that was found earlier stays as long as most lines still have its form, be there no
        record. One that is forced needs no more than its form.
        """
        otherwise = self._vague_ones[0] if self._is_forced else None
        lines = [line for _, line in self._nearby if not line.isspace()]
        blank = len(self._nearby) - len(lines)
        total = self._nearby[-1][0] - self._before - blank if self._nearby else 0
        enough = 0 if self._is_forced else total * _MOST
        if len(lines) - sum(line.startswith(b'{"') for line in lines) < enough:
            return None
        if self._vague is None and not any(b"{" in line for line in lines):
            return otherwise
        lines = [without_escapes(line) for line in lines]
        for wrapper in self._vague_ones:
            layers = [layer for line in lines if (layer := wrapper.take_off(line)) is not None]
            if len(layers) < enough:
                continue
            if any(_begins_record(layer.payload) for layer in layers):
                return wrapper
            if wrapper is self._vague:
                otherwise = wrapper
        return otherwise


def _beginning(content: bytes) -> tuple[LineWrapper, ...]:
    """The clear wrappers whose lines can begin as `content` does."""
    return _BY_START[content[0]] if content else ()


def without_escapes(line: bytes) -> bytes:
    """Take off the sequences with which terminals colour text and move in it."""
    return _ESCAPES.sub(b"", line) if b"\x1b" in line else line


def _begins_record(payload: bytes) -> bool:
    """Say whether a record begins here, maybe in further layers."""
    for _ in range(MAX_DEPTH):
        if payload.startswith((b'{"', b'[{"', b'[[{"')) or payload.strip() == b"{":
            return True
        for wrapper in _beginning(payload):
            layer = wrapper.take_off(payload)
            if layer is not None:
                payload = layer.payload
                break
        else:
            return False
    return False
