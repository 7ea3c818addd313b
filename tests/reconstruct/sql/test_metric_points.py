"""`metric_points` gives back what the writer's metrics were, whatever their values."""

import json
import math

import pytest

from gymlog.metrics.lines import LineWriter
from gymlog.metrics.points import Exemplar, HistogramPoint, NumberPoint, Stream
from gymlog.testing import captured
from reconstruct.engine import Engine

BOUNDS = (0.5, 1.0)
POINTS = {
    "sum": NumberPoint({"a": 1, "b": "é"}, 1, 2, 3),
    "gauge": NumberPoint({}, None, 2, 1.5),
    "nan": NumberPoint({}, None, 2, math.nan),
    "infinite": NumberPoint({}, None, 2, -math.inf),
    "histogram": HistogramPoint(
        {}, 1, 2, 6, 7.5, (1, 2, 3), BOUNDS, 0.1, 9.0, (Exemplar(9.0, 2, 0xABC, 0xDEF),)
    ),
}


@pytest.fixture
def rows(tmp_path):
    """The rows of one line for each point, by name."""
    with captured() as telemetry:
        lines = LineWriter(telemetry.service)
        for name, point in POINTS.items():
            kind = name if name in ("sum", "histogram") else "gauge"
            lines.write([Stream(name, "…", "s", kind, True, kind != "gauge", [point])])
        telemetry.service.sweep()
        (tmp_path / "a.log").write_bytes(b"".join(telemetry.file.writes))
    with Engine.read([str(tmp_path)]) as engine:
        assert engine.rows("SELECT * FROM rejected_lines") == []
        yield {row["name"]: row for row in engine.rows("SELECT * FROM metric_points")}


def test_each_line_is_a_point(rows):
    """With its type, unit, and how it adds up."""
    assert set(rows) == set(POINTS)
    assert {name: row["type"] for name, row in rows.items()} == {
        "sum": "sum", "gauge": "gauge", "nan": "gauge", "infinite": "gauge",
        "histogram": "histogram",
    }  # fmt: skip
    assert {row["unit"] for row in rows.values()} == {"s"}
    assert rows["sum"]["is_monotonic"] is True
    assert rows["sum"]["aggregation_temporality"] == "DELTA"
    assert json.loads(rows["sum"]["attributes"]) == {"a": 1, "b": "é"}


def test_numbers_are_what_they_were(rows):
    """Those that JSON has no number for as well."""
    assert (rows["sum"]["value"], rows["gauge"]["value"]) == (3, 1.5)
    assert math.isnan(rows["nan"]["value"])
    assert rows["infinite"]["value"] == -math.inf


def test_a_histogram_is_whole(rows):
    """Buckets, bounds, extremes, and the exemplar's trace."""
    row = rows["histogram"]
    assert [row[key] for key in ("count", "sum", "min", "max")] == [6, 7.5, 0.1, 9.0]
    assert json.loads(row["bucket_counts"]) == [1, 2, 3]
    assert json.loads(row["explicit_bounds"]) == list(BOUNDS)
    (exemplar,) = json.loads(row["exemplars"])
    assert exemplar["trace_id"] == f"{0xABC:032x}"
