"""`reconstruct export parquet`, `otlp-json`, `jaeger` and `csv`: which rows go, and where."""

import csv
import json
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SECRET = "s3cr3t-value"


@pytest.fixture
def secret_logs(logs):
    """The same logs, with a value to hide wherever one can stand, and a span that is open."""
    log = logs["driver"]
    fields = {
        "attributes": {"prompt": SECRET, "http.route": "/run", "f": "=cmd()"},
        "trace_state": f"a={SECRET}",
        "status": {"code": "ERROR", "message": SECRET},
        "events": [
            {
                "time_unix_nano": 1_764_475_132_000_000_000,
                "name": "exception",
                "attributes": {"exception.message": SECRET, "exception.type": "ValueError"},
            }
        ],
        "links": [
            {"trace_id": "1" * 32, "span_id": "2" * 16, "attributes": {"why": SECRET}},
        ],
    }
    log.span(0xA0, 0xE01, 0xA01, "verify", 2, 3, rollout="0-0", **fields)
    log.record(
        "log",
        time_unix_nano=1_764_475_132_000_000_001,
        severity_number=9,
        severity_text="INFO",
        body=SECRET,
        attributes={"prompt": SECRET},
        trace_id=f"{0xA0:032x}",
        span_id=f"{0xE01:016x}",
        resource={"attributes": log._service},
    )
    log.record(
        "metric",
        name="tokens",
        unit="1",
        type="sum",
        is_monotonic=True,
        aggregation_temporality="DELTA",
        start_time_unix_nano=1_764_475_132_000_000_000,
        time_unix_nano=1_764_475_133_000_000_000,
        attributes={"prompt": SECRET},
        value=3,
        resource={"attributes": log._service},
    )
    log.write(f"broken {SECRET} line\n")
    log.span(0xC0, 0xC01, None, "gym.rollout", 300, None)
    return logs


def test_a_dataset_reads_the_same_everywhere(secret_logs, run):
    done = run("export", "parquet", "data", "logs", "--json", "--relations", "spans")
    assert done.code == 0
    rows = {each["relation"]: each["rows"] for each in done.json}
    assert rows["spans"] == 11
    asked = run("query", "SELECT * FROM spans ORDER BY ALL", "logs", "--json").json
    path = "data/spans/data.parquet"
    duck = duckdb.connect().sql(f"FROM '{path}'").to_arrow_table()
    for name in ("span_id", "start_time_unix_nano", "end_time_unix_nano", "duration_ns", "line"):
        wanted = [row[name] for row in asked]
        assert duck[name].to_pylist() == wanted
        assert pl.read_parquet(path, columns=[name])[name].to_list() == wanted
        frame = pd.read_parquet(path, dtype_backend="pyarrow")
        assert [None if pd.isna(value) else value for value in frame[name]] == wanted
    attributes = [json.loads(text) for text in duck["attributes"].to_pylist()]
    assert attributes == [row["attributes"] for row in asked]


def test_every_relation_says_what_it_is_in_types_that_spark_has(logs, run):
    assert run("export", "parquet", "data", "logs").code == 0
    notes = json.loads(Path("data/_dataset.json").read_text())
    known = run("query", "SHOW TABLES", "logs", "--json").json
    public = {row["name"] for row in known if not row["name"].startswith("_")}
    assert notes["relations"].keys() == public
    for relation, note in notes["relations"].items():
        file = pq.ParquetFile(f"data/{relation}/data.parquet")
        schema = file.schema_arrow
        assert file.metadata.num_rows == note["rows"]
        assert schema.metadata[b"gymlog.schema"] == b"1"
        assert schema.metadata[b"reconstruct.comment"].decode() == note["comment"] != ""
        for field in schema:
            assert field.metadata[b"comment"], f"{relation}.{field.name} means nothing"
            assert field.type in {
                pa.int64(), pa.int32(), pa.bool_(), pa.float64(), pa.string(), pa.json_(),
                pa.list_(pa.string()),
            } or pa.types.is_list(field.type), f"{relation}.{field.name}: {field.type}"  # fmt: skip


def test_runs_are_folders_whatever_their_names(write_logs, run):
    for number, name in enumerate(("a/b =1", "5")):
        log = write_logs(f"logs{number}", name)["driver"]
        log.span(0xA0 + number, 0xA01, None, "work", 0, 1)
    Path("logs2").mkdir()
    Path("logs2/x.log").write_text(
        Path("logs0/driver.log").read_text().splitlines()[-1].replace("driver-a/b =1", "other")
        .replace(f"{0xA0:032x}", f"{0xB0:032x}") + "\n"
    )  # fmt: skip
    done = run("export", "parquet", "d", "logs0", "logs1", "logs2", "--partition-by", "run",
               "--relations", "spans,self_time")  # fmt: skip
    assert done.code == 0, done
    assert sorted(path.name for path in Path("d/spans").iterdir()) == [
        "run_id=5", "run_id=__HIVE_DEFAULT_PARTITION__", "run_id=a%2Fb%20%3D1",
    ]  # fmt: skip
    read = duckdb.connect().execute(
        "SELECT run_id FROM read_parquet('d/spans/*/*.parquet', hive_partitioning = true, "
        "hive_types = {'run_id': VARCHAR}) ORDER BY run_id"
    )
    assert read.fetchall() == [("5",), ("a/b =1",), (None,)]
    assert Path("d/self_time/data.parquet").exists()


def test_a_dataset_replaces_a_dataset_and_nothing_else(logs, run):
    for _ in range(2):
        assert run("export", "parquet", "data", "logs", "--relations", "spans").code == 0
    done = run("export", "parquet", "data", "logs", "--relations", "traces")
    assert sorted(path.name for path in Path("data").iterdir()) == ["_dataset.json", "traces"]
    Path("data/mine.txt").write_text("mine")
    for folder in ("data", "logs", "logs/driver.log"):
        done = run("export", "parquet", folder, "logs", "--relations", "spans")
        assert done.code == 4, done
    assert Path("data/mine.txt").read_text() == "mine"
    assert sorted(path.name for path in Path().iterdir()) == ["data", "logs"]


def test_a_trace_alone_takes_what_belongs_to_it(secret_logs, run):
    done = run(
        "export", "parquet", "data", "logs", "--trace", f"{0xA0:032x}", "--relations",
        "spans,traces,rollouts,log_records,self_time,rejected_lines",
    )  # fmt: skip
    assert done.code == 0, done
    assert "left out, not told by trace or rollout: " in done.err
    ids = pq.read_table("data/spans/data.parquet")["trace_id"].to_pylist()
    assert ids == [f"{0xA0:032x}"] * 4
    for relation, rows in {"traces": 1, "rollouts": 1, "log_records": 1, "self_time": 4}.items():
        assert pq.ParquetFile(f"data/{relation}/data.parquet").metadata.num_rows == rows, relation
    assert not Path("data/rejected_lines").exists()


def test_redacted_files_hold_no_planted_value(secret_logs, run):
    signals = ("--signals", "traces,logs,metrics")
    for words in (
        ("parquet", "data", "logs", "--relations", "spans,log_records,rejected_lines,processes"),
        ("otlp-json", "logs", "-o", "data/o.jsonl", *signals),
        ("jaeger", "logs", "-o", "data/j.json"),
        ("chrome", "logs", "-o", "data/c.json"),
        ("perfetto", "logs", "-o", "data/p.pftrace"),
        *(("csv", "logs", "-o", f"data/{name}.csv", "--relation", name)
          for name in ("spans", "metric_points", "findings")),
    ):  # fmt: skip
        assert run("export", *words).code == 0
        assert run("export", *words, "--redact").code == 0
    for path in (path for path in Path("data").rglob("*") if path.is_file()):
        if path.suffix == ".parquet":
            text = json.dumps(pq.read_table(path).to_pylist(), default=str)
        else:
            text = path.read_bytes().decode(errors="replace")
        assert SECRET not in text, path
    assert "/run" in Path("data/j.json").read_text()
    kept = run("export", "jaeger", "logs", "-o", "k.json", "--redact-keep", "prompt")
    assert kept.code == 0
    assert Path("k.json").read_text().count(SECRET) == 1


def test_otlp_json_holds_back_what_is_unfinished_and_says_so(secret_logs, run):
    done = run("export", "otlp-json", "logs", "-o", "o.jsonl", "--signals", "traces,logs,metrics")
    assert done.code == 0
    assert done.err.endswith(
        "held back: 1 unfinished span\nexported 10 spans, 1 log record, 1 metric point to o.jsonl\n"
    )
    sql = "SELECT name, unit, type, value, attributes, is_monotonic FROM metric_points"
    assert run("query", sql, "o.jsonl", "--json").json == run("query", sql, "logs", "--json").json
    sql = (
        "SELECT body, severity_text, attributes, trace_id, span_id, time_unix_nano FROM log_records"
    )
    assert run("query", sql, "o.jsonl", "--json").json == run("query", sql, "logs", "--json").json
    assert run("export", "otlp-json", "logs", "-o", "o", "--signals", "trace").code == 2


def test_jaeger_says_what_it_loses(secret_logs, run):
    secret_logs["driver"].span(
        0xD0, 0xD01, None, "odd", 400, 401, end_time_unix_nano=1_764_475_132_400_500_001
    )
    done = run("export", "jaeger", "logs", "-o", "j.json", "--json")
    assert done.json == {
        "output": "j.json",
        "traces": 4,
        "spans": 11,
        "cut_times": 1,
        "bare_links": 1,
        "held_back": 1,
    }
    assert "1 span lost nanoseconds" in done.err
    assert len(json.loads(Path("j.json").read_text())["data"]) == 4


def test_csv_runs_nothing_and_raw_is_raw(logs, run):
    logs["driver"].span(0xF0, 0xF01, None, "=cmd()\0", 1, 2)
    for options, name in (((), "'=cmd()\ufffd"), (("--raw",), "=cmd()\0")):
        assert run("export", "csv", "logs", "-o", "s.csv", *options).code == 0
        with Path("s.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        (row,) = [row for row in rows if row["trace_id"] == f"{0xF0:032x}"]
        assert row["name"] == name
        assert row["duration_ns"] == "1000000"
    done = run("export", "csv", "logs", "-o", "x.csv", "--relation", "span")
    assert (done.code, Path("x.csv").exists()) == (2, False)
    assert "no relation 'span'; there is spans" in done.err
