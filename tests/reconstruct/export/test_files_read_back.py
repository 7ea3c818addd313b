"""What is exported reads back as the spans that went in, as far as the format can carry them."""

import json
import tempfile
from pathlib import Path

from google.protobuf.json_format import Parse
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from reconstruct.engine import Engine
from reconstruct.export.jaeger import Losses, document
from reconstruct.export.otlp.forms import JsonForm
from reconstruct.export.otlp.records import Records
from reconstruct.export.otlp.sending import packed
from reconstruct.export.otlp.signals import KINDS
from reconstruct.export.rows import span_rows

BASE = 1_800_000_000_000_000_001
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INT64 = st.integers(-(2**63), 2**63 - 1)
SCALARS = TEXT | INT64 | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXT, inner),
    max_leaves=6,
)  # fmt: skip
COMPARED = (
    "trace_id", "span_id", "parent_span_id", "name", "kind", "status_code", "status_message",
    "trace_state", "flags", "scope_name", "service_name", "rollout_id", "start_time_unix_nano",
    "end_time_unix_nano", "attributes", "events", "links", "dropped_events_count",
)  # fmt: skip


def line(number, attributes, kind, status, start, length, extra):
    return {
        "record_type": "span",
        "seq": number,
        "trace_id": f"{7 + number % 2:032x}",
        "span_id": f"{number + 1:016x}",
        "parent_span_id": None if number < 2 else f"{number - 1:016x}",
        "name": "work",
        "kind": kind,
        "start_time_unix_nano": BASE + start,
        "end_time_unix_nano": BASE + start + length,
        "flags": 257,
        "status": status,
        "attributes": attributes,
        "resource": {"attributes": {"service.name": "gym", "service.instance.id": "1"}},
        **extra,
    }


def spans(attributes):
    extra = st.sampled_from(
        [
            {},
            {
                "events": [{"time_unix_nano": BASE, "name": "e", "attributes": {"n": 1}}],
                "links": [{"trace_id": "9" * 32, "span_id": "8" * 16, "attributes": {}}],
                "trace_state": "a=b",
                "scope": {"name": "lib", "version": "1"},
            },
        ]
    )
    status = st.sampled_from(
        [{"code": "UNSET"}, {"code": "OK"}, {"code": "ERROR", "message": "it broke"}]
    )
    facts = st.tuples(
        st.dictionaries(TEXT.filter(bool), attributes, max_size=3),
        st.sampled_from(["INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]),
        status,
        st.integers(0, 10**12),
        st.integers(0, 10**12),
        extra,
    )
    return st.lists(facts, min_size=4, max_size=12).map(
        lambda found: [line(number, *each) for number, each in enumerate(found)]
    )


def otlp_json(engine):
    """Return the spans as lines of requests."""
    form = JsonForm(KINDS["traces"])
    items = Records("traces", "TRUE", {}).items(engine, form, lambda keys: [True] * len(keys))
    return "".join(form.request(batch).decode() + "\n" for batch in packed(items, form))


def read(folder, name, text):
    path = Path(folder, name)
    path.write_text(text, encoding="utf-8")
    with Engine.read([str(path)]) as engine:
        return list(span_rows(engine, "TRUE", {}, redacted=dict)), otlp_json(engine)


def compared(row, columns=COMPARED):
    found = {column: row[column] for column in columns}
    return {
        name: json.loads(value) if name in ("attributes", "events", "links") else value
        for name, value in found.items()
    }


@settings(deadline=None, max_examples=20)
@given(spans(VALUES))
def test_otlp_json_reads_back_exactly_and_protobuf_takes_it(lines):
    with tempfile.TemporaryDirectory() as folder:
        text = "".join(json.dumps(each) + "\n" for each in lines)
        before, exported = read(folder, "a.log", text)
        after, again = read(folder, "b.jsonl", exported)
    assert again == exported
    assert [compared(row) for row in after] == [compared(row) for row in before]


@settings(deadline=None, max_examples=20)
@given(spans(TEXT | st.booleans() | INT64))
def test_jaeger_reads_back_to_the_microsecond(lines):
    with tempfile.TemporaryDirectory() as folder:
        before, _ = read(folder, "a.log", "".join(json.dumps(each) + "\n" for each in lines))
        losses = Losses()
        after, _ = read(folder, "b.json", "".join(document(before, losses)))
    columns = [name for name in COMPARED if "time" not in name and name not in ("flags", "events")]
    assert [compared(row, columns) for row in sorted(after, key=by_id)] == [
        compared(row, columns) for row in sorted(before, key=by_id)
    ]
    for was, now in zip(sorted(before, key=by_id), sorted(after, key=by_id), strict=True):
        for column in ("start_time_unix_nano", "end_time_unix_nano"):
            assert now[column] == was[column] // 1_000 * 1_000
    assert losses.spans == len(lines)
    assert losses.cut_times == sum(
        bool(each["start_time_unix_nano"] % 1_000 or each["end_time_unix_nano"] % 1_000)
        for each in lines
    )


def by_id(row):
    return row["span_id"]


def test_otlp_json_is_spelt_as_the_specification_says(tmp_path):
    """Protobuf's own parser knows every field (it reads ids as base64, which OTLP does not)."""
    status = {"code": "ERROR", "message": "m"}
    attributes = {"i": 2**63 - 1, "d": 1.0, "l": [1, None]}
    one = line(0, attributes, "CLIENT", status, 2**40, 1, {})
    _, text = read(tmp_path, "a.log", json.dumps(one) + "\n")
    (resource,) = json.loads(text)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    (span,) = scope["spans"]
    assert span["traceId"] == one["trace_id"]
    assert span["startTimeUnixNano"] == str(one["start_time_unix_nano"])
    assert (span["kind"], span["flags"], span["status"]) == (3, 257, {"code": 2, "message": "m"})
    assert "parentSpanId" not in span
    assert span["attributes"] == [
        {"key": "i", "value": {"intValue": "9223372036854775807"}},
        {"key": "d", "value": {"doubleValue": 1.0}},
        {"key": "l", "value": {"arrayValue": {"values": [{"intValue": "1"}, {}]}}},
    ]
    message = Parse(text, TracesData())
    assert message.resource_spans[0].scope_spans[0].spans[0].status.message == "m"
