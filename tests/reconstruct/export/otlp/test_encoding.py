"""A row's span in OTLP: every field and the type of every attribute exact."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from reconstruct.export.otlp.encoding import (
    Unsendable,
    resource_message,
    scope_message,
    span_message,
)

KIND = Span.SpanKind
OTHER_TRACE = "0af7651916cd43dd8448eb211c80319c"


def value_of(message):
    """Read an AnyValue back as the Python value that it is."""
    kind = message.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(item) for item in message.array_value.values]
    if kind == "kvlist_value":
        return facts_of(message.kvlist_value.values)
    return getattr(message, kind)


def facts_of(pairs):
    return {pair.key: value_of(pair.value) for pair in pairs}


def typed(value):
    """Make 1, 1.0 and True differ, which Python holds equal."""
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    return [typed(item) for item in value] if isinstance(value, list) else (type(value), value)


def test_every_field_is_exact(row):
    span = span_message(
        row(
            parent_span_id="b7ad6b7169203331",
            trace_state="a=1,b=2",
            flags=0x303,
            kind="SERVER",
            status_code="ERROR",
            status_message="boom",
            dropped_attributes_count=1,
            dropped_events_count=2,
            dropped_links_count=3,
            events=json.dumps(
                [{"time_unix_nano": 2**62 + 1, "name": "exception", "attributes": {"n": 1}}]
            ),
            links=json.dumps(
                [{"trace_id": OTHER_TRACE, "span_id": "00f067aa0ba902b7", "attributes": {"l": 1.0}}]
            ),
        )
    )
    assert span.trace_id.hex() == row()["trace_id"]
    assert span.span_id.hex() == row()["span_id"]
    assert span.parent_span_id.hex() == "b7ad6b7169203331"
    assert (span.trace_state, span.flags, span.name) == ("a=1,b=2", 0x303, "span 1")
    assert span.kind == KIND.SPAN_KIND_SERVER
    assert span.start_time_unix_nano == row()["start_time_unix_nano"]
    assert span.end_time_unix_nano == row()["end_time_unix_nano"]
    assert (span.status.code, span.status.message) == (Status.STATUS_CODE_ERROR, "boom")
    dropped = (
        span.dropped_attributes_count,
        span.dropped_events_count,
        span.dropped_links_count,
    )
    assert dropped == (1, 2, 3)
    (event,) = span.events
    assert (event.time_unix_nano, event.name) == (2**62 + 1, "exception")
    assert typed(facts_of(event.attributes)) == typed({"n": 1})
    (link,) = span.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (OTHER_TRACE, "00f067aa0ba902b7")
    assert typed(facts_of(link.attributes)) == typed({"l": 1.0})


@pytest.mark.parametrize(
    ("column", "kind", "expected"),
    [
        ("kind", "INTERNAL", KIND.SPAN_KIND_INTERNAL),
        ("kind", "CLIENT", KIND.SPAN_KIND_CLIENT),
        ("kind", "PRODUCER", KIND.SPAN_KIND_PRODUCER),
        ("kind", "CONSUMER", KIND.SPAN_KIND_CONSUMER),
        ("kind", None, KIND.SPAN_KIND_UNSPECIFIED),
    ],
)
def test_kinds_are_otlps(column, kind, expected, row):
    assert span_message(row(**{column: kind})).kind == expected


def test_a_root_has_no_parent_and_absent_things_are_absent(row):
    span = span_message(row(flags=None, events=None, links=None, status_code=None, attributes=None))
    assert span.parent_span_id == b""
    assert (span.flags, len(span.events), len(span.links)) == (0, 0, 0)
    assert span.status == Status()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), JSON))
def test_attributes_keep_their_types(attributes):
    resource = resource_message(json.dumps({"attributes": attributes}))
    assert typed(facts_of(resource.attributes)) == typed(attributes)


def test_integers_beyond_int64_are_their_digits():
    resource = resource_message(json.dumps({"attributes": {"a": 2**63, "b": -(2**63) - 1}}))
    assert facts_of(resource.attributes) == {"a": str(2**63), "b": str(-(2**63) - 1)}


def test_a_null_in_a_list_is_an_empty_value():
    (pair,) = resource_message('{"attributes":{"a":[null]}}').attributes
    assert list(pair.value.array_value.values) == [AnyValue()]


def test_scope_and_resource_may_be_missing():
    assert (scope_message(None, None).name, scope_message("lib", "1").version) == ("", "1")
    assert len(resource_message(None).attributes) == 0


@pytest.mark.parametrize(
    "columns",
    [
        {"trace_id": "ab"},
        {"span_id": "0" * 16},
        {"parent_span_id": "nothex"},
        {"start_time_unix_nano": -1},
        {"links": '[{"trace_id":"ab","span_id":"cd"}]'},
        {"events": "[1]"},
        {"attributes": "[1]"},
    ],
)
def test_what_otlp_cannot_say_is_refused_with_a_reason(columns, row):
    with pytest.raises(Unsendable, match=r"\w"):
        span_message(row(**columns))
