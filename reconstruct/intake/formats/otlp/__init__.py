"""OTLP/JSON: spans, log records and metrics as OpenTelemetry's protocol writes them.

One object holds many records: a file of the collector has one batch on each line, Java's exporters
write one `ResourceSpans` without the object around it, Grafana's download says `batches`. The
spellings that writers use are all read: camelCase and snake_case, ids in hex and base64, enums as
numbers and names, 64-bit numbers as text and numbers, `instrumentationLibrarySpans`. A record that
breaks the format is named, and the others are kept. What has no column is left out: attributes and
schema of a scope, entities of a resource.

About 15 µs a span with four attributes, and as much for each line. Source: opentelemetry-proto 1.x.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from gymlog import semconv
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.formats.otlp.logs import log_rows
from reconstruct.intake.formats.otlp.metrics import metric_rows
from reconstruct.intake.formats.otlp.spans import span_rows
from reconstruct.intake.formats.otlp.spelling import camel, count, items, named
from reconstruct.intake.formats.otlp.values import attributes
from reconstruct.intake.json_text import Json, NotJson
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row

__all__ = ["recognise"]

Scope = tuple[str | None, str | None]


class _Signal(NamedTuple):
    """One kind of records: its class, where they lie, and how one becomes rows."""

    line_class: LineClass
    resources: tuple[str, ...]
    scopes: tuple[str, ...]
    records: tuple[str, ...]
    rows: Callable[[dict[str, Json], Scope, Owner], list[tuple[LineClass, str, Row]]]


_SIGNALS: Final = (
    _Signal(
        LineClass.SPAN,
        ("resourceSpans", "batches"),
        ("scopeSpans", "instrumentationLibrarySpans"),
        ("spans",),
        span_rows,
    ),
    _Signal(
        LineClass.LOG,
        ("resourceLogs",),
        ("scopeLogs", "instrumentationLibraryLogs"),
        ("logRecords", "logs"),
        log_rows,
    ),
    _Signal(
        LineClass.METRIC,
        ("resourceMetrics",),
        ("scopeMetrics", "instrumentationLibraryMetrics"),
        ("metrics",),
        metric_rows,
    ),
)


_NAMES: Final = frozenset(
    spelt
    for signal in _SIGNALS
    for name in signal.resources + signal.scopes
    for spelt in (name, re.sub("[A-Z]", lambda match: f"_{match[0].lower()}", name))
)


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn a batch, or what one resource has in it, into its records."""
    if value.keys().isdisjoint(_NAMES):
        return None
    message = camel(value, "")
    reading = _Reading(server_hint)
    known: list[LineClass] = []
    for signal in _SIGNALS:
        resources = _resources(message, signal)
        if resources is not None:
            known.append(signal.line_class)
            reading.read(resources, signal)
    if not known:
        return None
    if not reading.rows and reading.problems:
        raise InvalidRecordError(fields.listed(reading.problems))
    line_class = fields.main_class(reading.classes) if reading.classes else known[0]
    return Record(line_class, tuple(reading.rows), tuple(reading.problems))


def _resources(message: dict[str, Json], signal: _Signal) -> list[Json] | None:
    """Return what holds the records of a signal, one for each resource; None without any."""
    for name in signal.resources:
        if name in message:
            is_anothers = _is_anothers(name, fields.items(message[name]))
            return None if is_anothers else items(message, name)
    return [message] if any(name in message for name in signal.scopes) else None


def _is_anothers(name: str, resources: list[Json]) -> bool:
    """Other writers use two of the names as well: tell theirs by what is in them."""
    if name == "batches":
        scopes = {scope for each in resources for scope in camel(fields.members(each), name)}
        return scopes.isdisjoint(_SIGNALS[0].scopes)
    # OpenTelemetry's console exporter for Python says `resource_metrics`, and has `data` in each
    return name == "resourceMetrics" and any(
        "data" in fields.members(metric)
        for each in resources
        for scope in fields.items(fields.members(each).get("scope_metrics"))
        for metric in fields.items(fields.members(scope).get("metrics"))
    )


class _Reading:
    """The records found in one value, and what in it could not be read."""

    __slots__ = ("_server_hint", "classes", "problems", "rows")

    def __init__(self, server_hint: str | None) -> None:
        self._server_hint = server_hint
        self.rows: list[tuple[str, Row]] = []
        self.problems: list[str] = []
        self.classes: Counter[LineClass] = Counter()

    def read(self, resources: list[Json], signal: _Signal) -> None:
        """Read the records of one signal."""
        for item in resources:
            try:
                resource = camel(item, signal.resources[0])
                scopes = _first(resource, signal.scopes)
            except InvalidRecordError as error:
                self.problems.append(str(error))
                continue
            owner = self._owner(resource)
            for scope in scopes:
                self._scope(scope, signal, owner)

    def _owner(self, resource: dict[str, Json]) -> Owner:
        described: dict[str, Json] = {}
        try:
            message = camel(resource.get("resource"), "resource")
            described["attributes"] = attributes(message.get("attributes"))
            dropped = count(message.get("droppedAttributesCount"))
            if dropped is not None:
                described["dropped_attributes_count"] = dropped
            schema_url = named(resource.get("schemaUrl"))
            if schema_url is not None:
                described["schema_url"] = schema_url
        except InvalidRecordError as error:
            self.problems.append(f"resource: {error}")
        except RecursionError:
            self.problems.append("resource: nested too deeply")
        # our own processes have instance ids of their own; others may share one
        is_ours = semconv.BOOT_ID in fields.members(described.get("attributes"))
        return fields.owner(described, self._server_hint, by_pid=not is_ours)

    def _scope(self, item: Json, signal: _Signal, owner: Owner) -> None:
        try:
            message = camel(item, signal.scopes[0])
            scope = camel(message.get("scope", message.get("instrumentationLibrary")), "scope")
            records = _first(message, signal.records)
        except InvalidRecordError as error:
            self.problems.append(str(error))
            return
        names = (named(scope.get("name")), named(scope.get("version")))
        for record in records:
            try:
                found = signal.rows(camel(record, signal.line_class), names, owner)
            except (InvalidRecordError, NotJson) as error:
                self._refuse(record, signal, str(error))
            except RecursionError:
                self._refuse(record, signal, "nested too deeply")
            else:
                for line_class, table, row in found:
                    self.classes[line_class] += 1
                    self.rows.append((table, row))

    def _refuse(self, record: Json, signal: _Signal, reason: str) -> None:
        name = fields.members(record).get("name")
        of = f" {name!r}" if isinstance(name, str) else ""
        self.problems.append(f"{signal.line_class}{of}: {reason}")


def _first(message: dict[str, Json], names: tuple[str, ...]) -> list[Json]:
    """Return the first of the repeated fields that has something in it."""
    return next((found for name in names if (found := items(message, name))), [])
