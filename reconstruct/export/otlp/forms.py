"""A request in its two forms, protobuf and JSON, put together from records encoded already.

In all three signals records stand under their scope under their resource, with the same field
numbers, so that a request is frames around bytes: no record is encoded twice or copied as a
message. Source: opentelemetry-proto 1.x and its JSON mapping (ids are hex, enums numbers).
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol

import orjson
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # no types
from google.protobuf.message import Message  # type: ignore[import-untyped]  # ships no types

from reconstruct.export.otlp.encoding import (
    CACHED,
    attribute_pairs,
    frequent_pair,
    parsed,
    resource_message,
    scope_message,
)
from reconstruct.export.otlp.signals import Kind

__all__ = ["Form", "Item", "JsonForm", "Owner", "ProtobufForm", "json_attributes"]

Owner = tuple[str | None, str | None, str | None]
"""Resource as JSON text, name and version of the scope."""

_LISTS: Final = frozenset({"arrayValue", "kvlistValue"})
_IDS: Final = frozenset({"traceId", "spanId", "parentSpanId"})
_OWNERS_KEPT: Final = 4_096
_FRAME_BYTES: Final = 16
"""More than either form adds around one thing: a tag and a length, or brackets and a name."""


@dataclass(frozen=True, slots=True)
class Item:
    """A record encoded already: whose it is, its key in a checkpoint, what it is called."""

    body: bytes
    owner: Owner
    key: int
    name: tuple[str | None, str | None]
    """Of a span, trace_id and span_id; of others, file and line."""


class Form(Protocol):
    """How records and requests are written."""

    content_type: str

    def encoded(self, message: Message) -> bytes:
        """Encode one record."""
        ...

    def owner_bytes(self, owner: Owner) -> tuple[int, int]:
        """Count the bytes of a resource and of a scope in a request."""
        ...

    def request(self, items: Sequence[Item]) -> bytes:
        """Put a request together."""
        ...


class ProtobufForm:
    """The binary form."""

    content_type = "application/x-protobuf"

    def __init__(self, kind: Kind) -> None:
        del kind  # the field numbers are the same for all

    def encoded(self, message: Message) -> bytes:
        """See `Form`."""
        body: bytes = message.SerializeToString()
        return body

    def owner_bytes(self, owner: Owner) -> tuple[int, int]:
        """See `Form`."""
        resource, scope = _protobuf_resource(owner[0]), _protobuf_scope(owner[1:])
        return len(resource) + _FRAME_BYTES, len(scope) + _FRAME_BYTES

    def request(self, items: Sequence[Item]) -> bytes:
        """See `Form`."""
        parts = []
        for resource, scopes in _grouped(items).items():
            inner = [_frame(1, _protobuf_resource(resource))]
            for scope, bodies in scopes.items():
                records = b"".join(_frame(2, body) for body in bodies)
                inner.append(_frame(2, _frame(1, _protobuf_scope(scope)) + records))
            parts.append(_frame(1, b"".join(inner)))
        return b"".join(parts)


class JsonForm:
    """The form of JSON."""

    content_type = "application/json"

    def __init__(self, kind: Kind) -> None:
        self._resources, self._scopes, self._records = (
            name.encode() for name in (kind.resources, kind.scopes, kind.records)
        )

    def encoded(self, message: Message) -> bytes:
        """See `Form`."""
        return _json(message)

    def owner_bytes(self, owner: Owner) -> tuple[int, int]:
        """See `Form`."""
        resource, scope = _json_resource(owner[0]), _json_scope(owner[1:])
        names = len(self._resources + self._scopes + self._records)
        return len(resource) + names + 4 * _FRAME_BYTES, len(scope) + names + 4 * _FRAME_BYTES

    def request(self, items: Sequence[Item]) -> bytes:
        """See `Form`."""
        resources = []
        for resource, scopes in _grouped(items).items():
            inner = [
                b'{"scope":%s,"%s":[%s]}' % (_json_scope(scope), self._records, b",".join(bodies))
                for scope, bodies in scopes.items()
            ]
            resources.append(
                b'{"resource":%s,"%s":[%s]}'
                % (_json_resource(resource), self._scopes, b",".join(inner))
            )
        return b'{"%s":[%s]}' % (self._resources, b",".join(resources))


Scopes = dict[tuple[str | None, str | None], list[bytes]]


def _grouped(items: Sequence[Item]) -> Mapping[str | None, Scopes]:
    resources: dict[str | None, Scopes] = {}
    for item in items:
        resource, *scope = item.owner
        scopes = resources.setdefault(resource, {})
        scopes.setdefault((scope[0], scope[1]), []).append(item.body)
    return resources


def _frame(number: int, payload: bytes) -> bytes:
    """Write a field of wire type 2: its tag, its length as a varint, its bytes."""
    length = len(payload)
    head = bytearray([number << 3 | 2])
    while length > 127:
        head.append(length & 127 | 128)
        length >>= 7
    head.append(length)
    return bytes(head) + payload


@lru_cache(_OWNERS_KEPT)
def _protobuf_resource(resource: str | None) -> bytes:
    encoded: bytes = resource_message(resource).SerializeToString()
    return encoded


@lru_cache(_OWNERS_KEPT)
def _protobuf_scope(scope: tuple[str | None, str | None]) -> bytes:
    encoded: bytes = scope_message(*scope).SerializeToString()
    return encoded


@lru_cache(_OWNERS_KEPT)
def _json_resource(resource: str | None) -> bytes:
    return _json(resource_message(resource))


@lru_cache(_OWNERS_KEPT)
def _json_scope(scope: tuple[str | None, str | None]) -> bytes:
    return _json(scope_message(*scope))


def json_attributes(text: str | None) -> bytes:
    """Write a column of attributes as OTLP's list of them; raises as `attribute_pairs` does."""
    pairs = [
        _json_pair(key, value, type(value).__name__)
        if type(value) in CACHED
        else _json(attribute_pairs({key: value})[0])
        for key, value in (parsed(text) or {}).items()
    ]
    return b"[%s]" % b",".join(pairs)


@lru_cache(8_192)
def _json_pair(key: str, value: Any, kind: str) -> bytes:  # Any: one of CACHED
    if kind == "str":
        try:
            return b'{"key":%s,"value":{"stringValue":%s}}' % (
                orjson.dumps(key),
                orjson.dumps(value),
            )
        except TypeError:  # halves of surrogates
            pass
    return _json(frequent_pair(key, value, kind))


def _json(message: Message) -> bytes:
    return orjson.dumps(_as_otlp_has_it(MessageToDict(message, use_integers_for_enums=True)))


def _as_otlp_has_it(value: Any) -> Any:  # Any: whatever JSON can hold
    """Write ids as hex, where protobuf's own mapping has base64, and lists with their values, which
    some receivers want in empty ones too."""
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex()
            if key in _IDS and isinstance(item, str)
            else {"values": []}
            if key in _LISTS and not item
            else _as_otlp_has_it(item)
            for key, item in value.items()
        }
    return [_as_otlp_has_it(item) for item in value] if isinstance(value, list) else value
