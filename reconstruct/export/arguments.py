"""What a viewer shows of a span, a span event or a log record beside its name and times."""

from collections.abc import Iterator
from typing import Final

from reconstruct.export.drawn import Instant, Slice
from reconstruct.intake.json_text import Json, decode_encoded
from reconstruct.render.text import clean

__all__ = ["attributes_of", "event_instants", "facts_of", "instant_facts", "instant_name", "label"]

_NAME_LENGTH: Final = 200
"""Characters of a log record's text that its name shows; the whole is among its arguments."""


def label(span: Slice) -> str:
    """Return the name of a span as it is drawn: inert, and told from finished ones."""
    return clean(span.name) if span.state == "finished" else f"{clean(span.name)} [unfinished]"


def facts_of(span: Slice) -> dict[str, Json]:
    """Return what is not among its attributes, under the keys that OpenTelemetry gives it where a
    format has no field for it."""
    facts: dict[str, Json] = {"trace_id": span.trace_id, "span_id": span.span_id}
    if span.parent_span_id is not None:
        facts["parent_span_id"] = span.parent_span_id
    facts["span.kind"] = span.kind
    if span.status_code in ("OK", "ERROR"):
        facts["otel.status_code"] = span.status_code
        if span.status_message:
            facts["otel.status_description"] = span.status_message
    if span.state != "finished":
        facts["unfinished"] = span.state
    if span.rollout_id is not None:
        facts["rollout_id"] = span.rollout_id
    if span.scope_name:
        facts["otel.scope.name"] = span.scope_name
    if span.links != "[]":
        facts["links"] = decode_encoded(span.links)
    return facts


def attributes_of(text: str | None) -> dict[str, Json]:
    """Return attributes from their JSON text."""
    found = decode_encoded(text) if text else {}
    return found if isinstance(found, dict) else {"attributes": found}


def event_instants(span: Slice) -> Iterator[tuple[int, str, dict[str, Json]]]:
    """Yield time, name and arguments of the events of a span."""
    if span.events == "[]":
        return
    for event in decode_encoded(span.events):
        facts = {"trace_id": span.trace_id, "span_id": span.span_id, "span": clean(span.name)}
        arguments = (event.get("attributes") or {}) | facts
        yield event["time_unix_nano"] - span.offset, clean(str(event.get("name"))), arguments


def instant_name(record: Instant) -> str:
    """Return the first line of a log record, its level before it."""
    text = (record.body or "").split("\n", 1)[0]
    text = text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"
    return clean(f"{record.severity_text}: {text}" if record.severity_text else text) or "log"


def instant_facts(record: Instant) -> dict[str, Json]:
    """Return the rest of a log record, its attributes included."""
    facts = {
        "body": record.body,
        "severity_text": record.severity_text,
        "severity_number": record.severity_number,
        "trace_id": record.trace_id,
        "span_id": record.span_id,
        "otel.scope.name": record.scope_name,
    }
    known = {key: value for key, value in facts.items() if value is not None}
    return attributes_of(record.attributes) | known
