"""A span's bar on the time axis: in its place, never invisible, own work told from waiting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.render.bars import HATCH, OWN, WAITING, Axis
from reconstruct.render.text import width

TIMES = st.integers(0, 10_000)
INTERVALS = st.tuples(TIMES, TIMES).map(sorted).map(tuple)


def drawn(axis, start, end, covered=()):
    first, cells = axis.bar(start, end, covered)
    return (" " * first + cells).ljust(axis.columns)


def test_own_work_is_solid_and_covered_time_a_line():
    axis = Axis(0, 100, 20)
    assert drawn(axis, 0, 100, [(10, 90)]) == "██━━━━━━━━━━━━━━━━██"
    assert drawn(axis, 10, 90, [(15, 40), (45, 80)]) == "  █━━━━━█━━━━━━━██  "
    assert drawn(axis, 15, 40) == "   █████            "


def test_overlapping_and_unordered_children_count_once():
    axis = Axis(0, 80, 8)
    assert drawn(axis, 0, 80, [(30, 60), (10, 40), (35, 38), (70, 200)]) == "█━━━━━█━"


def test_ends_fall_on_eighths_and_starts_on_halves():
    axis = Axis(0, 80, 10)
    assert drawn(axis, 0, 27) == "███▍      "
    assert drawn(axis, 12, 80) == " ▐████████"
    assert drawn(axis, 15, 16) == " ▕        "


@given(st.integers(1, 200), INTERVALS, st.lists(INTERVALS, max_size=6), INTERVALS)
def test_a_bar_is_inside_the_axis_and_never_invisible(columns, span, children, bounds):
    axis = Axis(bounds[0], bounds[1] + 1, columns)
    first, cells = axis.bar(*span, children)
    assert 0 <= first < columns
    assert 1 <= len(cells) <= columns - first
    assert " " not in cells
    assert width(cells) == len(cells)


@given(st.integers(1, 100), INTERVALS)
def test_without_children_all_is_own_work_and_under_a_full_child_none(columns, span):
    axis = Axis(0, 10_001, columns)
    _, alone = axis.bar(*span, [])
    assert not set(alone) & {WAITING, "╺", "╸"}
    _, covered = axis.bar(span[0], span[1] + 1, [(span[0] - 1, span[1] + 2)])
    assert len(covered) == 1 or OWN not in covered


@given(st.lists(INTERVALS, max_size=6), INTERVALS)
def test_the_order_of_children_changes_nothing(children, span):
    axis = Axis(0, 10_000, 40)
    assert axis.bar(*span, children) == axis.bar(*span, list(reversed(children)))


def test_unfinished_work_is_hatched_to_the_last_moment_known():
    axis = Axis(0, 100, 20)
    assert axis.hatched(50, 100) == (10, HATCH * 10)
    assert axis.hatched(100, 100) == (19, HATCH)


@pytest.mark.parametrize(
    ("length_ns", "labels"),
    [
        (10, ["0", "2 ns", "4 ns", "6 ns", "8 ns"]),
        (999, ["0", "200 ns", "400 ns", "600 ns", "800 ns"]),
        (1_240_000_000, ["0", "0.5 s", "1 s"]),
        (7_000_000_000, ["0", "2 s", "4 s", "6 s"]),
        (95_000_000_000, ["0", "30 s", "60 s", "90 s"]),
        (400_000_000_000, ["0", "2 min", "4 min", "6 min"]),
        (3 * 86_400_000_000_000, ["0", "1 d", "2 d"]),
    ],
)
def test_ticks_are_round_times_in_one_short_unit(length_ns, labels):
    axis = Axis(0, length_ns, 40)
    assert [label for _, label in axis.ticks()] == labels


@given(st.integers(1, 2**62), st.integers(1, 300))
def test_labels_stand_at_their_ticks_and_nothing_else_on_the_ruler(length_ns, columns):
    axis = Axis(0, length_ns, columns)
    ruler = axis.ruler()
    assert len(ruler) == columns
    rest = list(ruler)
    for column, label in axis.ticks():
        assert 0 <= column < columns
        if ruler[column : column + len(label)] == label:
            rest[column : column + len(label)] = " " * len(label)
        else:
            assert column + len(label) > columns
    assert not "".join(rest).strip()
