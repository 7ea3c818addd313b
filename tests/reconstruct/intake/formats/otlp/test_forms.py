"""OTLP/JSON in every spelling gives the rows of our own lines."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gymlog.otlp.encoding import trace_request
from reconstruct.intake import files, reader, tables

Json = Any
Rows = list[dict[str, Any]]
Span = dict[str, Any]

ID_FIELDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
KINDS = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]


def request(spans: list[Span]) -> ExportTraceServiceRequest:
    """Our records as OTLP's message, one resource for each service."""
    whole = ExportTraceServiceRequest()
    services = dict.fromkeys(json.dumps(span["resource"]["attributes"]) for span in spans)
    for service in services:
        resource = json.loads(service)
        own = [span for span in spans if span["resource"]["attributes"] == resource]
        part, unsendable = trace_request(own, resource)
        assert unsendable == 0
        whole.MergeFrom(part)
    return whole


def protobuf(spans: list[Span], **options: Any) -> str:
    """What protobuf's own JSON says: base64 ids, names of enums, int64 as text."""
    return json.dumps(MessageToDict(request(spans), **options))


def translated(value: Json, field: str | None = None) -> Json:
    """The collector's form of protobuf's JSON: hex ids, numbers of enums."""
    if isinstance(value, list):
        return [translated(item) for item in value]
    if isinstance(value, dict):
        return {key: translated(item, key) for key, item in value.items()}
    if field in ID_FIELDS:
        return base64.b64decode(value).hex()
    if field == "kind":
        return KINDS.index(value.removeprefix("SPAN_KIND_"))
    if field == "code":
        return ["UNSET", "OK", "ERROR"].index(value.removeprefix("STATUS_CODE_"))
    return value


def collector(spans: list[Span]) -> str:
    return json.dumps(translated(MessageToDict(request(spans))), separators=(",", ":"))


def loose(spans: list[Span]) -> str:
    """A JavaScript writer's form: upper-case ids, numbers where they fit, what is empty written."""

    def loosened(value: Json, field: str | None = None) -> Json:
        if isinstance(value, list):
            return [loosened(item) for item in value]
        if isinstance(value, dict):
            found = {key: loosened(item, key) for key, item in value.items()}
            if "spanId" in found and "name" in found:
                empty = {"parentSpanId": "", "traceState": "", "events": [], "links": []}
                zero = {"droppedLinksCount": 0, "flags": 0, "status": {}}
                return empty | zero | found
            return found
        if field in ID_FIELDS:
            return value.upper()
        if field is not None and (field == "intValue" or field.endswith("UnixNano")):
            return int(value)
        if field == "doubleValue" and value == 3.0:
            return 3
        return value

    return json.dumps(loosened(json.loads(collector(spans))))


def bare(spans: list[Span]) -> list[str]:
    """Java's exporters for logs: a line for each resource."""
    return [json.dumps(each) for each in json.loads(collector(spans))["resourceSpans"]]


def array(spans: list[Span]) -> str:
    return json.dumps([{"resourceSpans": [json.loads(line)]} for line in bare(spans)])


def old(spans: list[Span]) -> str:
    """Before version 0.15 a scope was an instrumentation library."""
    text = collector(spans).replace("scopeSpans", "instrumentationLibrarySpans")
    return text.replace('"scope"', '"instrumentationLibrary"')


def tempo(spans: list[Span]) -> str:
    return protobuf(spans).replace("resourceSpans", "batches")


def snake(spans: list[Span]) -> str:
    return protobuf(spans, preserving_proto_field_name=True)


def every_field(spans: list[Span]) -> str:
    return protobuf(spans, always_print_fields_with_no_presence=True)


FORMS = [protobuf, collector, loose, bare, array, old, tempo, snake, every_field]


def lines(form: Callable[[list[Span]], Any], spans: list[Span]) -> list[str]:
    found = form(spans)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_trace_gives_the_same_rows(
    form: Callable[[list[Span]], Any],
    small_trace: list[Span],
    own_rows: Rows,
    rows_of: Callable[..., Rows],
) -> None:
    """Column by column; only `seq` has no place in OTLP."""
    for own, other in zip(own_rows, rows_of(*lines(form, small_trace)), strict=True):
        assert other == own | {"seq": None}


def test_behind_javas_logger(tmp_path: Path, small_trace: list[Span]) -> None:
    """The object stands behind a word: its spans are found, and nothing counts as damage."""
    first, second = bare(small_trace)
    where = "Jun 15, 2025 3:06:40 PM io.opentelemetry.exporter.logging.otlp.LoggerJsonWriter write"
    (tmp_path / "java.log").write_text(f"{where}\nINFO: {first}\n{where}\nINFO: {second}\n")
    rows: dict[str, Rows] = {name: [] for name in tables.TABLES}
    for name, part in reader.read(files.find([str(tmp_path)])):
        rows[name].extend(part.to_pylist())
    found = [(row["name"], row["line"]) for row in rows[tables.SPAN_LINES]]
    assert found == [("rollout", 2), ("POST /step", 2), ("env.step", 4), ("verify", 4)]
    classes = {row["class"]: row["lines"] for row in rows[tables.CLASS_COUNTS]}
    assert classes == {"text": 2, "recovered": 2}
    assert not any("not whole" in row["reason"] for row in rows[tables.REJECTED_LINES])


SCALARS = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner | st.none(), max_size=3) | st.dictionaries(st.text("ab.", max_size=3), inner)
    ),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(st.text("abc._", max_size=4), VALUES, max_size=3)
TIMES = st.integers(1, 2**63 - 1)
IDS = st.integers(1, 2**64 - 1).map("{:016x}".format)
TRACE_IDS = st.integers(1, 2**128 - 1).map("{:032x}".format)
EVENTS = st.builds(
    lambda time, name, attributes: {
        "time_unix_nano": time,
        "name": name,
        "attributes": attributes,
    },
    TIMES,
    st.text("ab", max_size=3),
    ATTRIBUTES,
)
LINKS = st.builds(
    lambda trace_id, span_id, attributes, more: (
        {
            "trace_id": trace_id,
            "span_id": span_id,
            "attributes": attributes,
        }
        | more
    ),
    TRACE_IDS,
    IDS,
    ATTRIBUTES,
    st.sampled_from([{}, {"trace_state": "a=b"}, {"dropped_attributes_count": 3}]),
)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    attributes = draw(ATTRIBUTES)
    service = draw(st.sampled_from("ab"))
    span: Span = {
        "record_type": "span",
        "seq": 1,
        "trace_id": draw(TRACE_IDS),
        "span_id": draw(IDS),
        "parent_span_id": draw(st.none() | IDS),
        "name": draw(st.text("ab /", max_size=5)),
        "kind": draw(st.sampled_from(KINDS[1:])),
        "start_time_unix_nano": draw(TIMES),
        "end_time_unix_nano": draw(TIMES),
        "flags": draw(st.integers(1, 0x3FF)),
        "status": {"code": draw(st.sampled_from(["UNSET", "OK", "ERROR"]))},
        "attributes": attributes,
        "resource": {"attributes": {"service.name": service, "service.instance.id": "1"}},
    }
    events = draw(st.lists(EVENTS, max_size=2))
    links = draw(st.lists(LINKS, max_size=2))
    return span | ({"events": events} if events else {}) | ({"links": links} if links else {})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(records=st.lists(spans(), min_size=1, max_size=3), form=st.sampled_from(FORMS))
def test_any_trace_in_any_form(
    rows_of: Callable[..., Rows],
    records: list[Span],
    form: Callable[[list[Span]], Any],
) -> None:
    """The round trip through OTLP's JSON loses nothing of any record."""

    def ordered(rows: Rows) -> list[str]:
        return sorted(repr(row | {"seq": None}) for row in rows)

    own = rows_of(*(json.dumps(record) for record in records))
    assert ordered(rows_of(*lines(form, records))) == ordered(own)
