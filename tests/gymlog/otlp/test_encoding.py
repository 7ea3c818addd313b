"""Records in OTLP's form: nothing is lost, rounded or turned into another type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog.otlp.encoding import logs_request, trace_request
from gymlog.record import SPAN_KINDS
from gymlog.values import clean

RESOURCE = {"service.name": "agent", "process.pid": 7, "nemo.gym.worker": True}


def only_span(record):
    request, unsendable = trace_request([record], RESOURCE)
    assert unsendable == 0
    ((owner,),) = [request.resource_spans]
    ((scope,),) = [owner.scope_spans]
    ((span,),) = [scope.spans]
    return span


def test_a_span_is_exact(span_record, plain):
    """Every field that a record may have."""
    record = span_record(
        parent_span_id="00000000000000ff",
        kind="SERVER",
        flags=0x303,
        trace_state="a=1,b=2",
        status={"code": "ERROR", "message": "boom"},
        attributes={"i": 2**63 - 1, "f": 1.0, "b": True, "s": "é", "l": [1, 2.5, None], "e": []},
        events=[{"time_unix_nano": 5, "name": "e", "attributes": {"k": 1},
                 "dropped_attributes_count": 2}],
        links=[{"trace_id": "0" * 31 + "1", "span_id": "0" * 15 + "2", "attributes": {"w": "r"},
                "trace_state": "c=3", "dropped_attributes_count": 4}],
        dropped_attributes_count=5, dropped_events_count=6, dropped_links_count=7,
        scope={"name": "lib", "version": "1.2"},
    )  # fmt: skip
    request, unsendable = trace_request([record], RESOURCE)
    assert unsendable == 0
    (owner,) = request.resource_spans
    assert plain(owner.resource.attributes) == RESOURCE
    (scoped,) = owner.scope_spans
    assert (scoped.scope.name, scoped.scope.version) == ("lib", "1.2")
    (span,) = scoped.spans
    assert span.trace_id.hex() == record["trace_id"]
    assert span.span_id.hex() == record["span_id"]
    assert span.parent_span_id.hex() == record["parent_span_id"]
    assert (span.name, span.kind) == (record["name"], span.SPAN_KIND_SERVER)
    assert span.start_time_unix_nano == record["start_time_unix_nano"]
    assert span.end_time_unix_nano == record["end_time_unix_nano"]
    assert (span.flags, span.trace_state) == (0x303, "a=1,b=2")
    assert (span.status.code, span.status.message) == (span.status.STATUS_CODE_ERROR, "boom")
    found = plain(span.attributes)
    assert found == record["attributes"]
    assert {key: type(value) for key, value in found.items()} == {
        "i": int, "f": float, "b": bool, "s": str, "l": list, "e": list,
    }  # fmt: skip
    (event,) = span.events
    assert (event.time_unix_nano, event.name, event.dropped_attributes_count) == (5, "e", 2)
    assert plain(event.attributes) == {"k": 1}
    (link,) = span.links
    assert (link.trace_id.hex(), link.span_id.hex()) == ("0" * 31 + "1", "0" * 15 + "2")
    assert (link.trace_state, link.dropped_attributes_count) == ("c=3", 4)
    assert plain(link.attributes) == {"w": "r"}
    assert span.dropped_attributes_count == 5
    assert (span.dropped_events_count, span.dropped_links_count) == (6, 7)


@pytest.mark.parametrize("kind", SPAN_KINDS)
def test_every_kind(kind, span_record):
    """By OTLP's own name for it."""
    span = only_span(span_record(kind=kind))
    assert span.SpanKind.Name(span.kind) == f"SPAN_KIND_{kind}"


@pytest.mark.parametrize("code", ["UNSET", "OK", "ERROR"])
def test_every_status(code, span_record):
    """By OTLP's own name for it."""
    status = only_span(span_record(status={"code": code})).status
    assert status.StatusCode.Name(status.code) == f"STATUS_CODE_{code}"


def test_a_root_has_no_parent(span_record):
    """Not one of zeroes."""
    assert only_span(span_record()).parent_span_id == b""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=6))
def test_any_cleaned_attributes_come_back(span_record, plain, attributes):
    """What the writer lets stand, of every type, in its order."""
    cleaned = clean(attributes, 1_000)
    found = plain(only_span(span_record(attributes=cleaned)).attributes)
    assert list(found.items()) == list(cleaned.items())
    assert repr(found) == repr(cleaned), "types too"


@pytest.mark.parametrize("place", ["name", "key", "value", "status", "scope", "event"])
def test_a_lone_surrogate_is_replaced(place, span_record, plain):
    """As on the line: protobuf's text is UTF-8."""
    bad, good = "a\ud83d", "a\ufffd"
    fields = {
        "name": {"name": bad},
        "key": {"attributes": {bad: 1}},
        "value": {"attributes": {"k": [bad]}},
        "status": {"status": {"code": "ERROR", "message": bad}},
        "scope": {"scope": {"name": bad}},
        "event": {"events": [{"time_unix_nano": 1, "name": bad, "attributes": {}}]},
    }[place]
    request, unsendable = trace_request([span_record(**fields)], RESOURCE)
    (scoped,) = request.resource_spans[0].scope_spans
    (span,) = scoped.spans
    assert unsendable == 0
    assert good in {
        span.name, *plain(span.attributes), *(plain(span.attributes).get("k") or ()),
        span.status.message, scoped.scope.name, *(event.name for event in span.events),
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"start_time_unix_nano": -1},
        {"end_time_unix_nano": 2**64},
        {"start_time_unix_nano": "1"},
        {"trace_id": "xyz"},
        {"kind": "OTHER"},
        {"attributes": {"k": object()}},
    ],
)
def test_what_otlp_cannot_say_is_counted_and_its_neighbours_go(fields, span_record):
    """The broken one leaves nothing behind."""
    records = [span_record(1), span_record(2, **fields), span_record(3)]
    request, unsendable = trace_request(records, RESOURCE)
    (scoped,) = request.resource_spans[0].scope_spans
    assert unsendable == 1
    assert [span.name for span in scoped.spans] == ["span 1", "span 3"]


def test_spans_lie_under_their_scopes(span_record):
    """gymlog's own have none."""
    library, other = {"name": "lib", "version": "1"}, {"name": "lib"}
    records = [
        span_record(1), span_record(2, scope=library), span_record(3),
        span_record(4, scope=other), span_record(5, scope=dict(library)),
    ]  # fmt: skip
    request, _ = trace_request(records, RESOURCE)
    assert [
        (one.scope.name, one.scope.version, [span.name for span in one.spans])
        for one in request.resource_spans[0].scope_spans
    ] == [
        ("", "", ["span 1", "span 3"]), ("lib", "1", ["span 2", "span 5"]),
        ("lib", "", ["span 4"]),
    ]  # fmt: skip


def test_a_log_record_is_exact(plain):
    """Inside a span and outside of one, with a body of text or an object."""
    inside = {
        "record_type": "log", "seq": 1, "time_unix_nano": 12, "severity_number": 17,
        "severity_text": "ERROR", "body": {"a": [1, "b"]}, "attributes": {"k": 1.0},
        "trace_id": "0" * 31 + "1", "span_id": "0" * 15 + "2", "flags": 1,
        "dropped_attributes_count": 3, "scope": {"name": "app.db"},
    }  # fmt: skip
    outside = {
        "record_type": "log", "seq": 2, "time_unix_nano": 13, "severity_number": 9,
        "severity_text": "INFO", "body": "hello", "attributes": {},
    }  # fmt: skip
    request, unsendable = logs_request([inside, outside], RESOURCE)
    (owner,) = request.resource_logs
    assert unsendable == 0
    assert plain(owner.resource.attributes) == RESOURCE
    first, second = owner.scope_logs
    assert (first.scope.name, second.scope.name) == ("app.db", "")
    (log,), (plain_log,) = first.log_records, second.log_records
    assert (log.time_unix_nano, log.observed_time_unix_nano) == (12, 12)
    assert (log.severity_number, log.severity_text, log.flags) == (17, "ERROR", 1)
    assert plain(log.body.kvlist_value.values) == {"a": [1, "b"]}
    assert plain(log.attributes) == {"k": 1.0}
    assert (log.trace_id.hex(), log.span_id.hex()) == (inside["trace_id"], inside["span_id"])
    assert log.dropped_attributes_count == 3
    assert (plain_log.body.string_value, plain_log.trace_id) == ("hello", b"")
