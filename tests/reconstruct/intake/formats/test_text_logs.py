"""Text that names its trace becomes a log record; all other text stays text."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconstruct.intake import files, tables
from reconstruct.intake.formats import text_logs

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
SPAN_ID = "00f1e2d3c4b5a697"
NAMES = [name for name, _ in tables.TABLES[tables.LOG_LINES]][4:]

STRUCTLOG = f"2025-06-15 15:06:40 [warning  ] slow  span_id={SPAN_ID} trace_id={TRACE_ID}"
OTEL = (
    "2025-06-15 15:06:40,050 WARNING [gym] [env.py:7] "
    f"[trace_id={TRACE_ID} span_id={SPAN_ID} resource.service.name=env] - an ERROR"
)


@pytest.mark.parametrize(("line", "nano"), [(STRUCTLOG, 0), (OTEL, 50_000_000)])
def test_ids_time_and_level(line: str, nano: int) -> None:
    """And the line as it is."""
    record = text_logs.recognise(line.encode(), "env-a")
    assert record is not None
    ((table, values),) = record.rows
    row = dict(zip(NAMES, values, strict=True))
    row |= row["owner"]._asdict()
    assert table == tables.LOG_LINES
    assert (row["trace_id"], row["span_id"]) == (TRACE_ID, SPAN_ID)
    assert row["time_unix_nano"] == 1_750_000_000_000_000_000 + nano
    assert row["severity_number"] == 13
    assert json.loads(row["body"]) == line
    assert row["server_name"] == "env-a"


def test_what_is_not_there_is_null() -> None:
    """A trace is enough."""
    record = text_logs.recognise(f"at noon trace_id='{TRACE_ID.upper()}'".encode(), None)
    assert record is not None
    row = dict(zip(NAMES, record.rows[0][1], strict=True))
    row |= row["owner"]._asdict()
    assert row["trace_id"] == TRACE_ID
    for name in ("span_id", "time_unix_nano", "severity_number", "service_name"):
        assert row[name] is None


def test_on_a_line_of_a_file(tmp_path: Path, read_rows: Callable[..., Any]) -> None:
    """A log line; with a record beside it, that record counts, and torn ones stay torn."""
    torn = '{"record_type":"span","trace_id":"a1'
    (tmp_path / "a.log").write_text(f"(env-a) {OTEL}\n{STRUCTLOG} {torn}\njust text\n")
    rows = read_rows(files.find([str(tmp_path)]))
    classes = {row["class"]: row["lines"] for row in rows[tables.CLASS_COUNTS]}
    assert classes == {"log": 1, "torn": 1, "text": 1}
    (row,) = rows[tables.LOG_LINES]
    assert (row["line"], row["span_id"], row["server_name"]) == (1, SPAN_ID, "env-a")


@pytest.mark.parametrize(
    "line",
    [
        "just text",
        "trace_id=none",
        "trace_id=a1b2",
        f"trace_id={TRACE_ID}0",
        f"trace_id={'0' * 32} span_id={'0' * 16}",
        f"xtrace_id={TRACE_ID}",
        f"trace_id: {TRACE_ID}",
    ],
)
def test_other_text_stays_text(line: str) -> None:
    """No id, half of one, or the zeros of no span."""
    assert text_logs.recognise(line.encode(), None) is None
