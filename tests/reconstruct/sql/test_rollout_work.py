"""What a rollout's wall time was spent on: every nanosecond on one thing."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reconstruct.engine import Engine

BASE = 1_800_000_000_000_000_000
MS = 1_000_000
Spent = dict[str, int]


def spent(engine: Engine) -> dict[str, Spent]:
    """Time of each kind, by rollout."""
    found: dict[str, Spent] = {}
    for row in engine.rows(
        """
        SELECT rollout_id, spent_on, sum(duration_ns)::BIGINT AS ns
        FROM rollout_work
        GROUP BY ALL
        """
    ):
        found.setdefault(row["rollout_id"], {})[row["spent_on"]] = row["ns"]
    return found


def of_one(logs: Any) -> Spent:
    """Of the only rollout."""
    with logs.engine() as engine:
        ((_, times),) = spent(engine).items()
    return times


def call(
    logs: Any,
    label: str,
    start: int,
    end: int,
    *halves: tuple[int, int],
    to: str = "model",
    path: str = "/v1/responses",
    parent: str = "run",
    status: Sequence[str] = (),
    **more: Any,
) -> None:
    """A call of the agent's, with its halves in another server."""
    logs.span(label, parent, start, end, service="agent", kind="CLIENT", name="HTTP POST", **more)
    for number, (begin, over) in enumerate(halves):
        code = status[number] if number < len(status) else "UNSET"
        logs.span(
            f"{label}/{number}",
            label,
            begin,
            over,
            service=to,
            kind="SERVER",
            name=f"POST {path}",
            status=code,
        )


def run(logs: Any, start: int = 0, end: int = 100, rollout: str = "0-0", **more: Any) -> None:
    """The rollout itself, in the agent server."""
    logs.span("run", None, start, end, service="agent", name="gym.rollout", rollout=rollout, **more)


def test_a_rollout(logs: Any) -> None:
    """A call waits, is served, comes back; what lies between calls is the rollout's own.

    run     ####################
    model     ######                 served 15-45
    tool               ####          served 62-78
    verify                 ##        served 86-94
    """
    run(logs)
    call(logs, "model", 10, 50, (15, 45))
    call(logs, "tool", 60, 80, (62, 78), to="resources", path="/get_weather")
    call(logs, "verify", 85, 95, (86, 94), to="resources", path="/verify")
    assert of_one(logs) == {
        "agent": 30,
        "model": 30,
        "tool": 16,
        "verify": 8,
        "queue": 8,
        "client_overhead": 8,
    }


def test_calls_that_overlap_count_once(logs: Any) -> None:
    """Four model calls of 13 s in all take 7 s of a rollout's ten; a tool 1.5 s.

    run    ####################
    model  ########
    model    ########
    model      ########
    tool              ###
    model                 ##
    """
    second = 1_000 * MS
    run(logs, end=10 * second)
    for number, (start, end) in enumerate([(0, 4), (1, 5), (2, 6), (8, 9)]):
        chat = {"gen_ai.operation.name": "chat"}
        call(logs, f"m{number}", start * second, end * second, attributes=chat)
    tool = {"gen_ai.operation.name": "execute_tool"}
    call(logs, "tool", 6 * second, 7_500 * MS, attributes=tool)
    assert of_one(logs) == {"model": 7 * second, "tool": 1_500 * MS, "agent": 1_500 * MS}


def test_a_try_that_failed(logs: Any) -> None:
    """With the pause after it; the last try is the call itself."""
    run(logs, end=120)
    call(logs, "model", 0, 100, (10, 30), (50, 90), status=["ERROR"])
    expected = {"queue": 10, "retry": 40, "model": 40, "client_overhead": 10, "agent": 20}
    assert of_one(logs) == expected


def test_a_try_that_the_client_gave_up(logs: Any) -> None:
    """The server goes on with it for nothing; only the client knows that it sent again."""
    run(logs)
    attributes = {"http.request.resend_count": 1}
    call(logs, "model", 0, 100, (10, 70), (60, 90), attributes=attributes)
    assert of_one(logs) == {"queue": 10, "retry": 50, "model": 30, "client_overhead": 10}


def test_a_try_that_no_server_saw(logs: Any) -> None:
    """The wait for the first half was no queue then; a call that never got through is all retry."""
    run(logs)
    call(logs, "model", 0, 60, (50, 55), attributes={"http.request.resend_count": 2})
    call(logs, "gone", 60, 90, attributes={"http.request.resend_count": 3})
    assert of_one(logs) == {"retry": 80, "model": 5, "client_overhead": 5, "agent": 10}


def test_tries_after_the_server_died(logs: Any) -> None:
    """Its half of the first never ended; all that follows is in vain."""
    logs.process("started", 0, service="model", server_type="responses_api_models")
    run(logs)
    call(logs, "model", 0, 90, attributes={"http.request.resend_count": 2})
    logs.span("lost", "model", 10, None, service="model", kind="SERVER")
    logs.process("stopped", 30, service="model", server_type="responses_api_models")
    assert of_one(logs) == {"queue": 10, "retry": 80, "agent": 10}


def test_a_redirect_is_no_retry(logs: Any) -> None:
    """Several halves, none of which failed."""
    run(logs)
    call(logs, "model", 0, 100, (10, 20), (30, 90))
    assert of_one(logs) == {"queue": 10, "model": 70, "client_overhead": 20}


def test_between_two_traces(logs: Any) -> None:
    """Nobody of the rollout is at work."""
    run(logs)
    logs.span(
        "verify", None, 130, 200, trace="u", service="resources", name="gym.verify", rollout="0-0"
    )
    assert of_one(logs) == {"agent": 100, "unaccounted": 30, "verify": 70}


def test_a_model_called_past_the_traces(logs: Any) -> None:
    """Its span is a trace of its own, and the agent's shows no call: the model was at work."""
    run(logs)
    logs.span(
        "serve",
        None,
        20,
        60,
        trace="u",
        service="model",
        kind="SERVER",
        name="POST /v1/responses",
        rollout="0-0",
    )
    assert of_one(logs) == {"agent": 60, "model": 40}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://10.0.0.1:80/ng-rollout/0-0/v1/responses?key=1", "model"),
        ("https://api.example.com/v1/chat/completions", "model"),
        ("http://10.0.0.1:80/ng-rollout/0-0/get_weather", "tool"),
        ("http://10.0.0.1:80/verify", "verify"),
        ("http://10.0.0.1:80/run", "agent"),
    ],
)
def test_a_server_without_instrumentation(logs: Any, url: str, expected: str) -> None:
    """Is told by what was asked of it, and cannot be told from the way there."""
    run(logs)
    call(logs, "call", 10, 90, attributes={"url.full": url})
    assert Counter(of_one(logs)) == Counter({"agent": 20}) + Counter({expected: 80})


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("model call", {}, "model"),
        ("llm.generate", {}, "model"),
        ("ask the judge", {}, "verify"),
        ("sandbox exec", {}, "sandbox"),
        ("call subagent", {}, "agent"),
        ("fetch", {}, "tool"),
        ("HTTP POST", {}, "tool"),
        ("model call", {"url.full": "http://10.0.0.1:80/get_weather"}, "tool"),
    ],
)
def test_a_call_to_nowhere(logs: Any, name: str, attributes: dict[str, Any], expected: str) -> None:
    """Is told by a word in its name where nothing says what was asked for."""
    run(logs)
    logs.span(
        "call", "run", 10, 90, service="agent", kind="CLIENT", name=name, attributes=attributes
    )
    assert Counter(of_one(logs)) == Counter({"agent": 20}) + Counter({expected: 80})


def test_what_servers_call_is_their_work(logs: Any) -> None:
    """A judge is part of the verification, an endpoint behind the model server of the model, and
    tools stay tools whatever they use; a sandbox is one wherever it is."""
    run(logs, end=400)
    call(logs, "verify", 0, 100, (0, 100), to="resources", path="/verify")
    logs.span("judge", "verify/0", 10, 90, service="resources", kind="CLIENT")
    logs.span("judging", "judge", 20, 80, service="model", kind="SERVER", name="POST /v1/responses")
    call(logs, "model", 100, 200, (100, 200))
    logs.span("upstream", "model/0", 110, 190, service="model", kind="CLIENT")
    logs.span("engine", "upstream", 120, 180, service="vllm", kind="SERVER")
    call(logs, "tool", 200, 300, (200, 300), to="resources", path="/search")
    logs.span("summary", "tool/0", 210, 290, service="resources", name="gym.model.responses")
    logs.span("exec", "summary", 230, 250, service="resources", name="gym.sandbox.exec")
    assert of_one(logs) == {"verify": 100, "model": 100, "tool": 80, "sandbox": 20, "agent": 100}


def test_an_agent_begins_anew(logs: Any) -> None:
    """One that is called as a tool has models and own work like any other."""
    run(logs)
    tool = {"gen_ai.operation.name": "execute_tool"}
    logs.span("tool", "run", 10, 90, service="agent", attributes=tool)
    logs.span("expert", "tool", 20, 80, service="agent", name="gym.agent.responses")
    call(logs, "model", 30, 70, (35, 60), parent="expert")
    expected = {"agent": 20 + 20, "tool": 20, "queue": 5, "model": 25, "client_overhead": 10}
    assert of_one(logs) == expected


def test_a_server_of_which_nothing_tells(logs: Any) -> None:
    """Its own time is nobody's; what it calls is known again."""
    run(logs)
    call(logs, "x", 0, 100, (10, 90), to="x", path="/x")
    logs.span("y", "x/0", 20, 60, service="x", kind="CLIENT")
    logs.span("model", "y", 30, 50, service="llm", kind="SERVER", name="POST /generate")
    assert of_one(logs) == {
        "queue": 10 + 10,
        "unaccounted": 40,
        "model": 20,
        "client_overhead": 10 + 10,
    }


def test_server_types_come_before_names(logs: Any) -> None:
    """A model server may be called anything."""
    logs.process("started", 0, service="atlas", server_type="responses_api_models")
    logs.process("started", 0, service="policy-model", server_type="resources_servers")
    run(logs)
    call(logs, "one", 0, 40, (0, 40), to="atlas", path="/x")
    call(logs, "two", 40, 100, (40, 100), to="policy-model", path="/x")
    assert of_one(logs) == {"model": 40, "tool": 60}


def test_a_span_that_lasts_as_long_as_its_request(logs: Any) -> None:
    """A watcher, say: calls beside it count.

    run        ####################
    watch       ##################
    responses   ################
    model         ########
    """
    run(logs)
    logs.span("watch", "run", 2, 98, service="agent")
    logs.span("responses", "run", 4, 90, service="agent", name="gym.agent.responses")
    call(logs, "model", 10, 50, (15, 45), parent="responses")
    times = of_one(logs)
    assert sum(times.values()) == 100
    assert times["model"] == 40


class Work(NamedTuple):
    """A span of a rollout that may be wrong in every way."""

    label: str
    parent: str | None
    start: int
    end: int
    service: str
    kind: str
    status: str


SERVICES = {
    "agent": "agent",
    "model": "model",
    "tool": "tool",
    "judge": "verify",
    "x": "unaccounted",
}
OWN = ("agent", "unaccounted")


@st.composite
def trees(draw: st.DrawFn) -> list[Work]:
    """A rollout and spans anywhere below it, at times that have nothing to do with it."""
    times = st.integers(0, 40)
    works = [Work("s0", None, 0, draw(st.integers(1, 40)), "agent", "INTERNAL", "UNSET")]
    for number in range(1, draw(st.integers(2, 10))):
        start, end = sorted((draw(times), draw(times)))
        above = works[draw(st.integers(0, number - 1))]
        kind = draw(st.sampled_from(["INTERNAL", "CLIENT", "SERVER"]))
        service = draw(st.sampled_from(sorted(SERVICES))) if kind == "SERVER" else above.service
        status = draw(st.sampled_from(["UNSET", "UNSET", "ERROR"]))
        works.append(Work(f"s{number}", above.label, start, end, service, kind, status))
    return works


class Told:
    """What one would say of a tree, span by span."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.by_label = {work.label: work for work in works}
        self.children = {
            work.label: [child for child in works if child.parent == work.label] for work in works
        }

    def scope(self, label: str) -> list[str | None]:
        """Marks from a span upwards, as far as the nearest agent."""
        marks: list[str | None] = []
        while True:
            work = self.by_label[label]
            mark = SERVICES[work.service] if work.kind == "SERVER" else None
            if work.parent is None or mark == "agent":
                return marks
            marks.append(mark)
            label = work.parent

    def kind(self, label: str) -> str:
        marks = [mark for mark in self.scope(label) if mark is not None]
        if "verify" in marks:
            return "verify"
        strong = [mark for mark in marks if mark != "unaccounted"]
        return strong[-1] if strong else "unaccounted" if marks else "agent"

    def halves(self, label: str) -> list[Work]:
        """Of a call that an agent makes, in order of their starts."""
        work = self.by_label[label]
        is_served = any(mark not in (None, *OWN) for mark in self.scope(label))
        if work.kind != "CLIENT" or is_served:
            return []
        return sorted(
            (child for child in self.children[label] if child.kind == "SERVER"),
            key=lambda child: child.start,
        )

    def is_lone(self, label: str) -> bool:
        others = [child for child in self.children[label] if child.kind != "INTERNAL"]
        is_call = self.by_label[label].kind == "CLIENT" and not others
        return is_call and self.kind(label) == "agent"

    def retried(self, label: str) -> range:
        """When tries were under way that others followed."""
        halves = self.halves(label)
        if not any(half.status == "ERROR" for half in halves[:-1]):
            return range(0)
        return range(halves[0].start, halves[-1].start)

    def own(self, label: str, time: int) -> str:
        """What a span's own time is."""
        if self.is_lone(label):
            return "tool"
        if halves := self.halves(label):
            return "queue" if time < halves[0].start else "client_overhead"
        return self.kind(label)

    def calls(self) -> dict[str, str]:
        """What was called from the rollout's own work, and as what."""
        found = {}
        for label, work in self.by_label.items():
            if self.is_lone(label):
                found[label] = "tool"
            elif work.parent and self.kind(label) not in OWN and self.kind(work.parent) in OWN:
                is_half = self.by_label[work.parent].kind == "CLIENT" and work.kind != "CLIENT"
                call = work.parent if is_half else label
                found[call] = min(self.kind(label), found.get(call, "verify"))
        return found


def divided(works: Sequence[Work], path: dict[int, str | None]) -> Counter[str]:
    """Divide a rollout's time, given whom it waited for at each instant."""
    told = Told(works)
    on_path = set(path.values())
    retried = {time for label in on_path if label is not None for time in told.retried(label)}
    beside = {label: kind for label, kind in told.calls().items() if label not in on_path}
    times: Counter[str] = Counter()
    for time, label in path.items():
        kind = "unaccounted" if label is None else told.own(label, time)
        if time in retried:
            kind = "retry"
        elif kind in OWN:
            under_way = {
                other
                for label, other in beside.items()
                if told.by_label[label].start <= time < told.by_label[label].end
            }
            order = ("model", "sandbox", "tool", "verify")
            kind = next((other for other in order if other in under_way), kind)
        times[kind] += 1
    return times


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


def test_as_one_would_divide_it(logs: Any, folder: Path) -> None:
    """Many rollouts at once; each adds up to its duration."""

    # To shrink fifty trees at once takes minutes and shows no more.
    @settings(max_examples=5, deadline=None, phases=[Phase.reuse, Phase.generate])
    @given(st.lists(trees(), min_size=50, max_size=100))
    def check(forest: list[list[Work]]) -> None:
        logs.folder, logs.files = folder, {}
        labels = {}
        for number, works in enumerate(forest):
            for work in works:
                record = logs.span(
                    work.label,
                    work.parent,
                    work.start,
                    work.end,
                    trace=f"t{number}",
                    rollout=f"{number}-0",
                    service=work.service,
                    kind=work.kind,
                    status=work.status,
                )
                labels[record["span_id"]] = work.label
        with logs.engine() as engine:
            found = spent(engine)
            paths: dict[str, dict[int, str | None]] = {}
            for row in engine.rows("FROM rollout_path"):
                start, end = row["start_time_unix_nano"], row["end_time_unix_nano"]
                path = paths.setdefault(row["rollout_id"], {})
                for time in range(start - BASE, end - BASE):
                    path[time] = labels.get(row["span_id"])
            durations = {
                row["rollout_id"]: row["duration_ns"]
                for row in engine.rows("SELECT rollout_id, duration_ns FROM rollouts")
            }
        for number, works in enumerate(forest):
            rollout = f"{number}-0"
            assert found[rollout] == divided(works, paths[rollout])
            assert sum(found[rollout].values()) == durations[rollout]

    check()
