"""Which item of one tree is which of another.

From the top down, the children of two items that are each other's are matched in order: by the
longest common subsequence of whole subtrees, between those of identities. So is, in tree order,
what is left over below two such items, so that an item put between parent and child costs that one.
Last, what is left anywhere is matched by identity, that below the same matched item first, then
equal subtrees and equal parents: it has moved. Cost is about linear, nothing recurses, and the two
trees may change places without another outcome.
"""

from collections.abc import Hashable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from reconstruct.compare.subsequence import common_subsequence

__all__ = ["Alignment", "Item", "align"]

_TOP: Final = -1
_NONE: Final = -2
"""No item, where `_TOP` is what stands above all."""
_MOST_ROUNDS: Final = 10
"""Of matching what is left: each begins below what the one before has matched."""


class Item(NamedTuple):
    """A node of a tree: what it is, and the place of its parent, which comes before it."""

    identity: str
    parent: int
    """-1 at the top."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pairs of places (in `a`, in `b`) that are each other's; what is in none is in one tree."""

    pairs: list[tuple[int, int]]
    """In order of `a`."""
    moved: frozenset[int]
    """Places in `a` of those whose nearest matched ancestor is another one in `b`; what merely has
    such a one put above it has not moved itself."""
    is_exact: bool
    """False when so many siblings differed that a shorter common sequence had to do."""


def align(a: Sequence[Item], b: Sequence[Item]) -> Alignment:
    """Align two trees, or forests, whose items are in tree order."""
    if (len(b), b) < (len(a), a):
        turned = align(b, a)
        moved = frozenset(j for i, j in turned.pairs if i in turned.moved)
        pairs = sorted((j, i) for i, j in turned.pairs)
        return Alignment(pairs, moved, turned.is_exact)
    return _Aligning(a, b).run()


class _Tree:
    """A tree's items, their children, their subtrees as numbers, and who is matched with them."""

    def __init__(self, items: Sequence[Item], subtrees: dict[Hashable, int]) -> None:
        self.items = items
        self.children: dict[int, list[int]] = {}
        for place, item in enumerate(items):
            self.children.setdefault(item.parent, []).append(place)
        self.subtrees = [0] * len(items)
        for place in range(len(items) - 1, -1, -1):
            below = tuple(self.subtrees[child] for child in self.children.get(place, ()))
            key = (items[place].identity, below)
            self.subtrees[place] = subtrees.setdefault(key, len(subtrees))
        self.match = [_NONE] * len(items)

    def free_children(self, place: int) -> list[int]:
        return [child for child in self.children.get(place, ()) if self.match[child] == _NONE]

    def free(self) -> Iterator[int]:
        return (place for place, match in enumerate(self.match) if match == _NONE)

    def anchors(self, without: AbstractSet[int] = frozenset()) -> list[int]:
        """Return the nearest ancestor of each that is matched, and none of `without`."""
        found: list[int] = []
        for item in self.items:
            is_here = item.parent == _TOP or (
                self.match[item.parent] != _NONE and item.parent not in without
            )
            found.append(item.parent if is_here else found[item.parent])
        return found

    def parent_identity(self, place: int) -> str:
        parent = self.items[place].parent
        return "" if parent == _TOP else self.items[parent].identity


class _Aligning:
    def __init__(self, a: Sequence[Item], b: Sequence[Item]) -> None:
        subtrees: dict[Hashable, int] = {}
        self._a, self._b = _Tree(a, subtrees), _Tree(b, subtrees)
        names: dict[str, int] = {}
        self._names_a = [names.setdefault(item.identity, len(names)) for item in a]
        self._names_b = [names.setdefault(item.identity, len(names)) for item in b]
        self._is_exact = True

    def run(self) -> Alignment:
        a, b = self._a, self._b
        self._descend(_TOP, _TOP)
        for _ in range(_MOST_ROUNDS):
            if not self._match_below():
                break
        above_a, above_b = self._anchors()
        self._pair(
            list(zip(self._names_a, above_a, strict=True)),
            list(zip(self._names_b, above_b, strict=True)),
        )
        late = self._pair(a.subtrees, b.subtrees)
        late |= self._pair(
            [(item.identity, a.parent_identity(i)) for i, item in enumerate(a.items)],
            [(item.identity, b.parent_identity(j)) for j, item in enumerate(b.items)],
        )
        late |= self._pair(self._names_a, self._names_b)
        pairs = [(i, j) for i, j in enumerate(a.match) if j != _NONE]
        above_a, above_b = self._anchors()
        kept_a, kept_b = self._anchors(late)
        moved = frozenset(
            i for i, j in pairs if above_a[i] != above_b[j] and kept_a[i] != kept_b[j]
        )
        return Alignment(pairs, moved, self._is_exact)

    def _anchors(self, without: AbstractSet[int] = frozenset()) -> tuple[list[int], list[int]]:
        """Return the nearest matched ancestor of each item, for both trees as a place in `a`."""
        above_b = self._b.anchors({self._a.match[i] for i in without})
        return self._a.anchors(without), [_TOP if j == _TOP else self._b.match[j] for j in above_b]

    def _match_below(self) -> bool:
        """Match, in tree order, what is left below items that are each other's; say if any is."""
        above_a, above_b = self._anchors()
        left_a: dict[int, list[int]] = {}
        left_b: dict[int, list[int]] = {}
        for i in self._a.free():
            left_a.setdefault(above_a[i], []).append(i)
        for j in self._b.free():
            left_b.setdefault(above_b[j], []).append(j)
        pairs = [
            pair
            for above in left_a.keys() & left_b.keys()
            for pair in self._in_order(left_a[above], left_b[above])
        ]
        for pair in pairs:
            self._match(*pair)
        return bool(pairs)

    def _pair(self, keys_a: Sequence[Hashable], keys_b: Sequence[Hashable]) -> set[int]:
        """Match what is left and has equal keys, the first with the first, then what is below;
        return the places in `a` of the former."""
        found: set[int] = set()
        waiting: dict[Hashable, list[int]] = {}
        for j in reversed(list(self._b.free())):
            waiting.setdefault(keys_b[j], []).append(j)
        for i in list(self._a.free()):
            if self._a.match[i] != _NONE:  # below one that was matched meanwhile
                continue
            others = waiting.get(keys_a[i], [])
            while others:
                j = others.pop()
                if self._b.match[j] == _NONE:
                    self._match(i, j)
                    self._descend(i, j)
                    found.add(i)
                    break
        return found

    def _match(self, i: int, j: int) -> None:
        self._a.match[i], self._b.match[j] = j, i

    def _descend(self, i: int, j: int) -> None:
        """Match the children of two that are each other's, their children, and so on."""
        waiting = [(i, j)]
        while waiting:
            i, j = waiting.pop()
            for pair in self._in_order(self._a.free_children(i), self._b.free_children(j)):
                self._match(*pair)
                waiting.append(pair)

    def _in_order(self, a: Sequence[int], b: Sequence[int]) -> Iterator[tuple[int, int]]:
        if not a or not b:
            return
        equal, _ = self._common(a, b, self._a.subtrees, self._b.subtrees)
        yield from equal
        place_a = {place: index for index, place in enumerate(a)}
        place_b = {place: index for index, place in enumerate(b)}
        from_a = from_b = 0
        for i, j in [*equal, (_NONE, _NONE)]:
            to_a, to_b = place_a.get(i, len(a)), place_b.get(j, len(b))
            between_a, between_b = a[from_a:to_a], b[from_b:to_b]
            if between_a and between_b:
                alike, is_longest = self._common(between_a, between_b, self._names_a, self._names_b)
                self._is_exact &= is_longest
                yield from alike
            from_a, from_b = to_a + 1, to_b + 1

    @staticmethod
    def _common(
        a: Sequence[int], b: Sequence[int], keys_a: Sequence[int], keys_b: Sequence[int]
    ) -> tuple[list[tuple[int, int]], bool]:
        pairs, is_longest = common_subsequence([keys_a[i] for i in a], [keys_b[j] for j in b])
        return [(a[i], b[j]) for i, j in pairs], is_longest
