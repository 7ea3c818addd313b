"""`reconstruct.open` and what it gives: every form of every relation, the same rows."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import reconstruct

BASE = 1_800_000_000_000_000_000


@pytest.fixture
def folder(logs: Any) -> Path:
    r"""t: root ── call ── serve;  u: root of another rollout, one span of it unfinished."""
    logs.process("started", 0, run="run-1")
    logs.process("started", 0, run="run-1", service="b")
    logs.span("root", start=0, end=100, rollout="0-0")
    logs.span("call", "root", 10, 50, attributes={"n": 2**62, "l": [1.5]})
    logs.span("serve", "call", 20, 40, service="b", name="<b>&")
    logs.span("root", start=5, end=6, trace="u", rollout="1-0")
    logs.span("open", "root", 6, None, trace="u", rollout="1-0")
    return logs.write()


@pytest.fixture
def run(folder: Path) -> Iterator[reconstruct.Run]:
    with reconstruct.open(folder) as run:
        yield run


def test_every_form_has_the_same_rows(run: reconstruct.Run) -> None:
    """Arrow, polars, pandas, dicts, one by one; len counts them."""
    spans = run.spans
    rows = spans.rows()
    assert len(spans) == len(rows) == 5
    assert list(spans) == rows
    starts = [row["start_time_unix_nano"] for row in rows]
    table = spans.arrow()
    assert isinstance(table, pa.Table)
    assert table.column("start_time_unix_nano").to_pylist() == starts
    frame = spans.polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame["start_time_unix_nano"].to_list() == starts
    data = spans.pandas()
    assert isinstance(data, pd.DataFrame)
    assert data["start_time_unix_nano"].tolist() == starts
    assert table.column_names == frame.columns == list(data.columns) == list(rows[0])
    assert list(spans.columns) == table.column_names
    assert spans.columns["attributes"] == "JSON"


def test_integers_with_gaps_stay_exact(run: reconstruct.Run) -> None:
    """An end that is missing does not turn the others into floats."""
    ends = sorted(BASE + end for end in (100, 50, 40, 6))
    column = run.spans.pandas()["end_time_unix_nano"]
    assert sorted(column.dropna().tolist()) == ends
    assert column.isna().sum() == 1
    assert run.spans.polars()["end_time_unix_nano"].dtype == pl.Int64


def test_json_is_pythons_in_rows_and_text_elsewhere(run: reconstruct.Run) -> None:
    """No digit is lost in either."""
    call = run.spans.where(name="call")
    assert call.rows()[0]["attributes"] == {"n": 2**62, "l": [1.5]}
    assert call.polars()["attributes"].to_list() == ['{"n":4611686018427387904,"l":[1.5]}']


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        ({}, ["<b>&", "call", "open", "root", "root"]),
        ({"name": "root"}, ["root", "root"]),
        ({"name": ["call", "open"]}, ["call", "open"]),
        ({"name": []}, []),
        ({"name": "root", "rollout_id": "1-0"}, ["root"]),
        ({"end_time_unix_nano": None}, ["open"]),
        ({"duration_ns": 100}, ["root"]),
        ({"duration_ns": {20, 40}}, ["<b>&", "call"]),
        ({"name": "x' OR TRUE --"}, []),
    ],
)
def test_where_chooses_rows(
    run: reconstruct.Run, wanted: dict[str, object], names: list[str]
) -> None:
    """By the values of columns: one, any of several, null."""
    chosen = run.spans.where(**wanted)
    assert sorted(row["name"] for row in chosen) == names
    assert len(chosen) == len(names)
    assert bool(chosen) == bool(names)


def test_where_twice_is_both(run: reconstruct.Run) -> None:
    """Each narrows what was chosen before, which stays as it is."""
    roots = run.spans.where(name="root")
    assert len(roots.where(rollout_id="0-0")) == 1
    assert len(roots) == 2


def test_unknown_names_get_a_suggestion(run: reconstruct.Run) -> None:
    """Columns and relations."""
    with pytest.raises(reconstruct.UsageError, match=r"no column 'nme'; did you mean name\?"):
        run.spans.where(nme="x")
    with pytest.raises(reconstruct.UsageError, match=r"no relation 'span'; did you mean spans"):
        run.relation("span")
    with pytest.raises(reconstruct.UsageError, match="no relation '_files'; there are "):
        run.relation("_files")


def test_every_relation_is_there(run: reconstruct.Run) -> None:
    """By name, with a sentence of what a row is; private ones are not."""
    assert {"spans", "traces", "rollouts", "findings", "service_edges"} <= run.relations.keys()
    assert all(comment.startswith("One row is ") for comment in run.relations.values())
    assert not any(name.startswith("_") for name in run.relations)
    for name in run.relations:
        assert run.relation(name).arrow().num_rows == len(run.relation(name))
    assert len(run.traces) == len(run.rollouts) == 2


def test_sql_is_bound_and_only_reads(run: reconstruct.Run) -> None:
    """A mistake is told at the call, not when the rows are asked for."""
    found = run.sql("SELECT name, count(*) AS n FROM spans WHERE name = $1 GROUP BY name", ["root"])
    assert found.rows() == [{"name": "root", "n": 2}]
    assert len(found) == 1
    assert run.sql("SELECT $a + 1 AS b", {"a": 1}).rows() == [{"b": 2}]
    plan = run.sql("EXPLAIN FROM spans")
    assert len(plan) == len(plan.rows()) == 1
    assert run.sql("SELECT 1 AS a, 2 AS a").arrow().column_names == ["a", "a_2"]
    for sql in ("SELECT nme FROM spans", "DELETE FROM spans", "FROM read_text('/etc/hostname')"):
        with pytest.raises(reconstruct.SqlError):
            run.sql(sql)
    endless = run.sql("SELECT count(*) FROM range(1e12::BIGINT)", timeout_seconds=0.2)
    with pytest.raises(reconstruct.SqlError, match="stopped after"):
        endless.rows()


def test_a_trace_is_found_by_any_form_of_its_id(run: reconstruct.Run) -> None:
    """Its spans in the order of the tree, as rows and nested."""
    trace_id = run.spans.where(name="call").rows()[0]["trace_id"]
    forms = [
        trace_id,
        trace_id[:12],
        trace_id.upper(),
        f"0x{trace_id}",
        f" {trace_id}\n",
        f"00-{trace_id}-00f067aa0ba902b7-01",
        "-".join([trace_id[:8], trace_id[8:12], trace_id[12:16], trace_id[16:20], trace_id[20:]]),
    ]
    for form in forms:
        rows = run.trace(form).rows()
        assert [(row["depth"], row["name"], row["self_time_ns"]) for row in rows] == [
            (0, "root", 60),
            (1, "call", 20),
            (2, "<b>&", 20),
        ]
    (tree,) = run.trace(trace_id).traces
    assert [span.name for span in tree.walk()] == ["root", "call", "<b>&"]
    assert tree.roots[0].children[0].attributes == {"n": 2**62, "l": [1.5]}
    with pytest.raises(reconstruct.ReconstructError, match="no rollout or trace 'ffff'"):
        run.trace("ffff")
    with pytest.raises(reconstruct.UsageError, match="2 traces start with ''"):
        run.trace("")


def test_a_rollout_has_its_spans_and_no_others(run: reconstruct.Run) -> None:
    """As rows, nested and drawn."""
    rollout = run.rollout("1-0")
    assert [row["name"] for row in rollout] == ["root", "open"]
    assert [span.name for trace in rollout.traces for span in trace.walk()] == ["root", "open"]
    assert "open" in str(rollout)
    assert run.rollout("1-0", "run-1").arrow().num_rows == 2
    for rollout_id, run_id in (("9-9", None), ("1-0", "run-2")):
        with pytest.raises(
            reconstruct.ReconstructError, match=f"no rollout or trace '{rollout_id}'"
        ):
            run.rollout(rollout_id, run_id)


def test_a_rollout_without_a_run(logs: Any) -> None:
    """A slice of a log has no run id."""
    logs.span("root", rollout="0-0")
    with reconstruct.open(logs.write()) as run:
        assert len(run.rollout("0-0")) == 1


def test_a_notebook_shows_a_short_table(run: reconstruct.Run) -> None:
    """What logs hold is shown, never obeyed; what is left out is counted."""
    shown = run.spans.where(name="<b>&")._repr_html_()
    assert "<td>&lt;b&gt;&amp;</td>" in shown
    assert "<b>" not in shown
    many = run.sql("FROM range(1234)")._repr_html_()
    assert many.count("<tr>") == 21
    assert "the first 20 of 1,234 rows" in many
    assert "&lt;b&gt;&amp;" in run.rollout("0-0")._repr_html_()
    assert repr(run.spans) == '<Relation: FROM "spans">'


def test_several_paths_and_kinds_of_paths(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, path objects, several of them, the current folder."""
    monkeypatch.chdir(folder)
    for paths in (
        str(folder),
        folder,
        [folder / "a.log", str(folder / "b.log")],
        f"{folder}/*.log",
    ):
        with reconstruct.open(paths) as run:
            assert len(run.spans) == 5
    with reconstruct.open(memory_limit="500MB") as run:
        assert len(run.spans) == 5
    with pytest.raises(reconstruct.InputError, match="no log files match"):
        reconstruct.open("none/*.log")


def test_threads_share_a_run(run: reconstruct.Run) -> None:
    """Each question has its own connection, also while another is being read."""
    found: list[int] = []

    def work() -> None:
        for row in run.spans:
            found.append(len(run.spans.where(name=row["name"])))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1] * 12 + [2] * 8


@pytest.mark.parametrize("kind", [str, Path])
def test_a_store_keeps_what_was_read(folder: Path, tmp_path: Path, kind: type) -> None:
    """As the command line's `--store`: one database, whoever asks."""
    kept = tmp_path / "kept"
    for _ in range(2):
        with reconstruct.open(folder, store=kind(kept)) as run:
            assert len(run.spans) > 0
    assert len(list(kept.glob("*/logs.duckdb"))) == 1


def test_closed_logs_answer_nothing(folder: Path) -> None:
    """And say so, whatever is asked of them."""
    run = reconstruct.open(folder)
    spans, found = run.spans, run.sql("FROM spans")
    run.close()
    run.close()
    for ask in (lambda: run.spans, lambda: run.trace("0"), lambda: run.sql("FROM spans")):
        with pytest.raises(reconstruct.UsageError, match="these logs were closed"):
            ask()
    for result in (spans, found):
        with pytest.raises(reconstruct.SqlError, match="closed"):
            result.rows()


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_library_that_is_missing_is_named(
    run: reconstruct.Run, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is needed by anything else."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(reconstruct.UsageError, match=f"^{library} is not installed"):
        getattr(run.spans, library)()


def test_importing_it_is_light() -> None:
    """Neither DuckDB nor Arrow before there is something to read."""
    program = (
        "import sys, reconstruct\n"
        "heavy = {'duckdb', 'pyarrow', 'numpy', 'pandas', 'polars', 'rich', 'click', 'orjson'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))\n"
        "assert all(hasattr(reconstruct, name) for name in reconstruct.__all__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_name_that_is_not_there() -> None:
    """Is an AttributeError, as of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = reconstruct.nothing
