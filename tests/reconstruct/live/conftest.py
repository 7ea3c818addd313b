"""Span lines by number, and what a look at the logs found of them."""

import json

import pytest

from reconstruct.intake import tables

_SPAN_ID = [name for name, _ in tables.TABLES[tables.SPAN_LINES]].index("span_id")


def line_of(number, **resource):
    """Return the line of the span with this number."""
    record = {
        "record_type": "span",
        "seq": number,
        "trace_id": f"{number + 1:032x}",
        "span_id": f"{number + 1:016x}",
        "parent_span_id": None,
        "name": "work",
        "kind": "INTERNAL",
        "start_time_unix_nano": 1_800_000_000_000_000_000 + number,
        "end_time_unix_nano": 1_800_000_000_000_000_500 + number,
        "flags": 257,
        "status": {"code": "UNSET"},
        "attributes": {},
        "resource": {"attributes": {"service.name": "a", "service.instance.id": "1", **resource}},
    }
    return json.dumps(record, separators=(",", ":")) + "\n"


def numbers_of(batches):
    """Return the numbers of the spans in batches, in the order in which they were read."""
    return [
        int(row[_SPAN_ID], 16) - 1
        for table, rows in batches
        if table == tables.SPAN_LINES
        for row in rows
    ]


def classes_of(batches):
    """Return how many lines of each class there are in batches."""
    classes = {}
    for table, rows in batches:
        if table == tables.CLASS_COUNTS:
            for _, line_class, lines in rows:
                classes[line_class] = classes.get(line_class, 0) + lines
    return classes


@pytest.fixture(scope="session")
def span_line():
    """The line of the span with a number."""
    return line_of


@pytest.fixture(scope="session")
def numbers():
    """The numbers of the spans in batches."""
    return numbers_of


@pytest.fixture(scope="session")
def classes():
    """Lines by class in batches."""
    return classes_of
