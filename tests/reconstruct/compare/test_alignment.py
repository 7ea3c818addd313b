"""Which item of a tree is which of another: additions, removals and moves cost no more than they
are."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.compare.alignment import Alignment, Item, align


def tree(text: str) -> list[Item]:
    """Read `r a<r b<a` as items, digits at the end left out of what they are."""
    places: dict[str, int] = {}
    items: list[Item] = []
    for word in text.split():
        name, _, parent = word.partition("<")
        places[name] = len(items)
        items.append(Item(name.rstrip("0123456789"), places.get(parent, -1)))
    return items


def missing(alignment: Alignment, a: list[Item], b: list[Item]) -> tuple[list[int], list[int]]:
    """The places of what is only in `a`, and only in `b`."""
    of_a, of_b = ({pair[side] for pair in alignment.pairs} for side in (0, 1))
    return [i for i in range(len(a)) if i not in of_a], [j for j in range(len(b)) if j not in of_b]


def outcome(one: str, other: str) -> tuple[int, list[int], list[int], int]:
    """Matched, removed, added, moved."""
    a, b = tree(one), tree(other)
    found = align(a, b)
    return (len(found.pairs), *missing(found, a, b), len(found.moved))


def test_an_inserted_ancestor_is_one_addition() -> None:
    """root>a>b>c and root>x>a>b>c: 4 are matched, none has moved."""
    assert outcome("r a<r b<a c<b", "r x<r a<x b<a c<b") == (4, [], [1], 0)


def test_a_missing_turn_is_one_removal() -> None:
    """Of turns that are alike any one of them; the others stay in order."""
    matched, removed, added, moved = outcome("r t1<r t2<r t3<r t4<r", "r t1<r t3<r t4<r")
    assert (matched, len(removed), added, moved) == (4, 1, [], 0)


def test_a_missing_turn_with_a_number_is_that_one() -> None:
    turns = [Item("r", -1), *(Item(f"turn {n}", 0) for n in (1, 2, 3, 4))]
    found = align(turns, [turns[0], turns[1], *turns[3:]])
    assert missing(found, turns, [turns[0], turns[1], *turns[3:]]) == ([2], [])


def test_a_leaf_with_a_child_is_still_itself() -> None:
    assert outcome("r a<r", "r a<r b<a") == (2, [], [2], 0)


def test_what_stands_elsewhere_has_moved() -> None:
    """And only it, not what is below it."""
    assert outcome("r p<r c<p d<c q<r", "r p<r q<r c<q d<c") == (5, [], [], 1)


def test_what_has_moved_in_between_moves_nobody_else() -> None:
    """Neither its new child nor its old one."""
    assert outcome("r p<r x<p c<x q<r d<q", "r p<r c<p q<r x<q d<x") == (6, [], [], 1)


def test_edits_along_a_chain_are_as_few_as_they_are() -> None:
    """Of 3,000 steps of five kinds three are missing and three others are new."""
    steps = [f"s{n % 5}" for n in range(3_000)]
    other = [f"s{n % 5}" for n in range(3_000) if n not in (700, 1_400, 2_100)]
    for place in (2_500, 1_000, 100):
        other.insert(place, "new")
    a, b = ([Item(name, n - 1) for n, name in enumerate(names)] for names in (steps, other))
    found = align(a, b)
    removed, added = missing(found, a, b)
    assert (len(removed), len(added), found.moved) == (3, 3, frozenset())


def test_equal_subtrees_find_each_other() -> None:
    """Of two alike by name the one with the same children."""
    a = tree("r p1<r x<p1 p2<r y<p2")
    b = tree("r p2<r y<p2")
    assert missing(align(a, b), a, b) == ([1, 2], [])


def test_wide_and_deep_trees_end_soon() -> None:
    """20,000 siblings in no order, and a chain of 10,000 with one more in it."""
    chance = random.Random(0)
    a, b = (
        [Item("r", -1), *(Item(str(chance.randrange(5)), 0) for _ in range(20_000))] for _ in "ab"
    )
    wide = align(a, b)
    assert len(wide.pairs) > 19_000
    assert not wide.is_exact
    chain = [Item("r", n - 1) for n in range(10_000)]
    longer = [*chain[:5_000], Item("x", 4_999), *(Item("r", n) for n in range(5_000, 10_000))]
    deep = align(chain, longer)
    assert missing(deep, chain, longer) == ([], [5_000])
    assert deep.is_exact
    assert deep.moved == frozenset()


@st.composite
def trees(draw: st.DrawFn, names: str = "abc") -> list[Item]:
    """A forest of a few names."""
    size = draw(st.integers(0, 12))
    parents = [draw(st.integers(-1, place - 1)) for place in range(size)]
    return in_order([Item(draw(st.sampled_from(names)), parent) for parent in parents])


def in_order(items: list[Item]) -> list[Item]:
    """Put items in tree order, parents before children."""
    children: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        children.setdefault(item.parent, []).append(place)
    ordered: list[Item] = []

    def walk(place: int, parent: int) -> None:
        ordered.append(Item(items[place].identity, parent))
        here = len(ordered) - 1
        for child in children.get(place, []):
            walk(child, here)

    for top in children.get(-1, []):
        walk(top, -1)
    return ordered


@given(trees(), trees())
def test_it_is_a_matching_of_equals(a: list[Item], b: list[Item]) -> None:
    """Each at most once, and as many as there are of each name in both."""
    found = align(a, b)
    assert len({i for i, _ in found.pairs}) == len({j for _, j in found.pairs}) == len(found.pairs)
    assert all(a[i].identity == b[j].identity for i, j in found.pairs)
    names_a, names_b = ([item.identity for item in items] for items in (a, b))
    assert len(found.pairs) == sum(min(names_a.count(n), names_b.count(n)) for n in "abc")


@given(trees(), trees())
def test_the_other_way_round_it_is_the_same(a: list[Item], b: list[Item]) -> None:
    there, back = align(a, b), align(b, a)
    assert there.pairs == sorted((i, j) for j, i in back.pairs)
    of_a = dict(there.pairs)
    assert {of_a[i] for i in there.moved} == back.moved


@given(trees())
def test_a_tree_is_itself(items: list[Item]) -> None:
    found = align(items, list(items))
    assert found.pairs == [(i, i) for i in range(len(items))]
    assert (found.moved, found.is_exact) == (frozenset(), True)


@settings(max_examples=200)
@given(st.data())
def test_edits_are_found(data: st.DataObject) -> None:
    """Of a tree of different names: what was put in or between, what was taken out, what moved."""
    size = data.draw(st.integers(1, 12))
    parents = [data.draw(st.integers(-1, place - 1)) for place in range(size)]
    before = {f"n{place}": f"n{parent}" for place, parent in enumerate(parents)}
    after = dict(before)
    added: set[str] = set()
    removed: set[str] = set()
    for number in range(data.draw(st.integers(0, 4))):
        name = data.draw(st.sampled_from(sorted(after)))
        if data.draw(st.booleans()):
            new = f"x{number}"
            after[new] = after[name]
            after[name] = new
            added.add(new)
        elif len(after) > 1:
            for child in [child for child, parent in after.items() if parent == name]:
                after[child] = after[name]
            del after[name]
            added.discard(name)
            removed |= {name} & before.keys()
    a, b = listed(before), listed(after)
    found = align(a, b)
    gone, new_ones = missing(found, a, b)
    assert {a[i].identity for i in gone} == removed
    assert {b[j].identity for j in new_ones} == added
    assert found.moved == frozenset()


def listed(parents: dict[str, str]) -> list[Item]:
    """Put names with the names of their parents in tree order."""
    items: list[Item] = []

    def walk(name: str, place: int) -> None:
        items.append(Item(name, place))
        here = len(items) - 1
        for child in sorted(child for child, parent in parents.items() if parent == name):
            walk(child, here)

    for top in sorted(name for name, parent in parents.items() if parent not in parents):
        walk(top, -1)
    return items
