"""The relations as a whole: declared columns, comments, the plain shell, any order of lines."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gymlog import record
from reconstruct.engine import Engine, relation_sql
from reconstruct.intake import tables

PUBLIC = (
    "spans",
    "traces",
    "rollouts",
    "span_tree",
    "self_time",
    "blame",
    "stats",
    "error_causes",
    "repeated_calls",
    "critical_path",
    "rollout_path",
    "stalls",
    "rollout_calls",
    "rollout_work",
    "rollout_shares",
    "slack",
    "span_paths",
    "call_paths",
    "service_edges",
    "clocks",
    "clock_bounds",
    "clock_pairs",
    "clock_offsets",
    "aligned_spans",
    "instance_edges",
    "unpaired_halves",
    "startups",
    "startup_servers",
    "startup_stages",
    "steps",
    "step_rollouts",
    "stragglers",
    "straggler_causes",
    "concurrency",
    "stuck_work",
    "log_records",
    "metric_points",
    "model_calls",
    "processes",
    "instances",
    "join_proposals",
    "findings",
    "line_classes",
    "rejected_lines",
)


@pytest.fixture
def engine(logs: Any) -> Iterator[Engine]:
    logs.span("root")
    with logs.engine() as engine:
        yield engine


def columns(engine: Engine, relation: str) -> dict[str, tuple[str, str | None]]:
    rows = engine.rows(
        "SELECT column_name, data_type, comment FROM duckdb_columns() WHERE table_name = $1",
        [relation],
    )
    return {row["column_name"]: (row["data_type"], row["comment"]) for row in rows}


@pytest.mark.parametrize("table", tables.TABLES)
def test_base_tables_have_the_columns_that_intake_fills(engine: Engine, table: str) -> None:
    """Names, order and types are those of `intake.tables`; JSON is text to Arrow."""
    types = {
        "VARCHAR": pa.string(),
        "JSON": pa.string(),
        "BIGINT": pa.int64(),
        "BOOLEAN": pa.bool_(),
        "DOUBLE": pa.float64(),
    }
    declared = tuple((name, types[kind]) for name, (kind, _) in columns(engine, table).items())
    assert declared == tables.TABLES[table]


@pytest.mark.parametrize(
    ("table", "record_type"),
    [
        (tables.SPAN_LINES, record.RecordType.SPAN),
        (tables.SPAN_LINES, record.RecordType.SPAN_START),
        (tables.LOG_LINES, record.RecordType.LOG),
        (tables.METRIC_LINES, record.RecordType.METRIC),
        (tables.PROCESS_LINES, record.RecordType.PROCESS),
    ],
)
def test_every_field_of_a_record_has_a_column(table: str, record_type: record.RecordType) -> None:
    """A new field of the contract needs a column, or its parts do."""
    parts = {
        "status": {"status_code", "status_message"},
        "scope": {"scope_name", "scope_version"},
        "resource": {"owner"},
    }
    names = {name for name, _ in tables.TABLES[table]}
    if table != tables.SPAN_LINES:
        names.add("record_type")  # one type per table
    for field in record.RECORDS[record_type]:
        assert parts.get(field.name, {field.name}) <= names


def test_the_shell_reads_every_field_of_the_contract() -> None:
    """The plain shell declares each field once, with its type."""
    types = {
        "text": "VARCHAR",
        "int64": "BIGINT",
        "float64": "DOUBLE",
        "bool": "BOOLEAN",
        "number": "DOUBLE",
        "object": "JSON",
        "list": "JSON",
        "any": "JSON",
    }
    bundle = relation_sql()
    for fields in record.RECORDS.values():
        for field in fields:
            assert f"            {field.name}: '{types[field.type.value]}'" in bundle


@pytest.mark.parametrize("relation", PUBLIC)
def test_public_relations_are_documented(engine: Engine, relation: str) -> None:
    """The relation and each of its columns have a comment."""
    comments = engine.rows(
        """
        SELECT comment FROM duckdb_tables() WHERE table_name = $name
        UNION ALL
        SELECT comment FROM duckdb_views() WHERE view_name = $name
        """,
        {"name": relation},
    )
    assert comments[0]["comment"]
    undocumented = [name for name, (_, comment) in columns(engine, relation).items() if not comment]
    assert undocumented == []


def test_nothing_is_without_words(engine: Engine) -> None:
    """Private relations and macros say what they are too; times say their unit."""
    relations = engine.rows(
        """
        SELECT table_name AS name, comment FROM duckdb_tables()
        UNION ALL
        SELECT view_name, comment FROM duckdb_views() WHERE NOT internal
        UNION ALL
        SELECT function_name, comment
        FROM duckdb_functions()
        WHERE NOT internal AND function_type IN ('macro', 'table_macro')
        """
    )
    assert [row["name"] for row in relations if not row["comment"]] == []
    assert {row["name"] for row in relations if not row["name"].startswith("_")} - {
        "span_tree_of",
        "self_time_of",
        "critical_path_of",
        "rollout_path_of",
        "slack_of",
        "stats_by",
        "path_changes_of",
        "attribute_changes_of",
        "aligned_spans_of",
        "service_edges_of",
        "instance_edges_of",
        "running_at",
        "stuck_work_at",
        "concurrency_in",
    } == set(PUBLIC)
    for relation in PUBLIC:
        for name, (kind, comment) in columns(engine, relation).items():
            if name.endswith(("_ns", "_unix_nano")):
                assert kind == "BIGINT"
                assert re.search(r"\bns\b", comment or ""), f"{relation}.{name}: {comment}"


def fill(logs: Any) -> None:
    """Write a run in which most relations have something to say.

    root (a) ── call (a, CLIENT) ── serve (b, SERVER, ERROR) ── open (b, lost with b)
             └─ orphan's parent is nowhere; one id twice; one record twice
    """
    logs.process("started", 0, service="a")
    logs.process("started", 0, service="b", pid=8)
    logs.span("root", start=10, end=1000, rollout="0-0")
    logs.span("call", "root", 20, 500, kind="CLIENT")
    logs.span("serve", "call", 30, 400, service="b", kind="SERVER", status="ERROR")
    logs.span("open", "serve", 40, None, service="b")
    logs.span("lonely", "nobody", 50, 60, rollout="0-1")
    logs.span("twin", "root", 70, 80)
    logs.span("twin", "root", 71, 81, name="other twin")
    logs.raw(logs.files["a.log"][-1], "copy.log")
    logs.span("x", "y", 1, 2, trace="u")
    logs.span("y", "x", 1, 3, trace="u")
    logs.raw('{"record_type":"span","trace_id":"torn', "copy.log")
    logs.raw("just text", "copy.log")
    logs.skip(2)
    logs.process("stopped", 2_000_000_000, service="a")


def contents(engine: Engine) -> dict[str, list[str]]:
    """Return all rows, less what says where a line lay."""
    place = {
        "file",
        "line",
        "last_file",
        "last_line",
        "rowid",
        "parent_rowid",
        "byte_offset",
        "place",
        "message",
        "hint",
        "evidence",
        "reason",
    }
    result = {}
    for relation in PUBLIC:
        if relation in ("line_classes", "rejected_lines"):
            continue
        rows = engine.rows(f"FROM {relation}")
        result[relation] = sorted(
            json.dumps({k: v for k, v in row.items() if k not in place}, sort_keys=True)
            for row in rows
        )
    return result


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_the_order_of_lines_and_files_changes_nothing(
    run: tuple[list[str], dict[str, list[str]]],
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    count: int,
) -> None:
    """Shuffled, and split into other files, the same lines give the same rows."""
    lines, expected = run
    folder = tmp_path_factory.mktemp("shuffled")
    shuffled = random.Random(seed).sample(lines, len(lines))
    for number in range(count):
        text = "".join(f"{line}\n" for line in shuffled[number::count])
        (folder / f"{number}.log").write_text(text)
    with Engine.read([str(folder)]) as engine:
        assert contents(engine) == expected


@pytest.fixture
def run(logs: Any) -> tuple[list[str], dict[str, list[str]]]:
    """The lines of a run, and what the relations make of them."""
    fill(logs)
    with logs.engine() as engine:
        return [line for file in logs.files.values() for line in file], contents(engine)


def test_the_ledger_adds_up_with_duplicates(logs: Any) -> None:
    """A copy is no longer a span, and says what it repeats."""
    fill(logs)
    with logs.engine() as engine:
        rows = engine.rows("SELECT class, lines FROM line_classes WHERE file LIKE '%copy.log'")
        assert {row["class"]: row["lines"] for row in rows} == {
            "duplicate": 1,
            "torn": 1,
            "text": 1,
        }
        total = engine.rows("SELECT sum(lines)::BIGINT AS lines FROM line_classes")[0]["lines"]
        assert total == sum(len(lines) for lines in logs.files.values())
        (row,) = engine.rows("SELECT reason FROM rejected_lines WHERE class = 'duplicate'")
        assert row["reason"].startswith("the same record as ")


def test_the_plain_shell_gives_the_same_rows(logs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bundle needs nothing but duckdb and the lines, and agrees with the engine."""
    fill(logs)
    del logs.files["copy.log"]
    monkeypatch.chdir(logs.write())
    with Engine.read(["."]) as engine, duckdb.connect() as shell:
        shell.execute(relation_sql())
        for relation in (
            "spans",
            "traces",
            "rollouts",
            "span_tree",
            "self_time",
            "critical_path",
            "rollout_path",
            "stats",
            "error_causes",
            "rollout_calls",
            "rollout_work",
            "rollout_shares",
            "service_edges",
            "instance_edges",
            "processes",
            "instances",
        ):
            place = ("file", "line", "rowid")
            names = [name for name in columns(engine, relation) if name not in place]
            query = f"SELECT {', '.join(names)} FROM {relation} ORDER BY ALL"
            expected = [tuple(row.values()) for row in engine.rows(query)]
            assert shell.execute(query).fetchall() == expected
            assert expected
        codes = "SELECT code, trace_id, span_id FROM findings ORDER BY ALL"
        assert shell.execute(codes).fetchall() == [tuple(r.values()) for r in engine.rows(codes)]


def test_the_shell_reads_what_the_variable_names(logs: Any) -> None:
    """`SET VARIABLE logs` chooses the files."""
    logs.span("root")
    path = logs.write()
    with duckdb.connect() as shell:
        shell.execute(f"SET VARIABLE logs = '{path}/*.log'")
        shell.execute(relation_sql())
        assert shell.execute("SELECT name FROM spans").fetchall() == [("root",)]


def test_nothing_read_is_no_error(tmp_path: Path) -> None:
    """An empty file gives empty relations, each of which can be asked."""
    (tmp_path / "empty.log").touch()
    with Engine.read([str(tmp_path)]) as engine:
        for relation in PUBLIC:
            assert engine.rows(f"FROM {relation}") == []
