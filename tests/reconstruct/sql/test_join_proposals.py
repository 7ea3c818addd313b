"""Proposed joins: who was most likely whose parent, each call proposed as often as it was made."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MS = 1_000_000


def proposals(logs: Any) -> dict[str, dict[str, Any]]:
    """Return the proposals by the name of the span without its parent."""
    with logs.engine() as engine:
        rows = engine.rows("FROM join_proposals")
    for row in rows:
        row["grounds"] = json.loads(row["grounds"])
    return {row["name"]: row for row in rows}


def call(logs: Any, label: str, start: int, end: int, *, path: str = "/v1", **facts: Any) -> None:
    """Write a call that nothing answers."""
    attributes = {
        "http.request.method": facts.pop("method", "POST"),
        "url.full": f"http://model:80{path}",
        **facts.pop("attributes", {}),
    }
    facts = {"trace": label, "service": "agent", "kind": "CLIENT", **facts}
    logs.span(label, None, start, end, attributes=attributes, **facts)


def request(
    logs: Any, label: str, start: int, end: int, *, path: str = "/v1", **facts: Any
) -> None:
    """Write a request without a parent."""
    attributes = {
        "http.request.method": facts.pop("method", "POST"),
        "url.path": path,
        **facts.pop("attributes", {}),
    }
    facts = {"trace": label, "service": "model", "kind": "SERVER", **facts}
    logs.span(label, None, start, end, attributes=attributes, **facts)


def test_a_request_and_the_call_around_it(logs: Any) -> None:
    """Method, path and times speak for it; nothing is joined."""
    call(logs, "call", 0, 100 * MS)
    request(logs, "served", MS, 50 * MS)
    (found,) = proposals(logs).values()
    assert (found["name"], found["parent_name"]) == ("served", "call")
    assert (found["kind"], found["rivals"]) == ("call", 0)
    assert found["grounds"] == ["a call that nothing answers", "same path", "ended later"]
    assert found["score"] == pytest.approx(1 - 0.6 * 0.5 * 0.7)
    with logs.engine() as engine:
        assert engine.rows("SELECT count(*) AS n FROM spans WHERE parent_span_id IS NOT NULL") == [
            {"n": 0}
        ]


@pytest.mark.parametrize(
    "facts",
    [
        {"path": "/v2"},
        {"method": "PUT"},
        {"attributes": {"server.port": 81}},
        {"start": -1},
        {"end": 200},
        {"service": "agent"},
    ],
    ids=lambda facts: next(iter(facts)),
)
def test_what_does_not_fit_is_not_proposed(logs: Any, facts: dict[str, Any]) -> None:
    """Another path, method or port, other times, the same process."""
    call(logs, "call", 0, 100 * MS)
    times = [facts.pop("start", 1) * MS, facts.pop("end", 50) * MS]
    request(logs, "served", *times, **facts)
    assert proposals(logs) == {}


def test_calls_and_requests_of_other_rollouts_do_not_meet(logs: Any) -> None:
    call(logs, "call", 0, 100 * MS, rollout="0-0")
    request(logs, "served", MS, 50 * MS, rollout="1-0")
    assert proposals(logs) == {}


def test_the_innermost_span_of_a_rollout_is_the_caller(logs: Any) -> None:
    """agent: run ── work; the request begins while both run."""
    logs.span("run", None, 0, 90 * MS, service="agent", rollout="0-0")
    logs.span("work", "run", MS, 80 * MS, service="agent", rollout="0-0")
    request(logs, "served", 2 * MS, 50 * MS, rollout="0-0")
    (found,) = proposals(logs).values()
    assert (found["parent_name"], found["grounds"]) == ("work", ["same rollout", "ended later"])


def test_spans_that_are_as_likely_share_the_score(logs: Any) -> None:
    """The nearer one is proposed, at half the score."""
    for number in range(2):
        call(logs, f"call {number}", number * MS, 100 * MS)
    request(logs, "served", 2 * MS, 50 * MS)
    (found,) = proposals(logs).values()
    assert (found["parent_name"], found["rivals"]) == ("call 1", 1)
    assert found["score"] == pytest.approx((1 - 0.6 * 0.5 * 0.7) / 2, abs=0.006)


def test_a_call_that_was_sent_again_is_proposed_twice(logs: Any) -> None:
    """Three requests lie in it; it was made twice."""
    call(logs, "call", 0, 100 * MS, attributes={"http.request.resend_count": 1})
    for number in range(3):
        request(logs, f"served {number}", (1 + number) * MS, 50 * MS)
    assert set(proposals(logs)) == {"served 0", "served 1"}


def test_its_own_header_is_certain(logs: Any) -> None:
    """Whatever the times say."""
    sent = logs.span("call", None, 500 * MS, 600 * MS, trace="c", service="agent", kind="CLIENT")
    header = f"00-{sent['trace_id']}-{sent['span_id']}-01"
    request(logs, "served", MS, 5 * MS, attributes={"http.request.header.traceparent": [header]})
    (found,) = proposals(logs).values()
    assert (found["kind"], found["score"], found["parent_name"]) == ("header", 1, "call")


def test_the_usual_parent_of_a_job_that_lost_its_context(logs: Any) -> None:
    """serve ── job, three times; once the job stands alone, within another serve."""
    for number in range(4):
        trace, at = f"t{number}", number * 100 * MS
        logs.span("serve", None, at, at + 90 * MS, trace=trace, kind="SERVER")
        parent = "serve" if number else None
        if number == 0:
            trace = "alone"
        logs.span("job", parent, at + MS, at + 5 * MS, trace=trace)
    (found,) = proposals(logs).values()
    assert (found["kind"], found["parent_name"]) == ("process", "serve")
    assert "the usual parent" in found["grounds"]


def test_a_link_says_where_work_came_from(logs: Any) -> None:
    """Then it is left alone."""
    logs.span("serve", None, 0, 90 * MS, trace="t", rollout="0-0")
    record = logs.span("job", None, MS, 5 * MS, trace="u", rollout="0-0")
    assert set(proposals(logs)) == {"job"}
    record["links"] = [{"trace_id": "1" * 32, "span_id": "1" * 16, "attributes": {}}]
    logs.files["a.log"][-1] = json.dumps(record)
    assert proposals(logs) == {}


@dataclass(frozen=True)
class Case:
    """Calls (start, end, times sent again) and requests (start, end) of one method, in ms."""

    calls: tuple[tuple[int, int, int], ...]
    requests: tuple[tuple[int, int], ...]


times = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair)))
cases = st.builds(
    Case,
    st.lists(st.tuples(times, st.integers(0, 1)).map(lambda it: (*it[0], it[1])), max_size=5).map(
        tuple
    ),
    st.lists(times, max_size=5).map(tuple),
)


def expected(case: Case, calls: list[str], requests: list[str]) -> dict[str, tuple[str, int]]:
    """Settle the pairs one by one, the best first: the parent and its rivals of each request."""
    pairs = []
    for (start, end), ids in zip(case.requests, requests, strict=True):
        pairs += [
            (start - call_start, call_ids, ids, again)
            for (call_start, call_end, again), call_ids in zip(case.calls, calls, strict=True)
            if call_start <= start <= call_end and call_end + 5 >= end
        ]
    room = {call_ids: 1 + again for _, call_ids, _, again in pairs}
    found: dict[str, tuple[str, int]] = {}
    for _, call_ids, ids, _ in sorted(pairs):
        if ids not in found and room[call_ids]:
            room[call_ids] -= 1
            found[ids] = (call_ids, sum(pair[2] == ids for pair in pairs) - 1)
    return found


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn=st.lists(cases, min_size=1, max_size=12))
def test_it_is_what_settling_pair_by_pair_gives(
    logs: Any, tmp_path_factory: pytest.TempPathFactory, drawn: list[Case]
) -> None:
    """No request twice, no call more often than it was made, the nearest first."""
    log = type(logs)(tmp_path_factory.mktemp("logs"))
    wanted: dict[str, tuple[str, int]] = {}
    for number, case in enumerate(drawn):
        ids: dict[str, list[str]] = {"call": [], "request": []}
        for kind, write, listed in (
            ("call", call, case.calls),
            ("request", request, case.requests),
        ):
            for nth, (start, end, *again) in enumerate(listed):
                label = f"{kind} {number} {nth}"
                attributes = {"http.request.resend_count": again[0]} if again else {}
                write(
                    log,
                    label,
                    start * MS,
                    end * MS,
                    method=f"M{number}",
                    attributes=attributes,
                )
                file = "agent.log" if kind == "call" else "model.log"
                record = json.loads(log.files[file][-1])
                ids[kind].append(record["trace_id"] + record["span_id"])
        wanted |= expected(case, ids["call"], ids["request"])
    if not log.files:
        return
    with log.engine() as engine:
        rows = engine.rows(
            """
            SELECT
                trace_id || span_id AS ids,
                parent_trace_id || parent_span_id AS parent_ids,
                rivals
            FROM join_proposals
            """
        )
    assert len({row["ids"] for row in rows}) == len(rows)
    assert {row["ids"]: (row["parent_ids"], row["rivals"]) for row in rows} == wanted
