"""`metric` lines: which points of a metric are written, and the record that each becomes.

A point that says nothing new is not written: no difference in a DELTA sum, the same value as in
the line before in a gauge or a CUMULATIVE sum. An exponential histogram is written with the bounds
that its exponents stand for. Off the request path; about 10 µs a line.
"""

import math
import sys
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import orjson

from gymlog.metrics.points import Stream
from gymlog.service import ServiceInstance
from gymlog.values import clean, clean_mapping, clean_text

__all__ = ["LineWriter"]

_MAX_SERIES: Final = 20_000
"""Series whose last value is remembered; past that all are forgotten, and written once more."""

_MAX_ATTRIBUTES: Final = 128
_MAX_CHARACTERS: Final = 1_024

Fields = dict[str, Any]  # Any: JSON values, see gymlog.record


class _Exemplar(Protocol):
    """An exemplar of ours, or of OpenTelemetry's SDK."""

    @property
    def value(self) -> float: ...
    @property
    def time_unix_nano(self) -> int: ...
    @property
    def trace_id(self) -> int | None: ...
    @property
    def span_id(self) -> int | None: ...


class LineWriter:
    """Writes the points of streams, and remembers what it wrote."""

    def __init__(self, service: ServiceInstance) -> None:
        self._service = service
        self._described: set[tuple[str, str]] = set()
        self._last: dict[tuple[str, str], object] = {}
        self._lock = threading.Lock()

    def write(self, streams: Iterable[Stream]) -> None:
        """Write each point that says something new as one line."""
        with self._lock:
            for stream in streams:
                for point in stream.points:
                    self._write_point(stream, point)

    def _write_point(self, stream: Stream, point: Any) -> None:  # Any: see Stream.points
        attributes, _ = clean_mapping(point.attributes or {}, _MAX_ATTRIBUTES, _MAX_CHARACTERS)
        fields = _histogram(point) if hasattr(point, "count") else {"value": _number(point.value)}
        if not self._is_news(stream, attributes, fields):
            return
        record: Fields = {
            "record_type": "metric",
            "seq": 0,
            "name": clean_text(stream.name, _MAX_CHARACTERS),
        }
        metric = (stream.name, stream.unit)
        if stream.description and metric not in self._described:
            self._described.add(metric)
            record["description"] = clean_text(stream.description, _MAX_CHARACTERS)
        record["unit"] = clean_text(stream.unit, _MAX_CHARACTERS)
        record["type"] = stream.type
        if stream.type == "sum":
            record["is_monotonic"] = stream.is_monotonic
        if stream.type != "gauge":
            record["aggregation_temporality"] = "DELTA" if stream.is_delta else "CUMULATIVE"
        if point.start_time_unix_nano:
            record["start_time_unix_nano"] = point.start_time_unix_nano
        record["time_unix_nano"] = point.time_unix_nano
        record["attributes"] = attributes
        record.update(fields)
        exemplars = _exemplars(point.exemplars)
        if exemplars is not None:
            record["exemplars"] = exemplars
        record["resource"] = self._service.short_resource
        self._service.sink.write(record)
        self._service.went_on()

    def _is_news(self, stream: Stream, attributes: Fields, fields: Fields) -> bool:
        value = fields.get("value", fields.get("count"))
        if stream.is_delta:
            return value != 0
        series = (stream.name, repr(attributes))
        if self._last.get(series) == value:
            return False
        if len(self._last) >= _MAX_SERIES:
            self._last.clear()
        self._last[series] = value
        return True


def _number(value: float) -> Any:  # Any: a number, or text when JSON has none for it
    return clean(value, _MAX_CHARACTERS)


def _histogram(point: Any) -> Fields:  # Any: a point of a histogram of either kind
    fields: Fields = {"count": point.count, "sum": _number(point.sum)}
    if point.count:
        fields |= {"min": _number(point.min), "max": _number(point.max)}
    if hasattr(point, "explicit_bounds"):
        counts, bounds = point.bucket_counts, point.explicit_bounds
    else:
        counts, bounds = _explicit(point)
    fields["bucket_counts"] = list(counts)
    if bounds:
        fields["explicit_bounds"] = list(bounds)
    return fields


def _explicit(point: Any) -> tuple[Sequence[int], Sequence[float]]:  # Any: an exponential point
    """Return the buckets of an exponential histogram as counts between bounds.

    What is near zero lies between the negative and the positive ones.
    """
    growth = 2.0**-point.scale
    negative, positive = point.negative, point.positive
    bounds: list[float] = []
    counts: list[int] = []
    if any(negative.bucket_counts):
        bounds += [-_power(growth, negative.offset + n)
                   for n in range(len(negative.bucket_counts), -1, -1)]  # fmt: skip
        counts += [0, *reversed(negative.bucket_counts)]
    counts.append(point.zero_count)
    if any(positive.bucket_counts):
        bounds += [_power(growth, positive.offset + n)
                   for n in range(len(positive.bucket_counts) + 1)]  # fmt: skip
        counts += [*positive.bucket_counts, 0]
    return counts, bounds


def _power(growth: float, index: int) -> float:
    """Return 2 ** (growth * index), at most the greatest float."""
    try:
        return math.pow(2.0, growth * index)
    except OverflowError:
        return sys.float_info.max


def _exemplars(exemplars: Iterable[_Exemplar]) -> orjson.Fragment | None:
    """Return the exemplars that lead to a trace, as a JSON list; None without any.

    The list is written with an escape in the key `trace_id`. A reader of JSON sees no difference,
    but `grep '"trace_id"'` over a log finds, as it should, the records of traces alone.
    """
    listed = [
        {
            "value": _number(one.value),
            "time_unix_nano": one.time_unix_nano,
            "trace_id": f"{one.trace_id:032x}",
            "span_id": f"{one.span_id or 0:016x}",
        }
        for one in exemplars
        if one.trace_id
    ]
    if not listed:
        return None
    return orjson.Fragment(orjson.dumps(listed).replace(b'"trace_id"', b'"trace\\u005fid"'))
