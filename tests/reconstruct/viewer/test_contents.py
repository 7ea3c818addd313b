"""What a page holds: all spans in tree order, nothing lost, what is left out said."""

import json

import pytest

from reconstruct.errors import ReconstructError
from reconstruct.viewer.choice import everything, slowest
from reconstruct.viewer.contents import contents


def tree(shown):
    """Name and parent's name of each span, in order."""
    spans = shown.spans
    return [
        (row["name"], None if row["parent"] < 0 else spans[row["parent"]]["name"]) for row in spans
    ]


def test_spans_stand_in_tree_order_whatever_the_order_of_the_lines(logs, of):
    logs.span("leaf", "middle", 20, 30)
    logs.span("late", "root", 60, 70)
    logs.span("root", None, 0, 100)
    logs.span("middle", "root", 10, 50)
    assert tree(of()) == [("root", None), ("middle", "root"), ("leaf", "middle"), ("late", "root")]


def test_orphans_stand_together_below_one_missing_parent(logs, of):
    logs.span("first", "gone", 10, 20)
    logs.span("below", "first", 12, 15)
    logs.span("root", None, 0, 100)
    logs.span("second", "gone", 30, 50)
    shown = of()
    assert tree(shown) == [
        ("root", None),
        ("(missing span)", None),
        ("first", "(missing span)"),
        ("below", "first"),
        ("second", "(missing span)"),
    ]
    assert (shown.spans[1]["state"], shown.spans[1]["length_ns"]) == ("missing", 40)


def test_the_critical_path_covers_the_root(logs, of):
    logs.span("root", None, 0, 100)
    logs.span("wait", "root", 20, 90)
    shown = of()
    assert [(row["span"], row["duration_ns"]) for row in shown.path] == [(0, 20), (0, 10), (1, 70)]


def test_logs_find_their_span(logs, of):
    span = logs.span("root", None, 0, 100)
    record = {
        "record_type": "log",
        "seq": 1,
        "time_unix_nano": span["start_time_unix_nano"] + 5,
        "severity_number": 17,
        "severity_text": "ERROR",
        "body": "boom",
        "trace_id": span["trace_id"],
        "span_id": span["span_id"],
        "resource": span["resource"],
    }
    logs.raw(json.dumps(record))
    assert [(row["span"], json.loads(row["body"])) for row in of().logs] == [(0, "boom")]


def test_slowest_takes_the_longest_rollouts_and_nothing_of_others(logs):
    for number, length in enumerate((30, 90, 60)):
        logs.span("root", None, 0, length, trace=f"t{number}", rollout=f"{number}-0")
    with logs.engine() as engine:
        choice = slowest(engine, 2, None)
        shown = contents(engine, choice)
    assert choice.title == "the 2 slowest rollouts"
    assert sorted(row["rollout_id"] for row in shown.spans) == ["1-0", "2-0"]
    assert sorted(row["rollout_id"] for row in shown.rollouts) == ["1-0", "2-0"]


def test_a_limit_takes_whole_traces_and_says_what_is_left_out(logs):
    for number in range(4):
        logs.span("root", None, number * 100, number * 100 + 50, trace=f"t{number}")
        logs.span("leaf", "root", number * 100, number * 100 + 50, trace=f"t{number}")
    with logs.engine() as engine:
        shown = contents(engine, everything(engine, None, limit=5))
    assert len(shown.spans) == 4
    assert shown.notes == ["left out: 4 spans of 2 later traces; --limit 0 takes all"]


def test_an_unknown_run_is_named(logs):
    logs.span("root")
    with logs.engine() as engine:
        with pytest.raises(ReconstructError, match="no spans of run 'nope'"):
            everything(engine, "nope", limit=0)
        with pytest.raises(ReconstructError, match="no spans of run 'nope'"):
            slowest(engine, 1, "nope")
