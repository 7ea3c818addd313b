"""Lanes: what is drawn below a span is its child, and nothing else overlaps."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from reconstruct.export.lanes import Lanes


def placed(spans):
    """Place (number, parent, start, end) in the order that `place` wants; return lane by number."""
    lanes = Lanes()
    ordered = sorted(spans, key=lambda span: (span[2], -span[3], span[0]))
    return {span[0]: lanes.place(*span) for span in ordered}, lanes


def test_a_child_goes_below_its_parent_and_its_twin_elsewhere():
    """parent 0-100 ─┬─ first 10-60 ── inner 20-30
    ├─ twin 40-90
    └─ last 60-70, free again below the parent."""
    parent, first, inner, twin, last = range(1, 6)
    lanes, _ = placed(
        [
            (parent, None, 0, 100), (first, parent, 10, 60), (inner, first, 20, 30),
            (twin, parent, 40, 90), (last, parent, 60, 70),
        ]
    )  # fmt: skip
    assert lanes == {parent: 0, first: 0, inner: 0, twin: 1, last: 0}


def test_a_child_that_outlives_its_parent_goes_elsewhere():
    assert placed([(1, None, 0, 10), (2, 1, 5, 20)])[0] == {1: 0, 2: 1}


def test_a_span_within_a_stranger_goes_elsewhere():
    """It would look as if that had called it."""
    assert placed([(1, None, 0, 10), (2, None, 2, 3)])[0] == {1: 0, 2: 1}


def test_a_lane_is_used_again_from_the_ns_on_in_which_it_becomes_free():
    assert placed([(1, None, 0, 10), (2, None, 10, 20), (3, None, 15, 15)])[0] == {1: 0, 2: 0, 3: 1}


@st.composite
def forests(draw):
    """Spans whose parents come first; times are few, so that many are equal."""
    spans = []
    for number in range(1, draw(st.integers(1, 40)) + 1):
        parent = draw(st.sampled_from([None, *spans]))
        earliest = 0 if parent is None else parent[2]
        start = earliest + draw(st.integers(0, 6))
        spans.append(
            (number, None if parent is None else parent[0], start, start + draw(st.integers(0, 12)))
        )
    # Equal times come parents first, as `Timeline.slices` has them: here by number.
    return spans


@given(forests())
def test_slices_of_a_lane_nest_as_called_or_lie_apart(spans):
    """Any two of a lane are apart, or one is an ancestor of the other and contains it."""
    lanes, _ = placed(spans)
    assert lanes.keys() == {number for number, *_ in spans}
    parents = {number: parent for number, parent, *_ in spans}
    by_lane = defaultdict(list)
    for span in spans:
        by_lane[lanes[span[0]]].append(span)

    def ancestors(number):
        while (number := parents[number]) is not None:
            yield number

    for members in by_lane.values():
        for a in members:
            for b in members:
                if a[0] == b[0] or a[3] <= b[2] or b[3] <= a[2]:
                    continue
                inner, outer = (a, b) if b[0] in ancestors(a[0]) else (b, a)
                assert outer[0] in ancestors(inner[0])
                assert outer[2] <= inner[2] <= inner[3] <= outer[3]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=40))
def test_strangers_take_no_more_lanes_than_run_at_once(times):
    spans = [
        (number, None, start, start + length) for number, (start, length) in enumerate(times, 1)
    ]
    most = max((sum(a <= t < b for *_, a, b in spans) for t in range(45)), default=0)
    _, lanes = placed(spans)
    assert len(lanes) == most
