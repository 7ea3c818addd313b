"""What is read of logs and encoded: DuckDB's JSON and ours agree; logs and metrics are exact."""

import json

import pytest
from google.protobuf.json_format import Parse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from reconstruct.engine import Engine
from reconstruct.export.otlp.forms import JsonForm, ProtobufForm
from reconstruct.export.otlp.records import Records
from reconstruct.export.otlp.signals import KINDS

START = 1_764_475_132_123_456_789
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEY = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUE = SCALAR | st.lists(SCALAR, max_size=2) | st.dictionaries(KEY, SCALAR, max_size=2)


def items(engine, signal, form, change=None):
    records = Records(signal, "TRUE", {}, change=change)
    found = list(records.items(engine, form, lambda keys: [True] * len(keys)))
    assert records.unsent == []
    return found


def span(number, **fields):
    return {
        "record_type": "span",
        "seq": number,
        "trace_id": f"{7:032x}",
        "span_id": f"{number + 1:016x}",
        "parent_span_id": None,
        "name": "n",
        "kind": "SERVER",
        "start_time_unix_nano": START,
        "end_time_unix_nano": START + 1,
        "flags": 257,
        "status": {"code": "UNSET"},
        "attributes": {},
        "resource": {"attributes": {"service.name": "a"}},
        **fields,
    }


STATUS = st.sampled_from(
    [{"code": "UNSET"}, {"code": "OK"}, {"code": "ERROR"}, {"code": "ERROR", "message": 'b\n"'}]
)


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "name": TEXT,
                "attributes": st.dictionaries(KEY, VALUE, max_size=4),
                "status": STATUS,
                "parent_span_id": st.none() | st.just("00f067aa0ba902b7"),
                "kind": st.sampled_from(["SERVER", "CLIENT", "INTERNAL"]),
            },
            optional={"trace_state": st.just("a=1"), "flags": st.integers(0, 2**10)},
        ),
        min_size=1,
        max_size=12,
    )
)
def test_json_written_by_duckdb_says_what_the_messages_say(tmp_path, facts):
    log = tmp_path / "a.log"
    lines = [json.dumps(span(number, **each)) for number, each in enumerate(facts)]
    log.write_text("\n".join(lines) + "\n", "utf-8")
    form = JsonForm(KINDS["traces"])
    with Engine.read([str(log)]) as engine:
        quick = {item.name: (json.loads(item.body), item) for item in items(engine, "traces", form)}
        exact = items(engine, "traces", form, change=dict)
    assert len(quick) == len(exact) == len(facts)
    for item in exact:
        body, other = quick[item.name]
        empty = {"droppedAttributesCount": 0, "droppedEventsCount": 0, "droppedLinksCount": 0}
        base = {**empty, "attributes": [], "status": {}, "flags": 0, "name": ""}
        assert {**base, **body} == {**base, **json.loads(item.body)}
        assert (other.owner, other.key) == (item.owner, item.key)


@pytest.fixture
def lines(tmp_path):
    def write(*records):
        path = tmp_path / "a.log"
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
        return str(path)

    return write


RESOURCE = {"attributes": {"service.name": "a"}}


@pytest.mark.parametrize("form", [ProtobufForm, JsonForm])
def test_log_records_are_exact(form, lines):
    record = {
        "record_type": "log",
        "seq": 0,
        "time_unix_nano": START,
        "severity_number": 13,
        "severity_text": "WARNING",
        "body": {"text": "disk", "left": 2**53 + 1},
        "attributes": {"a": 1.0},
        "trace_id": f"{7:032x}",
        "span_id": f"{8:016x}",
        "flags": 1,
        "scope": {"name": "logger"},
        "resource": RESOURCE,
    }
    request = _request(form(KINDS["logs"]), "logs", ExportLogsServiceRequest, lines(record))
    (resource,) = request.resource_logs
    (scope,) = resource.scope_logs
    (log,) = scope.log_records
    assert scope.scope.name == "logger"
    assert (log.time_unix_nano, log.severity_number, log.severity_text) == (START, 13, "WARNING")
    assert {pair.key: pair.value for pair in log.body.kvlist_value.values}[
        "left"
    ].int_value == 2**53 + 1
    assert log.attributes[0].value.WhichOneof("value") == "double_value"
    assert (log.trace_id.hex(), log.span_id.hex(), log.flags) == (
        f"{7:032x}",
        f"{8:016x}",
        1,
    )


@pytest.mark.parametrize("form", [ProtobufForm, JsonForm])
def test_metric_points_are_exact(form, lines):
    common = {
        "record_type": "metric",
        "unit": "s",
        "start_time_unix_nano": START,
        "time_unix_nano": START + 9,
        "attributes": {"route": "/run"},
        "resource": RESOURCE,
    }
    histogram = {
        "name": "h",
        "type": "histogram",
        "aggregation_temporality": "DELTA",
        "count": 3,
        "sum": 1.5,
        "min": 0.1,
        "max": 1.0,
        "bucket_counts": [1, 2, 0],
        "explicit_bounds": [0.5, 2.5],
        "exemplars": [
            {
                "value": 0.1,
                "time_unix_nano": START + 1,
                "trace_id": f"{7:032x}",
                "span_id": f"{8:016x}",
            }
        ],
    }
    total = {
        "name": "s",
        "type": "sum",
        "is_monotonic": True,
        "aggregation_temporality": "CUMULATIVE",
        "value": 7,
    }
    first = {**common, **total, "seq": 1, "description": "Said once."}
    again = {**common, **total, "seq": 2, "time_unix_nano": START + 10}
    path = lines({**common, **histogram, "seq": 0}, first, again)
    request = _request(form(KINDS["metrics"]), "metrics", ExportMetricsServiceRequest, path)
    (resource,) = request.resource_metrics
    one, two, three = resource.scope_metrics[0].metrics
    (point,) = one.histogram.data_points
    assert one.histogram.aggregation_temporality == 1
    assert (point.count, point.sum, point.min, point.max) == (3, 1.5, 0.1, 1.0)
    assert (list(point.bucket_counts), list(point.explicit_bounds)) == ([1, 2, 0], [0.5, 2.5])
    assert (point.start_time_unix_nano, point.time_unix_nano) == (START, START + 9)
    (exemplar,) = point.exemplars
    assert (exemplar.as_double, exemplar.span_id.hex()) == (0.1, f"{8:016x}")
    assert (two.sum.is_monotonic, two.sum.aggregation_temporality) == (True, 2)
    assert two.sum.data_points[0].as_double == 7.0
    assert [metric.description for metric in (one, two, three)] == ["", "Said once.", "Said once."]


def _request(form, signal, kind, path):
    with Engine.read([path]) as engine:
        body = form.request(items(engine, signal, form))
    if isinstance(form, ProtobufForm):
        return kind.FromString(body)
    return Parse(_with_base64_ids(body), kind())


def _with_base64_ids(body):
    import base64

    def convert(value):
        if isinstance(value, list):
            return [convert(item) for item in value]
        if isinstance(value, dict):
            return {
                key: base64.b64encode(bytes.fromhex(item)).decode()
                if key in {"traceId", "spanId"}
                else convert(item)
                for key, item in value.items()
            }
        return value

    return json.dumps(convert(json.loads(body)))


def test_a_change_passes_every_row(lines):
    def hide(row):
        return {**row, "name": "hidden"}

    with Engine.read([lines(span(0), span(1, attributes={"a": [1]}))]) as engine:
        found = items(engine, "traces", JsonForm(KINDS["traces"]), change=hide)
    assert [json.loads(item.body)["name"] for item in found] == ["hidden", "hidden"]


@pytest.mark.parametrize("form", [ProtobufForm, JsonForm])
def test_what_otlp_cannot_say_is_named_and_the_rest_is_encoded(form, tmp_path):
    """Flags of more than 32 bits, a count likewise, a link to no span; in both forms alike."""
    odd = [
        {},
        {"flags": 2**40},
        {"dropped_attributes_count": 2**40},
        {"links": [{"trace_id": "xy", "span_id": "00"}]},
    ]
    lines = (
        {
            "record_type": "span",
            "seq": number,
            "trace_id": "1" * 32,
            "span_id": f"{number + 1:016x}",
            "parent_span_id": None,
            "name": "w",
            "kind": "INTERNAL",
            "start_time_unix_nano": 10**18,
            "end_time_unix_nano": 10**18 + 1,
            "attributes": {},
            "resource": {"attributes": {"service.name": "a", "service.instance.id": "1"}},
            **extra,
        }
        for number, extra in enumerate(odd)
    )
    (tmp_path / "a.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    records = Records("traces", "TRUE", {})
    with Engine.read([str(tmp_path)]) as engine:
        items = list(records.items(engine, form(KINDS["traces"]), lambda keys: [True] * len(keys)))
    assert [item.name[1] for item in items] == [f"{1:016x}"]
    assert sorted(one.what.split()[1] for one in records.unsent) == [
        f"{number:016x}" for number in (2, 3, 4)
    ]
    assert all(one.words.startswith("not to be said in OTLP: ") for one in records.unsent)
    assert records.total == 4
