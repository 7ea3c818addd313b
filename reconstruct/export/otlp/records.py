"""The records of a signal, read in batches and encoded; the one place that every row passes.

Over http/json DuckDB writes the fields of spans itself, where they have no events or links, which
is most. All others, and every row that a function is to change, become OTLP's messages first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from reconstruct.export.otlp.encoding import Unsendable
from reconstruct.export.otlp.forms import Form, Item, JsonForm, json_attributes
from reconstruct.export.otlp.settings import Signal
from reconstruct.export.otlp.signals import KINDS

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["Change", "Records", "Unsent"]

Row = Mapping[str, Any]  # Any: a column's value is whatever the relation holds
Change = Callable[[Row], Row]
News = Callable[[Any], Sequence[bool]]  # Any: an array of uint64

_ROWS_AT_A_TIME: Final = 2_048

_COLUMNS: Final[Mapping[Signal, str]] = {
    "traces": (
        "trace_id, span_id, parent_span_id, trace_state, flags, name, kind, start_time_unix_nano,"
        "end_time_unix_nano, attributes, events, links, status_code, status_message,"
        "dropped_attributes_count, dropped_events_count, dropped_links_count"
    ),
    "logs": (
        "time_unix_nano, severity_number, severity_text, body, attributes, trace_id, span_id,"
        "flags, dropped_attributes_count, file, line"
    ),
    "metrics": (
        "name, description, unit, type, is_monotonic, aggregation_temporality,"
        "start_time_unix_nano, time_unix_nano, attributes, value, count, sum, min, max,"
        "bucket_counts, explicit_bounds, exemplars, file, line"
    ),
}
_RELATIONS: Final[Mapping[Signal, str]] = {
    "traces": """
        SELECT
            span.* REPLACE (
                CASE
                    WHEN span.state = 'finished' THEN span.attributes
                    ELSE json_merge_patch(
                        coalesce(span.attributes, '{}'),
                        json_object('gymlog.unfinished', true, 'gymlog.state', span.state)
                    )
                END AS attributes,
                coalesce(span.end_time_unix_nano, span.start_time_unix_nano + span.open_ns)
                    AS end_time_unix_nano
            ),
            concat_ws(
                chr(0), 'span', span.trace_id, span.span_id, span.state, span.name,
                span.start_time_unix_nano, coalesce(span.end_time_unix_nano, -1),
                coalesce(span.status_code, ''), span.attributes, span.events
            ) AS identity
        FROM spans AS span
        WHERE {condition}
    """,
    "logs": """
        SELECT
            log.*,
            concat_ws(
                chr(0), 'log', log.instance, coalesce(log.seq, log.line), log.time_unix_nano,
                log.severity_number, log.body, log.attributes, log.trace_id, log.span_id
            ) AS identity
        FROM log_records AS log
        WHERE {condition}
    """,
    "metrics": """
        SELECT
            point.* REPLACE (coalesce(point.description, known.description) AS description),
            concat_ws(
                chr(0), 'metric', point.instance, coalesce(point.seq, point.line), point.name,
                point.time_unix_nano, point.attributes, point.value, point.count, point.sum
            ) AS identity
        FROM metric_points AS point
        LEFT JOIN (
            SELECT instance, name, max(description) AS description
            FROM metric_points
            GROUP BY instance, name
        ) AS known USING (instance, name)
        WHERE {condition}
    """,
}
_ORDERS: Final[Mapping[Signal, str]] = {
    "traces": "trace_id, start_time_unix_nano, span_id, occurrence",
    "logs": "time_unix_nano, file, line",
    "metrics": "time_unix_nano, file, line, name, attributes::VARCHAR",
}
_KINDS: Final = "list_position(['INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'], kind)"
_SPAN_JSON: Final = f"""
    CASE
        WHEN events::VARCHAR = '[]'
            AND links::VARCHAR = '[]'
            AND start_time_unix_nano >= 0
            AND end_time_unix_nano >= 0
            AND coalesce(flags BETWEEN 0 AND 4294967295, TRUE)
            AND dropped_attributes_count BETWEEN 0 AND 4294967295
            AND dropped_events_count BETWEEN 0 AND 4294967295
            AND dropped_links_count BETWEEN 0 AND 4294967295
            AND regexp_full_match(trace_id, '[0-9a-f]{{32}}')
            AND regexp_full_match(span_id, '[0-9a-f]{{16}}')
            AND coalesce(regexp_full_match(parent_span_id, '[0-9a-f]{{16}}'), TRUE)
            AND trace_id <> repeat('0', 32)
            AND span_id <> repeat('0', 16)
            AND coalesce(parent_span_id, '') <> repeat('0', 16)
            THEN concat(
                '{{"traceId":"', trace_id, '","spanId":"', span_id,
                '","parentSpanId":"' || parent_span_id, '","name":', to_json(name),
                ',"traceState":' || to_json(trace_state), ',"flags":' || flags,
                ',"kind":', coalesce({_KINDS}, 0),
                ',"startTimeUnixNano":"', start_time_unix_nano,
                '","endTimeUnixNano":"', end_time_unix_nano, '","status":{{',
                CASE status_code WHEN 'OK' THEN '"code":1' WHEN 'ERROR' THEN '"code":2' END,
                CASE
                    WHEN status_code IN ('OK', 'ERROR') THEN ',"message":'
                    ELSE '"message":'
                END || to_json(status_message),
                '}},"droppedAttributesCount":', dropped_attributes_count,
                ',"droppedEventsCount":', dropped_events_count,
                ',"droppedLinksCount":', dropped_links_count, ',"attributes":'
            )
    END
"""


@dataclass(frozen=True, slots=True)
class Unsent:
    """A record that did not arrive, and the receiver's or our words for it."""

    what: str
    words: str


@dataclass(slots=True)
class Records:
    """What is to be sent of a signal; read it once."""

    signal: Signal
    condition: str
    """SQL over `span`, `log` or `point`."""
    parameters: Mapping[str, object]
    change: Change | None = None
    """What every row passes before it is encoded."""
    total: int = 0
    """Records read so far."""
    known: int = 0
    """Of these, acknowledged before."""
    unsent: list[Unsent] = field(default_factory=list)

    def count(self, engine: "Engine") -> int:
        """Count what is to be read."""
        sql = f"SELECT count(*) AS records FROM ({self._relation})"
        return int(engine.rows(sql, self.parameters)[0]["records"])

    def items(self, engine: "Engine", form: Form, news: News) -> Iterator[Item]:
        """Read and encode what is new."""
        if self.signal != "traces" or not isinstance(form, JsonForm) or self.change:
            for keys, rows in self._batches(engine, _COLUMNS[self.signal]):
                yield from self._encoded(keys, rows, form, news(keys))
            return
        columns = f"trace_id, span_id, attributes, {_SPAN_JSON} AS body"
        left = 0
        for keys, rows in self._batches(engine, columns):
            new = news(keys)
            for key, row, is_new in zip(keys.tolist(), rows, new, strict=True):
                trace_id, span_id, attributes, body, resource, name, version = row
                if body is None:
                    left += 1
                    continue
                self.total += 1
                if is_new:
                    owner = (resource, name, version)
                    body = body.encode() + json_attributes(attributes) + b"}"
                    yield Item(body, owner, key, (trace_id, span_id))
                else:
                    self.known += 1
        if left:
            rest = f"({_SPAN_JSON}) IS NULL"
            for keys, rows in self._batches(engine, _COLUMNS["traces"], rest):
                yield from self._encoded(keys, rows, form, news(keys))

    @property
    def _relation(self) -> str:
        return _RELATIONS[self.signal].replace("{condition}", self.condition)

    def _batches(
        self, engine: "Engine", columns: str, only: str = "TRUE"
    ) -> Iterator[tuple[Any, Any]]:  # Any: an array of uint64 and tuples of the columns
        sql = f"""
            SELECT {columns}, resource, scope_name, scope_version,
                md5_number_lower(identity) AS key
            FROM ({self._relation})
            WHERE {only}
            ORDER BY {_ORDERS[self.signal]}
        """
        with engine.batches(sql, self.parameters, rows=_ROWS_AT_A_TIME) as batches:
            for batch in batches:
                *values, keys = batch.columns
                yield keys.to_numpy(), zip(*(column.to_pylist() for column in values), strict=True)

    def _encoded(
        self,
        keys: Any,  # Any: an array of uint64
        rows: Any,  # Any: tuples of the columns
        form: Form,
        new: Sequence[bool],
    ) -> Iterator[Item]:
        names = [name.strip() for name in _COLUMNS[self.signal].split(",")]
        names += ["resource", "scope_name", "scope_version"]
        build = KINDS[self.signal].message
        one, other = ("trace_id", "span_id") if self.signal == "traces" else ("file", "line")
        for key, values, is_new in zip(keys.tolist(), rows, new, strict=True):
            self.total += 1
            if not is_new:
                self.known += 1
                continue
            row: Row = dict(zip(names, values, strict=True))
            if self.change is not None:
                row = self.change(row)
            name = (row[one], str(row[other]))
            try:
                body = form.encoded(build(row))
            except Unsendable as error:
                words = f"not to be said in OTLP: {error}"
                self.unsent.append(Unsent(self.words(name), words))
                continue
            yield Item(body, (row["resource"], row["scope_name"], row["scope_version"]), key, name)

    def words(self, name: tuple[str | None, str | None]) -> str:
        """Name a record for people."""
        if self.signal == "traces":
            return f"span {name[1]} of trace {name[0]}"
        return f"{KINDS[self.signal].noun} at {name[0]}:{name[1]}"
