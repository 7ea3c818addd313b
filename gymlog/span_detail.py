"""What few spans have: events, links, counts of what a limit kept out.

It is made when the first of them comes, so that a span without them pays nothing.
"""

from collections.abc import Mapping
from typing import Any

from opentelemetry import trace

from gymlog.values import Limits, clean_mapping, clean_text

__all__ = ["SpanDetail"]


class SpanDetail:
    """The events and links of one span, and how its record tells of them."""

    __slots__ = (
        "context",
        "dropped_attributes",
        "dropped_events",
        "dropped_links",
        "events",
        "links",
        "records_exception",
        "sets_status",
    )

    def __init__(self) -> None:
        self.context: trace.SpanContext | None = None
        """The ids as OpenTelemetry's type, once somebody asked for it."""
        self.events: list[dict[str, Any]] = []  # Any: as record.md lists them
        self.links: list[dict[str, Any]] = []  # Any: as record.md lists them
        self.dropped_attributes = self.dropped_events = self.dropped_links = 0
        self.records_exception = self.sets_status = True
        """What an exception does that leaves the span's block."""

    def add_event(
        self, name: str, attributes: Mapping[str, object], time_unix_nano: int, limits: Limits
    ) -> None:
        """Add an event, or count it when there are enough."""
        if len(self.events) >= limits.events:
            self.dropped_events += 1
            return
        cleaned, dropped = clean_mapping(attributes, limits.event_attributes, limits.characters)
        event: dict[str, Any] = {  # Any: as record.md lists them
            "time_unix_nano": time_unix_nano,
            "name": clean_text(name, limits.characters),
            "attributes": cleaned,
        }
        if dropped:
            event["dropped_attributes_count"] = dropped
        self.events.append(event)

    def add_link(
        self, context: trace.SpanContext, attributes: Mapping[str, object], limits: Limits
    ) -> None:
        """Add a link to another span, or count it when there are enough."""
        if len(self.links) >= limits.links:
            self.dropped_links += 1
            return
        cleaned, dropped = clean_mapping(attributes, limits.link_attributes, limits.characters)
        link: dict[str, Any] = {  # Any: as record.md lists them
            "trace_id": f"{context.trace_id:032x}",
            "span_id": f"{context.span_id:016x}",
            "attributes": cleaned,
        }
        if context.trace_state:
            link["trace_state"] = context.trace_state.to_header()
        if dropped:
            link["dropped_attributes_count"] = dropped
        self.links.append(link)

    def put_into(self, record: dict[str, Any]) -> None:  # Any: see gymlog.record
        """Add what there is to a record that ends with its attributes."""
        if self.events:
            record["events"] = self.events
        if self.links:
            record["links"] = self.links
        if self.dropped_attributes:
            record["dropped_attributes_count"] = self.dropped_attributes
        if self.dropped_events:
            record["dropped_events_count"] = self.dropped_events
        if self.dropped_links:
            record["dropped_links_count"] = self.dropped_links
