"""The rollout id: what it may be, where it is current, how bodies and paths carry it."""

import asyncio
import contextlib
import contextvars
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gymlog import current_rollout_id, managed_span, rollout_context
from gymlog.errors import InvalidRolloutIdError
from gymlog.rollout import (
    is_valid_rollout_id,
    reset,
    rollout_id_from_body,
    rollout_path,
    set_rollout_id,
    split_path,
)

BAD_IDS = ["", "-a", ".", "_x", "a/b", "a b", "a\n", "ä", "a?b", "a%2f", "x" * 257, 12, b"a", None]


def test_the_id_is_current_in_its_block_only():
    """Nested blocks give the outer id back, also after an exception."""
    assert current_rollout_id() is None
    with rollout_context("1-0"):
        with contextlib.suppress(KeyError), rollout_context("2-0"):
            assert current_rollout_id() == "2-0"
            raise KeyError
        assert current_rollout_id() == "1-0"
        with rollout_context(None):
            assert current_rollout_id() is None
    assert current_rollout_id() is None


@pytest.mark.parametrize("rollout_id", [bad for bad in BAD_IDS if bad is not None])
def test_a_bad_id_is_refused_with_the_rule(rollout_id):
    """One sentence: the value, and what is accepted."""
    with pytest.raises(InvalidRolloutIdError, match="at most 256 letters"):
        with rollout_context(rollout_id):
            raise AssertionError
    assert current_rollout_id() is None


@pytest.mark.parametrize("bad", BAD_IDS)
def test_what_is_no_id(bad):
    """Whatever cannot stand in a path as it is."""
    assert not is_valid_rollout_id(bad)


@pytest.mark.parametrize("good", ["1", "12-0", "12-0-a3", "a.b_c-D", "0", "x" * 256])
def test_what_is_an_id(good):
    """NeMo Gym's rule, with a length."""
    assert is_valid_rollout_id(good)


def test_every_span_of_a_rollout_carries_the_id(telemetry):
    """Whatever the span's group, and none outside of the block."""
    with rollout_context("7-1"), managed_span("verify", "gym.verify"):
        with telemetry.tracer.start_as_current_span("library"):
            pass
    with managed_span("verify", "outside"):
        pass
    ids = {span["name"]: span["attributes"].get("nemo.gym.rollout.id") for span in telemetry.spans}
    assert ids == {"library": "7-1", "gym.verify": "7-1", "outside": None}


def test_concurrent_rollouts_keep_their_ids_apart():
    """Tasks of one loop, and a thread started inside a block with a copied context."""

    async def one(number):
        with rollout_context(f"{number}-0"):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return current_rollout_id()

    async def many():
        return await asyncio.gather(*(one(number) for number in range(50)))

    assert asyncio.run(many()) == [f"{number}-0" for number in range(50)]
    seen = []
    with rollout_context("1-1"):
        context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: seen.append(context.run(current_rollout_id)))
    thread.start()
    thread.join()
    assert seen == ["1-1"]


def test_resetting_in_another_context_does_nothing():
    """A request whose end runs in another task is no error."""
    token = contextvars.copy_context().run(set_rollout_id, "1-0")
    reset(token)
    assert current_rollout_id() is None
    token = set_rollout_id("2-0")
    reset(token)
    reset(token)
    assert current_rollout_id() is None


@pytest.mark.parametrize(
    ("body", "rollout_id"),
    [
        ({}, None),
        ({"_ng_rollout_id": "abc.1"}, "abc.1"),
        ({"_ng_rollout_id": "abc", "_ng_task_index": 1, "_ng_rollout_index": 2}, "abc"),
        ({"_ng_rollout_id": None, "_ng_task_index": 1, "_ng_rollout_index": 2}, "1-2"),
        ({"_ng_task_index": 0, "_ng_rollout_index": 0}, "0-0"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 0}, "3-1"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": 2}, "3-1-a2"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": True}, "3-1"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": -1}, "3-1"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 1, "_ng_attempt_index": "2"}, "3-1"),
        ({"_ng_task_index": 3}, None),
        ({"_ng_task_index": True, "_ng_rollout_index": 1}, None),
        ({"_ng_task_index": -1, "_ng_rollout_index": 1}, None),
        ({"_ng_task_index": "3", "_ng_rollout_index": 1}, None),
    ],
)
def test_the_id_that_a_body_names(body, rollout_id):
    """The explicit one, else task, rollout and attempt; what is no index names nothing."""
    assert rollout_id_from_body(body) == rollout_id


@pytest.mark.parametrize(
    "body",
    [
        {"_ng_rollout_id": "a/b"},
        {"_ng_rollout_id": 5},
        {"_ng_rollout_id": ""},
        {"_ng_task_index": 10**300, "_ng_rollout_index": 0},
    ],
)
def test_a_body_with_a_bad_id_is_refused(body):
    """An id that could not be handed on is told at once."""
    with pytest.raises(InvalidRolloutIdError):
        rollout_id_from_body(body)


def test_paths_without_a_rollout_stay():
    """Outside of a rollout nothing is put in front."""
    assert rollout_path("/v1/responses") == "/v1/responses"
    with rollout_context("1-0"):
        assert rollout_path("/v1/responses") == "/ng-rollout/1-0/v1/responses"
        assert rollout_path("run", "2-0") == "/ng-rollout/2-0/run"


def test_a_bad_id_makes_no_path():
    """`a/b` would name another route."""
    with pytest.raises(InvalidRolloutIdError):
        rollout_path("/run", "a/b")


@pytest.mark.parametrize(
    "path",
    ["/", "", "/run", "/ng-rollout", "/ng-rollout/", "/ng-rollout//run", "/ng-rollout/-/run",
     "/ng-rollout/a b/run", "/x/ng-rollout/1-0/run", "/NG-ROLLOUT/1-0/run"],
)  # fmt: skip
def test_other_paths_are_not_split(path):
    """Only the prefix with a valid id is taken off."""
    assert split_path(path) is None


@given(st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,255}\Z"), st.text("abc/%?. ", max_size=20))
def test_split_undoes_join(rollout_id, rest):
    """Any id and any path come back as they went in."""
    path = "/" + rest.lstrip("/")
    assert split_path(rollout_path(path, rollout_id)) == (rollout_id, path)
