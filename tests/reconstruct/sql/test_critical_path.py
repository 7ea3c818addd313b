"""The critical path: whose work decided when a root ended, from its start to its end."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine


class Work(NamedTuple):
    """A span of a tree: its name, its parent's name, when, of what kind."""

    name: str
    parent: str | None
    start: int
    end: int
    kind: str = "INTERNAL"


Section = tuple[str, int]


def sections(engine: Engine) -> dict[str, list[Section]]:
    """Name and duration of each section, in time order, by trace."""
    found: dict[str, list[Section]] = {}
    for row in engine.rows(
        """
        SELECT trace_id, name, path.duration_ns
        FROM critical_path AS path
        JOIN spans USING (trace_id, span_id, occurrence)
        ORDER BY trace_id, root_span_id, path.start_time_unix_nano
        """
    ):
        found.setdefault(row["trace_id"], []).append((row["name"], row["duration_ns"]))
    return found


def write(logs: Any, works: Iterable[Work], trace: str = "t") -> dict[str, str]:
    """Write the spans of a tree; return their ids by their names."""
    return {
        name: logs.span(name, parent, start, end, trace=trace, kind=kind)["span_id"]
        for name, parent, start, end, kind in works
    }


def of(text: str) -> list[Section]:
    """Read `a40 r20` as sections."""
    return [
        (word.rstrip("0123456789"), int(word.lstrip("abcdefghijkrxyz"))) for word in text.split()
    ]


ROOT = Work("r", None, 1000, 1200)
SHORT = Work("r", None, 1000, 1100)


@pytest.mark.parametrize(
    ("works", "expected"),
    [
        ([ROOT, Work("a", "r", 1020, 1060), Work("b", "r", 1080, 1150)], "r20 a40 r20 b70 r50"),
        ([ROOT, Work("a", "r", 1000, 1080), Work("b", "r", 1080, 1200)], "a80 b120"),
        ([ROOT, Work("a", "r", 1010, 1100), Work("b", "r", 1020, 1170)], "r20 b150 r30"),
        ([ROOT, Work("a", "r", 1010, 1190), Work("g", "a", 1050, 1110)], "r10 a40 g60 a80 r10"),
        ([SHORT, Work("a", "r", 1060, 1150)], "r60 a40"),
        ([SHORT, Work("a", "r", 970, 1030)], "a30 r70"),
        ([SHORT, Work("a", "r", 1150, 1200), Work("g", "a", 1160, 1170)], "r100"),
        (
            [
                SHORT._replace(kind="PRODUCER"),
                Work("a", "r", 1020, 1080, "CONSUMER"),
                Work("g", "a", 1030, 1040),
            ],
            "r100",
        ),
        ([Work("r", None, 0, 100), Work("a", "r", 0, 40), Work("b", "r", 40, 100)], "a40 b60"),
        ([SHORT, Work("a", "r", 1050, 1050), Work("b", "r", 1060, 1090)], "r60 b30 r10"),
        ([SHORT, Work("a", "r", 1010, 1080), Work("b", "r", 1040, 1080)], "r10 a70 r20"),
        (
            [
                Work("r", None, 1000, 1350),
                Work("x", "r", 1000, 1100),
                Work("y", "r", 1110, 1210),
                Work("z", "r", 1220, 1340),
            ],
            "x100 r10 y100 r10 z120 r10",
        ),
        (
            [
                SHORT,
                Work("a", "r", 1010, 1150),
                Work("b", "a", 1090, 1140),
                Work("g", "b", 1095, 1130),
            ],
            "r10 a80 b5 g5",
        ),
    ],
    ids=[
        "one after the other",
        "touching",
        "overlapping",
        "nested",
        "outliving",
        "early",
        "outside",
        "consumer",
        "from zero",
        "no time",
        "same end",
        "retries",
        "cut to all ancestors",
    ],
)
def test_sections(logs: Any, works: list[Work], expected: str) -> None:
    """They lie end to end and add up to the root."""
    write(logs, works)
    with logs.engine() as engine:
        ((path),) = sections(engine).values()
    assert path == of(expected)


@pytest.mark.parametrize("shape", ["chain", "row"])
def test_ten_thousand_spans(logs: Any, shape: str) -> None:
    """Deep or wide: each is to blame for its 10 ns."""
    count = 10_000
    if shape == "chain":
        works = [
            Work(f"s{n}", f"s{n - 1}" if n else None, 5 * n, 10 * count - 5 * n)
            for n in range(count)
        ]
    else:
        works = [Work("s", None, 0, 10 * count)]
        works += [Work(f"s{n}", "s", 10 * n, 10 * n + 10) for n in range(count)]
    write(logs, works)
    with logs.engine() as engine:
        blamed = engine.rows(
            "SELECT sum(duration_ns)::BIGINT AS ns FROM critical_path GROUP BY span_id"
        )
    assert [row["ns"] for row in blamed] == [10] * count


def test_each_root_has_its_own(logs: Any) -> None:
    """A span whose parent is not in the input is one, too; an open one lasts while it is seen."""
    logs.process("started", 0)
    logs.span("r", None, 0, 100)
    logs.span("a", "nobody", 200, 260)
    logs.span("b", "a", 210, 230)
    logs.span("k", None, 300, None)
    logs.process("stopped", 350)
    with logs.engine() as engine:
        paths = sections(engine)
    assert sorted(section for path in paths.values() for section in path) == sorted(
        of("r100 a10 b20 a30 k50")
    )


def walked(works: Sequence[Work], ids: dict[str, str]) -> list[Section]:
    """The path of a tree as one would write it down, span by span."""
    children: dict[str | None, list[Work]] = {}
    for work in works:
        children.setdefault(work.parent, []).append(work)

    def walk(work: Work, start: int, end: int) -> list[Section]:
        cut = [
            (min(child.end, end), max(child.start, start), child)
            for child in children.get(work.name, [])
            if min(child.end, end) > max(child.start, start)
            and not (work.kind == "PRODUCER" and child.kind == "CONSUMER")
        ]
        # The last to end, of these the first to start, of these the one with the least id.
        cut.sort(key=lambda each: (-each[0], each[1], ids[each[2].name]))
        found: list[Section] = []
        while end > start:
            over = (each for each in cut if each[0] <= end)
            child_end, child_start, child = next(over, (start, start, None))
            if child_end < end:
                found.append((work.name, end - child_end))
            if child is not None:
                found += walk(child, child_start, child_end)
            end = child_start
        return found

    (root,) = children[None]
    return walk(root, root.start, root.end)[::-1]


@st.composite
def trees(draw: st.DrawFn) -> list[Work]:
    """A root and spans anywhere below it, at times and of kinds that have nothing to do with it."""
    times = st.integers(0, 40)
    works = [Work("s0", None, 0, draw(st.integers(1, 40)))]
    for number in range(1, draw(st.integers(1, 12))):
        start, end = sorted((draw(times), draw(times)))
        kind = draw(st.sampled_from(["INTERNAL", "INTERNAL", "PRODUCER", "CONSUMER"]))
        parent = f"s{draw(st.integers(0, number - 1))}"
        works.append(Work(f"s{number}", parent, start, end, kind))
    return works


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paths")


def test_as_one_would_walk(logs: Any, folder: Path) -> None:
    """Many trees at once, in one pass."""

    @settings(max_examples=10, deadline=None)
    @given(st.lists(trees(), min_size=20, max_size=60))
    def check(forest: list[list[Work]]) -> None:
        logs.folder, logs.files = folder, {}
        expected = [
            walked(works, write(logs, works, trace=f"t{number}"))
            for number, works in enumerate(forest)
        ]
        with logs.engine() as engine:
            assert sorted(sections(engine).values()) == sorted(expected)

    check()


def test_blame_adds_up_to_the_root(logs: Any) -> None:
    """Of each span on the path once, however many sections it has."""
    write(logs, [ROOT, Work("a", "r", 1020, 1060), Work("b", "r", 1080, 1150)])
    logs.span("alone", None, 0, 7, trace="u")
    with logs.engine() as engine:
        blamed = engine.rows(
            """
            SELECT span.name, root.name AS root, blame_ns
            FROM blame
            JOIN spans AS span USING (trace_id, span_id, occurrence)
            JOIN spans AS root ON root.span_id = root_span_id AND root.occurrence = root_occurrence
            ORDER BY ALL
            """
        )
    assert [tuple(row.values()) for row in blamed] == [
        ("a", "r", 40),
        ("alone", "alone", 7),
        ("b", "r", 70),
        ("r", "r", 90),
    ]
