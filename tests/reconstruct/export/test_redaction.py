"""Redacted rows keep their structure and say nothing of the content."""

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.export.redaction import KEPT_KEYS, REDACTED, Redaction

SECRET = "s3cr3t-value"
KEYS = st.one_of(st.sampled_from(["prompt", "exception.message", "a.b"]), st.text(max_size=5))
PLANTED = st.recursive(
    st.sampled_from([SECRET, f"x{SECRET}"]) | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
ATTRIBUTES = st.dictionaries(KEYS.filter(lambda key: key not in KEPT_KEYS), PLANTED, max_size=4)


@st.composite
def rows(draw):
    event = {
        "time_unix_nano": 5,
        "name": "exception",
        "attributes": draw(ATTRIBUTES),
        "other": SECRET,
    }
    link = {
        "trace_id": "1" * 32,
        "span_id": "2" * 16,
        "attributes": draw(ATTRIBUTES),
        "trace_state": SECRET,
    }
    return {
        "trace_id": "a" * 32,
        "span_id": "b" * 16,
        "parent_span_id": None,
        "name": "POST /run",
        "start_time_unix_nano": 2**62 + 1,
        "status_code": "ERROR",
        "status_message": SECRET,
        "trace_state": SECRET,
        "attributes": json.dumps({**draw(ATTRIBUTES), "http.route": "/run"}),
        "resource": json.dumps({"attributes": {"service.name": "gym", "x": SECRET}}),
        "events": json.dumps([event]),
        "links": json.dumps([link]),
        "body": json.dumps(draw(PLANTED)),
        "file": f"/home/{SECRET}/a.log",
        "a_column_of_tomorrow": SECRET,
        "held_up_by": [SECRET],
    }


@given(rows())
def test_no_planted_value_is_left_and_the_structure_is(row):
    done = Redaction().row(row)
    assert SECRET not in json.dumps(done)
    assert done.keys() == row.keys()
    for kept in ("trace_id", "span_id", "parent_span_id", "name", "start_time_unix_nano"):
        assert done[kept] == row[kept]
    before, after = json.loads(row["attributes"]), json.loads(done["attributes"])
    assert list(after) == list(before)
    assert after == dict.fromkeys(before, REDACTED) | {"http.route": "/run"}
    (event,) = json.loads(done["events"])
    assert (event["time_unix_nano"], event["name"]) == (5, "exception")
    (link,) = json.loads(done["links"])
    assert (link["trace_id"], link["span_id"]) == ("1" * 32, "2" * 16)
    assert json.loads(done["resource"])["attributes"] == {"service.name": "gym", "x": REDACTED}


@given(rows())
def test_arrow_rows_come_out_as_rows_do(row):
    batch = pa.RecordBatch.from_pylist([row])
    done = Redaction().batch(batch)
    assert done.schema == batch.schema
    assert done.to_pylist() == [Redaction().row(row)]


def test_keys_can_be_added_to_what_is_kept():
    done = Redaction(KEPT_KEYS | {"prompt"}).row({"attributes": '{"prompt":"hi","x":1}'})
    assert done["attributes"] == '{"prompt":"hi","x":"REDACTED"}'
