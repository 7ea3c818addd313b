"""Fixtures of the tests of log lines."""

import logging
import logging.config
import logging.handlers
from typing import Any

import pytest

import gymlog
from gymlog import testing
from gymlog.logs import (
    install_logging,
    remove_logging,
)
from gymlog.record import LOG, FieldType

Record = dict[str, Any]  # Any: one JSON value, see gymlog.record

JSON_TYPES = {
    FieldType.TEXT: str, FieldType.INT64: int, FieldType.OBJECT: dict, FieldType.ANY: object,
}  # fmt: skip


def faults(line: Record) -> list[str]:
    """Return what a `log` line has that the contract does not allow; none when it is right."""
    order = [field.name for field in LOG if field.required or field.name in line]
    found = [] if list(line) == order else [f"fields are {list(line)}, not {order}"]
    return found + [
        f"{field.name} is {line[field.name]!r}"
        for field in LOG
        if field.name in line
        and not (
            isinstance(line[field.name], JSON_TYPES[field.type])
            and (field.required or line[field.name])
        )
    ]


@pytest.fixture
def telemetry():
    """Telemetry into memory, with the process's log records from INFO on."""
    with testing.captured() as captured:
        install_logging(captured.service)
        yield captured
    remove_logging()


@pytest.fixture
def logger():
    """A logger that passes every level on, past the root's handlers: pytest's own are there."""
    logger = logging.Logger("app.part", 1)  # noqa: LOG001 - no child of the root
    logger.parent = gymlog.logs._above_root
    return logger


@pytest.fixture(scope="session")
def right_logs():
    """`right_logs(records)` returns the `log` records, each of which is right."""

    def right(records: list[Record]) -> list[Record]:
        logs = [record for record in records if record["record_type"] == "log"]
        assert [faults(log) for log in logs] == [[] for _ in logs]
        return logs

    return right


@pytest.fixture(scope="session")
def lines_of(right_logs):
    """`lines_of(captured)` returns the `log` lines so far, each of which is right."""
    return lambda captured: right_logs(captured.records)


@pytest.fixture(scope="session")
def only_line(lines_of):
    """`only_line(captured)` returns the one `log` line."""

    def only(captured: testing.Captured) -> Record:
        (line,) = lines_of(captured)
        return line

    return only
