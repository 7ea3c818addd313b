"""A trace at a glance: the tree, who did what when, what failed, what never ended."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.render.text import plain, width
from reconstruct.render.waterfall import waterfall
from reconstruct.tree import MISSING, Span, Trace

GOLDEN = Path(__file__).with_name("golden")
START = 1_764_475_132_123_456_789
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"


def span(name, start_ms, end_ms, service, *children, **facts):
    """Make a span from start to end (None: unfinished), in ms since the trace began."""
    defaults = {
        "trace_id": TRACE_ID,
        "span_id": f"{abs(hash((name, start_ms, end_ms))) % 16**16:016x}",
        "parent_span_id": None,
        "name": name,
        "kind": "INTERNAL",
        "state": "finished",
        "service_name": service,
        "service_instance_id": None,
        "server_name": None,
        "process_pid": 4242,
        "run_id": "demo-17",
        "rollout_id": "3-1",
        "start_time_unix_nano": START + int(start_ms * 1e6),
        "end_time_unix_nano": None if end_ms is None else START + int(end_ms * 1e6),
        "duration_ns": None if end_ms is None else int((end_ms - start_ms) * 1e6),
        "open_ns": None,
        "self_time_ns": None,
        "status_code": "UNSET",
        "status_message": None,
        "file": "a.log",
        "line": 1,
        "depth": 0,
        "orphan": False,
        "cycle": False,
        "attributes": {},
        "events": [],
        "links": [],
        "children": children,
    }
    return Span(**{**defaults, **facts})


def missing(parent_span_id, *children):
    first = min(child.start_time_unix_nano for child in children)
    last = max(child.seen_until_unix_nano for child in children)
    facts = {"start_time_unix_nano": first, "open_ns": last - first, "span_id": parent_span_id}
    return span("(missing span)", 0, None, None, *children, state=MISSING, **facts)


def trace(*roots, **facts):
    whole = Trace(
        trace_id=TRACE_ID,
        roots=roots,
        span_count=0,
        start_time_unix_nano=0,
        end_time_unix_nano=0,
        run_id="demo-17",
        rollout_id="3-1",
    )
    spans = [one for one in whole.walk() if one.state != MISSING]
    return replace(
        whole,
        span_count=len(spans),
        start_time_unix_nano=min(one.start_time_unix_nano for one in spans),
        end_time_unix_nano=max(one.seen_until_unix_nano for one in spans),
        **facts,
    )


def rollout():
    """One rollout: two turns of the agent, a tool that fails, a verify that never ended.

    gym.rollout ── POST ── POST /run ─┬─ turn ─┬─ model
                                      │        └─ tool ✗
                                      ├─ turn ── model
                                      └─ POST ── verify ╱
    """
    failed = {"status_code": "ERROR"}
    refused = {"status_message": "ConnectError: weather.internal:443 refused the connection"}
    model = span("gym.model.call", 20, 400, "gym/policy_model")
    tool = span("POST /get_weather", 417, 510, "gym/tools", **failed, **refused)
    turn = span(
        "gym.agent.turn",
        8,
        520,
        "gym/agent",
        span(
            "POST",
            10,
            410,
            "gym/agent",
            span("POST /v1/responses", 13, 405, "gym/policy_model", model),
        ),
        span("POST", 415, 515, "gym/agent", tool, **failed),
    )
    second = span(
        "gym.agent.turn",
        530,
        980,
        "gym/agent",
        span("gym.model.call", 540, 950, "gym/policy_model"),
    )
    verify = span("gym.verify", 1004, None, "gym/tools", state="lost", open_ns=216_000_000)
    checked = span(
        "POST", 1000, 1225, "gym/agent", span("POST /verify", 1002, 1220, "gym/tools", verify)
    )
    run = span("POST /ng-rollout/{rollout_id}/run", 5, 1230, "gym/agent", turn, second, checked)
    root = span("gym.rollout", 0, 1240, "gym/driver", span("POST", 3, 1236, "gym/driver", run))
    orphans = [span("gym.sandbox.exec", start, start + 120, "gym/tools") for start in (600, 730)]
    return trace(root, missing("00f067aa0ba902b7", *orphans))


def rows(text):
    """Take the rows between the ruler and the legend."""
    return text.split("\n\n")[1].splitlines()[1:]


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_a_rollout_looks_as_it_should(columns):
    drawn = plain(waterfall([rollout()], columns=columns))
    assert drawn == (GOLDEN / f"rollout-{columns}.txt").read_text("utf-8")


def test_a_short_trace_is_drawn_exactly():
    root = span("gym.rollout", 0, 100, "driver", span("gym.verify", 50, 100, "tools"))
    assert plain(waterfall([trace(root)], columns=62)) == (
        "rollout 3-1   trace 4bf92f3577b34da6a3ce929d0e0e4736\n"
        "run demo-17\n"
        "2025-11-30T03:58:52.123Z   100 ms   2 spans   2 services\n"
        "no errors\n"
        "\n"
        "                              0               50 ms\n"
        "  gym.rollout  driver  100 ms ████████████████━━━━━━━━━━━━━━━━\n"
        "  └╴gym.verify tools  50.0 ms ┊               ████████████████\n"
        "\n"
        "  █ own work   ━ in children\n"
    )


def test_every_line_fits_and_a_narrow_terminal_is_taken_for_sixty_columns():
    for columns in (1, 60, 61, 79, 80, 133, 400):
        lines = plain(waterfall([rollout()], columns=columns)).splitlines()
        assert max(map(width, lines)) <= max(columns, 60)


def test_an_error_is_marked_and_explained_where_it_began():
    drawn = plain(waterfall([rollout()], columns=120))
    marked = [line for line in rows(drawn) if line.startswith("✗")]
    assert len(marked) == 2
    assert drawn.count("↳ ConnectError: weather.internal:443 refused the connection") == 1
    assert "2 errors" in drawn


def test_an_error_without_words_names_its_type():
    failed = span("a", 0, 1, "s", status_code="ERROR", attributes={"error.type": "TimeoutError"})
    assert "↳ TimeoutError" in plain(waterfall([trace(failed)]))


def test_unfinished_work_is_hatched_named_and_says_who_held_it():
    drawn = plain(waterfall([rollout()], columns=120))
    (line,) = [line for line in rows(drawn) if line.startswith("╱")]
    assert "gym.verify" in line
    assert " unfinished ┊" in line
    assert line.rstrip().endswith("╱╱╱╱╱╱╱╱")
    assert "↳ open for 216 ms when process 4242 was last heard of" in drawn
    still = span("a", 0, None, "s", state="open", open_ns=5_000_000, process_pid=None)
    assert "open for 5.00 ms when its process was still writing" in plain(waterfall([trace(still)]))


def test_orphans_hang_under_one_row_for_their_missing_parent():
    drawn = rows(plain(waterfall([rollout()], columns=120)))
    place = drawn.index("  missing parent 00f067aa0ba902b7")
    assert drawn[place + 1].startswith("  ├╴gym.sandbox.exec")
    assert drawn[place + 2].startswith("  └╴gym.sandbox.exec")
    assert "16 spans" in plain(waterfall([rollout()], columns=120))


def test_a_circle_of_parents_is_named():
    assert "its parents lead in a circle" in plain(
        waterfall([trace(span("a", 0, 1, "s", cycle=True))])
    )


def test_traces_of_a_rollout_share_one_axis_in_order_of_start():
    early = trace(span("first", 0, 10, "a"), trace_id="a" * 32)
    late = trace(span("second", 90, 100, "b"), trace_id="b" * 32)
    drawn = plain(waterfall([late, early], columns=100))
    assert "2 traces" in drawn
    assert (
        drawn.index(f"trace {'a' * 32}") < drawn.index("first") < drawn.index(f"trace {'b' * 32}")
    )
    first, second = (line for line in rows(drawn) if "█" in line)
    assert first.index("█") < len(first.rstrip(" ┊")) < second.index("█")


def test_rows_beyond_the_limit_are_counted():
    root = span("root", 0, 100, "s", *(span(f"child{n}", n, n + 1, "s") for n in range(9)))
    drawn = plain(waterfall([trace(root)], max_rows=4))
    assert len([line for line in rows(drawn) if "child" in line]) == 3
    assert "… 6 more spans; --limit 0 shows all" in drawn
    assert "more span" not in plain(waterfall([trace(root)], max_rows=10))


def test_names_cannot_command_the_terminal():
    evil = span("a\x1b[2Jb\nc\u202e", 0, 1, "s\x07", status_code="ERROR", status_message="x\x9by")
    drawn = plain(waterfall([trace(evil)]))
    assert "\x1b" not in drawn
    assert "a\\x1b[2Jb\\nc\\u202e" in drawn
    assert "s\\x07" in drawn
    assert "x\\x9by" in drawn


def test_a_very_deep_chain_is_drawn_with_its_depth_as_a_number():
    chain = span("leaf", 0, 1, "s")
    for _ in range(5_000):
        chain = span("link", 0, 1, "s", chain)
    drawn = rows(plain(waterfall([trace(chain)])))
    assert len(drawn) == 5_001
    assert drawn[-1].startswith("  ⋯5000 leaf")
    assert max(map(width, drawn)) <= 100


def test_nothing_to_draw_is_nothing():
    assert waterfall([]) == []


TREES = st.recursive(
    st.builds(lambda start, length: (start, length, []), st.integers(0, 99), st.integers(0, 99)),
    lambda inner: st.builds(
        lambda start, length, children: (start, length, children),
        st.integers(0, 99),
        st.integers(0, 99),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


def built(tree, counter):
    start, length, children = tree
    name = f"n{next(counter)}"
    return span(name, start, start + length, "s", *(built(child, counter) for child in children))


@settings(deadline=None, max_examples=60)
@given(TREES, st.integers(60, 200))
def test_any_tree_has_one_line_per_span_with_a_bar_inside_the_width(tree, columns):
    whole = trace(built(tree, iter(range(10_000))))
    drawn = rows(plain(waterfall([whole], columns=columns)))
    assert len(drawn) == whole.span_count
    for line in drawn:
        assert width(line) <= columns
        assert set(line) & set("█▉▊▋▌▍▎▏▐▕━╸╺")
