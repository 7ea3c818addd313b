"""Events of structlog: lines where the processor stands, else rendered as ever."""

import sys
from typing import Any

import pytest
import structlog

import gymlog
from gymlog.logs import (
    add_trace_context,
    remove_logging,
    write_log,
)

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record

ALWAYS = ["code.file.path", "code.function.name", "code.line.number"]


class Hostile:
    """Raises whatever it is asked."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __bool__ = __eq__ = __hash__ = __repr__  # type: ignore[assignment]  # on purpose


@pytest.fixture
def configured():
    """Configure structlog with a chain that ends in a list, for a test."""
    rendered: list[Record] = []

    def render(logger, method_name, event_dict):
        rendered.append(dict(event_dict))
        raise structlog.DropEvent

    def configure(*processors):
        structlog.configure(processors=[*processors, render])
        return rendered

    yield configure
    structlog.reset_defaults()


def test_an_event_is_one_line_and_nothing_else(telemetry, configured, only_line):
    """The chain ends where the line is written; what processors added is on it."""
    rendered = configured(
        structlog.contextvars.merge_contextvars, structlog.processors.add_log_level, write_log
    )
    log = structlog.get_logger().bind(shard=3)
    with structlog.contextvars.bound_contextvars(bound=1), gymlog.span_cm("work"):
        log.warning("slow", seconds=0.5, secret="x")
    line = only_line(telemetry)
    assert line["body"] == "slow"
    assert (line["severity_text"], line["severity_number"]) == ("warning", 13)
    assert line["attributes"] == {"bound": 1, "shard": 3, "seconds": 0.5, "secret": "[REDACTED]"}
    assert line["span_id"] == telemetry.span("work")["span_id"]
    assert "scope" not in line
    assert rendered == []


def test_an_event_without_a_line_goes_on(telemetry, configured, lines_of):
    """When its level is too low, or logs are off: the renderer behind has it, unchanged."""
    rendered = configured(write_log)
    structlog.get_logger().debug("low", a=1)
    remove_logging()
    structlog.get_logger().error("off", b=2)
    assert rendered == [{"event": "low", "a": 1}, {"event": "off", "b": 2}]
    assert lines_of(telemetry) == []


def test_an_event_that_cannot_be_a_line_is_rendered(telemetry, configured, monkeypatch, capfd):
    """Its values are as they were, and stderr has one word."""
    gymlog.notices.reset()

    def fail():
        raise RuntimeError

    rendered = configured(write_log)
    monkeypatch.setattr("gymlog.clock.now", fail)
    structlog.get_logger().info("x", a=1)
    assert rendered == [{"event": "x", "a": 1}]
    assert "cannot be written" in capfd.readouterr().err


@pytest.mark.parametrize("how", ["exception", "exc_info", "instance", "tuple"])
def test_an_event_with_an_exception(telemetry, configured, how, only_line):
    """In each of structlog's forms."""
    configured(write_log)
    log = structlog.get_logger()
    try:
        raise KeyError("missing")
    except KeyError as error:
        if how == "exception":
            log.exception("failed")
        else:
            forms = {"exc_info": True, "instance": error, "tuple": sys.exc_info()}
            log.error("failed", exc_info=forms[how])
    line = only_line(telemetry)
    assert line["severity_number"] == 17
    assert line["attributes"]["exception.type"] == "KeyError"
    assert "exc_info" not in line["attributes"]


def test_an_event_of_any_kind(telemetry, configured, lines_of):
    """Objects stay objects; what has no JSON form is text; nothing raises."""
    configured(write_log)
    log = structlog.get_logger()
    for event in ({"a": [1, b"x"]}, None, Hostile(), float("inf"), ["x"]):
        log.info(event, hostile=Hostile(), level=Hostile())
    log.info("named", logger="part", level="CRITICAL")
    log.info("odd", logger=5)
    lines = lines_of(telemetry)
    assert [line["body"] for line in lines] == [
        {"a": [1, "eA=="]}, "", "<Hostile>", "Infinity", ["x"], "named", "odd",
    ]  # fmt: skip
    assert lines[0]["attributes"] == {"hostile": "<Hostile>"}
    assert (lines[0]["severity_number"], lines[0]["severity_text"]) == (9, "<Hostile>")
    assert (lines[5]["severity_number"], lines[5]["scope"]) == (21, {"name": "part"})
    assert lines[6]["scope"] == {"name": "5"}


def test_structlog_on_top_of_logging(telemetry, only_line):
    """wrap_for_formatter hands the event itself to `logging`: its fields are attributes."""
    structlog.configure(
        processors=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    try:
        structlog.get_logger("app.part").warning("wrapped", shard=3)
    finally:
        structlog.reset_defaults()
    line = only_line(telemetry)
    assert line["body"] == "wrapped"
    assert {key: value for key, value in line["attributes"].items() if key not in ALWAYS} == {
        "shard": 3
    }
    assert line["scope"] == {"name": "app.part"}
    assert line["severity_text"] == "WARNING"


def test_trace_context_for_a_renderer_of_ones_own(telemetry):
    """Ids of the span and the rollout; what the event has already stays."""
    with gymlog.rollout_context("1-2"), gymlog.span_cm("work") as span:
        event = add_trace_context(None, "info", {"event": "x"})
        kept = add_trace_context(None, "info", {"trace_id": "mine"})
    assert event == {
        "event": "x",
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "nemo.gym.rollout.id": "1-2",
    }
    assert kept["trace_id"] == "mine"
    assert add_trace_context(None, "info", {"event": "x"}) == {"event": "x"}
