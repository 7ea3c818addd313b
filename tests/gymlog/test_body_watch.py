"""The rollout id in a body: found in any chunking, never at the application's cost."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import notices, rollout
from gymlog.body_watch import BODY_MAX_BYTES, BodyWatch


def rollout_after(chunks, span=None):
    """Return the current rollout after a watch has seen a body in chunks."""
    token = rollout.set_rollout_id(None)
    try:
        watch = BodyWatch(span)
        for index, chunk in enumerate(chunks):
            watch.see({"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1})
        return rollout.current_rollout_id()
    finally:
        rollout.reset(token)


@given(st.data())
def test_any_chunking_of_a_body_gives_the_same_id(data):
    """A key split between two chunks is found as well."""
    body = json.dumps(
        {"a": data.draw(st.text(max_size=20)), "_ng_task_index": 7, "_ng_rollout_index": 1}
    ).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=5)))
    edges = [0, *cuts, len(body)]
    chunks = [body[start:end] for start, end in itertools.pairwise(edges)]
    assert rollout_after(chunks) == "7-1"


@given(st.lists(st.binary(), min_size=1))
def test_no_bytes_raise(chunks):
    """A body is the application's to judge."""
    chunks[0] = b'{"_ng_' + chunks[0]
    assert rollout_after(chunks) is None


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"_ng_rollout_id": "r-1"}, "r-1"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 0, "_ng_attempt_index": 2}, "3-0-a2"),
        ({"_ng_task_index": 3}, None),
        ({"rows": [{"_ng_rollout_id": "r-1"}]}, None),
        ({"text": 'said "_ng_rollout_id": "r-1"'}, None),
        ([{"_ng_rollout_id": "r-1"}], None),
    ],
)
def test_only_keys_of_the_body_itself_count(document, expected):
    """Rows of many rollouts, and texts that quote a key, name no rollout."""
    assert rollout_after([json.dumps(document).encode()]) == expected


def test_an_invalid_id_is_told_once_and_the_request_goes_on(capfd):
    """One line says which id, and why."""
    notices.reset()
    assert rollout_after([b'{"_ng_rollout_id": "no/slash"}']) is None
    assert rollout_after([b'{"_ng_rollout_id": "no/slash"}']) is None
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "'no/slash'" in lines[0]


def test_a_deeply_nested_body_is_left_to_the_application():
    """The parser's recursion limit is no error of the request."""
    assert rollout_after([b'{"_ng_rollout_id":' + b"[" * 200_000]) is None


def test_a_body_over_the_limit_is_not_searched():
    """Memory and time of a request are bounded."""
    filler = b" " * (BODY_MAX_BYTES // 2)
    body = [b'{"_ng_rollout_id": "r-1"', filler, filler, b"}"]
    assert rollout_after(body) is None
    assert rollout_after([body[0], filler, b"}"]) == "r-1"


def test_the_id_is_set_on_the_span(telemetry):
    """The SERVER span was opened before the body was read."""
    span = telemetry.tracer.open_span("POST")
    rollout_after([b'{"_ng_rollout_id": "r-1"}'], span)
    span.end()
    assert telemetry.span("POST")["attributes"] == {"nemo.gym.rollout.id": "r-1"}


def test_messages_that_are_no_body_are_ignored():
    """A disconnect ends nothing here."""
    watch = BodyWatch(None)
    watch.see({"type": "http.disconnect"})
    watch.see({"type": "http.request"})
