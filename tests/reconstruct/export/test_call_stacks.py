"""Flame graphs: the weights of the stacks are those of the relations, to the last ns."""

import io
import json
import re

import pytest

from reconstruct.errors import ReconstructError
from reconstruct.export import call_stacks, folded, speedscope
from reconstruct.export.call_stacks import CallStacks

RELATIONS = {
    "self": "SELECT sum(self_time_ns)::BIGINT AS ns FROM self_time",
    "blame": "SELECT sum(blame_ns)::BIGINT AS ns FROM blame",
    "duration": "SELECT sum(duration_ns)::BIGINT AS ns FROM spans",
}


@pytest.fixture
def engine(logs):
    """Two rollouts: run 0-100 ─┬─ call 10-60 ── model: answer 20-50; one more call in the second.
    └─ call 40-90"""
    for trace in ("t", "u"):
        logs.span("run", None, 0, 100, trace=trace, service="agent", rollout=trace)
        logs.span("call", "run", 10, 60, trace=trace, service="agent")
        logs.span("answer", "call", 20, 50, trace=trace, service="model")
    logs.span("again", "run", 40, 90, trace="u", name="call", service="agent")
    logs.span("lost", "nowhere", 0, 7, trace="v", name="a;b\n", service="agent")
    logs.span("stuck", None, 0, None, trace="v", service="agent")
    with logs.engine() as engine:
        yield engine


def lines(stacks):
    out = io.BytesIO()
    assert folded.write(stacks, out) == out.getvalue().count(b"\n")
    return out.getvalue().decode().splitlines()


def test_equal_calls_of_all_rollouts_are_one_stack(engine):
    """run 50 + 20 ns of its own; call 20 + 20 + 50; answer twice 30."""
    stacks = CallStacks(engine, "self")
    assert lines(stacks) == [
        "(missing);agent:a,b\\n 7",
        "agent:run 70",
        "agent:run;agent:call 90",
        "agent:run;agent:call;model:answer 60",
    ]
    assert (stacks.spans, stacks.unfinished) == (9, 1)


@pytest.mark.parametrize("weight", call_stacks.WEIGHTS)
def test_weights_add_up_to_the_relation(engine, weight):
    stacks = CallStacks(engine, weight)
    (row,) = engine.rows(RELATIONS[weight])
    assert sum(int(line.rpartition(" ")[2]) for line in lines(stacks)) == row["ns"]
    assert stacks.total_ns == row["ns"]


def test_a_choice_weighs_only_what_it_chooses(engine):
    chosen = {"condition": "span.rollout_id = $id", "parameters": {"id": "t"}}
    assert lines(CallStacks(engine, "duration", **chosen)) == ["agent:run 100"]
    with pytest.raises(ReconstructError, match="no span"):
        CallStacks(engine, "self", condition="FALSE")


def check_speedscope(document):
    """Hold a document against what speedscope's schema asks of a sampled profile's file."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert document.keys() <= {
        "$schema", "name", "exporter", "activeProfileIndex", "shared", "profiles",
    }  # fmt: skip
    assert document["shared"].keys() == {"frames"}
    frames = document["shared"]["frames"]
    assert all(
        frame.keys() <= {"name", "file", "line", "col"} and isinstance(frame["name"], str)
        for frame in frames
    )
    assert isinstance(document["activeProfileIndex"], int)
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    for profile in document["profiles"]:
        assert profile.keys() == {
            "type", "name", "unit", "startValue", "endValue", "samples", "weights",
        }  # fmt: skip
        assert profile["type"] == "sampled"
        assert profile["unit"] in {
            "bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds",
        }  # fmt: skip
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(type(weight) is int and weight >= 0 for weight in profile["weights"])
        assert profile["startValue"] + sum(profile["weights"]) == profile["endValue"]
        for sample in profile["samples"]:
            assert sample
            assert all(type(index) is int and 0 <= index < len(frames) for index in sample)


def test_a_speedscope_file_keeps_to_its_schema_and_holds_the_same_stacks(engine):
    profiles = {weight: CallStacks(engine, weight) for weight in ("self", "blame")}
    out = io.BytesIO()
    samples = speedscope.write(profiles, out, name="logs")
    document = json.loads(out.getvalue())
    check_speedscope(document)
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert len(set(frames)) == len(frames)
    assert [profile["name"] for profile in document["profiles"]] == ["self", "blame"]
    for profile, stacks in zip(document["profiles"], profiles.values(), strict=True):
        drawn = [tuple(frames[index] for index in sample) for sample in profile["samples"]]
        assert list(zip(drawn, profile["weights"], strict=True)) == list(stacks)
    assert samples == sum(len(profile["samples"]) for profile in document["profiles"])


def test_more_ns_than_a_double_holds_are_microseconds(logs):
    logs.span("long", None, 0, 2**53 + 999)
    out = io.BytesIO()
    with logs.engine() as engine:
        speedscope.write({"self": CallStacks(engine, "self")}, out, name="x")
    document = json.loads(out.getvalue())
    check_speedscope(document)
    assert document["profiles"][0]["unit"] == "microseconds"
    assert document["profiles"][0]["weights"] == [(2**53 + 999) // 1000]


def test_a_line_has_no_more_than_one_weight_and_no_empty_frame(engine):
    for line in lines(CallStacks(engine, "self")):
        assert re.fullmatch(r"[^;\n]+(;[^;\n]+)* \d+", line)
