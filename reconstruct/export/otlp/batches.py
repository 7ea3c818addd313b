"""Spans packed into requests that receivers accept: by encoded bytes, not by number of spans.

Many receivers refuse more than 4 MiB, and some proxies before them more than 1 MiB, counted after
unpacking. A span that is larger than the limit travels alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from reconstruct.export.otlp.encoding import resource_message, scope_message, span_message

__all__ = ["REQUEST_BYTES", "Item", "item", "packed", "request"]

REQUEST_BYTES: Final = 1_000_000
"""Encoded bytes of a request before compression."""

_FRAME_BYTES: Final = 16
"""More than protobuf adds around one message: a tag and a length, at each level it stands in."""

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds


@dataclass(frozen=True, slots=True)
class Item:
    """A span ready to send, with whose it is: resource as JSON text, scope name and version."""

    span: Span
    resource: str | None
    scope: tuple[str | None, str | None]

    @property
    def trace_id(self) -> str:
        """32 hex digits."""
        return self.span.trace_id.hex()

    @property
    def span_id(self) -> str:
        """16 hex digits."""
        return self.span.span_id.hex()


def item(row: Row) -> Item:
    """Make an item of a row; raises `Unsendable` as `span_message` does."""
    return Item(span_message(row), row["resource"], (row["scope_name"], row["scope_version"]))


def packed(items: Iterable[Item], limit: int = REQUEST_BYTES) -> Iterator[list[Item]]:
    """Cut items, in their order, into lists whose request stays within `limit` bytes."""
    batch: list[Item] = []
    owners: set[object] = set()
    size = 0
    for one in items:
        added = _added_bytes(one, owners)
        if batch and size + added > limit:
            yield batch
            batch, owners, size = [], set(), 0
            added = _added_bytes(one, owners)
        batch.append(one)
        owners.update((one.resource, (one.resource, one.scope)))
        size += added
    if batch:
        yield batch


def _added_bytes(one: Item, owners: set[object]) -> int:
    added: int = one.span.ByteSize() + _FRAME_BYTES
    if one.resource not in owners:
        # Its JSON text is at least as long as its protobuf form less the frames of its pairs.
        added += 2 * len((one.resource or "").encode()) + _FRAME_BYTES
    if (one.resource, one.scope) not in owners:
        added += sum(len((text or "").encode()) for text in one.scope) + 2 * _FRAME_BYTES
    return added


def request(items: Sequence[Item]) -> ExportTraceServiceRequest:
    """Build one request: spans under their scope under their resource."""
    resources: dict[str | None, ResourceSpans] = {}
    scopes: dict[object, ScopeSpans] = {}
    message = ExportTraceServiceRequest()
    for one in items:
        if one.resource not in resources:
            resources[one.resource] = message.resource_spans.add(
                resource=resource_message(one.resource)
            )
        key = (one.resource, one.scope)
        if key not in scopes:
            scopes[key] = resources[one.resource].scope_spans.add(scope=scope_message(*one.scope))
        scopes[key].spans.append(one.span)
    return message
