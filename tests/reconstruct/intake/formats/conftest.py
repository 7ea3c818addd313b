"""One small trace as our own lines, and what a line of any format gives."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from reconstruct.intake import json_text
from reconstruct.intake.formats import Record, recognise
from reconstruct.intake.json_text import Rounded
from reconstruct.intake.tables import TABLES

Rows = list[dict[str, Any]]

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
START = 1_750_000_000_000_000_001


def _record(line: bytes | str, server_hint: str | None = None) -> Record | None:
    data = line if isinstance(line, bytes) else line.encode()
    try:
        return recognise(json_text.decode(data), server_hint)
    except Rounded:
        return recognise(json_text.decode_exactly(data), server_hint)


@pytest.fixture
def record_of() -> Callable[..., Record | None]:
    """What one JSON text is, decoded as the reader does it."""
    return _record


@pytest.fixture
def rows_of() -> Callable[..., Rows]:
    """The rows of JSON texts, each a dict by column and with its owner's, in order."""

    def rows(*lines: bytes | str) -> Rows:
        found: Rows = []
        for line in lines:
            record = _record(line)
            assert record is not None, line
            assert record.problems == ()
            for table, row in record.rows:
                names = [name for name, _ in TABLES[table]][4:]  # the reader adds the place
                fields = dict(zip(names, row, strict=True))
                owner = fields.pop("owner", None)
                found.append(fields | (owner._asdict() if owner else {}))
        return found

    return rows


def _span(
    number: int, parent: int | None, name: str, kind: str, service: str, start: int, end: int
) -> dict[str, Any]:
    return {
        "record_type": "span",
        "seq": number,
        "trace_id": TRACE_ID,
        "span_id": f"00f1e2d3c4b5a69{number}",
        "parent_span_id": None if parent is None else f"00f1e2d3c4b5a69{parent}",
        "name": name,
        "kind": kind,
        "start_time_unix_nano": START + start,
        "end_time_unix_nano": START + end,
        "flags": 0x301 if parent == 2 else 0x101,
        "status": {"code": "UNSET"},
        "attributes": {"nemo.gym.rollout.id": "17-0"},
        "resource": {
            "attributes": {"service.name": service, "service.instance.id": f"{service}-1"}
        },
    }


@pytest.fixture
def small_trace() -> list[dict[str, Any]]:
    """Our own records of four spans in two services: an error, an event, a link, every type.

    rollout           agent  ################
      POST /step      agent   ############      CLIENT
        env.step      env      ##########       SERVER, its parent is remote
          verify      env          ####         ERROR, event, link
    """
    spans = [
        _span(1, None, "rollout", "INTERNAL", "agent", 0, 9_000_000),
        _span(2, 1, "POST /step", "CLIENT", "agent", 1_000_000, 8_000_000),
        _span(3, 2, "env.step", "SERVER", "env", 2_000_000, 7_000_000),
        _span(4, 3, "verify", "INTERNAL", "env", 4_000_000, 6_000_000),
    ]
    spans[2] |= {"trace_state": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"}
    spans[3]["attributes"] |= {
        "text": 'ümlaut \u2028 "quoted"',
        "empty": "",
        "yes": True,
        "no": False,
        "int": 2**63 - 1,
        "negative": -(2**63),
        "zero": 0,
        "double": 0.1,
        "whole": 3.0,
        "large": 1e300,
        "texts": ["a", "b"],
        "ints": [1, 2],
        "doubles": [1.0, 2.5],
        "bools": [True, False],
    }
    spans[3] |= {
        "status": {"code": "ERROR", "message": "boom"},
        "events": [
            {
                "time_unix_nano": START + 5_000_000,
                "name": "exception",
                "attributes": {"exception.type": "ValueError", "n": 1},
            }
        ],
        "links": [
            {
                "trace_id": "0123456789abcdef0123456789abcdef",
                "span_id": "fedcba9876543210",
                "attributes": {"why": "retry"},
            }
        ],
        "dropped_attributes_count": 2,
        "dropped_events_count": 1,
        "scope": {"name": "gym", "version": "1.0"},
    }
    return spans


@pytest.fixture
def own_rows(rows_of: Callable[..., Rows], small_trace: list[dict[str, Any]]) -> Rows:
    """The rows of `small_trace` as our own lines give them."""
    return rows_of(*(json.dumps(span) for span in small_trace))


@pytest.fixture
def facts_of() -> Callable[..., Rows]:
    """Rows with their JSON decoded, without the columns named: those that a format has no word for.

    `seq` and the dropped counts are never written by others.
    """

    def facts(rows: Rows, *without: str) -> Rows:
        found = []
        for row in rows:
            left = {
                name: value
                for name, value in row.items()
                if name not in without and name != "seq" and not name.startswith("dropped_")
            }
            for name in ("attributes", "events", "links", "resource"):
                if left.get(name) is not None:
                    left[name] = json.loads(left[name])
            found.append(left)
        return found

    return facts
