"""What of OTLP is broken is named, and the rest is kept."""

import contextlib
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.intake.formats import InvalidRecordError, Record
from reconstruct.intake.ledger import LineClass

Json = Any
Span = dict[str, Json]
Batch = Callable[..., str]

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"traceId": "abc"}, 'traceId is neither 32 hex digits nor 16 bytes in base64: "abc"'),
        ({"traceId": ""}, "traceId, spanId or startTimeUnixNano is missing or zero"),
        ({"spanId": TRACE_ID}, "spanId is neither 16 hex digits"),
        ({"spanId": [1, 2]}, "spanId is neither 16 hex digits"),
        ({"spanId": 5}, "spanId is neither 16 hex digits"),
        ({"parentSpanId": "xyz"}, "parentSpanId is neither"),
        ({"startTimeUnixNano": "soon"}, 'startTimeUnixNano is not ns since 1970: "soon"'),
        ({"startTimeUnixNano": str(2**63)}, "startTimeUnixNano is not ns since 1970"),
        ({"endTimeUnixNano": -1}, "endTimeUnixNano is not ns since 1970: -1"),
        ({"name": 5}, "name is missing or not text: 5"),
        ({"attributes": "x"}, "attributes are no list"),
        ({"attributes": [3]}, "an attribute is no object: 3"),
        ({"attributes": [{"key": 1}]}, "an attribute's key is no text: 1"),
        ({"attributes": [{"key": "a", "value": {"intValue": "x"}}]}, "attribute 'a': no integer"),
        ({"attributes": [{"key": "a", "value": {"doubleValue": "x"}}]}, "attribute 'a': no number"),
        ({"attributes": [{"key": "a", "value": {"boolValue": 1}}]}, "neither true nor false: 1"),
        ({"attributes": [{"key": "a", "value": {"new": 1}}]}, "no value of OTLP"),
        ({"attributes": [{"key": "a", "value": 5}]}, "no value of OTLP: 5"),
        ({"events": {"a": 1}}, "events is no list"),
        ({"events": [1]}, "an event is no object: 1"),
        ({"links": [{"traceId": "x"}]}, "traceId of a link is neither"),
    ],
)
def test_a_bad_span_is_named_and_the_others_are_kept(
    record_of: Callable[..., Record],
    batch: Batch,
    small_span: Span,
    change: dict[str, Json],
    reason: str,
) -> None:
    """The line is no clean one, yet nothing else of it is lost."""
    record = record_of(batch(small_span, small_span | {"name": "bad"} | change, small_span))
    assert len(record.rows) == 2
    (problem,) = record.problems
    assert reason in problem
    assert problem.startswith("span 'bad': ") or "name" in change
    with pytest.raises(InvalidRecordError, match="(?s)" + re.escape(reason)):
        record_of(batch(small_span | change))


def test_nested_too_deeply(record_of: Callable[..., Record], small_span: Span) -> None:
    """No depth of nesting raises, or takes the other spans along."""
    deep = '{"arrayValue":{"values":[' * 330 + "]}}" * 330
    good = json.dumps(small_span)
    bad = good[:-1] + f',"attributes":[{{"key":"a","value":{deep}}}]}}'
    record = record_of(f'{{"scopeSpans":[{{"spans":[{good},{bad}]}}]}}')
    assert len(record.rows) + len(record.problems) == 2
    assert len(record.rows) >= 1


@pytest.mark.parametrize(
    "text",
    [
        '{"resourceSpans":5}',
        '{"resourceSpans":[5]}',
        '{"resourceSpans":[{"scopeSpans":{"a":1}}]}',
        '{"resourceSpans":[{"scopeSpans":[7]}]}',
        '{"resourceSpans":[{"scopeSpans":[{"scope":7,"spans":[]}]}]}',
        '{"resourceSpans":[{"scopeSpans":[{"spans":[7]}]}]}',
        '{"resourceSpans":[{"resource":{"attributes":[1]},"scopeSpans":[]}]}',
    ],
)
def test_what_is_not_otlp_inside(record_of: Callable[..., Record], text: str) -> None:
    """A batch that is none inside is invalid, with a reason."""
    with pytest.raises(InvalidRecordError, match=r"is no (list|object)"):
        record_of(text)


def test_a_bad_resource_costs_no_span(
    record_of: Callable[..., Record], batch: Batch, small_span: Span
) -> None:
    """Spans are kept without the facts of their process, and the line says so."""
    record = record_of(batch(small_span, resource={"attributes": [{"key": "a", "value": 1}]}))
    assert len(record.rows) == 1
    assert record.problems == ("resource: attribute 'a': no value of OTLP: 1",)
    assert record.what_is_missing == "1 record read; not read: " + record.problems[0]


def test_an_array_with_other_things(
    record_of: Callable[..., Record], batch: Batch, small_span: Span
) -> None:
    """What in an array is no record is counted."""
    record = record_of(f'[{batch(small_span)},{{"a":1}},3]')
    assert len(record.rows) == 1
    assert record.problems == ("2 of 3 items are no records of a known format",)


@pytest.mark.parametrize("text", ["[]", "[1]", "[[1]]", '{"batches":[1]}', '{"batches":2}', "3"])
def test_what_is_no_record(record_of: Callable[..., Record | None], text: str) -> None:
    """Words that others use as well are not claimed."""
    assert record_of(text) is None


def test_an_empty_batch(record_of: Callable[..., Record]) -> None:
    """It is OTLP, with nothing in it."""
    assert record_of('{"resourceSpans":[]}') == (LineClass.SPAN, (), ())
    assert record_of('{"resourceMetrics":[]}') == (LineClass.METRIC, (), ())


WORDS = [
    *("resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "intValue", "events"),
    *("links", "traceId", "spanId", "startTimeUnixNano", "name", "status", "resource", "scope"),
    *("resourceMetrics", "scopeMetrics", "metrics", "sum", "exponentialHistogram", "dataPoints"),
    *("resourceLogs", "scopeLogs", "logRecords", "batches", "positive", "scale", "bucketCounts"),
]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(WORDS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=30,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything(record_of: Callable[..., Record | None], value: Json) -> None:
    """Any JSON with these words is a record, no record, or invalid; nothing else is raised."""
    with contextlib.suppress(InvalidRecordError):
        record = record_of(json.dumps(value))
        assert record is None or isinstance(record.rows, tuple)
