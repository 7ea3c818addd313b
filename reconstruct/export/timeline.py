"""What a trace viewer is given: chosen spans in lanes, their arrows, log records and counters.

Everything is read in the order in which it is drawn, a few thousand rows at a time, so memory is
that of the widest moment and not of the run. Times are int64 ns since 1970; an aligned timeline has
them as the reference clock would have had them. The order of lines and files changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from reconstruct.errors import ReconstructError
from reconstruct.export.drawn import Instant, Process, Reading, Slice
from reconstruct.export.lanes import Lanes
from reconstruct.intake.json_text import decode_encoded, encode
from reconstruct.render.text import clean

if TYPE_CHECKING:
    from reconstruct.engine import Engine

__all__ = ["Timeline"]

Change = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # Any: as the columns

_LARGEST_PID: Final = 2**22
"""Of Linux; processes whose pid is not theirs alone are numbered from there."""


class Timeline:
    """The chosen spans of an engine, and what went on beside them.

    `condition` is SQL over the relation `spans`, which it names `span`, with `parameters`. Without
    one all log records and counters are part of it, also of processes without spans. With one,
    counters are those of the processes of the chosen spans, while these lasted; so are log records,
    or only those within these spans with `is_narrow`. What a record says passes `change` first.
    """

    def __init__(
        self,
        engine: "Engine",
        condition: str | None = None,
        parameters: Mapping[str, object] | None = None,
        *,
        is_narrow: bool = False,
        is_aligned: bool = False,
        change: Change | None = None,
    ) -> None:
        self._engine = engine
        self._change = change
        self._is_whole = condition is None
        self._is_narrow = is_narrow
        self._is_aligned = is_aligned
        self._parameters = dict(parameters or {})
        self._chosen = _CHOSEN.format(
            condition=condition or "TRUE",
            offset="coalesce(moved.offset_ns, 0)" if is_aligned else "0",
            moved="LEFT JOIN aligned_spans_of(NULL) AS moved ON moved.node = span.rowid"
            if is_aligned
            else "",
        )

    @cached_property
    def figures(self) -> Mapping[str, int]:
        """`spans`, `unfinished`, `negative` (they end before they begin, and are drawn without
        length), `first` and `last` time.

        Raises `ReconstructError` when no span is chosen.
        """
        (row,) = self._rows(_FIGURES)
        if not row["spans"]:
            raise ReconstructError(
                "no spans in these logs"
                if self._is_whole
                else "no span in these logs is what the options choose"
            )
        return row

    @cached_property
    def first_time(self) -> int:
        """The earliest time of anything that is drawn."""
        earliest = [self.figures["first"]]
        for sql in (self._instants, self._readings):
            (row,) = self._rows(f"SELECT min(time) AS first FROM ({sql})")
            earliest += [] if row["first"] is None else [row["first"]]
        return min(earliest)

    @cached_property
    def processes(self) -> Mapping[str, Process]:
        """All processes, by instance, in the order of the first sign of life."""
        rows = self._rows(_PROCESSES.format(which=self._instances))
        pids = [row["process_pid"] for row in rows]
        found = {}
        for place, row in enumerate(rows, 1):
            pid = row["process_pid"]
            is_its_own = pid is not None and 0 < pid < _LARGEST_PID and pids.count(pid) == 1
            found[row["instance"]] = Process(
                row["instance"],
                pid if is_its_own else _LARGEST_PID + place,
                row["service_name"] or row["instance"],
                tuple(label for label in (row["host_name"], row["run_id"]) if label),
            )
        return found

    def slices(self) -> Iterator[tuple[Slice, int]]:
        """Yield spans and their lanes, process by process, by start, the longest first."""
        lanes, instance = Lanes(), None
        with self._streamed(_SLICES) as rows:
            spans = map(self._changed_slice, map(Slice._make, rows))
            for _, tied in groupby(spans, lambda span: (span.instance, span.start, span.end)):
                for span in _parents_first(tied):
                    if span.instance != instance:
                        lanes, instance = Lanes(), span.instance
                    yield span, lanes.place(span.number, span.parent, span.start, span.end)

    def instants(self) -> Iterator[Instant]:
        """Yield log records, process by process, by time."""
        with self._streamed(f"{self._instants} ORDER BY ALL") as rows:
            yield from map(self._changed_instant, map(Instant._make, rows))

    def readings(self) -> Iterator[Reading]:
        """Yield the values of counters, series by series, by time.

        Sums of intervals are added up. A histogram is the mean and the greatest of its values from
        the start of its interval on; 0 follows where the next interval begins later.
        """
        with self._streamed(f"{self._readings} ORDER BY ALL") as rows:
            for instance, name, attributes, unit, time, value in rows:
                said = {"attributes": attributes}
                said = said if self._change is None else dict(self._change(said))
                yield Reading(instance, _series(name, said["attributes"]), unit, time, value)

    def _changed_slice(self, span: Slice) -> Slice:
        if self._change is None:
            return span
        said = ("status_message", "attributes", "events", "links")
        return span._replace(**self._change({name: getattr(span, name) for name in said}))

    def _changed_instant(self, record: Instant) -> Instant:
        if self._change is None:
            return record
        body = None if record.body is None else encode(record.body)
        said = self._change({"body": body, "attributes": record.attributes})
        body = said["body"]
        return record._replace(
            body=None if body is None else str(decode_encoded(body)), attributes=said["attributes"]
        )

    @cached_property
    def unreadable(self) -> int:
        """Count the values of metrics that are not finite, which no counter can show."""
        sql = self._readings.replace(_FINITE, f"NOT ({_FINITE})")
        (row,) = self._rows(f"SELECT count(*) AS readings FROM ({sql})")
        return int(row["readings"])

    @property
    def _instances(self) -> str:
        return "TRUE" if self._is_whole else "instance IN (SELECT instance FROM chosen)"

    @property
    def _instants(self) -> str:
        which = f"{self._instances} AND {self._within('time_unix_nano')}"
        if self._is_narrow:
            which = "(trace_id, span_id) IN (SELECT (trace_id, span_id) FROM chosen)"
        return _INSTANTS.format(which=which, source=self._moved("log_records"))

    @property
    def _readings(self) -> str:
        which = f"{self._instances} AND {self._within('time_unix_nano')}"
        return _READINGS.format(which=which, source=self._moved("metric_points"))

    def _within(self, time: str) -> str:
        if self._is_whole:
            return "TRUE"
        first, last = self.figures["first"], self.figures["last"]
        return f"{time} - offset_ns BETWEEN {first} AND {last}"

    def _moved(self, relation: str) -> str:
        if not self._is_aligned:
            return f"SELECT *, 0 AS offset_ns FROM {relation}"
        return _MOVED.format(relation=relation)

    def _rows(self, sql: str) -> list[dict[str, Any]]:
        return self._engine.rows(self._chosen + sql, self._bound)

    @contextmanager
    def _streamed(self, sql: str) -> Iterator[Iterator[tuple[Any, ...]]]:
        """Yield rows as tuples; Any: they are of as many types as the columns."""
        with self._engine.batches(self._chosen + sql, self._bound) as batches:
            yield (
                row
                for batch in batches
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            )

    @property
    def _bound(self) -> dict[str, object] | None:
        return self._parameters or None


@lru_cache(maxsize=10_000)
def _series(name: str, attributes: str) -> str:
    """Return what a series is called: `http.server.active_requests url.scheme=http`."""
    pairs = (f"{key}={value}" for key, value in decode_encoded(attributes).items())
    return clean(" ".join((name, *pairs)))


def _parents_first(tied: Iterable[Slice]) -> list[Slice]:
    """Put spans of equal times in an order in which none comes before its parent."""
    spans = list(tied)
    if len(spans) == 1:
        return spans
    waiting = {span.number: span for span in spans}
    ordered: list[Slice] = []
    for span in spans:
        above, chain = waiting.pop(span.number, None), []
        while above is not None:
            chain.append(above)
            above = None if above.parent is None else waiting.pop(above.parent, None)
        ordered += reversed(chain)
    return ordered


_FINITE: Final = "isfinite(value)"
_CHOSEN: Final = """
WITH
chosen AS MATERIALIZED (
    SELECT
        span.rowid AS node,
        span.instance,
        span.trace_id,
        span.span_id,
        span.occurrence,
        span.state,
        {offset} AS offset_ns,
        span.start_time_unix_nano - {offset} AS start_time,
        start_time + greatest(coalesce(span.duration_ns, span.open_ns), 0) AS end_time,
        span.duration_ns < 0 AS is_negative,
        row_number() OVER (ORDER BY span.trace_id, span.span_id, span.occurrence) AS number
    FROM spans AS span
    {moved}
    WHERE {condition}
)
"""
_FIGURES: Final = """
SELECT
    count(*) AS spans,
    count(*) FILTER (state <> 'finished') AS unfinished,
    count(*) FILTER (is_negative) AS negative,
    min(start_time) AS first,
    max(end_time) AS last
FROM chosen
"""
_PROCESSES: Final = """
SELECT instance, process_pid, service_name, host_name, run_id
FROM instances
WHERE {which}
ORDER BY first_time_unix_nano, instance
"""
_SLICES: Final = """
, edge AS (
    SELECT
        'call' AS kind,
        above.number AS source,
        below.number AS target,
        (above.start_time, above.instance) <= (below.start_time, below.instance) AS is_forward
    FROM _edges
    JOIN chosen AS below ON below.node = _edges.node
    JOIN chosen AS above ON above.node = _edges.parent
    WHERE above.instance <> below.instance
    UNION
    SELECT
        'link',
        linked.number,
        span.number,
        (linked.start_time, linked.instance, linked.number)
            <= (span.start_time, span.instance, span.number)
    FROM (
        SELECT
            chosen.*,
            unnest(from_json(spans.links, '[{"trace_id": "VARCHAR", "span_id": "VARCHAR"}]'))
                AS link
        FROM chosen
        JOIN spans ON spans.rowid = chosen.node
        WHERE spans.links::VARCHAR <> '[]'
    ) AS span
    JOIN chosen AS linked
        ON linked.trace_id = span.link.trace_id
        AND linked.span_id = span.link.span_id
        AND linked.occurrence = 1
    WHERE linked.number <> span.number
),
directed AS MATERIALIZED (
    SELECT
        kind,
        CASE WHEN is_forward THEN source ELSE target END AS earlier,
        CASE WHEN is_forward THEN target ELSE source END AS later
    FROM edge
),
arrow AS MATERIALIZED (
    SELECT
        {
            'number': row_number() OVER (ORDER BY later, earlier, kind),
            'kind': kind,
            'source': earlier,
            'is_lone': count(*) OVER (PARTITION BY later) = 1
                AND later NOT IN (SELECT earlier FROM directed)
        } AS arrow,
        earlier,
        later
    FROM directed
),
begun AS (
    SELECT earlier AS number, list(arrow ORDER BY arrow.number) AS arrows
    FROM arrow
    GROUP BY earlier
),
ended AS (
    SELECT later AS number, list(arrow ORDER BY arrow.number) AS arrows
    FROM arrow
    GROUP BY later
)
SELECT
    chosen.instance,
    chosen.number,
    CASE WHEN above.instance = chosen.instance THEN above.number END AS parent,
    chosen.trace_id,
    chosen.span_id,
    span.parent_span_id,
    span.name,
    span.kind,
    chosen.state,
    chosen.start_time,
    chosen.end_time,
    chosen.offset_ns,
    CASE WHEN span.rollout_id IS NULL THEN member.rollout_id END AS rollout_id,
    span.status_code,
    span.status_message,
    span.attributes::VARCHAR AS attributes,
    span.events::VARCHAR AS events,
    span.links::VARCHAR AS links,
    span.scope_name,
    begun.arrows AS begun,
    ended.arrows AS ended
FROM chosen
JOIN spans AS span ON span.rowid = chosen.node
LEFT JOIN _edges ON _edges.node = chosen.node
LEFT JOIN chosen AS above ON above.node = _edges.parent
LEFT JOIN _rollout_spans AS member ON member.node = chosen.node
LEFT JOIN begun ON begun.number = chosen.number
LEFT JOIN ended ON ended.number = chosen.number
ORDER BY chosen.instance, chosen.start_time, chosen.end_time DESC, chosen.number
"""
_MOVED: Final = """
    SELECT record.*, coalesce(stretch.offset_ns, 0) AS offset_ns
    FROM {relation} AS record
    ASOF LEFT JOIN (
        SELECT DISTINCT
            reader.instance,
            coalesce(moved.from_unix_nano, -9223372036854775807) AS from_time,
            moved.offset_ns
        FROM _owner_clocks
        JOIN _owner_instances AS reader USING (owner)
        JOIN clock_offsets AS moved USING (clock)
    ) AS stretch
        ON stretch.instance = record.instance
        AND record.time_unix_nano >= stretch.from_time
"""
_INSTANTS: Final = """
SELECT
    instance,
    time_unix_nano - offset_ns AS time,
    CASE
        WHEN json_type(body) = 'VARCHAR' THEN body ->> '$'
        ELSE body::VARCHAR
    END AS body,
    attributes::VARCHAR AS attributes,
    severity_text,
    severity_number,
    trace_id,
    span_id,
    scope_name
FROM ({source})
WHERE {which}
"""
_READINGS: Final = """
SELECT
    instance,
    name || suffix AS name,
    attributes,
    unit,
    reading.time AS time,
    reading.value AS value
FROM (
    SELECT
        instance,
        name,
        attributes,
        suffix,
        unit,
        unnest(CASE
            WHEN suffix = '' AND is_interval
                THEN [{{'time': until, 'value': sum(value) OVER series}}]
            WHEN suffix = '' OR NOT is_interval
                THEN [{{'time': until, 'value': value}}]
            WHEN coalesce(lead(since) OVER series > until, TRUE)
                THEN [{{'time': since, 'value': value}}, {{'time': until, 'value': 0}}]
            ELSE [{{'time': since, 'value': value}}]
        END) AS reading
    FROM (
        SELECT
            instance,
            name,
            unit,
            coalesce(attributes::VARCHAR, '{{}}') AS attributes,
            start_time_unix_nano - offset_ns AS since,
            time_unix_nano - offset_ns AS until,
            coalesce(aggregation_temporality = 'DELTA' AND since <= until, FALSE) AS is_interval,
            unnest(CASE
                WHEN value IS NOT NULL THEN [{{'suffix': '', 'value': value}}]
                ELSE [
                    {{'suffix': ' mean', 'value': sum / nullif(count, 0)}},
                    {{'suffix': ' max', 'value': max}}
                ]
            END, recursive := TRUE)
        FROM ({source})
        WHERE {which}
    )
    WHERE isfinite(value)
    WINDOW series AS (
        PARTITION BY instance, name, suffix, attributes
        ORDER BY until, since, value
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )
)
"""
