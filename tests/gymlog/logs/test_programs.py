"""Log records of whole programs, with each way to configure `logging`."""

import json
import os
import subprocess
import sys
import textwrap
from typing import Any

import pytest

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record

PROGRAM_HEAD = """
import logging, logging.config, sys
import gymlog
"""

CLEAN = {
    key: value
    for key, value in os.environ.items()
    if not key.startswith(("OTEL_", "NEMO_", "GYMLOG_", "SLURM_"))
}


def run(program: str, **variables: str) -> tuple[list[Record], list[str], str]:
    """Run a program; return its records, the other lines of its stdout, and its stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM_HEAD + textwrap.dedent(program)],
        env=CLEAN | {"NEMO_GYM_OTEL_ENABLED": "1", "NEMO_GYM_OTEL_LOGS_ENABLED": "1"} | variables,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    records = [json.loads(line) for line in lines if line.startswith('{"record_type"')]
    return records, [line for line in lines if not line.startswith('{"record_type"')], done.stderr


ORDINARY = """
gymlog.init_telemetry("agent", "responses_api_agents")
import structlog
with gymlog.rollout_context("7-0"), gymlog.span_cm("work"):
    logging.getLogger("app").warning("from logging")
    structlog.get_logger().info("from structlog", shard=3)
gymlog.shutdown_telemetry()
logging.getLogger("app").warning("later")
structlog.get_logger().info("later still")
"""


def test_a_server_with_logs_enabled_writes_them(right_logs):
    """Ordinary loggers of both libraries, until shutdown; what the host saw it still sees."""
    records, others, stderr = run(ORDINARY)
    assert [record["record_type"] for record in records] == [
        "process", "log", "log", "span", "process",
    ]  # fmt: skip
    assert [record["seq"] for record in records] == list(range(5))
    first, second = right_logs(records)
    span = records[3]
    assert [first["body"], second["body"]] == ["from logging", "from structlog"]
    assert {line["span_id"] for line in (first, second)} == {span["span_id"]}
    assert {line["attributes"]["nemo.gym.rollout.id"] for line in (first, second)} == {"7-0"}
    assert second["attributes"] == {"nemo.gym.rollout.id": "7-0", "shard": 3}
    assert (second["severity_text"], second["severity_number"]) == ("info", 9)
    assert ["later still" in line for line in others] == [True]
    assert stderr.splitlines() == ["from logging", "later"]


@pytest.mark.parametrize("value", ["0", ""])
def test_a_server_without_logs_enabled_does_not(value):
    """Off by default: every record goes where it always went."""
    records, others, stderr = run(ORDINARY, NEMO_GYM_OTEL_LOGS_ENABLED=value)
    assert [record["record_type"] for record in records] == ["process", "span", "process"]
    assert len(others) == 2
    assert stderr.splitlines() == ["from logging", "later"]


def test_the_hosts_configuration_of_logging_works_as_ever(right_logs):
    """basicConfig, even forced, and dictConfig, before and after; nothing is written twice."""
    records, _, stderr = run("""
        gymlog.init_telemetry()
        logging.warning("before")           # basicConfig by itself
        logging.basicConfig(force=True, level=logging.INFO, format="forced %(message)s")
        logging.info("one")
        logging.config.dictConfig({
            "version": 1,
            "formatters": {"f": {"format": "dict %(message)s"}},
            "handlers": {"h": {"class": "logging.StreamHandler", "formatter": "f"}},
            "root": {"handlers": ["h"], "level": "WARNING"},
        })
        logging.info("below the root's level")
        logging.warning("two")
        logging.shutdown()
        logging.warning("three")
    """)
    bodies = [log["body"] for log in right_logs(records)]
    assert bodies == ["before", "one", "two", "three"]
    assert stderr.splitlines() == [
        "WARNING:root:before", "forced one", "dict two", "dict three",
    ]  # fmt: skip


def test_warnings_nobody_handles_still_appear_on_stderr(right_logs):
    """As `logging.lastResort` has it, and only those."""
    records, _, stderr = run("""
        gymlog.init_telemetry()
        handled = logging.getLogger("handled")
        handled.addHandler(logging.NullHandler())
        handled.warning("quiet")
        logging.getLogger("handled.child").warning("quiet")
        logging.getLogger("unhandled.child").warning("loud")
        logging.getLogger("unhandled.child").info("below the root's level")
        logging.lastResort = None
        logging.getLogger("unhandled").warning("nobody asked")
    """)
    bodies = [log["body"] for log in right_logs(records)]
    assert bodies == ["quiet", "quiet", "loud", "nobody asked"]
    assert stderr.splitlines() == ["loud"]


def test_a_forked_child_writes_its_own_lines(right_logs):
    """Another service instance, numbered from its own start."""
    records, _, _ = run("""
        import os, warnings
        gymlog.init_telemetry()
        logging.warning("parent")
        if os.fork() == 0:
            logging.warning("child")
            os._exit(0)
        os.wait()
    """)
    parent, child = right_logs(records)
    ids = [one["resource"]["attributes"]["service.instance.id"] for one in (parent, child)]
    assert ids[0] != ids[1]
    assert [one["body"] for one in (parent, child)] == ["parent", "child"]


def test_a_logger_made_before_is_extended_and_then_left_alone(right_logs):
    """structlog's defaults have the processor while logs are on; the host can still configure."""
    records, others, _ = run("""
        import structlog
        early = structlog.get_logger().bind()
        gymlog.init_telemetry()
        early.info("early")
        assert not structlog.is_configured()
        structlog.configure_once(processors=[structlog.processors.JSONRenderer()])
        structlog.get_logger().info("the host's own chain")
    """)
    bodies = [log["body"] for log in right_logs(records)]
    assert bodies == ["early"]
    assert others == ['{"event": "the host\'s own chain"}']
