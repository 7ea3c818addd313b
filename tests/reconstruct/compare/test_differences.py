"""Two rollouts as one tree: what was added, removed or moved, what is slower, what says another
thing."""

import random
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.compare.differences import Comparison, compare
from reconstruct.tree import Trace, trace_tree

MS = 1_000_000
Span = tuple[str, str | None, int, int, dict[str, Any]]


def write(logs: Any, trace: str, spans: Iterable[Span], prefix: str = "") -> None:
    """Write spans of label, parent, start and end in ms, and more of `logs.span`; names have no
    digits."""
    for label, parent, start, end, more in spans:
        logs.span(
            prefix + label,
            parent and prefix + parent,
            start * MS,
            end * MS,
            trace=trace,
            **{"name": label.rstrip("0123456789"), **more},
        )


def compared(logs: Any, **options: Any) -> Comparison:
    """Compare the traces a and b of the logs."""
    with logs.engine() as engine:
        a, b = (trace_tree(engine, logs_id(name)) for name in "ab")
    return compare([a], [b], **options)


def logs_id(trace: str) -> str:
    """The id that the logs give a trace."""
    return sha256(trace.encode()).hexdigest()[:32]


def changes(comparison: Comparison) -> dict[str, tuple[str, ...]]:
    return {pair.span.name: pair.changes for pair in comparison.walk() if pair.changes}


def chain(*labels: str) -> list[Span]:
    """Each below the one before, all of 100 ms."""
    return [
        (label, labels[place - 1] if place else None, 0, 100, {})
        for place, label in enumerate(labels)
    ]


TURNS: list[Span] = [
    ("root", None, 0, 100, {}),
    *(
        (f"turn{n}", "root", 20 * n, 20 * n + 10, {"attributes": {"turn": n}, "name": "turn"})
        for n in (1, 2, 3, 4)
    ),
]


def test_an_inserted_ancestor(logs: Any) -> None:
    """Is added, and nothing else has changed."""
    write(logs, "a", chain("root", "a", "b", "c"))
    write(logs, "b", chain("root", "x", "a", "b", "c"))
    comparison = compared(logs)
    assert changes(comparison) == {"x": ("added",)}
    assert sum(not pair.changes for pair in comparison.walk()) == 4


def test_a_missing_turn(logs: Any) -> None:
    """The turn's number says which; it stands in its place."""
    write(logs, "a", TURNS)
    write(logs, "b", [TURNS[0], TURNS[1], *TURNS[3:]])
    comparison = compared(logs)
    (root,) = comparison.roots
    assert [(pair.span.attributes["turn"], pair.changes) for pair in root.children] == [
        (1, ()),
        (2, ("removed",)),
        (3, ()),
        (4, ()),
    ]


def test_a_missing_turn_without_a_number(logs: Any) -> None:
    plain = [(*span[:4], {"name": span[4].get("name", "root")}) for span in TURNS]
    write(logs, "a", plain)
    write(logs, "b", [plain[0], plain[1], *plain[3:]])
    comparison = compared(logs)
    assert (comparison.count("removed"), comparison.count("added")) == (1, 0)
    assert sum(not pair.changes for pair in comparison.walk()) == 4


def test_keys_tell_spans_apart(logs: Any) -> None:
    """An attribute of one's own, too."""
    tools = [("root", None, 0, 100, {})] + [
        (f"tool{n}", "root", 10 * n, 10 * n + 5, {"attributes": {"tool": f"t{n}"}})
        for n in (1, 2, 3)
    ]
    write(logs, "a", tools)
    write(logs, "b", [tools[0], *tools[2:]])
    (root,) = compared(logs, keys=["tool"]).roots
    assert [pair.changes for pair in root.children] == [("removed",), (), ()]


def test_a_leaf_that_has_a_child_now(logs: Any) -> None:
    write(logs, "a", chain("root", "a"))
    write(logs, "b", chain("root", "a", "b"))
    assert changes(compared(logs)) == {"b": ("added",)}


def test_another_parent(logs: Any) -> None:
    """Has moved, says from where, and nothing else."""
    write(logs, "a", [*chain("root", "p", "c"), ("q", "root", 0, 100, {})])
    write(logs, "b", [*chain("root", "q", "c"), ("p", "root", 0, 100, {})])
    comparison = compared(logs)
    assert changes(comparison) == {"c": ("moved",)}
    (moved,) = [pair for pair in comparison.walk() if pair.changes]
    assert moved.moved_from is not None
    assert moved.moved_from.name == "p"


def test_other_ids_are_no_difference(logs: Any) -> None:
    """Nor is another time, nor a rollout's own route."""
    for trace, rollout, late in (("a", "0-0", 0), ("b", "17-3", 9_000)):
        facts = {
            "nemo.gym.rollout.id": rollout,
            "url.full": f"http://host:{4_000 + late}/ng-rollout/{rollout}/v1/responses",
            "gymlog.task.id": f"task-{late}",
        }
        spans = [
            (label, parent, start + late, end + late, {"attributes": facts})
            for label, parent, start, end, _ in TURNS
        ]
        write(logs, trace, spans, prefix=trace)
    comparison = compared(logs)
    assert changes(comparison) == {}
    assert sum(1 for _ in comparison.walk()) == 5


@pytest.mark.parametrize(
    ("lengths", "tolerance", "expected"),
    [
        ((100, 124), 0.25, {}),
        ((100, 140), 0.25, {"root": ("slower",)}),
        ((140, 100), 0.25, {"root": ("faster",)}),
        ((100, 124), 0.1, {"root": ("slower",)}),
        ((1, 2), 0.25, {}),
    ],
)
def test_a_duration_within_the_tolerance(
    lengths: tuple[int, int], tolerance: float, expected: dict[str, Any], logs: Any
) -> None:
    """Is no change: 1 ms and a share of the longer one."""
    for trace, length in zip("ab", lengths, strict=True):
        write(logs, trace, [("root", None, 0, length, {})])
    assert changes(compared(logs, tolerance=tolerance)) == expected


def test_what_is_slower_in_itself_is_told_from_what_waits(logs: Any) -> None:
    """Both are slower."""
    write(logs, "a", [("root", None, 0, 110, {}), ("work", "root", 0, 100, {})])
    write(logs, "b", [("root", None, 0, 310, {}), ("work", "root", 0, 300, {})])
    found = {pair.span.name: (pair.changes, pair.is_itself) for pair in compared(logs).walk()}
    assert found == {"root": (("slower",), False), "work": (("slower",), True)}


def test_a_failure_and_what_attributes_say(logs: Any) -> None:
    """OK and UNSET are one; numbers that measure have a tolerance, others have not."""
    facts = {"http.response.status_code": 200, "gen_ai.usage.input_tokens": 100, "model": "m"}
    other = {"http.response.status_code": 201, "gen_ai.usage.input_tokens": 110, "error.type": "x"}
    write(logs, "a", [("root", None, 0, 100, {"attributes": facts, "status": "OK"})])
    write(logs, "b", [("root", None, 0, 100, {"attributes": other, "status": "ERROR"})])
    (pair,) = compared(logs).walk()
    assert pair.changes == ("status", "attributes")
    assert pair.attributes == {
        "error.type": (None, "x"),
        "http.response.status_code": (200, 201),
        "model": ("m", None),
    }
    facts = pair.facts()
    assert (facts["status_a"], facts["status_b"], facts["difference_ns"]) == ("OK", "ERROR", 0)


@st.composite
def span_lists(draw: st.DrawFn) -> list[Span]:
    """A trace of a few names in any shape."""
    spans: list[Span] = [("s0", None, 0, 100, {"name": "root"})]
    for number in range(1, draw(st.integers(1, 8))):
        start = draw(st.integers(0, 90))
        parent = f"s{draw(st.integers(0, number - 1))}"
        name = draw(st.sampled_from("abc"))
        spans.append(
            (f"s{number}", parent, start, start + draw(st.integers(0, 50)), {"name": name})
        )
    return spans


@settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pairs=st.lists(st.tuples(span_lists(), span_lists()), min_size=5, max_size=10),
    seed=st.integers(0, 999),
)
def test_a_trace_is_itself_and_two_are_mirrored(
    pairs: list[tuple[list[Span], list[Span]]], seed: int, tmp_path_factory: Any, logs: Any
) -> None:
    """Under new ids, its lines in any order; what is added one way is removed the other."""
    logs.folder, logs.files = tmp_path_factory.mktemp("logs"), {}
    for number, (spans, others) in enumerate(pairs):
        write(logs, f"a{number}", spans, prefix="one")
        write(logs, f"b{number}", spans, prefix="two")
        write(logs, f"c{number}", others)
    random.Random(seed).shuffle(logs.files["a.log"])
    with logs.engine() as engine:
        for number, (spans, _) in enumerate(pairs):
            a, b, c = ([trace_tree(engine, logs_id(f"{name}{number}"))] for name in "abc")
            if len({span[2] for span in spans}) == len(spans):  # siblings have but one order
                assert changes(compare(a, b)) == {}
            check_mirrored(a, c)


def check_mirrored(a: list[Trace], b: list[Trace]) -> None:
    there, back = compare(a, b), compare(b, a)
    for change, opposite in {
        "added": "removed",
        "removed": "added",
        "slower": "faster",
        "faster": "slower",
        "moved": "moved",
    }.items():
        assert there.count(change) == back.count(opposite)
    for comparison, one, other in ((there, a, b), (back, b, a)):
        assert {id(pair.a) for pair in comparison.walk() if pair.a} == {
            id(span) for span in one[0].walk()
        }
        assert {id(pair.b) for pair in comparison.walk() if pair.b} == {
            id(span) for span in other[0].walk()
        }
