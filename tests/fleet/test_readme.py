"""The README's code blocks about writing lines do what it says; every block has its test."""

import ast
import http.server
import json
import re
import socket
import textwrap
import threading
from pathlib import Path

from gymlog import settings
from gymlog.metrics import instruments, series
from tests.fleet.readme import BLOCKS, ROOT, block

INSTALL = "pip install -q uv && uv run "


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


def test_the_startup_example_is_one_trace(shell, tmp_path):
    """The supervisor of the README starts the server of the README."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    supervisor, server = block("# supervisor.py").text, block("# policy_model.py").text
    supervisor += "process.terminate()\nprocess.wait(20)\n"
    (tmp_path / "supervisor.py").write_text(supervisor.replace("8001", port))
    (tmp_path / "policy_model.py").write_text(server.replace("8001", port))
    done = shell("python supervisor.py > start.log", NEMO_GYM_OTEL_ENABLED="1")
    assert done.returncode == 0, done.stderr
    asked = shell("""reconstruct query "
        SELECT name, service_name, trace_id, attributes->>'nemo.gym.startup.outcome' AS outcome
        FROM spans WHERE name LIKE 'gym.%startup%'" start.log --format jsonl""")
    rows = [json.loads(line) for line in asked.stdout.splitlines()]
    assert len({row["trace_id"] for row in rows}) == 1
    assert {row["name"]: row["service_name"] for row in rows} == {
        "gym.startup": "nemo-gym/supervisor",
        "gym.startup.init_telemetry": "nemo-gym/supervisor",
        "gym.startup.spawn_servers": "nemo-gym/supervisor",
        "gym.startup.wait_for_servers": "nemo-gym/supervisor",
        "gym.startup.server": "nemo-gym/supervisor",
        "gym.server.startup": "nemo-gym/policy_model",
        "gym.server.startup.interpreter_start": "nemo-gym/policy_model",
        "gym.server.startup.init_telemetry": "nemo-gym/policy_model",
        "gym.server.startup.setup_webserver": "nemo-gym/policy_model",
        "gym.server.startup.uvicorn_startup": "nemo-gym/policy_model",
    }
    assert {row["outcome"] for row in rows} == {"ready", None}


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


def test_the_query_for_stalls_finds_one(shell, tmp_path):
    """A loop that was blocked for 0.3 s, where it was, and that nothing waited for it."""
    (tmp_path / "blocked.py").write_text(BLOCKED)
    on = {"NEMO_GYM_OTEL_ENABLED": "1", "GYMLOG_EVENT_LOOP_STALL_SECONDS": "0.1"}
    done = shell("python blocked.py > stalled.log", **on)
    assert done.returncode == 0, done.stderr
    query = block('reconstruct query "\n  SELECT service_name, duration_ns, function').text.strip()
    asked = shell(query.replace("logs/", "stalled.log --format jsonl"))
    assert asked.returncode == 0, asked.stderr
    (row,) = [json.loads(line) for line in asked.stdout.splitlines()]
    assert (row["service_name"], row["function_name"]) == ("nemo-gym/policy_model", "block")
    assert row["file_path"].endswith("/blocked.py")
    assert row["duration_ns"] >= 200_000_000
    assert row["held_up_rollouts"] == 0


BLOCKED = textwrap.dedent(
    """
    import asyncio, time, gymlog

    def block():
        time.sleep(0.3)

    async def main():
        assert gymlog.watch_event_loop()
        with gymlog.rollout_context("3-0"):
            block()
        await asyncio.sleep(0.05)

    gymlog.init_telemetry("policy_model")
    asyncio.run(main())
    """
)


def test_the_memory_profiler_of_the_readme_samples(shell):
    """Its process's own tree stands for a server's; without the setting nothing is sampled."""
    program = block("import gymlog\nfrom gymlog.observers.memory").text + textwrap.dedent(
        """
        import os, sys

        gymlog.init_telemetry("supervisor", "supervisor")
        profiler = profile_memory([ServerProcess("policy", "responses_api_models", os.getpid())])
        if profiler is None:
            sys.exit("off")
        profiler.stop()
        gymlog.shutdown_telemetry()
        """
    )
    on = {"NEMO_GYM_OTEL_ENABLED": "1", "OTEL_METRIC_EXPORT_INTERVAL": "100"}
    run = 'python -c "$PROGRAM"'
    done = shell(run, PROGRAM=program, **on, NEMO_GYM_OTEL_MEMORY_PROFILING_ENABLED="1")
    assert done.returncode == 0, done.stderr
    names = {json.loads(line).get("name") for line in done.stdout.splitlines()}
    assert {"gym.host.memory.total", "gym.server.memory.usage", "gym.server.processes"} <= names
    assert shell(run, PROGRAM=program, **on).stderr == "off\n"


def test_the_metrics_example_measures(shell, tmp_path):
    """The gym's own counter beside ours, in `metric` lines when telemetry is on."""
    (tmp_path / "grader.py").write_text(block("# grader.py").text)
    program = "import gymlog, grader; gymlog.init_telemetry(); assert grader.verify('42')"
    done = shell(f'python -c "{program}"', NEMO_GYM_OTEL_ENABLED="1")
    assert done.stderr == ""
    records = [json.loads(line) for line in done.stdout.splitlines()]
    metrics = {record["name"]: record for record in records if record["record_type"] == "metric"}
    assert metrics["math_gym.answers"]["value"] == 1
    assert metrics["gym.verify.success_rate"]["value"] == 1
    assert metrics["gym.verify.duration_ms"]["count"] == 1
    assert shell(f'python -c "{program}"').stdout == ""


def test_the_query_for_requests_answers(shell):
    """A row for each route of each server, the slowest first."""
    done = shell(block('reconstruct query "\n  SELECT server_name, attributes').text)
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert header.split() == ["server_name", "route", "requests", "mean_ms", "max_ms"]
    assert len(rows) == 6
    means = [float(row.split()[-2]) for row in rows]
    assert means == sorted(means, reverse=True)


def test_the_otlp_example_sends_what_it_writes(shell, tmp_path):
    """To the endpoint of the README, here on a free port; the line stays."""
    paths = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            paths.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    (tmp_path / "driver.py").write_text(
        "import gymlog\ngymlog.init_telemetry('driver')\nwith gymlog.span_cm('work'): pass\n"
    )
    command = block("NEMO_GYM_OTEL_EXPORTER=console,otlp").text
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        here = command.replace("localhost:4318", f"127.0.0.1:{server.server_port}")
        done = shell(here.replace("logs/driver.log", "otlp.log"))
        server.shutdown()
    assert (done.returncode, done.stderr) == (0, "")
    assert "/v1/traces" in paths
    lines = [json.loads(line) for line in (tmp_path / "otlp.log").read_text().splitlines()]
    assert [line["name"] for line in lines if line["record_type"] == "span"] == ["work"]
    assert "export_failed" not in lines[-1]


def test_the_sdk_example_writes_lines(shell, tmp_path):
    """From a process that knows nothing else of gymlog."""
    work = "with trace.get_tracer('judge').start_as_current_span('judge'): pass\n"
    (tmp_path / "judge.py").write_text(block("# judge.py").text + work)
    done = shell("python judge.py")
    assert (done.returncode, done.stderr) == (0, "")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["record_type"] for record in records] == ["process", "span", "process"]


def test_every_block_is_tested():
    """Whoever adds a block adds its test: each is the `block(...)` of one of the README's."""
    calls = [
        node
        for path in Path(__file__).parent.glob("test_readme*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "block"
    ]
    starts = tuple(ast.literal_eval(call.args[0]) for call in calls)
    assert [block.text for block in BLOCKS if not block.text.startswith(starts)] == []


def test_every_metric_is_documented():
    """Each that gymlog measures itself has its row, with its unit and attributes."""
    rows = {
        line.split("|")[1].strip(): line
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("| `")
    }
    ours = [getattr(instruments, name) for name in instruments.__all__]
    for instrument in (one for one in ours if isinstance(one, series.Instrument)):
        row = rows[f"`{instrument.name}`"]
        assert f"| {instrument.unit} |" in row
        for key in instrument.keys:
            assert f"`{key}`" in row or f"`.{key.rpartition('.')[2]}`" in row


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
