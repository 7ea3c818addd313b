"""The trace of a fleet's start, of real processes, however the start ends; read by reconstruct.

supervisor  gym.startup ─┬ load_config, init_telemetry, spawn_servers, wait_for_servers
                         └ gym.startup.server ┐
resources, model                              └ gym.server.startup ─ interpreter_start …
"""

import os
import select
import signal
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gymlog.fleet import demo
from gymlog.fleet.plan import Plan
from gymlog.fleet.progress import Progress
from reconstruct.engine import Engine

SUPERVISOR = """
    import asyncio, os, sys
    from pathlib import Path

    from gymlog.fleet.demo import run_demo
    from gymlog.fleet.plan import Plan
    from gymlog.fleet.supervisor import Fleet

    class TwoServers(Plan):
        __slots__ = ()

        def servers(self):
            return {"model": "model", "resources": "resources"}

        def server_options(self, urls):
            return {name: [] for name in urls}

    until_ready, hanging = Fleet._until_ready, []

    async def once_the_model_hangs(self, name, server):
        if not hanging:
            read = Path(os.environ["HANGS"]).read_bytes
            hanging.append(asyncio.create_task(asyncio.to_thread(read)))
        await hanging[0]
        await until_ready(self, name, server)

    folder, ready_seconds = sys.argv[1:]
    if float(ready_seconds) < 10:
        Fleet._until_ready = once_the_model_hangs  # so that the limit is short, yet long enough
    plan = TwoServers(
        Path(folder), span_groups="startup", ready_seconds=float(ready_seconds), grace_seconds=2
    )
    sys.exit(run_demo(plan, is_shown=False))
"""

FAULTY_MODEL = """
    import os, signal, sys, threading

    def instead(_app):
        fault = os.environ["START_FAULT"]
        if fault == "raise":
            raise RuntimeError("no weights")
        if fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "lifespan":
            _app.router.lifespan_context = None
            return
        open(os.environ["HANGS"], "wb").close()  # returns when somebody reads it
        threading.Event().wait()

    if "gymlog.fleet.model" in sys.orig_argv:
        if os.environ["START_FAULT"] == "import":
            sys.modules["pydantic"] = None
        else:
            import gymlog.fleet.serving
            gymlog.fleet.serving.instrument_fastapi = instead
"""
"""A `sitecustomize`: the model server fails in its stage configure_app, or before."""

SPANS = """
    SELECT
        name, service_name, state, status_message, trace_id, run_id, span_id, parent_span_id,
        start_time_unix_nano, end_time_unix_nano, process_pid,
        attributes->>'nemo.gym.startup.outcome' AS outcome,
        attributes->>'nemo.gym.server.name' AS server,
        attributes->>'nemo.gym.server.worker' AS worker
    FROM spans
    WHERE starts_with(name, 'gym.startup') OR starts_with(name, 'gym.server.startup')
    ORDER BY start_time_unix_nano, end_time_unix_nano
"""

HELD_UP = """
    SELECT startups.outcome, server_name, server.outcome AS own, server.stage, is_stage_over
    FROM startups
    JOIN startup_servers AS server USING (trace_id)
    WHERE server.has_held_up
"""

Row = dict[str, Any]


@dataclass
class Start:
    """What the logs say of a start, and how the supervisor ended."""

    rows: list[Row]
    exit_code: int
    said: str
    held_up: list[tuple[Any, ...]]
    """Outcome of the start, and of who held it up: name, outcome, stage, and if that was over."""

    def row(self, name: str, server: str | None = None) -> Row:
        """Return the only span of a name, of a server."""
        (row,) = [one for one in self.rows if one["name"] == name and one["server"] == server]
        return row

    def assert_ended(self, row: Row, outcome: str, message: str) -> None:
        """Check that a span is finished, with this outcome and the begin of its message."""
        assert (row["state"], row["outcome"]) == ("finished", outcome)
        assert (row["status_message"] or "").startswith(message), row["status_message"]

    def assert_is_one_trace(self) -> None:
        """Check that all spans are of one trace and run, and only gym.startup has no parent."""
        assert len({(row["trace_id"], row["run_id"]) for row in self.rows}) == 1
        ids = {row["span_id"] for row in self.rows}
        orphans = [row["name"] for row in self.rows if row["parent_span_id"] not in ids]
        assert orphans == ["gym.startup"]


def rows(folder: Path) -> list[Row]:
    with Engine.read([str(folder)]) as engine:
        return engine.rows(SPANS)


def told(folder: Path, exit_code: int, said: str) -> Start:
    with Engine.read([str(folder)]) as engine:
        held_up = [tuple(row.values()) for row in engine.rows(HELD_UP)]
        return Start(engine.rows(SPANS), exit_code, said, held_up)


def stages(start: list[Row], parent: Row) -> list[Row]:
    return [
        row
        for row in start
        if row["parent_span_id"] == parent["span_id"]
        and row["name"].startswith(f"{parent['name']}.")
        and row["name"] not in ("gym.startup.server", "gym.server.startup.worker")
    ]


def assert_tiled(start: list[Row], parent: Row, *names: str) -> None:
    """Check that a span has these stages, that they follow each other and fill it."""
    found = stages(start, parent)
    assert tuple(row["name"].removeprefix(f"{parent['name']}.") for row in found) == names
    edges = [row["start_time_unix_nano"] for row in found] + [parent["end_time_unix_nano"]]
    assert edges[0] == parent["start_time_unix_nano"]
    assert [row["end_time_unix_nano"] for row in found] == edges[1:]


SUPERVISOR_STAGES = ("load_config", "init_telemetry", "spawn_servers", "wait_for_servers")
SERVER_STAGES = (
    "init_server", "init_telemetry", "setup_webserver", "configure_app", "uvicorn_startup",
)  # fmt: skip


def wait_for_writer(fifo: Path) -> None:
    """Wait until somebody has opened a FIFO to write into it, and closed it."""
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        waiting = select.poll()
        waiting.register(reader, select.POLLHUP)
        assert waiting.poll(60_000)
    finally:
        os.close(reader)


@pytest.fixture
def start(tmp_path, environment):
    """Start two servers of which the model has a fault; `number` is sent when it hangs."""

    def run(fault: str, *, ready_seconds: float = 60, number: int | None = None) -> Start:
        (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(FAULTY_MODEL))
        hangs = tmp_path / "hangs"
        os.mkfifo(hangs)
        logs = tmp_path / "logs"
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SUPERVISOR), str(logs), str(ready_seconds)],
            env=environment
            | {"START_FAULT": fault, "HANGS": str(hangs), "PYTHONPATH": str(tmp_path)}
            | {"GYMLOG_SPAN_START_AFTER_SECONDS": "0"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as supervisor:  # fmt: skip
            try:
                if number is not None:
                    wait_for_writer(hangs)
                    supervisor.send_signal(number)
                stdout, said = supervisor.communicate(timeout=120)
            finally:
                supervisor.kill()
        assert stdout == ""
        return told(logs, supervisor.returncode, said)

    return run


def test_a_healthy_start_is_one_trace_over_all_processes(run_demo):
    """Each server's own start lies in its supervisor's, and the stages tile each of them."""
    run = run_demo("--rollouts=1", "--span-groups=startup")
    assert run.exit_code == 0, run.stderr
    found = told(run.folder, run.exit_code, run.stderr)
    found.assert_is_one_trace()
    assert {row["service_name"] for row in found.rows} == {
        f"gym/{name}" for name in ("supervisor", "environment", "agent", "resources", "model")
    }
    assert {(row["state"], row["status_message"]) for row in found.rows} == {("finished", None)}
    assert_tiled(found.rows, found.row("gym.startup"), *SUPERVISOR_STAGES)
    for name in ("environment", "agent", "resources", "model"):
        seen = found.row("gym.startup.server", name)
        own = found.row("gym.server.startup", name)
        assert own["parent_span_id"] == seen["span_id"]
        assert (seen["outcome"], own["outcome"], own["worker"]) == ("ready", "ready", "false")
        assert seen["start_time_unix_nano"] <= own["start_time_unix_nano"]
        assert own["end_time_unix_nano"] <= seen["end_time_unix_nano"]
        assert_tiled(found.rows, own, "interpreter_start", *SERVER_STAGES)
    last = max(
        (row for row in found.rows if row["name"] == "gym.startup.server"),
        key=lambda row: row["end_time_unix_nano"],
    )
    assert [held[:3] for held in found.held_up] == [("ready", last["server"], "ready")]


class ReadyFleet:
    """A fleet of no processes, whose start was traced."""

    startup_trace_id: str | None

    def __init__(self, plan):
        self.plan = plan

    async def start(self):
        return

    async def drive(self):
        yield Progress(done=self.plan.rollouts, is_over=True)

    async def stop(self):
        return

    def ended_early(self):
        return []


@pytest.mark.parametrize("is_traced", [True, False])
def test_the_demo_tells_how_to_see_the_start(is_traced, monkeypatch, tmp_path, capfd):
    """Where it was traced."""
    monkeypatch.setattr(demo, "Fleet", ReadyFleet)
    trace_id = "0123456789abcdef" * 2 if is_traced else None
    monkeypatch.setattr(ReadyFleet, "startup_trace_id", trace_id, raising=False)
    done = subprocess.CompletedProcess([], 0)
    monkeypatch.setattr(demo.subprocess, "run", lambda *_args, **_kwargs: done)
    assert demo.run_demo(Plan(tmp_path, rollouts=1)) == 0
    said = capfd.readouterr().err
    assert (f"reconstruct show 01234567 {tmp_path} " in said) is is_traced
    assert f"reconstruct doctor {tmp_path} " in said


def test_each_worker_has_a_start_of_its_own(crowded):
    """Below the span of its server, which is one, with its own stages."""
    found = told(crowded.folder, crowded.exit_code, crowded.stderr)
    found.assert_is_one_trace()
    for name in ("environment", "agent", "resources", "model"):
        server = found.row("gym.startup.server", name)
        workers = [
            row
            for row in found.rows
            if (row["name"], row["server"]) == ("gym.server.startup.worker", name)
        ]
        assert len({row["process_pid"] for row in workers}) == 2
        for row in workers:
            assert (row["parent_span_id"], row["worker"]) == (server["span_id"], "true")
            assert_tiled(found.rows, row, "worker_start", *SERVER_STAGES)


POLICY = """
    import gymlog
    from fastapi import FastAPI

    startup = gymlog.ServerStartup.from_environment("policy_model", "responses_api_models")
    startup.stage("init_telemetry")
    gymlog.init_telemetry("policy_model", "responses_api_models")
    startup.stage("setup_webserver")
    app = FastAPI(on_startup=[startup.ready])
"""
MAIN = """
    import policy
    import uvicorn

    if __name__ == "__main__":
        policy.startup.hand_over_to_workers()
        uvicorn.run("policy:app", workers=2, port=0, log_level="warning")
"""


def test_uvicorns_workers_start_when_their_main_process_hands_over(tmp_path, environment):
    """One span for the main process, without uvicorn_startup, and one for each of its workers."""
    (tmp_path / "policy.py").write_text(textwrap.dedent(POLICY))
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    log = tmp_path / "policy.log"
    with subprocess.Popen(
        [sys.executable, "main.py"],
        env=environment | {"NEMO_GYM_OTEL_ENABLED": "1"},
        cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as main, log.open("wb") as copy:  # fmt: skip
        starting = 2
        for line in main.stdout:
            copy.write(line)
            starting -= b'"name":"gym.server.startup.worker",' in line
            if starting == 0:
                main.terminate()
                break
        copy.write(main.communicate(timeout=60)[0])
    found = rows(log)
    (server,) = [row for row in found if row["name"] == "gym.server.startup"]
    assert_tiled(found, server, "init_telemetry", "setup_webserver")
    workers = [row for row in found if row["name"] == "gym.server.startup.worker"]
    assert len({row["process_pid"] for row in [server, *workers]}) == 3
    for row in workers:
        assert_tiled(found, row, "worker_start", "init_telemetry", "setup_webserver")
        assert row["start_time_unix_nano"] == workers[0]["start_time_unix_nano"]
        assert server["start_time_unix_nano"] < row["start_time_unix_nano"]
        assert row["outcome"] == server["outcome"] == "ready"


@pytest.mark.parametrize(
    ("fault", "reason", "own_reason"),
    [
        ("raise", "exit code 1: RuntimeError: no weights", "RuntimeError: no weights"),
        ("lifespan", "exit code 3", "SystemExit: 3"),
    ],
)
def test_a_server_that_fails_tells_its_part_of_the_trace(start, fault, reason, own_reason):
    """The supervisor says which and how, the server at which stage and why."""
    found = start(fault)
    assert found.exit_code == 1
    assert f"model ended with {reason}" in found.said
    found.assert_is_one_trace()
    message = f"failed in wait_for_servers: FleetError: model ended with {reason}"
    for name in ("gym.startup", "gym.startup.wait_for_servers"):
        found.assert_ended(found.row(name), "failed", message)
    server = found.row("gym.startup.server", "model")
    found.assert_ended(server, "failed", f"failed: FleetError: model ended with {reason}")
    own = found.row("gym.server.startup", "model")
    unfinished = stages(found.rows, own)[-1]
    stage = "configure_app" if fault == "raise" else "uvicorn_startup"
    assert unfinished["name"] == f"gym.server.startup.{stage}"
    for row in (own, unfinished):
        found.assert_ended(row, "failed", f"failed in {stage}: {own_reason}")
    assert own["parent_span_id"] == server["span_id"]
    assert found.held_up == [("failed", "model", "failed", stage, False)]


def test_a_server_that_cannot_be_imported_is_in_the_supervisors_trace(start):
    """It says nothing itself; its last words stand in the supervisor's span."""
    found = start("import")
    assert found.exit_code == 1
    found.assert_is_one_trace()
    found.assert_ended(
        found.row("gym.startup.server", "model"),
        "failed",
        "failed: FleetError: model ended with exit code 1: ModuleNotFoundError",
    )
    found.assert_ended(found.row("gym.startup"), "failed", "failed in wait_for_servers")
    assert "gym/model" not in {row["service_name"] for row in found.rows}
    assert found.row("gym.startup.server", "resources")["outcome"] in ("ready", "interrupted")
    assert found.held_up == [("failed", "model", "failed", None, None)]


def test_a_server_that_is_killed_while_it_starts_leaves_open_spans(start):
    """What it had finished is finished; what it was at is lost, and the supervisor knows why."""
    found = start("kill")
    assert found.exit_code == 1
    found.assert_is_one_trace()
    found.assert_ended(
        found.row("gym.startup.server", "model"),
        "failed",
        "failed: FleetError: model ended with SIGKILL",
    )
    own = found.row("gym.server.startup", "model")
    assert own["state"] == "lost"
    assert [(row["name"].rpartition(".")[2], row["state"]) for row in stages(found.rows, own)] == [
        ("interpreter_start", "finished"),
        ("init_server", "finished"),
        ("init_telemetry", "finished"),
        ("setup_webserver", "finished"),
        ("configure_app", "lost"),
    ]
    assert found.held_up == [("failed", "model", "failed", "configure_app", False)]


def test_a_server_that_never_gets_ready_is_given_up_in_time(start):
    """timeout in the supervisor, interrupted in the server, which is told to end."""
    found = start("hang", ready_seconds=1)
    assert found.exit_code == 1
    found.assert_is_one_trace()
    for name in ("gym.startup", "gym.startup.wait_for_servers"):
        message = "timeout in wait_for_servers: FleetTimeoutError: "
        found.assert_ended(found.row(name), "timeout", message)
    message = "timeout: FleetTimeoutError: model was not ready after 1 s"
    found.assert_ended(found.row("gym.startup.server", "model"), "timeout", message)
    own = found.row("gym.server.startup", "model")
    found.assert_ended(own, "interrupted", "interrupted in configure_app")
    found.assert_ended(stages(found.rows, own)[-1], "interrupted", "interrupted in configure_app")
    assert found.held_up == [("timeout", "model", "timeout", "configure_app", False)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_start_is_written_by_all_processes(start, number):
    """Ctrl-C while the servers start: each process ends its part as interrupted."""
    found = start("hang", number=number)
    assert found.exit_code == 128 + number
    found.assert_is_one_trace()
    for name in ("gym.startup", "gym.startup.wait_for_servers"):
        found.assert_ended(found.row(name), "interrupted", "interrupted in wait_for_servers")
    assert found.row("gym.startup.server", "model")["outcome"] == "interrupted"
    own = found.row("gym.server.startup", "model")
    found.assert_ended(own, "interrupted", "interrupted in configure_app: SystemExit")
    assert ("interrupted", "model", "interrupted", "configure_app", False) in found.held_up
