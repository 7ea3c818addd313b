"""OTLP's metrics of every type, and objects that hold several signals."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake.formats import InvalidRecordError, Record
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.tables import LOG_LINES, METRIC_LINES, SPAN_LINES

Json = Any
Rows = list[dict[str, Any]]
Span = dict[str, Json]


def metric(field: str, *points: Json, **data: Json) -> str:
    whole = {"name": "m", "unit": "s", "description": "d", field: data | {"dataPoints": points}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [whole]}]}]})


POINT = {
    "attributes": [{"key": "route", "value": {"stringValue": "/run"}}],
    "startTimeUnixNano": "1750000000000000000",
    "timeUnixNano": "1750000010000000000",
}


def test_sums_and_gauges(rows_of: Callable[..., Rows]) -> None:
    """Integers and doubles; a sum says how it counts, a gauge does not."""
    (row,) = rows_of(
        metric("sum", POINT | {"asInt": "3"}, isMonotonic=True, aggregationTemporality=2)
    )
    assert (row["name"], row["unit"], row["description"], row["type"]) == ("m", "s", "d", "sum")
    assert (row["is_monotonic"], row["aggregation_temporality"]) == (True, "CUMULATIVE")
    assert (row["start_time_unix_nano"], row["time_unix_nano"]) == (
        1750000000000000000,
        1750000010000000000,
    )
    assert (row["value"], row["attributes"]) == (3.0, '{"route":"/run"}')
    (row,) = rows_of(metric("sum", POINT, aggregationTemporality="AGGREGATION_TEMPORALITY_DELTA"))
    assert (row["is_monotonic"], row["aggregation_temporality"], row["value"]) == (
        False,
        "DELTA",
        None,
    )
    (row,) = rows_of(metric("gauge", POINT | {"asDouble": "Infinity"}))
    assert (row["type"], row["is_monotonic"], row["aggregation_temporality"], row["value"]) == (
        "gauge",
        None,
        None,
        float("inf"),
    )


def test_histograms(rows_of: Callable[..., Rows], small_span: Span) -> None:
    """Buckets, and exemplars with the ids of their spans."""
    exemplar = {
        "asDouble": 2,
        "timeUnixNano": "1750000005000000000",
        "traceId": small_span["traceId"],
        "spanId": small_span["spanId"],
        "filteredAttributes": [{"key": "k", "value": {"boolValue": True}}],
    }
    point = POINT | {
        "count": "3",
        "sum": 4.5,
        "min": 1,
        "max": 2,
        "bucketCounts": ["0", "2", 1],
        "explicitBounds": [1, 1.5],
        "exemplars": [exemplar],
    }
    (row,) = rows_of(metric("histogram", point, aggregationTemporality=1))
    assert (row["count"], row["sum"], row["min"], row["max"]) == (3, 4.5, 1.0, 2.0)
    assert (row["bucket_counts"], row["explicit_bounds"]) == ("[0,2,1]", "[1.0,1.5]")
    assert json.loads(row["exemplars"]) == [
        {
            "value": 2.0,
            "time_unix_nano": 1750000005000000000,
            "trace_id": small_span["traceId"],
            "span_id": small_span["spanId"],
            "filtered_attributes": {"k": True},
        }
    ]


def test_exponential_histograms_have_the_bounds_of_their_exponents(
    rows_of: Callable[..., Rows],
) -> None:
    """Scale 0: bucket n lies between 2**n and 2**(n+1), mirrored below zero."""
    point = POINT | {
        "count": "10",
        "sum": 4,
        "scale": 0,
        "zeroCount": "3",
        "positive": {"offset": 1, "bucketCounts": ["1", "2"]},
        "negative": {"offset": -1, "bucketCounts": ["4"]},
    }
    (row,) = rows_of(metric("exponentialHistogram", point))
    assert row["type"] == "exponential_histogram"
    assert json.loads(row["explicit_bounds"]) == [-1.0, -0.5, 2.0, 4.0, 8.0]
    assert json.loads(row["bucket_counts"]) == [0, 4, 3, 1, 2, 0]
    huge = point | {"scale": -10, "positive": {"offset": 5, "bucketCounts": [1]}}
    (row,) = rows_of(metric("exponentialHistogram", huge))
    assert json.loads(row["explicit_bounds"])[-1] == 1.7976931348623157e308


def test_summaries(rows_of: Callable[..., Rows]) -> None:
    """Count and sum, then each quantile as Prometheus has it."""
    point = POINT | {
        "count": "5",
        "sum": 10,
        "quantileValues": [{"value": 1}, {"quantile": 0.5, "value": 2.5}],
    }
    rows = rows_of(metric("summary", point))
    assert [(row["count"], row["sum"], row["value"], row["attributes"]) for row in rows] == [
        (5, 10.0, None, '{"route":"/run"}'),
        (None, None, 1.0, '{"route":"/run","quantile":0.0}'),
        (None, None, 2.5, '{"route":"/run","quantile":0.5}'),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (metric("future", POINT), "metric 'm': no data of a known type"),
        (metric("sum", POINT | {"timeUnixNano": 0}), "timeUnixNano is missing"),
        (metric("sum", POINT | {"asInt": "x"}), "no integer"),
        (metric("histogram", POINT | {"count": str(2**64)}), "beyond 64 bits"),
        (metric("exponentialHistogram", POINT | {"scale": 5000}), "scale is not from"),
    ],
)
def test_bad_metrics(record_of: Callable[..., Record], text: str, reason: str) -> None:
    """A metric that breaks the format is named."""
    with pytest.raises(InvalidRecordError, match=reason):
        record_of(text)


def test_one_object_may_hold_all_three(record_of: Callable[..., Record], small_span: Span) -> None:
    """The line is of the class that it has most of; of spans where that is several."""
    log = {"timeUnixNano": 5}
    value = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [log]}]}],
        "resourceSpans": [{"scopeSpans": [{"spans": [small_span]}]}],
        "resourceMetrics": json.loads(metric("sum", POINT))["resourceMetrics"],
    }
    record = record_of(json.dumps(value))
    assert [table for table, _ in record.rows] == [SPAN_LINES, LOG_LINES, METRIC_LINES]
    assert record.line_class == LineClass.SPAN
    value["resourceLogs"] *= 2
    assert record_of(json.dumps(value)).line_class == LineClass.LOG


def test_the_console_exporter_for_python_has_the_same_first_word(
    rows_of: Callable[..., Rows],
) -> None:
    """`resource_metrics` is told apart by what is in it."""
    python = {"name": "m", "unit": "", "data": {"data_points": [{"time_unix_nano": 5, "value": 2}]}}
    otlp = {"name": "m", "gauge": {"data_points": [{"time_unix_nano": "5", "as_int": "2"}]}}
    for one in (python, otlp):
        text = json.dumps({"resource_metrics": [{"scope_metrics": [{"metrics": [one]}]}]})
        (row,) = rows_of(text)
        assert (row["value"], row["time_unix_nano"]) == (2.0, 5)
