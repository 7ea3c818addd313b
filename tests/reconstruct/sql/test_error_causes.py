"""The causes of errors: which span failed of itself, what failed for it, what it waited for."""

import json
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine
from tests.reconstruct.conftest import SECOND, LogBuilder

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ok": ("UNSET", {}),
    "failed": ("ERROR", {"error.type": "ValueError"}),
    "timeout": ("ERROR", {"error.type": "TimeoutError"}),
    "cancelled": ("ERROR", {"error.type": "CancelledError", "gymlog.cancelled": True}),
    "shutdown": ("UNSET", {"gymlog.unfinished": True}),
}
"""How a span of these tests ends: its status and attributes."""
COLUMNS = "name, cause, failed_name, has_reached_root, waited_name, waited_outcome"


class Work(NamedTuple):
    """A span: its parent's name, how it ends (`open`: not at all), when."""

    parent: str | None
    kind: str
    start: int = 0
    end: int = 100


def write(logs: Any, works: dict[str, Work], trace: str = "t") -> None:
    """Write the spans of a tree, named as they are."""
    for name, (parent, kind, start, end) in works.items():
        status, attributes = KINDS.get(kind, KINDS["ok"])
        stop = None if kind == "open" else end
        logs.span(
            name, parent, start, stop, trace=trace, status=status, attributes=attributes,
        )  # fmt: skip


def causes(engine: Engine, columns: str = COLUMNS) -> list[tuple[Any, ...]]:
    rows = engine.rows(f"SELECT {columns} FROM error_causes ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def of(logs: Any, works: dict[str, Work], columns: str = COLUMNS) -> list[tuple[Any, ...]]:
    """Return the causes in a tree."""
    write(logs, works)
    with logs.engine() as engine:
        return causes(engine, columns)


def test_the_deepest_failed_span_is_the_cause(logs: Any) -> None:
    """Through all services, up to the root; what did not fail has no part in it."""
    logs.span("run", None, status="ERROR", service="driver")
    logs.span("call", "run", 10, 90, status="ERROR", service="driver", kind="CLIENT")
    logs.span("serve", "call", 20, 80, status="ERROR", service="tools", kind="SERVER")
    logs.span("fine", "serve", 30, 40, service="tools")
    logs.span("other", "run", 10, 20, service="driver")
    with logs.engine() as engine:
        assert causes(engine) == [("serve", "failed", "run", True, None, None)]
        columns = "service_name, failed_service_name, duration_ns"
        assert causes(engine, columns) == [("tools", "driver", 60)]


def test_a_handled_failure_goes_no_further(logs: Any) -> None:
    """The span above it did not fail, whatever fails further up."""
    found = of(
        logs,
        {
            "run": Work(None, "failed"),
            "turn": Work("run", "ok"),
            "call": Work("turn", "failed"),
            "tool": Work("call", "failed"),
        },
    )
    assert found == [
        ("run", "failed", "run", True, None, None),
        ("tool", "failed", "call", False, None, None),
    ]


def test_each_attempt_that_failed_is_a_cause(logs: Any) -> None:
    """A call that was sent again, and failed again."""
    found = of(
        logs,
        {
            "call": Work(None, "failed"),
            "one": Work("call", "failed"),
            "two": Work("call", "failed"),
        },
        "name, failed_name",
    )
    assert found == [("one", "call"), ("two", "call")]


def test_a_timeout_is_the_cause_of_what_was_cancelled_for_it(logs: Any) -> None:
    """The call below it that was cancelled, and the server's half that never ended, are not."""
    found = of(
        logs,
        {
            "run": Work(None, "failed"),
            "agent": Work("run", "timeout"),
            "call": Work("agent", "cancelled"),
            "serve": Work("call", "open"),
            "generate": Work("serve", "open", 10),
        },
    )
    assert found == [("agent", "timeout", "run", True, "generate", "open")]


def test_a_client_that_timed_out(logs: Any) -> None:
    """Its server half was cancelled, failed or ended later: the timeout is the cause all the same.

    What failed later is a cause of its own, of nothing else.
    """
    for number, kind in enumerate(("cancelled", "failed", "ok")):
        logs.span("call", None, 0, 50, trace=f"{number}", kind="CLIENT", status="ERROR",
                  attributes={"error.type": "ServerTimeoutError"})  # fmt: skip
        status, attributes = KINDS[kind]
        logs.span(
            kind, "call", 10, 60, trace=f"{number}", kind="SERVER", status=status,
            attributes=attributes, service="b",
        )  # fmt: skip
    with logs.engine() as engine:
        assert causes(engine) == [
            ("call", "timeout", "call", True, "cancelled", "cancelled"),
            ("call", "timeout", "call", True, "failed", "late"),
            ("call", "timeout", "call", True, "ok", "late"),
            ("failed", "failed", "failed", False, None, None),
        ]


def test_a_server_that_failed_before_the_timeout_is_the_cause(logs: Any) -> None:
    """Its caller went on trying until its time was up."""
    found = of(logs, {"call": Work(None, "timeout"), "serve": Work("call", "failed", 0, 50)})
    assert found == [("serve", "failed", "call", True, None, None)]


def test_a_caller_whose_server_died(logs: Any) -> None:
    """What the server still had open is named."""
    logs.process("started", 0)
    logs.process("started", 0, service="b")
    logs.span("call", None, 0, 50, kind="CLIENT", status="ERROR")
    logs.span("serve", "call", 10, None, kind="SERVER", service="b")
    logs.span("step", "serve", 20, None, service="b")
    logs.span("beyond", "step", 30, 40, status="ERROR", attributes={"error.type": "CancelledError"})
    logs.process("stopped", 2 * SECOND)
    with logs.engine() as engine:
        assert causes(engine) == [("call", "failed", "call", True, "step", "lost")]


def test_cancelled_work_is_a_cause_where_nothing_else_failed(logs: Any) -> None:
    """Its uppermost span: there the cancellation came in."""
    works = {
        "run": Work(None, "ok"),
        "serve": Work("run", "cancelled"),
        "step": Work("serve", "cancelled"),
        "deeper": Work("step", "shutdown"),
    }
    assert of(logs, works) == [("serve", "cancelled", "serve", False, None, None)]


def test_a_task_group_that_one_task_broke(logs: Any) -> None:
    """Its siblings were cancelled for it, and are no causes."""
    works = {
        "group": Work(None, "failed"),
        "broken": Work("group", "failed"),
        "beside": Work("group", "cancelled"),
        "below": Work("beside", "cancelled"),
    }
    assert of(logs, works) == [("broken", "failed", "group", True, None, None)]


def test_the_parent_of_a_failed_root_may_be_missing(logs: Any) -> None:
    """A span without a parent in the input counts as a root."""
    assert of(logs, {"half": Work("gone", "failed")}, "name, has_reached_root") == [("half", True)]


def test_what_failed_says_why(logs: Any) -> None:
    """By error.type, exception events, HTTP status or the status message, the first of these."""
    http = "http.response.status_code"
    exception = [
        {"name": "exception", "attributes": {"exception.type": "A", "exception.message": "first"}},
        {"name": "exception", "attributes": {"exception.type": "b.B", "exception.message": "last"}},
    ]
    cases: dict[str, tuple[dict[str, Any], list[Any], str | None]] = {
        "attribute": ({"error.type": "B", http: 500}, exception, None),
        "bare": ({}, [], None),
        "deadline": ({}, [], "DEADLINE_EXCEEDED"),
        "event": ({http: 500}, exception, "b.B: last"),
        "http": ({http: 504}, [], None),
        "quoted": ({"error.type": "HTTPException"}, [], "504: no answer in 8 s"),
        "told": ({}, [], "context canceled"),
        "words": ({}, [], "connection 504 refused"),
    }
    for name, (attributes, events, message) in cases.items():
        span = logs.span(name, trace=name, status="ERROR", attributes=attributes)
        status = {"code": "ERROR"} | ({"message": message} if message else {})
        moments = [{"time_unix_nano": span["start_time_unix_nano"], **event} for event in events]
        logs.files["a.log"][-1] = json.dumps({**span, "status": status, "events": moments})
    with logs.engine() as engine:
        assert causes(engine, "name, cause, error_type, message") == [
            ("attribute", "failed", "B", "last"),
            ("bare", "failed", None, None),
            ("deadline", "timeout", None, "DEADLINE_EXCEEDED"),
            ("event", "failed", "b.B", "last"),
            ("http", "timeout", "504", None),
            ("quoted", "timeout", "HTTPException", "504: no answer in 8 s"),
            ("told", "cancelled", None, "context canceled"),
            ("words", "failed", None, "connection 504 refused"),
        ]


def test_a_cause_belongs_to_the_rollout_of_its_ancestors(logs: Any) -> None:
    """Also where its own process does not know it."""
    logs.span("run", None, rollout="0-1")
    logs.span("tool", "run", status="ERROR", service="b")
    with logs.engine() as engine:
        assert causes(engine, "name, rollout_id") == [("tool", "0-1")]


def test_deep_and_wide(logs: Any) -> None:
    """Ten thousand failures in a chain, and side by side."""
    count = 10_000
    for number in range(count):
        above = f"{number - 1}" if number else None
        logs.span(f"{number}", above, number, 30_000 - number, name="s", status="ERROR")
    logs.span("wide", None, status="ERROR", trace="u")
    for number in range(count):
        logs.span(f"{number}", "wide", trace="u", name="w", status="ERROR")
    with logs.engine() as engine:
        rows = engine.rows(
            """
            SELECT name, failed_name, has_reached_root, count(*) AS n, min(duration_ns) AS least
            FROM error_causes
            GROUP BY ALL
            ORDER BY ALL
            """
        )
    assert [tuple(row.values()) for row in rows] == [
        ("s", "s", True, 1, 30_000 - 2 * (count - 1)),
        ("w", "wide", True, count, 100),
    ]


def trees() -> st.SearchStrategy[dict[str, Work]]:
    """Trees of up to nine spans, each starting when its parent does or later."""
    kinds = st.sampled_from([*KINDS, "open", "failed"])
    spans = st.tuples(st.integers(0, 8), kinds, st.integers(0, 5), st.integers(0, 5))

    def grown(drawn: list[tuple[int, str, int, int]]) -> dict[str, Work]:
        works: dict[str, Work] = {}
        for number, (parent, kind, start, length) in enumerate(drawn):
            above = f"{parent % number}" if number else None
            works[f"{number}"] = Work(above, kind, start, start + length)
        return works

    return st.lists(spans, min_size=1, max_size=9).map(grown)


OWN = {"failed", "timeout"}


def fails_for(lower: Work, upper: Work) -> bool:
    """Say whether a parent failed because its child did."""
    if upper.kind == "timeout" and lower.end > upper.end:
        return False
    return lower.kind in OWN and upper.kind in OWN


def is_masked(works: dict[str, Work], work: Work) -> bool:
    """Say whether something above what was cancelled or unfinished failed."""
    while work.parent is not None and work.kind not in {*OWN, "ok"}:
        work = works[work.parent]
    return work.kind in OWN


def is_uppermost(works: dict[str, Work], work: Work) -> bool:
    """Say whether a span was cancelled, and its parent was not."""
    above = None if work.parent is None else works[work.parent].kind
    return work.kind == "cancelled" and above != "cancelled"


def walked(works: dict[str, Work]) -> set[tuple[Any, ...]]:
    """Find the causes of a tree one span after the other, as the definition says."""
    found = set()
    for name, work in works.items():
        top, above = name, work.parent
        if work.kind in OWN:
            children = [other for other in works.values() if other.parent == name]
            if any(fails_for(child, work) for child in children):
                continue
            while above is not None and fails_for(works[top], works[above]):
                top, above = above, works[above].parent
        elif not is_uppermost(works, work) or is_masked(works, work):
            continue
        found.add((name, work.kind, top, above is None))
    return found


def test_any_tree(logs: Any) -> None:
    """The same causes as by walking each tree."""
    folder = logs.folder

    @settings(max_examples=4, deadline=None)
    @given(st.lists(trees(), min_size=20, max_size=60))
    def check(forest: list[dict[str, Work]]) -> None:
        logs = LogBuilder(folder)
        for number, works in enumerate(forest):
            write(logs, works, trace=f"t{number}")
        with logs.engine() as engine:
            rows = engine.rows(
                """
                SELECT trace_id, name, cause, failed_name, has_reached_root
                FROM error_causes
                """
            )
        found: dict[str, set[tuple[Any, ...]]] = {}
        for row in rows:
            trace_id, *rest = row.values()
            assert tuple(rest) not in found.setdefault(trace_id, set())
            found[trace_id].add(tuple(rest))
        expected = [causes for works in forest if (causes := walked(works))]
        assert sorted(map(sorted, found.values())) == sorted(map(sorted, expected))

    check()
