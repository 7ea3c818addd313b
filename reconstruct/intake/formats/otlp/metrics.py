"""OTLP's metrics as rows, one for each point.

The buckets of an exponential histogram become counts between the bounds that its exponents stand
for, as on our own lines. A summary has a row for its count and sum, and one for each quantile with
the attribute `quantile`, as Prometheus has it.
"""

import math
import sys
from collections.abc import Callable
from typing import Final

from reconstruct.intake import tables
from reconstruct.intake.formats import fields
from reconstruct.intake.formats.fields import InvalidRecordError
from reconstruct.intake.formats.otlp.spelling import (
    camel,
    enum_names,
    identity,
    items,
    named,
    nanoseconds,
)
from reconstruct.intake.formats.otlp.values import attributes, float64, int64
from reconstruct.intake.json_text import Json, double
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row

__all__ = ["metric_rows"]

_TYPES: Final = {
    "gauge": "gauge",
    "sum": "sum",
    "histogram": "histogram",
    "exponentialHistogram": "exponential_histogram",
    "summary": "summary",
}
_TEMPORALITIES: Final = enum_names("AGGREGATION_TEMPORALITY_", [(1, "DELTA"), (2, "CUMULATIVE")])
_SCALES: Final = range(-1000, 1001)
"""OpenTelemetry's SDKs use -10 to 20; beyond these a float cannot say the growth of the buckets."""

_Numbers = tuple[
    float | None, int | None, float | None, float | None, float | None, str | None, str | None
]
"""value, count, sum, min, max, bucket counts, explicit bounds"""


def metric_rows(
    metric: dict[str, Json], scope: tuple[str | None, str | None], owner: Owner
) -> list[tuple[LineClass, str, Row]]:
    """Return the rows of a metric in camelCase."""
    field = next((name for name in _TYPES if metric.get(name) is not None), None)
    if field is None:
        raise InvalidRecordError("no data of a known type")
    data = camel(metric[field], field)
    temporality = data.get("aggregationTemporality")
    head = (
        None,
        fields.required_text(metric.get("name", ""), "name"),
        named(metric.get("description")),
        fields.text(metric.get("unit", "")),
        _TYPES[field],
        (fields.boolean(data.get("isMonotonic")) or False) if field == "sum" else None,
        _TEMPORALITIES.get(temporality) if isinstance(temporality, int | str) else None,
    )
    rows: list[tuple[LineClass, str, Row]] = []
    for item in items(data, "dataPoints"):
        point = camel(item, "a point")
        for extra, numbers in _NUMBERS[field](point):
            row = (
                *head,
                nanoseconds(point.get("startTimeUnixNano"), "startTimeUnixNano"),
                fields.required_time(
                    nanoseconds(point.get("timeUnixNano"), "timeUnixNano"), "timeUnixNano"
                ),
                fields.json_object(attributes(point.get("attributes")) | extra),
                *numbers,
                fields.json_list([_exemplar(each) for each in items(point, "exemplars")]),
                *scope,
                owner,
            )
            rows.append((LineClass.METRIC, tables.METRIC_LINES, row))
    return rows


def _number(point: dict[str, Json]) -> list[tuple[dict[str, Json], _Numbers]]:
    as_int = point.get("asInt")
    value = _float(point.get("asDouble")) if as_int is None else float(int64(as_int))
    return [({}, (value, None, None, None, None, None, None))]


def _histogram(point: dict[str, Json]) -> list[tuple[dict[str, Json], _Numbers]]:
    counts = [_whole(number) for number in items(point, "bucketCounts")]
    bounds = [float64(bound) for bound in items(point, "explicitBounds")]
    return [({}, _distribution(point, counts, bounds))]


def _exponential(point: dict[str, Json]) -> list[tuple[dict[str, Json], _Numbers]]:
    scale = _whole(point.get("scale") or 0)
    if scale not in _SCALES:
        raise InvalidRecordError(f"scale is not from -1000 to 1000: {scale}")
    growth = 2.0**-scale
    lowest, negative = _buckets(point, "negative")
    first, positive = _buckets(point, "positive")
    counts: list[int] = []
    bounds: list[float | str] = []
    if any(negative):
        bounds += [double(-_power(growth, lowest + n)) for n in range(len(negative), -1, -1)]
        counts += [0, *reversed(negative)]
    counts.append(_whole(point.get("zeroCount") or 0))
    if any(positive):
        bounds += [_power(growth, first + n) for n in range(len(positive) + 1)]
        counts += [*positive, 0]
    return [({}, _distribution(point, counts, bounds))]


def _summary(point: dict[str, Json]) -> list[tuple[dict[str, Json], _Numbers]]:
    rows: list[tuple[dict[str, Json], _Numbers]] = [({}, _distribution(point, [], []))]
    for item in items(point, "quantileValues"):
        each = camel(item, "a quantile")
        value = _float(each.get("value", 0.0))
        extra = {"quantile": float64(each.get("quantile", 0.0))}
        rows.append((extra, (value, None, None, None, None, None, None)))
    return rows


_NUMBERS: Final[dict[str, Callable[[dict[str, Json]], list[tuple[dict[str, Json], _Numbers]]]]] = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponentialHistogram": _exponential,
    "summary": _summary,
}


def _distribution(point: dict[str, Json], counts: list[int], bounds: list[float | str]) -> _Numbers:
    return (
        None,
        _whole(point.get("count") or 0),
        _float(point.get("sum")),
        _float(point.get("min")),
        _float(point.get("max")),
        fields.json_list(counts),
        fields.json_list(bounds),
    )


def _buckets(point: dict[str, Json], field: str) -> tuple[int, list[int]]:
    buckets = camel(point.get(field), field)
    counts = [_whole(number) for number in items(buckets, "bucketCounts")]
    return _whole(buckets.get("offset") or 0), counts


def _power(growth: float, index: int) -> float:
    """Return 2 ** (growth * index), at most the greatest float."""
    try:
        return double(math.pow(2.0, growth * index))
    except OverflowError:
        return double(sys.float_info.max)


def _whole(value: Json) -> int:
    number = int64(value)
    if isinstance(number, str):
        raise InvalidRecordError(f"beyond 64 bits: {number}")
    return number


def _float(value: Json) -> float | None:
    return None if value is None else float(float64(value))


def _exemplar(value: Json) -> dict[str, Json]:
    exemplar = camel(value, "an exemplar")
    as_int = exemplar.get("asInt")
    result: dict[str, Json] = {
        "value": float64(exemplar.get("asDouble", 0.0)) if as_int is None else int64(as_int),
        "time_unix_nano": nanoseconds(exemplar.get("timeUnixNano"), "timeUnixNano of an exemplar"),
    }
    trace_id = identity(exemplar.get("traceId"), 16, "traceId of an exemplar")
    span_id = identity(exemplar.get("spanId"), 8, "spanId of an exemplar")
    if trace_id is not None:
        result |= {"trace_id": trace_id, "span_id": span_id or fields.ZERO_SPAN}
    filtered = attributes(exemplar.get("filteredAttributes"))
    if filtered:
        result["filtered_attributes"] = filtered
    return result
