"""Requests stay within their bytes, keep the order, and put spans under whose they are."""

import json

from hypothesis import given
from hypothesis import strategies as st

from reconstruct.export.otlp.batches import Item, item, packed, request
from reconstruct.export.otlp.encoding import span_message

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
RESOURCES = st.dictionaries(TEXT, TEXT | st.integers(-9, 9) | st.lists(st.booleans()), max_size=3)


def items(row, owners):
    made = []
    for number, (resource, scope, name) in enumerate(owners, 1):
        text = json.dumps({"attributes": resource}, ensure_ascii=False)
        made.append(Item(span_message(row(number, name=name)), text, scope))
    return made


@given(
    owners=st.lists(
        st.tuples(RESOURCES, st.tuples(st.none() | TEXT, st.none() | TEXT), TEXT), max_size=12
    ),
    limit=st.integers(1, 1_500),
)
def test_no_request_is_over_the_limit_unless_one_span_is(owners, limit, row):
    spans = items(row, owners)
    batches = list(packed(spans, limit))
    assert [one for batch in batches for one in batch] == spans
    for batch in batches:
        assert len(batch) == 1 or request(batch).ByteSize() <= limit


def test_spans_stand_under_their_resource_and_scope(row):
    agent = json.dumps({"attributes": {"service.name": "agent"}})
    model = json.dumps({"attributes": {"service.name": "model"}})
    rows = [
        row(1, resource=agent),
        row(2, resource=model, scope_name="lib", scope_version="1"),
        row(3, resource=agent),
        row(4, resource=model),
    ]
    message = request([item(one) for one in rows])
    found = {
        (resource.resource.attributes[0].value.string_value, scope.scope.name): [
            span.name for span in scope.spans
        ]
        for resource in message.resource_spans
        for scope in resource.scope_spans
    }
    assert found == {
        ("agent", ""): ["span 1", "span 3"],
        ("model", "lib"): ["span 2"],
        ("model", ""): ["span 4"],
    }
