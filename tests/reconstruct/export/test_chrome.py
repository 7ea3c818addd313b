"""Chrome's trace events: what is written is JSON, exact, and reads back as the same spans."""

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine
from reconstruct.export import chrome
from reconstruct.export.timeline import Timeline
from tests.reconstruct.conftest import LogBuilder, hex_id

HOSTILE = {
    "trace_id": "not one",
    'quote " back \\ ,"span_id":': "</script>\x1b[31m\u2028\x00",
    "nested": {"a": [1, {"b": None}], "c": -0.5},
    "big": 2**63 - 1,
    "huge": "9" * 30,
}
FACTS = "trace_id, span_id, parent_span_id, start_time_unix_nano, end_time_unix_nano"


def written(engine, **choice):
    out = io.BytesIO()
    drawn = chrome.write(Timeline(engine, **choice), out)
    return out.getvalue(), drawn


def events(engine, phase):
    document = json.loads(written(engine)[0])
    return [event for event in document["traceEvents"] if event["ph"] == phase]


def test_reading_it_back_gives_the_same_spans(logs, tmp_path):
    """Ids, parents and times to the ns; attributes beside what the format has no field for."""
    logs.span("root", None, 1, 1_000_000_007, service="agent", rollout="1-0", attributes=HOSTILE)
    logs.span("child", "root", 2, 999, service="agent", kind="CLIENT", status="ERROR")
    logs.span("twin", "root", 3, 1_000, service="agent")
    logs.span("served", "child", 3, 998, service="model", kind="SERVER", attributes={"a.b": [1]})
    logs.span("empty", "served", 998, 998, service="model")
    sql = f"SELECT {FACTS}, name, attributes::VARCHAR AS attributes FROM spans ORDER BY span_id"
    with logs.engine() as engine:
        expected = engine.rows(sql)
        (tmp_path / "back.json").write_bytes(written(engine)[0])
    with Engine.read([str(tmp_path / "back.json")]) as engine:
        found = engine.rows(sql)
    assert len(found) == 5
    for one, other in zip(expected, found, strict=True):
        wanted, attributes = (json.loads(row.pop("attributes")) for row in (one, other))
        assert one == other
        if "trace_id" in wanted:
            wanted["attributes.trace_id"] = wanted.pop("trace_id")
        assert all(attributes[key] == value for key, value in wanted.items())


def test_times_are_microseconds_with_every_digit_after_a_whole_second(logs):
    logs.span("late", None, 1_234_567_891, 1_234_567_898)
    with logs.engine() as engine:
        text = written(engine)[0].decode()
    assert '"baseTimeNanoseconds":"1800000001000000000"' in text
    assert '"ts":234567.891,"dur":0.007,' in text


def test_errors_and_unfinished_spans_are_marked(logs):
    logs.span("failed", None, 0, 10, status="ERROR")
    logs.span("stuck", None, 5, None)
    logs.span("evil\x1b[31m", None, 20, 30)
    with logs.engine() as engine:
        found = {event["name"]: event for event in events(engine, "X")}
    assert found["failed"]["args"]["otel.status_code"] == "ERROR"
    assert found["stuck [unfinished]"]["args"]["unfinished"] == "open"
    assert found["stuck [unfinished]"]["dur"] == 0.025
    assert "evil\\x1b[31m" in found


def test_an_arrow_is_tied_to_the_slices_at_its_ends(logs):
    logs.span("call", None, 100, 900, service="agent")
    logs.span("answer", "call", 200, 800, service="model")
    logs.span("twin", "call", 200, 700, service="model")
    with logs.engine() as engine:
        found = {event["name"]: event for event in events(engine, "X")}
    assert found["call"]["flow_out"]
    assert found["answer"]["flow_in"]
    assert found["twin"]["flow_in"]
    assert len({event["bind_id"] for event in found.values()}) == 1


def test_arrows_through_a_slice_are_events_at_its_start(logs):
    """`middle` has one that ends in it, and is the start of another."""
    logs.span("first", None, 100, 900, service="a")
    logs.span("middle", "first", 200, 800, service="b")
    logs.span("last", "middle", 300, 700, service="c")
    with logs.engine() as engine:
        (start,), (end,) = events(engine, "s"), events(engine, "f")
        found = {event["name"]: event for event in events(engine, "X")}
    assert start["id"] == end["id"]
    assert (start["ts"], end["ts"], end["bp"]) == (0.1, 0.2, "e")
    assert found["middle"]["flow_out"]
    assert found["last"]["flow_in"]
    assert found["middle"]["bind_id"] == found["last"]["bind_id"]


def test_a_span_event_is_an_instant_that_names_its_span(logs):
    span = logs.span("failed", None, 0, 10)
    logs.files["a.log"].pop()
    when = span["start_time_unix_nano"] + 5
    span["events"] = [{"time_unix_nano": when, "name": "exception", "attributes": {"type": "E"}}]
    logs.raw(json.dumps(span))
    with logs.engine() as engine:
        (instant,) = events(engine, "i")
    assert (instant["name"], instant["ts"]) == ("exception", 0.005)
    assert instant["args"]["span_id"] == span["span_id"]
    assert instant["args"]["type"] == "E"


ATTRIBUTES = st.dictionaries(
    st.text(max_size=8) | st.sampled_from(["trace_id", "span.kind", "links"]),
    st.recursive(
        st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=4,
    ),
    max_size=5,
)


@settings(max_examples=6, deadline=None)
@given(st.lists(ATTRIBUTES, min_size=1, max_size=9))
def test_any_attributes_make_json_that_says_the_same(tmp_path_factory, spans):
    """What the reader holds is what is written, under keys that hide none of ours."""
    folder = tmp_path_factory.mktemp("any")
    builder = LogBuilder(folder)
    for number, attributes in enumerate(spans):
        builder.span(f"{number}", None, number, number + 10, attributes=attributes)
    with builder.engine() as engine:
        rows = engine.rows("SELECT span_id, attributes::VARCHAR AS attributes FROM spans")
        found = {event["args"]["span_id"]: event["args"] for event in events(engine, "X")}
    assert len(rows) == len(found) == len(spans)
    for row in rows:
        arguments = found[row["span_id"]]
        facts = {key: arguments[key] for key in ("trace_id", "span_id", "span.kind")}
        held = json.loads(row["attributes"])
        renamed = {f"attributes.{key}" if key in facts else key: held[key] for key in held}
        assert facts["trace_id"] == hex_id("t", 32)
        assert arguments == facts | renamed
