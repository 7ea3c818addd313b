"""The metrics of a healthy run: each is there, in the process where it belongs, and adds up.

8 rollouts: per rollout 2 model calls, 1 tool call, 1 verification; the agent also calls itself.
"""

import json
import subprocess
import sys

import pytest


def lines_of(run, name):
    return [record for record in run.of_type("metric") if record["name"] == name]


def counts(run, name, *keys):
    """Return {(service, attribute values …): count or value} over all intervals."""
    found = {}
    for line in lines_of(run, name):
        values = (line["attributes"].get(key) for key in keys)
        series = (run.service(line).removeprefix("gym/"), *values)
        found[series] = found.get(series, 0) + line.get("count", line.get("value"))
    return found


@pytest.mark.parametrize(
    ("name", "keys", "expected"),
    [
        (
            "http.server.request.duration",
            ("http.request.method", "http.route", "http.response.status_code", "error.type"),
            {
                ("environment", "POST", "/run", 200, None): 8,
                ("agent", "POST", "/run", 200, None): 8,
                ("agent", "POST", "/v1/responses", 200, None): 8,
                ("model", "POST", "/v1/responses", 200, None): 16,
                ("resources", "POST", "/get_weather", 200, None): 8,
                ("resources", "POST", "/verify", 200, None): 8,
            },
        ),
        (
            "http.client.request.duration",
            ("http.request.method", "http.response.status_code", "server.address"),
            {
                ("driver", "POST", 200, "127.0.0.1"): 8,
                ("environment", "POST", 200, "127.0.0.1"): 8,
                ("agent", "POST", 200, "127.0.0.1"): 40,
            },
        ),
        ("gym.rollout.duration_ms", ("error.type",), {("agent", None): 8}),
        ("gym.rollout.completed_total", ("nemo.gym.rollout.outcome",), {("driver", "success"): 8}),
        ("gym.verify.duration_ms", ("error.type",), {("resources", None): 8}),
        ("gym.verify.success_rate", (), {("resources",): 1}),
        (
            "gym.model.call_duration_ms",
            ("nemo.gym.model.dialect", "nemo.gym.server.name", "error.type"),
            {("model", "responses", "model", None): 16},
        ),
        (
            "gym.model.time_to_first_byte_ms",
            ("nemo.gym.model.dialect", "nemo.gym.server.name"),
            {("model", "responses", "model"): 16},
        ),
        (
            "gym.concurrency.queue_wait_duration_ms",
            ("nemo.gym.concurrency.site",),
            {("driver", "rollout_driver"): 8},
        ),
    ],
)
def test_a_metric_counts_what_happened(healthy, name, keys, expected):
    """In every process, over all of its intervals."""
    assert counts(healthy, name, *keys) == expected


def test_no_request_is_active_in_the_end(healthy):
    """The last value of each process."""
    last = {
        healthy.service(one): one["value"]
        for one in lines_of(healthy, "http.server.active_requests")
    }
    assert set(last) == {f"gym/{name}" for name in ("environment", "agent", "model", "resources")}
    assert set(last.values()) == {0}


def test_connections_are_counted_by_destination(healthy):
    """The agent speaks to itself, the model and the resources server."""
    name = "nemo.gym.http.destination.server.name"
    connects = counts(healthy, "gym.http.connection_pool.connect_total", name)
    assert {service for service, _ in connects} == {"driver", "environment", "agent"}
    assert len([1 for service, _ in connects if service == "agent"]) == 3
    assert all(1 <= count <= 16 for count in connects.values())


def test_durations_are_those_of_the_spans(healthy):
    """The sum over a metric is the sum over the spans it measures."""
    spans = healthy.spans_named("gym.rollout", "INTERNAL")
    lasted = sum(span["end_time_unix_nano"] - span["start_time_unix_nano"] for span in spans)
    lines = lines_of(healthy, "gym.rollout.duration_ms")
    assert sum(line["sum"] for line in lines) == pytest.approx(lasted / 1e6, rel=0.1)


def test_exemplars_lead_to_spans_of_the_run(healthy):
    """In the process that measured, where the duration is the one of the exemplar."""
    spans = {(span["trace_id"], span["span_id"]): span for span in healthy.spans}
    lines = lines_of(healthy, "http.server.request.duration")
    assert lines
    for line in lines:
        (exemplar,) = line["exemplars"]
        span = spans[exemplar["trace_id"], exemplar["span_id"]]
        assert healthy.service(span) == healthy.service(line)
        assert span["attributes"]["http.route"] == line["attributes"]["http.route"]
        seconds = (span["end_time_unix_nano"] - span["start_time_unix_nano"]) / 1e9
        assert exemplar["value"] == line["max"] == pytest.approx(seconds, abs=1e-3)


def test_no_metric_says_too_much(healthy):
    """Neither a rollout, a path, nor a reward is in any of them."""
    for line in healthy.of_type("metric"):
        assert "nemo.gym.rollout.id" not in line["attributes"]
        assert not [key for key in line["attributes"] if key.startswith("url.p")]
        assert "reward" not in json.dumps(line)


def test_metrics_are_small(healthy):
    """A process's own metrics are a fixed number of lines an interval, whatever it serves."""
    sizes = {}
    for raw, record in zip(healthy.lines, healthy.records, strict=True):
        if record["record_type"] == "metric" and record["name"].startswith(("http.", "gym.r")):
            service = healthy.service(record)
            sizes[service] = sizes.get(service, 0) + len(raw)
    assert sizes
    assert max(sizes.values()) <= 8 * 1024


def test_the_reader_gives_the_points_back(healthy):
    """`reconstruct` adds up what the lines say."""
    sql = """
        SELECT service_name, sum(count)::INT AS calls, max(max) < 60 AS is_sane,
            count(exemplars) AS exemplars, any_value(server_name) AS server_name
        FROM metric_points
        WHERE name = 'http.server.request.duration'
        GROUP BY service_name ORDER BY service_name"""
    command = [sys.executable, "-m", "reconstruct.cli", "query", sql, str(healthy.folder)]
    asked = subprocess.run([*command, "--format", "jsonl"], capture_output=True, text=True)
    rows = [json.loads(line) for line in asked.stdout.splitlines()]
    assert [(row["server_name"], row["calls"], row["is_sane"]) for row in rows] == [
        ("agent", 16, True), ("environment", 8, True), ("model", 16, True),
        ("resources", 16, True),
    ]  # fmt: skip
    assert all(row["exemplars"] for row in rows)
