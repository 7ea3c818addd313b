"""Starts of fleets and servers: spans, stages, hand-over, and every way in which a start ends.

gym.startup ─┬ load_config ─ spawn_servers ─ wait_for_servers
             └ gym.startup.server ─ (environment) ─ gym.server.startup ─ its stages
"""

import asyncio
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

from gymlog import ServerStartup, StartupTrace, notices, startup, testing

T0 = 1_750_000_000_000_000_000
SECOND = 1_000_000_000
VARIABLES = {
    name: f"NEMO_GYM_STARTUP_{name}"
    for name in ("TRACEPARENT", "SPAWN_NS", "SETUP_DONE_NS", "SERVE_NS")
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    """No hand-over in the environment, nothing said yet, no start of this process yet."""
    monkeypatch.setattr(startup, "_own", None)
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    notices.reset()
    yield
    startup._unfinished.clear()


@pytest.fixture
def ticking():
    """A clock that stands at T0 until it is moved."""
    with testing.stepped_clock(T0) as clock:
        yield clock


def hand_over(monkeypatch, **values):
    """Set NEMO_GYM_STARTUP_* as a supervisor does."""
    for name, value in values.items():
        monkeypatch.setenv(VARIABLES[name], str(value))


def stages_of(telemetry, name):
    """Return the stage spans of the start `name` in order, and the start's own span."""
    total = telemetry.span(name)
    stages = [span for span in telemetry.spans if span["parent_span_id"] == total["span_id"]]
    stages = [span for span in stages if span["name"].startswith(f"{name}.")]
    stages = [span for span in stages if "nemo.gym.startup.stage" in span["attributes"]]
    return total, sorted(stages, key=lambda span: span["start_time_unix_nano"])


def assert_tiled(total, stages):
    """Check that the stages follow each other without a gap from the start's begin to its end."""
    edges = [stage["start_time_unix_nano"] for stage in stages]
    assert edges[0] == total["start_time_unix_nano"]
    assert [stage["end_time_unix_nano"] for stage in stages] == [
        *edges[1:],
        total["end_time_unix_nano"],
    ]
    assert edges == sorted(edges)


# The supervisor's part.


def test_a_fleets_start_is_one_trace_with_stages_and_servers(telemetry, ticking):
    """gym.startup is a root, stages tile it, and each server is below it from spawn to answer."""
    with StartupTrace() as started:
        ticking.advance(seconds=1)
        started.stage("load_config")
        ticking.advance(seconds=1)
        started.stage("spawn_servers")
        servers = [started.server(name, f"{name}_type") for name in ("agent", "model")]
        ticking.advance(seconds=1)
        started.stage("wait_for_servers")
        for server in servers:
            ticking.advance(seconds=2)
            server.ready()

    total, stages = stages_of(telemetry, "gym.startup")
    assert_tiled(total, stages)
    assert [stage["name"] for stage in stages] == [
        "gym.startup.load_config", "gym.startup.spawn_servers", "gym.startup.wait_for_servers",
    ]  # fmt: skip
    assert [stage["attributes"] for stage in stages[:2]] == [
        {"nemo.gym.startup.stage": "load_config"},
        {"nemo.gym.startup.stage": "spawn_servers"},
    ]
    assert total["parent_span_id"] is None
    assert total["attributes"] == {"nemo.gym.startup.outcome": "ready"}
    assert total["status"] == {"code": "UNSET"}
    assert total["end_time_unix_nano"] - total["start_time_unix_nano"] == 7 * SECOND
    found = [span for span in telemetry.spans if span["name"] == "gym.startup.server"]
    assert [span["attributes"]["nemo.gym.server.name"] for span in found] == ["agent", "model"]
    for span, seconds in zip(found, (3, 5), strict=True):
        assert span["parent_span_id"] == total["span_id"]
        assert span["attributes"]["nemo.gym.startup.outcome"] == "ready"
        assert span["end_time_unix_nano"] - span["start_time_unix_nano"] == seconds * SECOND
    assert {span["trace_id"] for span in telemetry.spans} == {started.trace_id}


ENDS = [
    (TimeoutError("60 s are over"), "timeout", "TimeoutError: 60 s are over"),
    (RuntimeError("no port"), "failed", "RuntimeError: no port"),
    (SystemExit(2), "failed", "SystemExit: 2"),
    (SystemExit("no such config"), "failed", "SystemExit: no such config"),
    (SystemExit(0), "interrupted", "SystemExit: 0"),
    (SystemExit(), "interrupted", "SystemExit"),
    (SystemExit(143), "interrupted", "SystemExit: 143"),
    (KeyboardInterrupt(), "interrupted", "KeyboardInterrupt"),
    (asyncio.CancelledError(), "interrupted", "CancelledError"),
]


@pytest.mark.parametrize(("error", "outcome", "reason"), ENDS, ids=lambda value: repr(value)[:30])
def test_an_exception_says_how_a_start_ended_and_goes_on(telemetry, error, outcome, reason):
    """The start and the stage it did not finish are errors; stages before are not."""
    started = StartupTrace()

    def start():
        with started:
            started.stage("load_config")
            started.stage("wait_for_servers")
            with started.server("model", "models"):
                raise error

    with pytest.raises(type(error)):
        start()
    assert started.outcome == outcome
    total, (done, unfinished) = stages_of(telemetry, "gym.startup")
    assert done["status"] == {"code": "UNSET"}
    assert "nemo.gym.startup.outcome" not in done["attributes"]
    for span in (total, unfinished):
        assert span["attributes"]["nemo.gym.startup.outcome"] == outcome
        message = f"{outcome} in wait_for_servers: {reason}"
        assert span["status"] == {"code": "ERROR", "message": message}
    server = telemetry.span("gym.startup.server")
    assert server["status"] == {"code": "ERROR", "message": f"{outcome}: {reason}"}
    assert server["attributes"]["nemo.gym.startup.outcome"] == outcome
    is_error = isinstance(error, Exception)
    assert sum(len(span.get("events", ())) for span in telemetry.spans) == is_error


def test_servers_that_were_on_their_way_when_the_start_ends_are_interrupted(telemetry):
    """The one that failed says why; of the others nobody will ever know."""
    started = StartupTrace()
    servers = {name: started.server(name, "t") for name in ("up", "broken", "slow")}
    servers["up"].ready()

    def wait():
        with started, servers["broken"]:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        wait()
    assert {name: server.outcome for name, server in servers.items()} == {
        "up": "ready", "broken": "timeout", "slow": "interrupted",
    }  # fmt: skip
    assert started.outcome == "timeout"
    assert len(telemetry.spans) == 4


def test_only_the_first_end_counts(telemetry):
    """What happens to a server after its start is no part of the start."""
    started = StartupTrace()
    server = started.server("model", "models")
    server.ready()
    server.failed("it crashed later")
    started.ready()
    started.failed(RuntimeError("later"))
    started.stage("later")
    assert (server.outcome, started.outcome) == ("ready", "ready")
    assert len(telemetry.spans) == 2
    assert {span["status"]["code"] for span in telemetry.spans} == {"UNSET"}


def test_a_start_that_hangs_is_in_the_log():
    """Its span, the server's and the stage it is in are open, so they have a span_start."""
    with testing.captured(span_start_after_seconds=0) as telemetry:
        started = StartupTrace()
        started.stage("load_config")
        started.stage("wait_for_servers")
        started.server("model", "models")
        ended = {span["span_id"] for span in telemetry.spans}
        hung = [
            record["name"]
            for record in telemetry.records
            if record["record_type"] == "span_start" and record["span_id"] not in ended
        ]
    assert hung == ["gym.startup", "gym.startup.wait_for_servers", "gym.startup.server"]


def test_no_span_of_a_start_is_ever_the_current_one(telemetry):
    """Tasks that a server starts would stay its children; and a current span is no parent of it."""
    with telemetry.tracer.start_as_current_span("host") as host, StartupTrace() as started:
        started.stage("spawn_servers")
        with started.server("model", "models"):
            assert trace.get_current_span() is host
    assert telemetry.span("gym.startup")["parent_span_id"] is None
    assert telemetry.span("gym.startup.server")["trace_id"] == started.trace_id


# The server's part.


def test_a_servers_start_is_below_its_supervisors_and_begins_with_the_spawn(
    telemetry, ticking, monkeypatch
):
    """The environment carries parent and time; the stages tile what lies between."""
    started = StartupTrace()
    server = started.server("model", "responses_api_models")
    ticking.advance(seconds=1)
    for key, value in server.environment().items():
        monkeypatch.setenv(key, value)
    ticking.advance(seconds=3)
    own = ServerStartup.from_environment("model", "responses_api_models")
    ticking.advance(seconds=1)
    for stage in ("load_config", "init_telemetry", "uvicorn_startup"):
        own.stage(stage)
        ticking.advance(seconds=1)
    own.ready()

    total, stages = stages_of(telemetry, "gym.server.startup")
    assert_tiled(total, stages)
    parent = started._servers[0]._timeline.span
    assert (total["trace_id"], total["parent_span_id"]) == (started.trace_id, parent.span_id)
    assert total["flags"] & 0x200, "the parent is in another process"
    assert not stages[0]["flags"] & 0x200
    facts = {
        "nemo.gym.server.name": "model",
        "nemo.gym.server.type": "responses_api_models",
        "nemo.gym.server.worker": False,
        "process.pid": os.getpid(),
    }
    assert total["attributes"] == facts | {"nemo.gym.startup.outcome": "ready"}
    assert total["start_time_unix_nano"] == T0 + SECOND
    names = ["interpreter_start", "load_config", "init_telemetry", "uvicorn_startup"]
    for name, span in zip(names, stages, strict=True):
        assert span["name"] == f"gym.server.startup.{name}"
        assert span["attributes"] == facts | {"nemo.gym.startup.stage": name}
    assert stages[0]["end_time_unix_nano"] - stages[0]["start_time_unix_nano"] == 4 * SECOND


def test_a_launch_shell_that_says_when_setup_was_done_splits_the_first_stage(
    telemetry, ticking, monkeypatch
):
    """venv_setup until then, interpreter_start from then on."""
    hand_over(monkeypatch, SPAWN_NS=T0 - 9 * SECOND, SETUP_DONE_NS=T0 - 2 * SECOND)
    ServerStartup.from_environment("model").ready()
    total, stages = stages_of(telemetry, "gym.server.startup")
    assert_tiled(total, stages)
    assert [
        (span["name"].rpartition(".")[2], span["end_time_unix_nano"] - span["start_time_unix_nano"])
        for span in stages
    ] == [("venv_setup", 7 * SECOND), ("interpreter_start", 2 * SECOND)]


def test_workers_start_when_their_server_hands_over(telemetry, ticking, monkeypatch):
    """The main process is ready then; a worker's span is its sibling, with stages of its own."""
    hand_over(monkeypatch, SPAWN_NS=T0, TRACEPARENT=f"00-{'a' * 32}-{'b' * 16}-01")
    monkeypatch.setattr(startup, "_process_created_ns", lambda: T0 + 2 * SECOND)
    monkeypatch.setenv(VARIABLES["SERVE_NS"], "")  # so that it is as it was afterwards
    ticking.advance(seconds=1)
    main = ServerStartup.from_environment("model")
    main.stage("load_config")
    main.hand_over_to_workers()
    assert main.outcome == "ready"
    ticking.advance(seconds=2)
    monkeypatch.setattr(startup, "_own", None)  # as in a process of its own
    worker = ServerStartup.from_environment("model")
    worker.stage("load_config")
    worker.ready()

    total, stages = stages_of(telemetry, "gym.server.startup.worker")
    assert_tiled(total, stages)
    assert [span["name"].removeprefix("gym.server.startup.") for span in stages] == [
        "worker.worker_start", "worker.load_config",
    ]  # fmt: skip
    assert {span["attributes"]["nemo.gym.server.worker"] for span in (total, *stages)} == {True}
    server = telemetry.span("gym.server.startup")
    for span in (server, total):
        assert (span["trace_id"], span["parent_span_id"]) == ("a" * 32, "b" * 16)
    assert server["end_time_unix_nano"] == total["start_time_unix_nano"] == T0 + SECOND


def test_a_worker_that_replaces_a_dead_one_began_when_it_was_created(
    telemetry, ticking, monkeypatch
):
    """uvicorn starts it hours after its server has handed over."""
    hand_over(monkeypatch, SERVE_NS=T0 - 7_200 * SECOND)
    monkeypatch.setattr(startup, "_process_created_ns", lambda: T0 - 3 * SECOND)
    ServerStartup.from_environment("model").ready()
    total = telemetry.span("gym.server.startup.worker")
    assert total["start_time_unix_nano"] == T0 - 3 * SECOND


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc (Linux)")
def test_the_creation_of_a_process_is_known_to_hundredths_of_a_second():
    """As the operating system has it, on the clock of the spans."""
    program = "from gymlog import startup; print(startup._process_created_ns())"
    before = time.time_ns()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert before - 2 * SECOND // 100 <= int(done.stdout) <= time.time_ns()


def test_a_process_has_one_start_of_its_own(telemetry, monkeypatch):
    """Who asks again, from another copy of the program, goes on with it; a forked child does not.

    multiprocessing loads the main module of a uvicorn worker a second time.
    """
    own = ServerStartup.from_environment("model")
    own.stage("load_config")
    assert ServerStartup.from_environment("model") is own
    parent = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: parent + 1)
    assert ServerStartup.from_environment("model") is not own


def test_a_server_started_by_hand_is_a_trace_of_its_own(telemetry, ticking):
    """It begins where it is made, and its first stage there."""
    own = ServerStartup.from_environment("model")
    ticking.advance(seconds=1)
    own.stage("load_config")
    own.ready()
    total, stages = stages_of(telemetry, "gym.server.startup")
    assert_tiled(total, stages)
    assert total["parent_span_id"] is None
    assert total["start_time_unix_nano"] == T0
    assert "nemo.gym.server.type" not in total["attributes"]


@pytest.mark.parametrize("value", ["soon", "-1", "1.5e18", "9" * 40, "٣"])
@pytest.mark.parametrize("name", ["SPAWN_NS", "SETUP_DONE_NS", "SERVE_NS"])
def test_a_time_that_is_none_is_told_and_ignored(telemetry, monkeypatch, capfd, name, value):
    """One line on stderr says which variable."""
    hand_over(monkeypatch, **({"SPAWN_NS": T0} | {name: value}))
    ServerStartup.from_environment("model").ready()
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert f"{VARIABLES[name]}={value!r} is not accepted" in said
    assert telemetry.span("gym.server.startup")["attributes"]["nemo.gym.server.worker"] is False


@pytest.mark.parametrize("value", ["", "00-0-0-01", f"00-{'0' * 32}-{'b' * 16}-01", "\udcff"])
def test_a_traceparent_that_is_none_begins_a_trace(telemetry, monkeypatch, value):
    """As a header that breaks the rules does."""
    hand_over(monkeypatch, TRACEPARENT=value)
    ServerStartup.from_environment("model").ready()
    assert telemetry.span("gym.server.startup")["parent_span_id"] is None


def test_what_a_sampler_leaves_out_is_left_out_in_every_process(monkeypatch):
    """The traceparent says so."""
    with testing.captured(sampler=lambda _, flags: bool(flags and flags & 1)) as telemetry:
        with StartupTrace() as started:
            with started.server("model", "models") as server:
                environ = server.environment()
            hand_over(monkeypatch, TRACEPARENT=environ[VARIABLES["TRACEPARENT"]])
            ServerStartup.from_environment("model").ready()
    assert environ[VARIABLES["TRACEPARENT"]][-2:] in ("00", "02")
    assert telemetry.spans == []


# Whatever the times are.

INT64 = st.integers(min_value=0, max_value=(1 << 63) - 1)
NEAR = st.integers(min_value=T0 - 5, max_value=T0 + 5)


@given(
    spawn=st.none() | NEAR | INT64,
    setup_done=st.none() | NEAR | INT64,
    serve=st.none() | NEAR | INT64,
    steps=st.lists(st.integers(min_value=-3, max_value=3), max_size=6),
    on_after=st.integers(min_value=0, max_value=7),
    error=st.none() | st.sampled_from([error for error, _, _ in ENDS]),
)
def test_stages_tile_every_start(spawn, setup_done, serve, steps, on_after, error):
    """Whatever was handed over, whenever telemetry comes on, even with a clock that runs back."""
    handed = {"SPAWN_NS": spawn, "SETUP_DONE_NS": setup_done, "SERVE_NS": serve}
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        clock = stack.enter_context(testing.stepped_clock(T0))
        patch.setattr(startup, "_process_created_ns", lambda: None)
        patch.setattr(startup, "_own", None)
        hand_over(patch, **{name: ns for name, ns in handed.items() if ns is not None})
        telemetry = None
        own = None
        for number, step in enumerate([0, *steps, 0, 0]):
            if telemetry is None and (number >= on_after or number > len(steps)):
                telemetry = stack.enter_context(testing.captured())
            if own is None:
                own = ServerStartup.from_environment("model")
            else:
                own.stage(f"stage_{number}")
            clock.advance(ns=step)
        own.ready() if error is None else own.failed(error)
        name = "gym.server.startup" + (".worker" if serve is not None else "")
        total, stages = stages_of(telemetry, name)
        # Of a stage without length the order of the lines decides.
        order = {span["span_id"]: number for number, span in enumerate(telemetry.spans)}
        stages.sort(key=lambda span: order[span["span_id"]])
        assert_tiled(total, stages)
        names = [span["attributes"]["nemo.gym.startup.stage"] for span in stages]
        reached = [f"stage_{number}" for number in range(1, len(steps) + 3)]
        assert names[-len(reached) :] == reached
        assert total["attributes"]["nemo.gym.startup.outcome"] == own.outcome
        assert total["end_time_unix_nano"] >= total["start_time_unix_nano"]


# On and off.


def test_what_happened_before_telemetry_was_on_is_written_when_it_is(ticking):
    """With the times that it had, at the next stage."""
    started = StartupTrace()
    started.stage("load_config")
    ticking.advance(seconds=4)
    started.stage("init_telemetry")
    assert started.trace_id is None
    with testing.captured() as telemetry:
        ticking.advance(seconds=1)
        started.stage("spawn_servers")
        assert [span["name"] for span in telemetry.spans] == [
            "gym.startup.load_config", "gym.startup.init_telemetry",
        ]  # fmt: skip
        started.ready()
    total, stages = stages_of(telemetry, "gym.startup")
    assert_tiled(total, stages)
    assert total["start_time_unix_nano"] == T0


def test_a_closed_group_writes_nothing_and_hands_nothing_over():
    """The presets `default` and `all` open it, `per_rollout` does not."""
    with testing.captured("per_rollout") as telemetry:
        with StartupTrace() as started:
            started.stage("spawn_servers")
            with started.server("model", "models") as server:
                assert server.environment() == {}
        assert (started.outcome, started.trace_id, telemetry.spans) == ("ready", None, [])
    for groups in ("default", "all"):
        with testing.captured(groups) as telemetry:
            StartupTrace().ready()
            telemetry.span("gym.startup")


def test_nothing_that_goes_wrong_reaches_the_host(telemetry, monkeypatch, capfd):
    """It is said once, and the host's own exceptions pass."""

    def broken(*_args, **_kwargs):
        raise RuntimeError("no span today")

    def host():
        with StartupTrace() as started:
            started.stage("spawn_servers")
            with started.server("model", "models") as server:
                server.environment()
            server.stopped()
            own = ServerStartup.from_environment("model")
            own.stage("load_config")
            own.ready()
            raise LookupError

    monkeypatch.setattr(type(telemetry.tracer), "open_span", broken)
    with pytest.raises(LookupError):
        host()
    assert capfd.readouterr().err == (
        "gymlog: a start is not traced: RuntimeError: no span today\n"
    )


def test_a_server_that_ends_well_without_having_been_ready_has_failed(telemetry):
    """A web server whose own start went wrong may return as if nothing had happened."""
    with ServerStartup.from_environment("model") as own:
        own.stage("uvicorn_startup")
    span = telemetry.span("gym.server.startup")
    assert span["status"]["message"] == "failed in uvicorn_startup: it ended before it was ready"
