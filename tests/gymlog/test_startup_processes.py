"""Starts of real processes: forked, killed, interrupted, failed before telemetry is on."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

T0 = 1_750_000_000_000_000_000


def test_a_forked_child_has_no_start_of_its_parents():
    """What it does with telemetry of its own says nothing of a start that is not its."""
    program = """
        import os, gymlog

        started = gymlog.StartupTrace()
        if os.fork() == 0:
            gymlog.init_telemetry("child")
            gymlog.shutdown_telemetry()
            os._exit(0)
        os.wait()
    """
    records, _ = child(program, environ=ON)
    assert [record.get("state") for record in records] == ["started", "stopped"]


def child(program, *, environ, returns=0, at_line=None):
    """Run a program in a process of its own; return its records and what it said.

    `at_line` is (text, signal number): the signal is sent when stderr has that line.
    """
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NEMO_")}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=clean | environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        said = ""
        if at_line is not None:
            for line in process.stderr:
                if line.strip() == at_line[0]:
                    break
                said += line
            process.send_signal(at_line[1])
        stdout, rest = process.communicate(timeout=60)
    assert process.returncode == returns, rest
    return [json.loads(line) for line in stdout.splitlines()], said + rest


ON = {"NEMO_GYM_OTEL_ENABLED": "1", "NEMO_GYM_STARTUP_SPAWN_NS": str(T0)}

SERVER = """
    import signal, sys, gymlog

    startup = gymlog.ServerStartup.from_environment("model", "models")
    startup.stage("init_telemetry")
    gymlog.init_telemetry("model", "models")
    startup.stage("load_config")
"""
WAIT = """
    sys.stderr.write("waiting\\n")
    sys.stderr.flush()
    signal.pause()
"""


@pytest.mark.parametrize(
    ("program", "returns", "number", "outcome", "reason"),
    [
        (SERVER + "    raise ValueError('no model')", 1, None, "failed", "ValueError: no model"),
        (SERVER + "    sys.exit(3)", 3, None, "failed", "the process ended before it was ready"),
        (SERVER + WAIT, -signal.SIGTERM, signal.SIGTERM, "interrupted", "SystemExit: 143"),
        (SERVER + WAIT, -signal.SIGINT, signal.SIGINT, "interrupted", "KeyboardInterrupt"),
    ],
    ids=["exception", "exit", "SIGTERM", "SIGINT"],
)
def test_a_server_that_ends_before_it_is_ready_writes_its_start(
    program, returns, number, outcome, reason
):
    """Without a `with` block too: telemetry's own end ends it, with what ends the process."""
    at_line = None if number is None else ("waiting", number)
    records, _ = child(program, environ=ON, returns=returns, at_line=at_line)
    spans = {span["name"]: span for span in records if span["record_type"] == "span"}
    assert list(spans) == [
        "gym.server.startup.interpreter_start",
        "gym.server.startup.init_telemetry",
        "gym.server.startup.load_config",
        "gym.server.startup",
    ]
    message = f"{outcome} in load_config: {reason}"
    for name in ("gym.server.startup.load_config", "gym.server.startup"):
        assert spans[name]["status"] == {"code": "ERROR", "message": message}
        assert spans[name]["attributes"]["nemo.gym.startup.outcome"] == outcome
    assert records[-1]["state"] == "stopped"
    assert records[-1]["open_spans"] == 0


def test_a_start_that_fails_before_telemetry_is_on_switches_it_on():
    """Else a server with a broken configuration would leave nothing behind."""
    program = """
        import gymlog

        with gymlog.ServerStartup.from_environment("model", "models") as startup:
            startup.stage("load_config")
            raise FileNotFoundError("no gym.yaml")
    """
    records, said = child(program, environ=ON, returns=1)
    assert said.strip().endswith("FileNotFoundError: no gym.yaml")
    started, *spans, stopped = records
    assert (started["state"], stopped["state"]) == ("started", "stopped")
    resource = started["resource"]["attributes"]
    assert (resource["nemo.gym.server.name"], resource["nemo.gym.server.type"]) == (
        "model", "models",
    )  # fmt: skip
    assert [span["name"].removeprefix("gym.server.startup") for span in spans] == [
        ".interpreter_start", ".load_config", "",
    ]  # fmt: skip
    assert spans[-1]["status"]["message"] == (
        "failed in load_config: FileNotFoundError: no gym.yaml"
    )


def test_lines_may_go_to_another_file_than_stdout(tmp_path):
    """A supervisor's stdout is its user's."""
    log = tmp_path / "supervisor.log"
    program = f"""
        import gymlog

        log = open({str(log)!r}, "ab", buffering=0)
        with gymlog.StartupTrace() as started:
            gymlog.init_telemetry("supervisor", fd=log.fileno())
            print('{{"a": "word"}}')
    """
    said = child(program, environ=ON | {"GYMLOG_VERBOSE": "1"})
    assert said[0] == [{"a": "word"}]
    assert f"lines go to {log}" in said[1]
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert [record.get("name") for record in records] == [None, "gym.startup", None]


def test_with_telemetry_off_nothing_heavy_is_loaded():
    """The whole of it may stand in any supervisor and server."""
    program = """
        import sys
        from gymlog import ServerStartup, StartupTrace

        with StartupTrace() as started:
            started.stage("spawn_servers")
            with started.server("model", "models") as server:
                assert server.environment() == {}
                server.stopped()
        with ServerStartup.from_environment("model") as own:
            own.stage("load_config")
        own.hand_over_to_workers()
        assert own.outcome == "failed"
        heavy = {"opentelemetry", "pydantic", "structlog", "orjson", "asyncio", "inspect"}
        assert not heavy & set(sys.modules), heavy & set(sys.modules)
    """
    assert child(program, environ={}) == ([], "")
