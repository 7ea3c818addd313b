"""Clock offsets: what the calls between two clocks say of them, and what that does to spans."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine

MS = 1_000_000
SECOND = 1_000 * MS


class Call(NamedTuple):
    """A CLIENT span of one service and a SERVER span of another; each service has a clock."""

    client: str
    client_start: int
    client_end: int
    server: str
    server_start: int
    server_end: int

    @property
    def bounds(self) -> tuple[int, int]:
        return self.server_end - self.client_end, self.server_start - self.client_start


def write(
    logs: Any,
    calls: Iterable[Call],
    *,
    kinds: tuple[str, str] = ("CLIENT", "SERVER"),
    trace: str = "t",
) -> None:
    """Write each call as a trace of two spans."""
    prefix = trace
    for number, call in enumerate(calls):
        trace, (client, server) = f"{prefix}{number}", kinds
        logs.span(
            "call",
            None,
            call.client_start,
            call.client_end,
            trace=trace,
            service=call.client,
            kind=client,
        )
        logs.span(
            "serve",
            "call",
            call.server_start,
            call.server_end,
            trace=trace,
            service=call.server,
            kind=server,
        )


def asked(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in engine.rows(query)]


PAIRS = """
    SELECT method, offset_ns, lower_ns, upper_ns, width_ns, calls, contradicting_calls,
        excluded_calls
    FROM clock_pairs
    ORDER BY clock, other_clock, first_time_unix_nano
"""
OFFSETS = """
    SELECT clock[1], offset_ns
    FROM clock_offsets
    ORDER BY clock, from_unix_nano NULLS FIRST
"""

SK1 = Call("a", 0, 100, "b", 20, 70)
SK2 = Call("a", 0, 100, "b", 50_020, 50_070)
SK3 = Call("a", 200, 260, "b", 50_205, 50_255)
SK5 = Call("a", 200, 300, "b", 5_220, 5_270)
SK7 = Call("a", 0, 100, "b", -50, 120)


RIGHT_VALUES: dict[str, tuple[list[Call], list[tuple[Any, ...]]]] = {
    "SK1": ([SK1], [("none", 0, -30, 20, 50, 1, 0, 0)]),
    "SK2": ([SK2], [("bounds", 49_995, 49_970, 50_020, 50, 1, 0, 0)]),
    "SK3": ([SK2, SK3], [("bounds", 50_000, 49_995, 50_005, 10, 2, 0, 0)]),
    "SK5": (
        [SK1, SK5],
        [("buckets", 0, -30, 20, 50, 1, 0, 0), ("buckets", 4_995, 4_970, 5_020, 50, 1, 0, 0)],
    ),
    "SK7": ([SK7], [(None, None, None, None, None, 0, 0, 1)]),
    "SK7 beside SK2": ([SK2, SK7], [("bounds", 49_995, 49_970, 50_020, 50, 1, 0, 1)]),
}


def test_the_right_values(logs: Any) -> None:
    """Two clocks and few calls each time; the numbers add up by hand."""
    for name, (calls, _) in RIGHT_VALUES.items():
        own = [call._replace(client=f"{name} a", server=f"{name} b") for call in calls]
        write(logs, own, trace=name)
    with logs.engine() as engine:
        found: dict[str, list[tuple[Any, ...]]] = {}
        for clock, *row in asked(engine, PAIRS.replace("SELECT", "SELECT clock,")):
            found.setdefault(clock.partition(" a#")[0], []).append(tuple(row))
    assert found == {name: rows for name, (_, rows) in RIGHT_VALUES.items()}


def test_both_calls_move_by_the_same(logs: Any) -> None:
    """SK3: a rule for each call would move one by 49,995 and the other by 50,000."""
    write(logs, [SK2, SK3])
    with logs.engine() as engine:
        moved = asked(engine, "SELECT DISTINCT clock[1], offset_ns FROM aligned_spans ORDER BY 1")
    assert moved == [("a", 0), ("b", 50_000)]


def test_other_kinds_say_nothing_of_clocks(logs: Any) -> None:
    """SK4: work behind a queue, or handed over in some other way, may begin and end at any time."""
    for kinds in (("PRODUCER", "CONSUMER"), ("INTERNAL", "INTERNAL"), ("INTERNAL", "SERVER")):
        write(logs, [Call("a", 0, 100, "b", 90, 180)], kinds=kinds, trace=kinds[0])
    with logs.engine() as engine:
        assert asked(engine, "FROM clock_bounds") == []
        assert asked(engine, PAIRS) == []
        assert asked(engine, OFFSETS) == [("a", 0), ("b", 0)]


def test_offsets_add_up_along_a_chain(logs: Any) -> None:
    """SK6: A to B 1000, B to C -400, so C is 600 ahead of A, and each error adds to the other."""
    write(logs, [Call("a", 0, 100, "b", 1_020, 1_080), Call("b", 1_100, 1_200, "c", 720, 780)])
    logs.span("root", trace="other", service="a")
    with logs.engine() as engine:
        assert asked(engine, OFFSETS) == [("a", 0), ("b", 1_000), ("c", 600)]
        ways = asked(
            engine,
            "SELECT clock[1], parent_clock[1], reference_clock[1], uncertainty_ns, method "
            "FROM clock_offsets ORDER BY clock",
        )
    assert ways == [
        ("a", None, "a", 0, "reference"),
        ("b", "a", "a", 20, "bounds"),
        ("c", "b", "a", 40, "bounds"),
    ]


def test_spans_of_one_clock_are_never_shifted(logs: Any) -> None:
    """SK8: a child that starts before its parent on the same host stays where it is."""
    write(logs, [Call("a", 10, 100, "b", 5, 60)])
    for service in "ab":
        logs.process("started", 0, service=service)
    with logs.engine() as engine:
        assert asked(engine, "FROM clock_bounds") == []
        assert asked(engine, "SELECT clock, offset_ns FROM clock_offsets") == [("node-1", 0)]


def test_work_that_goes_on_after_its_parent_stays_behind_it(logs: Any) -> None:
    """Of two hosts 3.5 s apart: durations stay, the other host's spans move together, raw times
    are as they were."""
    logs.span("rollout", start=0, end=1_000 * MS, service="a")
    logs.span("call", "rollout", 100 * MS, 200 * MS, service="a", kind="CLIENT")
    logs.span("later", "rollout", 1_200 * MS, 1_500 * MS, service="a")
    logs.span("serve", "call", -3_390 * MS, -3_310 * MS, service="b", kind="SERVER")
    logs.span("generate", "serve", -3_380 * MS, -3_350 * MS, service="b")
    logs.span("open", "serve", -3_340 * MS, None, service="b")
    with logs.engine() as engine:
        rows = asked(
            engine,
            """
            WITH base AS (SELECT min(start_time_unix_nano) AS t FROM spans WHERE name = 'rollout')
            SELECT name, offset_ns // 1000000, (start_adj_unix_nano - t) // 1000000,
                (end_adj_unix_nano - t) // 1000000, (start_time_unix_nano - t) // 1000000
            FROM aligned_spans JOIN spans USING (trace_id, span_id, occurrence), base
            ORDER BY name
            """,
        )
    assert rows == [
        ("call", 0, 100, 200, 100),
        ("generate", -3_500, 120, 150, -3_380),
        ("later", 0, 1_200, 1_500, 1_200),
        ("open", -3_500, 160, None, -3_340),
        ("rollout", 0, 0, 1_000, 0),
        ("serve", -3_500, 110, 190, -3_390),
    ]


def test_internal_spans_between_client_and_server_are_stepped_over(logs: Any) -> None:
    """On whichever side of the wire they are, however many; the bounds are those of the ends."""
    logs.span("call", start=0, end=100, kind="CLIENT", service="a")
    logs.span("hop0", "call", 10, 90, service="a")
    for number in range(1, 40):
        logs.span(f"hop{number}", f"hop{number - 1}", 510, 590, service="b")
    logs.span("serve", "hop39", 520, 570, kind="SERVER", service="b")
    logs.span("inner", "serve", 530, 560, service="b")
    logs.span("deeper", "inner", 535, 555, kind="SERVER", service="c")
    logs.span("lonely", start=0, end=90, service="a", trace="u")
    logs.span("alone", "lonely", 20, 70, kind="SERVER", service="b", trace="u")
    with logs.engine() as engine:
        query = "SELECT client_clock[1], server_clock[1], lower_ns, upper_ns FROM clock_bounds"
        assert asked(engine, query) == [("a", "b", 470, 520)]


def test_a_client_that_gave_up_says_nothing(logs: Any) -> None:
    """Its server may have gone on; where the server failed too, it has answered."""
    for trace, status in (("t", "OK"), ("u", "ERROR")):
        logs.span("call", end=100, trace=trace, kind="CLIENT", status="ERROR", service="a")
        logs.span("serve", "call", 60, 120, trace=trace, kind="SERVER", status=status, service="b")
    with logs.engine() as engine:
        query = "SELECT excluded, count(*) FROM clock_bounds GROUP BY ALL ORDER BY ALL"
        assert asked(engine, query) == [("given up", 1), (None, 1)]


def test_unfinished_spans_say_nothing(logs: Any) -> None:
    logs.span("call", end=None, kind="CLIENT", service="a")
    logs.span("serve", "call", 20, 70, kind="SERVER", service="b")
    logs.span("call", end=100, kind="CLIENT", service="a", trace="u")
    logs.span("serve", "call", 20, None, kind="SERVER", service="b", trace="u")
    with logs.engine() as engine:
        assert asked(engine, "FROM clock_bounds") == []


def test_rounded_times_widen_the_bounds(logs: Any) -> None:
    """Cut to whole µs, ms or s, many calls seem to contradict each other: none does."""
    units = {"µs": 1_000, "ms": MS, "s": SECOND}
    for name, unit in units.items():
        chance = random.Random(1)
        calls = []
        for number in range(60):
            start = number * 1_000 * unit + chance.randrange(unit)
            moments = (start, start + unit // 9, start + 5 * unit, start + 5 * unit + unit // 9)
            offset = 37_456 * unit // 1_000
            first, begin, finish, last = (
                (moment + ahead) // unit * unit
                for moment, ahead in zip(moments, (0, offset, offset, 0), strict=True)
            )
            calls.append(Call(f"{name} a", first, last, f"{name} b", begin, finish))
        write(logs, calls, trace=name)
    with logs.engine() as engine:
        rows = asked(engine, PAIRS.replace("SELECT", "SELECT clock,"))
    assert len(rows) == 3
    for clock, method, _, lower, upper, width, calls_read, contradicting, excluded in rows:
        unit = units[clock.partition(" ")[0]]
        assert (method, calls_read, contradicting, excluded) == ("bounds", 60, 0, 0)
        assert lower <= 37_456 * unit // 1_000 <= upper
        assert width < 2 * unit


def fleet(*offsets: int, calls: int = 200, every: int = SECOND) -> list[Call]:
    """Calls from a to b, whose clock is ahead by offsets[i] in the i-th part of them."""
    chance = random.Random(0)
    made = []
    for number in range(calls):
        start = number * every + 1
        begin = start + chance.randint(1, 500_000)
        finish = begin + chance.randint(1, 300 * MS)
        offset = offsets[number * len(offsets) // calls]
        last = finish + chance.randint(1, 500_000)
        made.append(Call("a", start, last, "b", begin + offset, finish + offset))
    return made


def test_few_odd_calls_change_nothing(logs: Any) -> None:
    """2 of 200 clients leave early: 2 calls contradict, and the offset is that of the others."""
    calls = fleet(7 * MS)
    write(logs, [call._replace(client="c", server="d") for call in calls], trace="clean")
    for number in (70, 150):
        odd = calls[number]
        early = odd.server_end - 7 * MS - (odd.server_start - 7 * MS - odd.client_start) + 10
        calls[number] = odd._replace(client_end=early)
    write(logs, calls)
    with logs.engine() as engine:
        odd_row, clean_row = asked(engine, PAIRS)
    assert (odd_row[0], odd_row[6]) == ("bounds", 2)
    assert (clean_row[0], clean_row[6]) == ("bounds", 0)
    assert abs(odd_row[1] - clean_row[1]) < 100_000


def test_servers_that_go_on_after_their_answer_make_no_skew(logs: Any) -> None:
    """8 of 40 end after their client, so that no offset suits all; that is weak evidence. Where
    most do, or one in ten starts before its client, the clocks differ."""
    calls = [Call("a", start, start + 9 * MS, "b", start + MS, start + 8 * MS)
             for start in range(1, 40 * SECOND, SECOND)]  # fmt: skip
    late, early = 9_300_000, -100_000
    soon = [call._replace(server_start=call.client_start + 200_000) for call in calls[:1]]
    runs = {
        "some late": (8, late, soon + calls[9:]),
        "most late": (31, late, soon + calls[32:]),
        "some early": (4, early, calls[4:]),
    }
    for name, (odd, moment, others) in runs.items():
        for call in calls[:odd]:
            field = "server_end" if moment == late else "server_start"
            others = [*others, call._replace(**{field: call.client_start + moment})]
        own = [call._replace(client=f"{name} a", server=f"{name} b") for call in others]
        write(logs, own, trace=name)
    with logs.engine() as engine:
        rows = asked(engine, PAIRS.replace("SELECT", "SELECT clock,"))
    found = {clock.partition(" a#")[0]: row for clock, *row in rows}
    assert found["some late"][:2] == ["none", 0]
    assert found["some late"][6] == 8
    assert found["most late"][1] > 0
    assert found["some early"][1] < 0


def test_a_clock_that_was_set_is_a_step(logs: Any) -> None:
    """By 5 s, after three quarters of the calls; forward or back, spans move by what was true."""
    write(logs, fleet(0, 0, 0, 5 * SECOND))
    back = [call._replace(client="c", server="d") for call in fleet(0, 0, 0, -5 * SECOND)]
    write(logs, back, trace="back")
    with logs.engine() as engine:
        rows = asked(engine, PAIRS)
        outside = asked(
            engine,
            """
            SELECT count(*)
            FROM _edges AS edge
            JOIN aligned_spans_of(NULL) AS server ON server.node = edge.node
            JOIN aligned_spans_of(NULL) AS client ON client.node = edge.parent
            WHERE server.clock[1] = 'b' AND (
                server.start_adj_unix_nano < client.start_adj_unix_nano
                OR server.end_adj_unix_nano > client.end_adj_unix_nano
            )
            """,
        )
    assert [(row[0], row[5]) for row in rows] == [("buckets", 150), ("buckets", 50)] * 2
    # Where b's clock shows the same times twice, a call or two may be taken for another's time.
    assert [row[6] <= most for row, most in zip(rows, (0, 0, 2, 2), strict=True)] == [True] * 4
    assert [row[1] for row in rows[::2]] == [0, 0]
    assert abs(rows[1][1] - 5 * SECOND) < MS
    assert abs(rows[3][1] + 5 * SECOND) < MS
    assert outside == [(0,)]


def test_behind_a_step_others_step_too(logs: Any) -> None:
    """c is measured against b only: what b's clock did divides c's time as well."""
    calls = fleet(0, 5 * SECOND)
    behind = [
        Call("b", call.server_start + 10, call.server_end, "c", start, start + 5)
        for call in calls
        for start in (call.server_start + 40 + 100 * MS,)
        if call.server_end > call.server_start + 20_000
    ]
    write(logs, [*calls, *behind])
    for number in range(300):
        logs.span("root", service="a", trace=f"root{number}")
    with logs.engine() as engine:
        rows = asked(engine, OFFSETS)
    steps = {name: [offset for clock, offset in rows if clock == name] for name in "abc"}
    assert steps["a"] == [0]
    assert [round(offset / SECOND) for offset in steps["b"]] == [0, 5]
    assert [round(offset / SECOND) for offset in steps["c"]] == [0, 5]
    assert steps["c"][1] - steps["c"][0] == steps["b"][1] - steps["b"][0]


def test_calls_that_never_agree_give_a_median(logs: Any) -> None:
    """Several machines under one name: no time is told from another, and it says so."""
    offsets = [0, 4 * SECOND, 9 * SECOND] * 70
    write(logs, fleet(*offsets, calls=210))
    with logs.engine() as engine:
        ((method, offset, lower, upper, _, calls, contradicting, _),) = asked(engine, PAIRS)
    assert (method, calls, contradicting) == ("median", 210, 140)
    assert round(offset / SECOND) == 4
    assert lower < MS
    assert upper > 8 * SECOND


def test_calls_both_ways_bound_one_offset(logs: Any) -> None:
    write(logs, [Call("a", 0, 100, "b", 1_010, 1_050), Call("b", 1_200, 1_300, "a", 240, 290)])
    with logs.engine() as engine:
        assert asked(engine, PAIRS) == [("bounds", 985, 960, 1_010, 50, 2, 0, 0)]


def test_the_way_with_most_calls_is_taken(logs: Any) -> None:
    """a knows c by one call, and by b through many: that says more. Clocks that nothing links are
    references of their own, also beside another part of the fleet."""
    calls = [Call("a", n * 1_000, n * 1_000 + 100, "b", n * 1_000 + 10, n * 1_000 + 90)
             for n in range(3)]  # fmt: skip
    calls += [call._replace(client="b", server="c") for call in calls]
    calls += [Call("a", 9_000, 9_900, "c", 9_001, 9_899)]
    calls += [Call("x", 0, 100, "y", 10, 90)]
    write(logs, calls)
    logs.span("nobody", service="z", trace="z")
    with logs.engine() as engine:
        rows = asked(
            engine,
            "SELECT clock[1], parent_clock[1], reference_clock[1], uncertainty_ns, method "
            "FROM clock_offsets ORDER BY clock",
        )
    assert rows == [
        ("a", None, "a", 0, "reference"),
        ("b", "a", "a", 10, "none"),
        ("c", "b", "a", 20, "none"),
        ("x", None, "x", 0, "reference"),
        ("y", "x", "x", 10, "none"),
        ("z", None, "z", None, "alone"),
    ]


# Any fleet: what must hold whatever the times are.

TRUE = st.integers(-10 * SECOND, 10 * SECOND)
GAP = st.integers(0, 2 * MS)


@st.composite
def fleets(draw: st.DrawFn) -> tuple[dict[str, int], list[Call]]:
    """True offsets of up to 4 clocks, and calls between them as their clocks time them."""
    true = {name: draw(TRUE) for name in "abcd"[: draw(st.integers(2, 4))]}
    calls = []
    for _ in range(draw(st.integers(1, 8))):
        client, server = draw(st.permutations(sorted(true)))[:2]
        start = draw(st.integers(0, 600 * SECOND)) + true[client]
        end = start + sum(gaps := draw(st.tuples(GAP, GAP, GAP)))
        ahead = true[server] - true[client]
        begin, finish = start + gaps[0] + ahead, end - gaps[2] + ahead
        calls.append(Call(client, start, end, server, begin, finish))
    return true, calls


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(several=st.lists(fleets(), min_size=1, max_size=8), seed=st.integers(0, 2**16))
def test_the_truth_is_within_the_bounds(
    tmp_path_factory: pytest.TempPathFactory,
    logs: Any,
    several: list[tuple[dict[str, int], list[Call]]],
    seed: int,
) -> None:
    """The offset differs from the true one by the uncertainty at most; each clock moves as one, so
    no order within it changes; the order of lines changes nothing. Fleets are apart."""
    logs = type(logs)(Path(tmp_path_factory.mktemp("fleets")))
    for number, (_, calls) in enumerate(several):
        own = [
            call._replace(client=f"{call.client}{number}", server=f"{call.server}{number}")
            for call in calls
        ]
        write(logs, own, trace=f"fleet {number}/")
    with logs.engine() as engine:
        offsets = engine.rows("FROM clock_offsets ORDER BY ALL")
        methods = asked(engine, "SELECT DISTINCT method FROM clock_pairs")
        moves = asked(
            engine, "SELECT clock, count(DISTINCT offset_ns) FROM aligned_spans GROUP BY 1"
        )
    for row in offsets:
        (clock, fleet), (reference, same_fleet) = (
            (row[name][0], row[name].partition("#")[0][1:]) for name in ("clock", "reference_clock")
        )
        assert fleet == same_fleet
        true = several[int(fleet)][0]
        assert abs(row["offset_ns"] - true[clock] + true[reference]) <= row["uncertainty_ns"]
    assert set(methods) <= {("none",), ("bounds",)}
    assert {count for _, count in moves} == {1}

    lines = [line for file in logs.files.values() for line in file]
    random.Random(seed).shuffle(lines)
    shuffled = type(logs)(Path(tmp_path_factory.mktemp("shuffled")))
    shuffled.files = {"a.log": lines[::2], "b.log": lines[1::2]}
    with shuffled.engine() as engine:
        assert engine.rows("FROM clock_offsets ORDER BY ALL") == offsets
