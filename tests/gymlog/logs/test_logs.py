"""Log records: one valid line each, in its place in the trace, whatever the host logs."""

import asyncio
import logging
import logging.config
import logging.handlers
import queue
import signal
import threading
from itertools import pairwise
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace

import gymlog
from gymlog import testing
from gymlog.logs import (
    LogHandler,
    install_logging,
    remove_logging,
    write_log,
)
from gymlog.samplers import sampler_from
from gymlog.values import Limits

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record

ALWAYS = ["code.file.path", "code.function.name", "code.line.number"]


def test_a_record_outside_a_span(telemetry, logger, only_line):
    """Everything but the place in a trace."""
    before = logging.LogRecord("", 0, "", 0, "", (), None).created
    logger.warning("%d of %s", 3, "four", extra={"shard": 7})
    line = only_line(telemetry)
    assert line["severity_number"] == 13
    assert line["severity_text"] == "WARNING"
    assert line["body"] == "3 of four"
    assert line["scope"] == {"name": "app.part"}
    assert line["attributes"].pop("code.line.number") > 0
    assert line["attributes"] == {
        "code.file.path": __file__,
        "code.function.name": "test_a_record_outside_a_span",
        "shard": 7,
    }
    assert 0 <= line["time_unix_nano"] - before * 1e9 < 10e9
    assert line["resource"] == {"attributes": telemetry_resource(telemetry)}
    assert "trace_id" not in line


def telemetry_resource(telemetry: testing.Captured) -> Record:
    resource = telemetry.service.resource
    return {key: resource[key] for key in ("service.name", "service.instance.id")}


def test_a_record_inside_a_span_of_a_rollout(telemetry, logger, only_line):
    """The innermost span's ids, and the rollout's."""
    with gymlog.rollout_context("3-1"), gymlog.span_cm("outer"), gymlog.span_cm("inner"):
        logger.info("here")
    line, inner = only_line(telemetry), telemetry.span("inner")
    assert (line["trace_id"], line["span_id"]) == (inner["trace_id"], inner["span_id"])
    assert line["flags"] == inner["flags"] & 0xFF
    assert line["attributes"]["nemo.gym.rollout.id"] == "3-1"


def test_a_record_beside_a_suspended_generator(telemetry, logger, only_line):
    """The generator's span is not the consumer's."""

    def generator():
        with gymlog.span_cm("producer"):
            yield

    running = generator()
    next(running)
    logger.info("consumer")
    running.close()
    assert "span_id" not in only_line(telemetry)


def test_a_record_in_another_librarys_span(telemetry, logger, lines_of):
    """A span that is not ours has ids, too; flags that are zero are not written."""
    context = trace.SpanContext(0xABC, 0xDEF, is_remote=True)
    with trace.use_span(trace.NonRecordingSpan(context)):
        logger.info("x")
    with trace.use_span(trace.INVALID_SPAN):
        logger.info("y")
    inside, outside = lines_of(telemetry)
    assert (inside["trace_id"], inside["span_id"]) == (f"{0xABC:032x}", f"{0xDEF:016x}")
    assert "flags" not in inside
    assert "trace_id" not in outside


def test_a_record_in_a_span_that_is_not_sampled(logger, only_line):
    """Log records are not sampled; the flags say that the span was."""
    with testing.captured(sampler=sampler_from("always_off", "")) as captured:
        install_logging(captured.service)
        with gymlog.span_cm("dropped"):
            logger.info("kept")
        remove_logging()
        assert only_line(captured)["flags"] & 1 == 0
        assert captured.spans == []


@pytest.mark.parametrize(
    ("level", "number"),
    [
        (5, 1), (10, 5), (11, 6), (12, 7), (19, 8), (20, 9), (25, 12), (30, 13), (40, 17),
        (49, 20), (50, 21), (51, 22), (60, 24), (1000, 24),
    ],
)  # fmt: skip
def test_severities_are_opentelemetrys(logger, level, number, only_line):
    """The five levels of `logging` on OpenTelemetry's scale, and what lies between them."""
    with testing.captured() as captured:
        install_logging(captured.service, 1)
        logger.log(level, "x")
        remove_logging()
        line = only_line(captured)
    assert (line["severity_number"], line["severity_text"]) == (number, logging.getLevelName(level))


def test_levels_below_the_handlers_are_not_written(telemetry, logger, lines_of):
    """INFO by default, whatever the logger lets pass; the logger's own level counts before."""
    logger.debug("too low for the handler")
    logger.setLevel(logging.ERROR)
    logger.warning("too low for the logger")
    assert lines_of(telemetry) == []


def test_an_exception_is_described_as_in_spans(telemetry, logger, lines_of):
    """Type, message without secrets, frames; the log call's own place stays."""
    try:
        raise ValueError("no answer from http://user:password@host/x?key=1")
    except ValueError:
        logger.exception("failed")
    logger.error("outside of any handler", exc_info=True)  # noqa: LOG014 - people do
    line, other = lines_of(telemetry)
    assert line["body"] == "failed"
    assert line["attributes"]["exception.type"] == "ValueError"
    assert line["attributes"]["exception.message"] == "no answer from http://host/x"
    assert "test_an_exception_is_described" in line["attributes"]["exception.stacktrace"]
    assert list(other["attributes"]) == ALWAYS


def test_a_stack_that_was_asked_for_is_written(telemetry, logger, only_line):
    """`stack_info=True` is text of the record's own."""
    logger.info("x", stack_info=True)
    assert "test_logs.py" in only_line(telemetry)["attributes"]["code.stacktrace"]


class Hostile:
    """Raises whatever it is asked."""

    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __bool__ = __eq__ = __hash__ = __repr__  # type: ignore[assignment]  # on purpose


def test_extra_of_any_kind(telemetry, logger, only_line):
    """Values as on spans: JSON as it is, all else as text; None is left out."""
    cycle: dict[str, object] = {}
    cycle["self"] = cycle
    logger.info("x", extra={
        "none": None, "nan": float("nan"), "big": 2**70, "bytes": b"bytes", "list": [1, "a"],
        "hostile": Hostile(), "cycle": cycle, "surrogate": "\ud83d", "password": "hunter2",
        "token": 5, "long": "x" * 10_000,
    })  # fmt: skip
    attributes = only_line(telemetry)["attributes"]
    assert attributes.pop("long") == "x" * 8191 + "…"
    assert {key: value for key, value in attributes.items() if key not in ALWAYS} == {
        "nan": "NaN", "big": str(2**70), "bytes": "Ynl0ZXM=", "list": [1, "a"],
        "hostile": "<Hostile>", "cycle": {"self": "<cycle>"}, "surrogate": "\ufffd",
        "password": "[REDACTED]", "token": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("message", "arguments", "body"),
    [
        ("%d", ("text",), "%d % ['text']"),
        ("one %s", (1, 2), "one %s % [1, 2]"),
        ("%s", (Hostile(),), "%s % ['<Hostile>']"),
        ({"a": 1}, (), "{'a': 1}"),
        (Hostile(), (), "<Hostile> % []"),
        ("\ud83d", (), "\ufffd"),
        ("x" * 9000, (), "x" * 8191 + "…"),
    ],
)
def test_a_message_that_cannot_be_formatted_is_written_in_parts(
    telemetry, logger, message, arguments, body, only_line
):
    """The template and its arguments: nothing vanishes, nothing is raised."""
    logger.info(message, *arguments)
    assert only_line(telemetry)["body"] == body


@given(st.text(), st.dictionaries(st.text(min_size=1), st.integers() | st.floats() | st.binary()))
def test_any_text_and_extra_is_a_valid_line(only_line, body, extra):
    """Whatever characters, keys and numbers."""
    with testing.captured() as captured:
        record = logging.LogRecord("any", 20, "file", 1, body, None, None, "f")
        vars(record).update({f"_{key}": value for key, value in extra.items()})
        LogHandler(captured.service).handle(record)
        line = only_line(captured)
    assert line["body"] == body.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert len(line["attributes"]) == min(len(ALWAYS) + len(extra), 128)


def test_what_finds_no_room_is_counted(logger):
    """By the number of attributes, and by the size of the line."""
    with testing.captured(line_max_bytes=4096) as captured:
        handler = LogHandler(captured.service, limits=Limits(attributes=4))
        record = logging.LogRecord("many", 20, "file", 1, "x", None, None, "f")
        vars(record).update({f"key{n}": n for n in range(10)})
        handler.handle(record)
        handler.handle(logging.LogRecord("big", 20, "y" * 9000, 1, "x" * 9000, None, None))
        many, big = captured.records
    assert many["dropped_attributes_count"] == 10 - 1
    assert list(many)[-3:] == ["dropped_attributes_count", "scope", "resource"]
    assert big["dropped_attributes_count"] == 1
    assert len(captured.file.writes[1]) < 4096


def test_times_are_in_the_order_of_the_records(telemetry, logger, lines_of):
    """Nanoseconds as good as `record.created` has them."""
    for n in range(100):
        logger.info(n)
    lines = lines_of(telemetry)
    assert [line["body"] for line in lines] == [str(n) for n in range(100)]
    assert all(a["time_unix_nano"] <= b["time_unix_nano"] for a, b in pairwise(lines))


# The host is not disturbed.


def test_handling_holds_no_lock_of_its_own(telemetry, logger, lines_of):
    """An object that logs from another thread while it is made into text waits for nothing."""

    class Logs:
        def __str__(self):
            thread = threading.Thread(target=logger.info, args=("from the other thread",))
            thread.start()
            thread.join(timeout=10)
            return "hung" if thread.is_alive() else "went on"

    logger.info(Logs())
    assert [line["body"] for line in lines_of(telemetry)] == ["from the other thread", "went on"]


def test_a_text_that_logs_itself_ends(telemetry, logger, capfd, lines_of):
    """After a few turns, with one word on stderr."""

    class Endless:
        def __str__(self):
            logger.info(self)
            return "endless"

    gymlog.notices.reset()
    logger.info(Endless())
    logger.info("after")
    assert [line["body"] for line in lines_of(telemetry)] == ["endless"] * 4 + ["after"]
    assert capfd.readouterr().err.count("gymlog: log records made while") == 1


def test_a_failure_of_the_handler_is_one_notice_and_no_record(
    telemetry, logger, capfd, lines_of, only_line
):
    """Even when everything logs, warnings included, and the line's maker fails."""
    gymlog.notices.reset()
    record = logging.LogRecord("broken", 20, "file", 1, "x", None, None)
    record.created = None  # type: ignore[assignment]  # on purpose
    logger.handle(record)
    logger.handle(record)
    assert lines_of(telemetry) == []
    assert capfd.readouterr().err.splitlines() == [
        "gymlog: a log record cannot be written and is missing (TypeError); told only once"
    ]
    logger.info("next")
    assert only_line(telemetry)["seq"] == 0


def test_a_file_that_fails_does_not_loop(logger, capfd):
    """The sink's loss is counted; telling it makes no record."""

    class BrokenFile(testing.MemoryFile):
        def write(self, line: bytes, /) -> None:
            raise OSError("disk full")

    gymlog.notices.reset()
    with testing.captured() as captured:
        captured.service.sink.file = broken = BrokenFile()
        captured.service.sink._log = structlog.BytesLogger(broken).msg
        install_logging(captured.service)
        logger.info("lost")
        remove_logging()
        assert captured.service.sink.records_dropped == 1
    assert "could not be written and is lost" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["gymlog", "gymlog.sink", "opentelemetry.sdk.trace"])
def test_what_writes_lines_is_not_listened_to(telemetry, name, only_line):
    """A line about a line could go on for ever."""
    logging.getLogger(name).error("x")
    logging.getLogger("gymlogs").error("another library's")
    assert only_line(telemetry)["scope"] == {"name": "gymlogs"}


def test_a_signal_handler_may_log_at_any_moment(telemetry, logger, lines_of):
    """In the middle of another record's text, too: both are written."""

    class Interrupted:
        def __str__(self):
            signal.raise_signal(signal.SIGUSR1)
            return "interrupted"

    before = signal.signal(signal.SIGUSR1, lambda *_: logger.info("signal"))
    try:
        logger.info(Interrupted())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [line["body"] for line in lines_of(telemetry)] == ["signal", "interrupted"]


def test_threads_and_tasks_have_their_own_place(telemetry, logger, lines_of):
    """Each record has the ids of the span it was made in, and no number twice."""

    async def task(n):
        with gymlog.rollout_context(f"{n}-0"), gymlog.span_cm(f"task {n}"):
            await asyncio.sleep(0)
            logger.info("task %d", n)

    async def tasks():
        await asyncio.gather(*map(task, range(20)))

    def thread(n):
        with gymlog.span_cm(f"thread {n}"):
            for _ in range(20):
                logger.info("thread %d", n)

    threads = [threading.Thread(target=thread, args=(n,)) for n in range(8)]
    for one in threads:
        one.start()
    asyncio.run(tasks())
    for one in threads:
        one.join()
    lines = lines_of(telemetry)
    spans = {span["name"]: span["span_id"] for span in telemetry.spans}
    assert len(lines) == 20 + 8 * 20
    assert [spans[line["body"]] for line in lines] == [line["span_id"] for line in lines]
    assert sorted(record["seq"] for record in telemetry.records) == list(
        range(len(telemetry.records))
    )


def test_a_queue_in_between_keeps_the_time(telemetry, logger, only_line):
    """`QueueHandler` and `QueueListener`: the record says when it was made."""
    between: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    logging.handlers.QueueHandler(between).handle(
        logging.makeLogRecord({"msg": "x", "created": 1.5, "levelno": 20, "levelname": "INFO"})
    )
    LogHandler(telemetry.service).handle(between.get())
    line = only_line(telemetry)
    assert (line["time_unix_nano"], line["body"]) == (1_500_000_000, "x")
    assert "scope" not in line


def test_filters_of_the_handler_decide(telemetry, only_line):
    """As for any handler of `logging`."""
    handler = LogHandler(telemetry.service)
    handler.addFilter(lambda record: record.getMessage() != "no")
    results = [
        bool(handler.handle(logging.LogRecord("f", 20, "", 1, text, None, None)))
        for text in ("no", "yes")
    ]
    assert results == [False, True]
    assert only_line(telemetry)["body"] == "yes"


# Installed and removed.


def test_installing_again_changes_nothing_but_the_service(telemetry, logger, only_line):
    """One line for each record; after removal none, and nothing is left behind."""
    install_logging(telemetry.service)
    install_logging(telemetry.service)
    logger.info("once")
    remove_logging()
    remove_logging()
    logger.info("after")
    assert only_line(telemetry)["body"] == "once"
    assert logging.root.parent is None
    assert write_log not in structlog.get_config()["processors"]
