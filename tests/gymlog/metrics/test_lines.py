"""`metric` lines: as the contract has them, whatever is measured, and only what is news."""

import json
import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import Histogram as SdkHistogram
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation

from gymlog import testing
from gymlog.metrics.lines import LineWriter
from gymlog.metrics.points import Exemplar, HistogramPoint, NumberPoint, Stream
from gymlog.record import METRIC

ORDER = [field.name for field in METRIC]
REQUIRED = {field.name for field in METRIC if field.required}


@pytest.fixture
def lines(telemetry):
    return LineWriter(telemetry.service)


def number(value, attributes=None, **more):
    return NumberPoint(attributes or {}, 1, 2, value, **more)


def stream(*points, name="m", kind="sum", is_monotonic=True, is_delta=True):
    is_delta = is_delta and kind != "gauge"
    return Stream(name, "What it is.", "1", kind, is_monotonic, is_delta, list(points))


def histogram(**more):
    fields = {
        "attributes": {"route": "/a"}, "start_time_unix_nano": 1, "time_unix_nano": 2, "count": 3,
        "sum": 4.5, "bucket_counts": (1, 2), "explicit_bounds": (1.0,), "min": 0.5, "max": 2.0,
    }  # fmt: skip
    return HistogramPoint(**fields | more)


def test_a_sum_is_a_line(lines, points, telemetry):
    """Field by field, in the order of the contract."""
    lines.write([stream(number(3, {"a": 1, "b": "x"}))])
    (line,) = points()
    assert {key: line[key] for key in line if key not in ("seq", "resource")} == {
        "record_type": "metric", "name": "m", "description": "What it is.", "unit": "1",
        "type": "sum", "is_monotonic": True, "aggregation_temporality": "DELTA",
        "start_time_unix_nano": 1, "time_unix_nano": 2, "attributes": {"a": 1, "b": "x"},
        "value": 3,
    }  # fmt: skip
    assert list(line["resource"]["attributes"]) == ["service.name", "service.instance.id"]


def test_fields_stand_in_the_order_of_the_contract(lines, points):
    """Of every type, with all that is required and nothing besides."""
    exemplar = Exemplar(2.0, 5, 0xABC, 0xDEF)
    lines.write(
        [
            stream(number(3)),
            stream(number(1.5), name="g", kind="gauge"),
            stream(histogram(exemplars=(exemplar,)), name="h", kind="histogram"),
            stream(number(-1), name="u", is_monotonic=False, is_delta=False),
        ]
    )
    assert len(points()) == 4
    for line in points():
        assert list(line) == [name for name in ORDER if name in line]
        assert set(line) >= REQUIRED
    gauge, updown = points("g")[0], points("u")[0]
    assert "aggregation_temporality" not in gauge
    assert "is_monotonic" not in gauge
    assert (updown["is_monotonic"], updown["aggregation_temporality"]) == (False, "CUMULATIVE")


def test_a_description_is_written_once(lines, points):
    """In the first line of a metric."""
    lines.write([stream(number(1, {"a": 1}), number(1, {"a": 2}))])
    lines.write([stream(number(1, {"a": 3}))])
    assert ["description" in line for line in points()] == [True, False, False]


def test_no_news_is_no_line(lines, points):
    """A difference of nothing, and a value that has been written."""
    lines.write([stream(number(0)), stream(histogram(count=0, sum=0), kind="histogram")])
    assert points() == []
    for value in (5, 5, 6, 6, 5):
        lines.write(
            [
                stream(number(value), name="gauge", kind="gauge"),
                stream(number(value), name="total", is_monotonic=False, is_delta=False),
            ]
        )
    assert [line["value"] for line in points("gauge")] == [5, 6, 5]
    assert [line["value"] for line in points("total")] == [5, 6, 5]


def test_a_first_value_of_zero_is_news(lines, points):
    """Of a gauge, and of what counts both ways."""
    lines.write([stream(number(0), kind="gauge")])
    lines.write([stream(number(0), name="total", is_delta=False)])
    assert [line["value"] for line in points()] == [0, 0]


def test_series_are_told_apart(lines, points):
    """By their attributes, 1 and True too."""
    series = [{}, {"a": 1}, {"a": True}, {"a": "1"}, {"b": 1}]
    for _ in range(2):
        lines.write([stream(*(number(7, one) for one in series), kind="gauge")])
    assert [line["attributes"] for line in points()] == series


def test_exemplars_lead_to_their_trace_and_leave_a_search_alone(lines, points, telemetry):
    """The key is `trace_id` to every reader of JSON, and no text that `grep '"trace_id"'` finds."""
    exemplars = (Exemplar(2.0, 5, 0xABC, 0xDEF), SimpleNamespace(trace_id=None))
    lines.write([stream(histogram(exemplars=exemplars), kind="histogram")])
    (line,) = points()
    assert line["exemplars"] == [
        {
            "value": 2.0,
            "time_unix_nano": 5,
            "trace_id": f"{0xABC:032x}",
            "span_id": f"{0xDEF:016x}",
        }
    ]
    assert b'"trace_id"' not in telemetry.file.writes[-1]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (2**80, str(2**80)),
        (-(2**63), -(2**63)),
        (1e308, 1e308),
    ],
)
def test_any_number_is_a_valid_line(lines, points, value, written):
    """What JSON has no number for is text, as in attributes."""
    lines.write([stream(number(value), kind="gauge")])
    lines.write([stream(histogram(sum=value, min=value, max=value), kind="histogram")])
    gauge, distribution = points()
    assert gauge["value"] == written
    assert [distribution[key] for key in ("sum", "min", "max")] == [written] * 3


class Hostile:
    """Nothing that it is asked for comes."""

    def __repr__(self):
        raise RuntimeError("no")

    __str__ = __hash__ = __eq__ = __repr__


HOSTILE = {
    "object": Hostile(), "bytes": b"\x00\xff", "surrogate": "\ud800", "long": "x" * 100_000,
    "nested": {"a": [1, {"b": Hostile()}]}, "none": None, 5: "a key", "huge": 2**70,
    "many": list(range(10_000)), "line\nbreak": "a\nb",
}  # fmt: skip


def test_attributes_of_any_kind_are_a_valid_line(lines, points, telemetry):
    """One line, within its limit; the next collection still knows the series."""
    for _ in range(2):
        lines.write([stream(number(1, HOSTILE), name="a" * 5_000, kind="gauge")])
    (line,) = points()
    assert line["attributes"]["object"] == "<Hostile>"
    assert line["attributes"]["5"] == "a key"
    raw = telemetry.file.writes[-1]
    assert raw.count(b"\n") == 1
    assert len(raw) <= 65_536


scalars = st.floats() | st.integers() | st.none() | st.text(max_size=9) | st.binary(max_size=9)
values = scalars | st.booleans() | st.lists(scalars, max_size=3)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=9), values, max_size=4), st.floats() | st.integers())
def test_every_point_becomes_one_line_of_json(attributes, value):
    """Whatever attributes it has."""
    with testing.captured() as telemetry:
        LineWriter(telemetry.service).write([stream(number(value, attributes), kind="gauge")])
        (line,) = [raw for raw in telemetry.file.writes if b'"record_type":"metric"' in raw]
    assert line.endswith(b"}\n")
    assert list(json.loads(line)) == [name for name in ORDER if name in json.loads(line)]


# Exponential histograms.


def exponential(recorded):
    """Return the point that the SDK makes of values."""
    reader = InMemoryMetricReader(
        preferred_aggregation={SdkHistogram: ExponentialBucketHistogramAggregation()}
    )
    provider = MeterProvider([reader], shutdown_on_exit=False)
    instrument = provider.get_meter("m").create_histogram("e")
    for value in recorded:
        instrument.record(value)
    (scope,) = reader.get_metrics_data().resource_metrics[0].scope_metrics
    provider.shutdown()
    return scope.metrics[0].data.data_points[0]


@pytest.mark.parametrize(
    "recorded",
    [
        [0.0],
        [0.0, 0.0, 5.0],
        [1.5, 1.5, 3.0, 100.0, 0.001],
        [1e-300, 1e300],
        [2.3e-308, 1.7976931348623157e308],
    ],
)
def test_an_exponential_histogram_has_the_bounds_of_its_exponents(lines, points, recorded):
    """Every value lies in a bucket that holds it; bounds grow, and are one fewer than counts."""
    lines.write([stream(exponential(recorded), kind="exponential_histogram")])
    (line,) = points()
    assert (line["type"], line["count"]) == ("exponential_histogram", len(recorded))
    bounds, counts = line.get("explicit_bounds", []), line["bucket_counts"]
    assert len(counts) == len(bounds) + 1
    assert sum(counts) == len(recorded)
    assert all(one <= other for one, other in pairwise(bounds))
    edges = [-math.inf, *bounds, math.inf]
    for value in recorded:
        assert any(
            low * (1 - 1e-9) <= value <= high * (1 + 1e-9)
            for (low, high), count in zip(pairwise(edges), counts, strict=True)
            if count
        )


def test_negative_buckets_stand_before_the_positive_ones(lines, points):
    """What is near zero lies between them."""
    buckets = SimpleNamespace
    point = SimpleNamespace(
        attributes={}, start_time_unix_nano=1, time_unix_nano=2, count=10, sum=0, min=-8, max=8,
        scale=0, zero_count=1, exemplars=(),
        negative=buckets(offset=1, bucket_counts=[2, 3]),
        positive=buckets(offset=0, bucket_counts=[4]),
    )  # fmt: skip
    lines.write([stream(point, kind="exponential_histogram")])
    (line,) = points()
    assert line["explicit_bounds"] == [-8, -4, -2, 1, 2]
    assert line["bucket_counts"] == [0, 3, 2, 1, 4, 0]
