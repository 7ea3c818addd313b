"""The README's code blocks do what the README says."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from gymlog import settings

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

INSTALL = "pip install -q uv && uv run "


@dataclass
class Block:
    language: str
    text: str


BLOCKS = [Block(*match.groups()) for match in BLOCK.finditer((ROOT / "README.md").read_text())]


def block(start: str) -> Block:
    """Return the only block that starts so."""
    found = [block for block in BLOCKS if block.text.startswith(start)]
    assert len(found) == 1, f"{len(found)} blocks of the README start with {start!r}"
    return found[0]


@pytest.fixture
def shell(tmp_path, healthy, environment):
    """Run a block in a folder with a `logs` folder in it, programs of this environment first."""
    (tmp_path / "logs").symlink_to(healthy.folder)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def run(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment | {"PATH": path, "PYTHONPATH": str(tmp_path)} | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_the_demo_command_shows_the_slowest_rollout(shell):
    """`gymlog demo` runs a gym and ends with the slowest rollout as a waterfall."""
    command = block("pip install -q uv && uv run gymlog demo").text.removeprefix(INSTALL)
    done = shell(f"{command.strip()} --rollouts 3")
    assert done.returncode == 0, done.stderr
    assert "3 of 3 rollouts done" in done.stdout + done.stderr
    assert re.search(r"gym\.model\.responses +model .*█", done.stdout)


def test_the_test_command_is_what_ci_runs(shell):
    """The second command is the last of `.ci/run`, letter by letter."""
    command = block("pip install -q uv && uv run pytest").text.strip()
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith(command)


def test_the_instrumented_server_writes_its_spans(shell, tmp_path):
    """The server of the README, called by the driver of the README: one trace over both."""
    (tmp_path / "server.py").write_text(block("# server.py").text)
    (tmp_path / "driver.py").write_text(block("import asyncio\n\nimport gymlog").text)
    command = block("NEMO_GYM_OTEL_ENABLED=1").text.strip()
    assert command.endswith("uvicorn server:app >> logs/policy_model.log")
    (tmp_path / "both.py").write_text(BOTH)
    variables = dict(part.split("=") for part in command.split() if re.match("[A-Z_]+=", part))
    done = shell("python both.py", **variables)
    assert done.returncode == 0, done.stderr
    (tmp_path / "both.log").write_text(done.stdout)
    asked = shell("""reconstruct query "
        SELECT s.name, s.service_name, s.rollout_id, t.span_count
        FROM spans AS s JOIN traces AS t USING (trace_id) ORDER BY s.start_time_unix_nano
        " both.log --format jsonl""")
    rows = [json.loads(line) for line in asked.stdout.splitlines()]
    assert [(row["name"], row["service_name"]) for row in rows] == [
        ("HTTP POST", "nemo-gym/driver"),
        ("POST /v1/responses", "nemo-gym/policy_model"),
        ("gym.model.responses", "nemo-gym/policy_model"),
    ]
    assert {(row["rollout_id"], row["span_count"]) for row in rows} == {("17-0", 3)}


BOTH = textwrap.dedent(
    """
    import subprocess, sys, socket, asyncio

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "server:app", "--fd", str(listening.fileno())],
        pass_fds=[listening.fileno()],
    )
    import driver, gymlog

    gymlog.init_telemetry("driver")
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.close()
    try:
        assert asyncio.run(driver.run_rollout(url)) == {"output": "…"}
    finally:
        server.terminate()
        server.wait(20)
    """
)


def test_the_structlog_example_writes_one_line_of_ours(shell):
    """A `log` line inside the span when logs are on, structlog's own line when telemetry is off."""
    program = block("import structlog").text + (
        "import gymlog\ngymlog.init_telemetry()\n"
        "with gymlog.span_cm('work'):\n    structlog.get_logger().info('hello', a=1)\n"
    )
    on = {"NEMO_GYM_OTEL_ENABLED": "1", "NEMO_GYM_OTEL_LOGS_ENABLED": "1"}
    done = shell('python -c "$PROGRAM"', PROGRAM=program, **on)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    (log,) = [record for record in records if record["record_type"] == "log"]
    (span,) = [record for record in records if record["record_type"] == "span"]
    assert (log["body"], log["attributes"]["a"]) == ("hello", 1)
    assert log["span_id"] == span["span_id"]
    off = json.loads(shell('python -c "$PROGRAM"', PROGRAM=program).stdout)
    assert off == {"a": 1, "event": "hello", "level": "info"}


def test_the_config_command_names_each_setting(shell):
    """And the variable that counted."""
    done = shell(block("gymlog config").text, NEMO_LENS_ENABLED="1")
    assert done.returncode == 0, done.stderr
    assert all(f"\n{setting.name} " in done.stdout for setting in settings.SETTINGS)
    assert "on: NEMO_LENS_ENABLED=1" in done.stdout


def test_the_commands_of_the_reader_run(shell):
    """Each line of the block answers, and says something."""
    for line in block("reconstruct logs/ ").text.splitlines():
        command = line.partition("#")[0].strip()
        done = shell(command)
        assert done.returncode == 0, f"{command}: {done.stdout} {done.stderr}"
        assert done.stdout.strip(), command


def test_the_query_answers(shell):
    """The SQL of the README gives the five slowest kinds of span."""
    done = shell(block("reconstruct query").text)
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["service_name", "name", "spans", "p99_ms"]
    assert len(rows) == 5
    assert all(row.startswith("gym/") for row in rows)
    times = [float(row.split()[-1]) for row in rows]
    assert times == sorted(times, reverse=True)


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq on the PATH")
def test_the_jq_recipe_works(shell, healthy):
    """One row of trace id, service, kind and name for each line with a trace id."""
    done = shell(block("cat logs/*.log | grep").text)
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) == len(healthy.spans) + len(healthy.of_type("span_start"))
    assert {len(row) for row in rows} == {4}


def test_the_export_command_says_that_nobody_listens(shell):
    """Without a receiver the export ends with 4 and one line that names the endpoint."""
    command = block("reconstruct export otlp").text.strip()
    with_closed_port = command.replace("localhost:4317", "127.0.0.1:1") + " --timeout 2"
    done = shell(with_closed_port)
    assert done.returncode == 4
    assert "127.0.0.1:1" in done.stderr


def test_every_block_is_tested():
    """Whoever adds a block adds its test: each is the `block(...)` of one here."""
    calls = [
        node
        for node in ast.walk(ast.parse(Path(__file__).read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "block"
    ]
    starts = tuple(ast.literal_eval(call.args[0]) for call in calls)
    assert [block.text for block in BLOCKS if not block.text.startswith(starts)] == []


def test_every_setting_is_documented():
    """Each GYMLOG_ variable of the table of settings stands in the README's table."""
    known = {
        variable
        for setting in settings.SETTINGS
        for variable in setting.variables
        if variable.startswith("GYMLOG_")
    }
    documented = set(re.findall(r"`(GYMLOG_[A-Z_]+)`", (ROOT / "README.md").read_text()))
    assert documented == known
