"""Where the values of a JSON document begin and end, found while its bytes arrive.

The document is a list, or an object with lists that are known by their keys; its values are those
lists' elements, and the object's other members. Memory holds the value that has begun. What a
value is made of is not checked, only that its brackets and strings close.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final, NamedTuple

__all__ = ["MAX_VALUE_BYTES", "Scanner", "Value"]

MAX_VALUE_BYTES: Final = 64 << 20

_STRING: Final = rb'"(?:[^"\\\n]++|\\[^\n])*+"'
_LEAF: Final = rb"[\[{](?:[^\"{}\[\]]++|" + _STRING + rb")*+[\]}]"
_TOKEN: Final = re.compile(_LEAF + rb"|" + _STRING + rb"|[\"{}\[\]]")
"""A container without containers in it, a string, or a bracket; a quote whose string goes on."""
_STRING_REST: Final = re.compile(rb'(?:[^"\\\n]++|\\[^\n])*+')
_SCALAR_REST: Final = re.compile(rb"[^,\]}\s]*")
_SCALAR: Final = re.compile(rb"-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity")
_SPACE: Final = re.compile(rb"\s*")
_CLOSING: Final = {b"{": b"}", b"[": b"]"}


class Value(NamedTuple):
    """A whole value: the list or member that it belongs to, its offset, its bytes.

    `key` is None in a document that is a list. `is_element`: it is one of the list's.
    """

    key: str | None
    is_element: bool
    offset: int
    data: bytes


class _At(Enum):
    """What comes next, outside of values."""

    DOCUMENT = auto()
    ELEMENT = auto()
    AFTER_ELEMENT = auto()
    AFTER_LIST = auto()
    KEY = auto()
    COLON = auto()
    MEMBER = auto()
    AFTER_MEMBER = auto()
    END = auto()


_THEN: Final[dict[_At, dict[bytes, _At]]] = {
    _At.DOCUMENT: {b"[": _At.ELEMENT, b"{": _At.KEY},
    _At.ELEMENT: {b"]": _At.AFTER_LIST},
    _At.AFTER_ELEMENT: {b",": _At.ELEMENT, b"]": _At.AFTER_LIST},
    _At.KEY: {b"}": _At.END},
    _At.COLON: {b":": _At.MEMBER},
    _At.MEMBER: {},
    _At.AFTER_MEMBER: {b",": _At.KEY, b"}": _At.END},
}
"""What each byte outside of values leads to; any other begins a value, or is wrong."""


class Scanner:
    """Takes the bytes of one document, in pieces; offsets count from its first byte."""

    def __init__(
        self, list_keys: frozenset[str], *, max_value_bytes: int = MAX_VALUE_BYTES
    ) -> None:
        self._list_keys = list_keys
        self._limit = max_value_bytes
        self._buffer = bytearray()
        self._base = 0  # offset of the buffer's first byte
        self._next = 0  # index of the first byte that was not looked at
        self._at = _At.DOCUMENT
        self._is_list = False
        self._key: str | None = None
        self._start: int | None = None  # index where the value that has begun begins
        self._closing: list[bytes] = []
        self._in_string = False
        self.has_list = False
        """A list whose elements are wanted has begun."""
        self.problem: str | None = None
        """Why this is no JSON document, or none any more; nothing is found from then on."""
        self.end: int | None = None
        """Offset behind the document's last byte, once it is known."""

    @property
    def begun(self) -> int | None:
        """Offset of the value that has begun and not ended."""
        return None if self._start is None else self._base + self._start

    @property
    def unfinished(self) -> bytes:
        """What there is of that value."""
        return b"" if self._start is None else bytes(self._buffer[self._start :])

    def feed(self, data: bytes) -> Iterator[Value]:
        """Take more bytes; yield the values that are whole now. Iterate to the end."""
        self._buffer += data
        while self.problem is None and self.end is None:
            if self._start is not None:
                value = self._value()
                if value is None:
                    break
                if value.data:  # a key alone has none
                    yield value
            elif not self._step():
                break
        done = self._next if self._start is None else self._start
        del self._buffer[:done]
        self._base += done
        self._next -= done
        if self._start is not None:
            self._start = 0
            if len(self._buffer) > self._limit:
                self.problem = f"a value is longer than {self._limit:,} bytes"

    def _step(self) -> bool:
        """Take one byte outside of values; say whether there was one."""
        space = _SPACE.match(self._buffer, self._next)
        assert space is not None, "matches the empty text"
        self._next = space.end()
        if self._next == len(self._buffer):
            return False
        byte = bytes(self._buffer[self._next : self._next + 1])
        then = _THEN[self._at].get(byte)
        if self._at is _At.MEMBER and byte == b"[" and self._key in self._list_keys:
            then = _At.ELEMENT
        if then is None:
            self._begin_value(byte)
            return True
        self._next += 1
        if self._at is _At.DOCUMENT:
            self._is_list = then is _At.ELEMENT
        if then is _At.ELEMENT:
            self.has_list = True
        if then is _At.AFTER_LIST:
            then = _At.END if self._is_list else _At.AFTER_MEMBER
        if then is _At.END:
            self.end = self._base + self._next
        self._at = then
        return True

    def _begin_value(self, byte: bytes) -> None:
        if self._at in (_At.ELEMENT, _At.MEMBER) or (self._at is _At.KEY and byte == b'"'):
            self._start = self._next
        else:
            expected = " or ".join(sorted(map(bytes.decode, _THEN[self._at]))) or "a key"
            self._fail(f"{expected} is missing")

    def _fail(self, reason: str) -> None:
        self.problem = f"{reason} at byte {self._base + self._next:,}"

    def _value(self) -> Value | None:
        """Go on with the value that has begun; return it once it is whole."""
        assert self._start is not None
        if not (self._closing or self._in_string):
            first = bytes(self._buffer[self._start : self._start + 1])
            if first not in (b'"', b"{", b"["):
                return self._scalar()
        end = self._container_or_string()
        return None if end is None else self._found(end)

    def _scalar(self) -> Value | None:
        match = _SCALAR_REST.match(self._buffer, self._next)
        assert match is not None, "matches the empty text"
        self._next = match.end()
        if self._next == len(self._buffer):
            return None
        assert self._start is not None
        if _SCALAR.fullmatch(self._buffer, self._start, self._next) is None:
            self._fail("a value that is none")
            return None
        return self._found(self._next)

    def _container_or_string(self) -> int | None:
        """Return the index behind the value, None when its end has not arrived."""
        buffer = self._buffer
        if self._in_string and not self._rest_of_string():
            return None
        if not self._closing and self._next > (self._start or 0):
            return self._next  # the value was that string
        for token in _TOKEN.finditer(buffer, self._next):
            self._next = token.end()
            text = token[0]
            if text in _CLOSING:
                self._closing.append(_CLOSING[text])
                continue
            if text == b'"':
                self._in_string = True
                return self._container_or_string()
            if text in (b"}", b"]") and (not self._closing or self._closing.pop() != text):
                self._fail("brackets that do not match")
                return None
            if not self._closing:
                return self._next
        self._next = len(buffer)
        return None

    def _rest_of_string(self) -> bool:
        """Go on in a string; say whether it has ended."""
        match = _STRING_REST.match(self._buffer, self._next)
        assert match is not None, "matches the empty text"
        self._next = match.end()
        rest = self._buffer[self._next : self._next + 2]
        if rest[:1] == b'"':
            self._next += 1
            self._in_string = False
            return True
        if rest and rest != b"\\":
            self._fail("a string with a line feed in it")
        return False

    def _found(self, end: int) -> Value:
        assert self._start is not None
        data = bytes(self._buffer[self._start : end])
        offset = self._base + self._start
        self._next, self._start = end, None
        if self._at is _At.KEY:
            self._key = data[1:-1].decode("utf-8", "replace")
            self._at = _At.COLON
            return Value(self._key, is_element=False, offset=offset, data=b"")
        is_element = self._at is _At.ELEMENT
        self._at = _At.AFTER_ELEMENT if is_element else _At.AFTER_MEMBER
        return Value(self._key, is_element, offset, data)
