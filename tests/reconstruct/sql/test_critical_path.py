"""The critical path: whose work decided when a root ended, from its start to its end."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine


class Work(NamedTuple):
    """A span of a tree: its name, its parent's name, when, of what kind, in which task."""

    name: str
    parent: str | None
    start: int
    end: int
    kind: str = "INTERNAL"
    task: str | None = None


Section = tuple[str, int]


def sections(
    engine: Engine, outliving: str = "clip", overlap: float = 0, *, assumed: bool = False
) -> dict[str, list[Any]]:
    """Name and duration of each section, in time order, by trace; and whether it is assumed."""
    found: dict[str, list[Any]] = {}
    for row in engine.rows(
        """
        SELECT trace_id, name, path.duration_ns, path.assumed
        FROM critical_path_of(NULL, outliving := $outliving, overlap := $overlap) AS path
        JOIN spans USING (trace_id, span_id, occurrence)
        ORDER BY trace_id, root_span_id, path.start_time_unix_nano
        """,
        {"outliving": outliving, "overlap": overlap},
    ):
        section = (row["name"], row["duration_ns"])
        found.setdefault(row["trace_id"], []).append((*section, row["assumed"])[: 2 + assumed])
    return found


def write(logs: Any, works: Iterable[Work], trace: str = "t") -> dict[str, str]:
    """Write the spans of a tree; return their ids by their names."""
    return {
        name: logs.span(
            name,
            parent,
            start,
            end,
            trace=trace,
            kind=kind,
            attributes=None if task is None else {"gymlog.task.id": task},
        )["span_id"]
        for name, parent, start, end, kind, task in works
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


def test_a_child_that_runs_over(logs: Any) -> None:
    """Within the tolerance it ends where the next one begins; without one it is beside that."""
    write(
        logs, [Work("r", None, 1000, 2000), Work("a", "r", 1000, 1501), Work("b", "r", 1500, 2000)]
    )
    with logs.engine() as engine:
        assert list(sections(engine, overlap=0.01).values()) == [of("a500 b500")]
        assert list(sections(engine).values()) == [of("r500 b500")]


def test_tasks_tell_what_was_waited_for(logs: Any) -> None:
    """Another task's work counts only if it began after the own task's had ended."""
    works = [
        Work("r", None, 1000, 1500),
        Work("a", "r", 1000, 1100, task="1"),
        Work("c", "r", 1202, 1500, task="1"),
        Work("b", "r", 1000, 1201, task="2"),
    ]
    write(logs, works, trace="told")
    write(logs, [work._replace(task=None) for work in works], trace="untold")
    with logs.engine() as engine:
        paths = sections(engine, assumed=True)
    assert sorted(paths.values()) == sorted(
        [
            [("a", 100, False), ("r", 102, False), ("c", 298, False)],
            [("b", 201, True), ("r", 1, True), ("c", 298, True)],
        ]
    )


def test_gathered_tasks_are_waited_for(logs: Any) -> None:
    """They began after the work before them, and the work after them began when they had ended."""
    write(
        logs,
        [
            Work("r", None, 0, 100),
            Work("a", "r", 0, 20),
            Work("x", "r", 20, 50, task="1"),
            Work("y", "r", 20, 70, task="2"),
            Work("b", "r", 70, 100),
        ],
    )
    with logs.engine() as engine:
        assert list(sections(engine, assumed=True).values()) == [
            [("a", 20, False), ("y", 50, False), ("b", 30, False)]
        ]


def test_what_lies_below_an_assumption_is_assumed(logs: Any) -> None:
    """And nothing else."""
    write(
        logs,
        [
            Work("r", None, 0, 100),
            Work("a", "r", 0, 40),
            Work("b", "r", 50, 100),
            Work("x", "b", 50, 80),
            Work("y", "b", 60, 90),
            Work("z", "y", 70, 80),
        ],
    )
    with logs.engine() as engine:
        assert list(sections(engine, assumed=True).values()) == [
            [
                ("a", 40, False),
                ("r", 10, False),
                ("b", 10, True),
                ("y", 10, True),
                ("z", 10, True),
                ("y", 10, True),
                ("b", 10, True),
            ]
        ]


def test_following_work_that_outlives_its_parent(logs: Any) -> None:
    """Every span lasts until all below it has ended; the path leads to where the work began."""
    write(
        logs,
        [
            Work("r", None, 0, 100),
            Work("a", "r", 10, 40),
            Work("b", "a", 30, 80),
            Work("c", "b", 70, 130),
        ],
    )
    with logs.engine() as engine:
        assert list(sections(engine, "follow").values()) == [of("r10 a20 b40 c60")]
        assert list(sections(engine).values()) == [of("r10 a20 b10 r60")]


def test_listening_is_no_work(logs: Any) -> None:
    """A server listens for its caller to hang up, until all is sent."""
    logs.span("POST /run", None, 0, 100, kind="SERVER")
    logs.span("POST /run http receive", "POST /run", 5, 99)
    logs.span("run", "POST /run", 10, 90)
    logs.span("POST /run http send", "POST /run", 90, 95)
    logs.span("x receive", None, 0, 10, trace="u", name="x http receive")
    logs.span("inner", "x receive", 5, 10, trace="u")
    with logs.engine() as engine:
        assert sorted(sections(engine).values()) == sorted(
            [
                [("POST /run", 10), ("run", 80), ("POST /run http send", 5), ("POST /run", 5)],
                [("x http receive", 5), ("inner", 5)],
            ]
        )


class Walk:
    """The path of a tree as one would write it down, span by span."""

    def __init__(
        self, works: Sequence[Work], ids: dict[str, str], outliving: str, overlap: float
    ) -> None:
        self.ids = ids
        self.works = {work.name: work for work in works}
        self.plain = dict(self.works)
        self.follows = outliving == "follow"
        if any(self.is_odd(work) for work in works):
            self.trim(overlap)
        self.trimmed = dict(self.works)
        if self.follows:
            self.follow()
        (self.root,) = (work for work in self.works.values() if work.parent is None)

    def is_odd(self, work: Work) -> bool:
        if work.parent is None:
            return work.end == work.start
        above = self.works[work.parent]
        beside = [each for each in self.works.values() if each.parent == work.parent]
        return (
            work.end == work.start
            or not above.start <= work.start <= work.end <= above.end
            or any(
                each is not work and each.start < work.end and work.start < each.end
                for each in beside
            )
            or (above.kind == "PRODUCER" and work.kind == "CONSUMER")
        )

    def trim(self, overlap: float) -> None:
        for work in self.plain.values():
            if work.parent is None or not overlap:
                continue
            above = self.plain[work.parent]
            allowed = round(overlap * (above.end - above.start))
            starts = [
                each.start
                for each in self.plain.values()
                if each.parent == work.parent
                and each.start >= max(work.start + 1, work.end - allowed)
            ]
            if starts and min(starts) < work.end:
                self.works[work.name] = work._replace(end=min(starts))

    def follow(self) -> None:
        def last(work: Work) -> int:
            below = (each for each in self.works.values() if each.parent == work.name)
            return max([work.end, *map(last, below)])

        self.works = {work.name: work._replace(end=last(work)) for work in self.works.values()}

    def is_detached(self, work: Work) -> bool:
        above = self.trimmed[work.parent or ""]
        is_message = above.kind == "PRODUCER" and work.kind == "CONSUMER"
        return is_message and (not self.follows or work.end <= above.end)

    def sections(self) -> list[tuple[str, int, bool]]:
        return self.walk(self.root, self.root.start, self.root.end, is_assumed=False)[::-1]

    def walk(
        self, work: Work, start: int, end: int, *, is_assumed: bool
    ) -> list[tuple[str, int, bool]]:
        work = self.works[work.name]
        cut = [
            (min(child.end, end), max(child.start, start), child)
            for child in self.works.values()
            if child.parent == work.name
            and min(child.end, end) > max(child.start, start)
            and not self.is_detached(child)
        ]
        is_assumed |= any(
            one is not other
            and one[2].task == other[2].task
            and one[1] < other[0]
            and other[1] < one[0]
            for one in cut
            for other in cut
        )
        found: list[tuple[str, int, bool]] = []
        before: Any = None
        while end > start:
            chosen = self.choose([each for each in cut if each[0] <= end], before)
            child_end, child_start, child = chosen or (start, start, None)
            if child_end < end:
                found.append((work.name, end - child_end, is_assumed))
            if child is not None:
                found += self.walk(child, child_start, child_end, is_assumed=is_assumed)
            end, before = child_start, chosen
        return found

    def choose(self, over: list[Any], before: Any) -> Any:
        """The last to end, of these the first to start, of these by task, then by id."""

        def order(each: Any) -> Any:
            return (-each[0], each[1], each[2].task or "", self.ids[each[2].name])

        last = min(over, key=order, default=None)
        own = [each for each in over if before and each[2].task == before[2].task]
        mine = min(own, key=order, default=None)
        return mine if mine and last[1] < mine[0] else last


@st.composite
def trees(draw: st.DrawFn) -> list[Work]:
    """A root and spans anywhere below it, at times and of kinds that have nothing to do with it."""
    times = st.integers(0, 40)
    works = [Work("s0", None, 0, draw(st.integers(1, 40)))]
    tasks = draw(st.sampled_from([[None], [None, "1", "2"]]))
    for number in range(1, draw(st.integers(1, 12))):
        start, end = sorted((draw(times), draw(times)))
        kind = draw(st.sampled_from(["INTERNAL", "INTERNAL", "PRODUCER", "CONSUMER"]))
        parent = f"s{draw(st.integers(0, number - 1))}"
        works.append(Work(f"s{number}", parent, start, end, kind, draw(st.sampled_from(tasks))))
    return works


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("paths")


@pytest.mark.parametrize(
    ("outliving", "overlap"), [("clip", 0), ("follow", 0), ("clip", 0.1), ("follow", 0.1)]
)
def test_as_one_would_walk(logs: Any, folder: Path, outliving: str, overlap: float) -> None:
    """Many trees at once, in one pass."""

    @settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
    @given(st.lists(trees(), min_size=30, max_size=60))
    def check(forest: list[list[Work]]) -> None:
        logs.folder, logs.files = folder, {}
        expected = {}
        for number, works in enumerate(forest):
            ids = write(logs, works, trace=f"t{number}")
            expected[f"t{number}"] = Walk(works, ids, outliving, overlap).sections()
        with logs.engine() as engine:
            paths = sections(engine, outliving, overlap, assumed=True)
        by_id = {hashlib.sha256(label.encode()).hexdigest()[:32]: label for label in expected}
        for trace_id, label in by_id.items():
            assert paths.get(trace_id, []) == expected[label], forest[int(label[1:])]

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
