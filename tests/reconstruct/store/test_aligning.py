"""Times as one clock would have had them: in a copy, whatever the database is; the rest stays."""

import json
from pathlib import Path

import pytest

from reconstruct.engine import Engine

BASE = 1_764_475_132_000_000_000
MS = 1_000_000


def write(folder: Path) -> None:
    """Write calls from host x, at 0, 100 … 900 ms, to host y, whose clock was set meanwhile: it is
    2 s behind during the first five, and 3 s ahead then. Each call lasts 80 ms, 60 of them there,
    and there is a log record in the midst and a point at the end of each, of host y.
    """
    folder.mkdir()
    lines = []
    for number in range(10):
        start = BASE + 100 * MS * number
        there = start + (3_000 if number >= 5 else -2_000) * MS
        trace = f"{number + 1:032x}"

        def owner(host: str) -> dict:
            return {"attributes": {"service.name": f"gym/{host}", "host.name": host}}

        lines += [
            {
                "trace_id": trace,
                "span_id": f"{1:016x}",
                "parent_span_id": None,
                "name": "call",
                "kind": "CLIENT",
                "start_time_unix_nano": start,
                "end_time_unix_nano": start + 80 * MS,
                "resource": owner("x"),
            },
            {
                "trace_id": trace,
                "span_id": f"{2:016x}",
                "parent_span_id": f"{1:016x}",
                "name": "serve",
                "kind": "SERVER",
                "start_time_unix_nano": there + 10 * MS,
                "end_time_unix_nano": there + 70 * MS,
                "resource": owner("y"),
            },
            {
                "record_type": "log",
                "time_unix_nano": there + 40 * MS,
                "body": "half",
                "trace_id": trace,
                "span_id": f"{2:016x}",
                "resource": owner("y"),
            },
            {
                "record_type": "metric",
                "name": "calls",
                "type": "gauge",
                "time_unix_nano": there + 70 * MS,
                "value": number,
                "resource": owner("y"),
            },
        ]
    (folder / "a.log").write_text("".join(json.dumps(line) + "\n" for line in lines))


SPANS = """
    SELECT trace_id, span_id, start_time_unix_nano AS start, end_time_unix_nano AS "end"
    FROM spans
    ORDER BY ALL
"""
ALIGNED = """
    SELECT trace_id, span_id, start_adj_unix_nano AS start, end_adj_unix_nano AS "end"
    FROM aligned_spans
    ORDER BY ALL
"""


@pytest.mark.parametrize("is_stored", [False, True], ids=["in memory", "in a store"])
def test_every_line_is_moved_in_a_copy(tmp_path, is_stored):
    """Spans as aligned_spans has them, log records and points likewise; what is kept has the times
    of the logs."""
    folder = tmp_path / "logs"
    write(folder)
    store = tmp_path / "store" if is_stored else False
    with Engine.read([str(folder)], store=store) as engine:
        raw, wanted = engine.rows(SPANS), engine.rows(ALIGNED)
        assert not engine.moved_clocks
    with Engine.read([str(folder)], store=store, align=True) as engine:
        moved = engine.rows(SPANS)
        assert {(clock.clock, clock.reference_clock) for clock in engine.moved_clocks} == {
            ("y", "x")
        }
        assert {round(clock.offset_ns / 1e9) for clock in engine.moved_clocks} == {-2, 3}
        assert engine.rows("SELECT DISTINCT offset_ns FROM clock_offsets") == [{"offset_ns": 0}]
        logged = [
            row["time"]
            for row in engine.rows("SELECT time_unix_nano AS time FROM log_records ORDER BY time")
        ]
        measured = [
            row["time"]
            for row in engine.rows("SELECT time_unix_nano AS time FROM metric_points ORDER BY time")
        ]
        gaps = engine.rows("SELECT gap_p50_ns FROM service_edges WHERE kind = 'rpc'")
    assert moved == wanted != raw
    served = [row for row in moved if row["span_id"] == f"{2:016x}"]
    for log_time, point_time, row in zip(logged, measured, served, strict=True):
        assert log_time - row["start"] == 30 * MS
        assert point_time == row["end"]
    assert [abs(row["gap_p50_ns"]) < 25 * MS for row in gaps] == [True]
    with Engine.read([str(folder)], store=store) as engine:
        assert engine.rows(SPANS) == raw


def test_where_clocks_agree_nothing_is_copied(tmp_path):
    """There is nothing to say, either."""
    (tmp_path / "a.log").write_text("")
    with Engine.read([str(tmp_path)], align=True) as engine:
        assert engine.moved_clocks == []
        assert engine.rows(SPANS) == []
