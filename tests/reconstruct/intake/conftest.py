"""A record of ours and what wraps its line; a longer run of the properties.

`pytest --hypothesis-profile=long tests/reconstruct/intake/…`
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import settings

from reconstruct.intake import files, reader, tables

settings.register_profile("long", max_examples=4_000)

Wrap = Callable[[bytes], bytes]

Rows = dict[str, list[dict[str, Any]]]

TRACE = "0123456789abcdef" * 2


def our_span(name: str, number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "record_type": "span",
        "seq": number,
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_span_id": None,
        "name": name,
        "kind": "INTERNAL",
        "start_time_unix_nano": 1_800_000_000_000_000_000,
        "end_time_unix_nano": 1_800_000_000_000_000_100,
        "flags": 259,
        "status": {"code": "UNSET"},
        "attributes": {"secret": name},
        "resource": {"attributes": {"service.name": "a", "service.instance.id": "a-1"}},
    } | more


def prefix(text: bytes) -> Wrap:
    return lambda line: text + line


def an_object(key: str, end: str, **others: str) -> Wrap:
    return lambda line: json.dumps({key: line.decode() + end} | others).encode()


CLEAR: dict[str, Wrap] = {
    "docker": an_object("log", "\n", stream="stdout", time="2025-06-15T15:06:40.05Z"),
    "cri": prefix(b"2025-06-15T15:06:40.050123456Z stdout F "),
    "kubectl": prefix(b"[pod/env-0/env] "),
    "stern json": an_object("message", "\n", podName="env-0", containerName="env"),
    "compose": prefix(b"env-1  | "),
    "journald": an_object("MESSAGE", "", __CURSOR="s=1", _PID="7"),
    "syslog": prefix(b"<14>Jun 15 15:06:40 n1 env[77]: "),
    "syslog 5424": prefix(b"<14>1 2025-06-15T15:06:40.05Z n1 env 77 - - "),
    "ray": prefix(b"\x1b[36m(EnvActor pid=77, ip=10.0.0.3)\x1b[0m "),
    "mpirun": prefix(b"[1,3]<stdout>:"),
    "torchrun": prefix(b"[default3]:"),
    "honcho": prefix(b"15:06:40 env.1 | "),
    "gym": prefix(b"(agent) (judge) "),
    "timestamps": prefix(b"2025-06-15T15:06:40.05Z "),
    "timestamps tai64n": prefix(b"@400000006850d9c60123abcd "),
}
VAGUE: dict[str, Wrap] = {
    "srun": prefix(b"3: "),
    "pdsh": prefix(b"n1: "),
    "parallel": prefix(b"env-3\t"),
    "stern": prefix(b"env-0 env "),
    "stern namespaced": prefix(b"gym env-0 env "),
}


def rows_of_files(found: Sequence[files.LogFile], **options: Any) -> Rows:
    rows: Rows = {name: [] for name in tables.TABLES}
    for name, batch in reader.read(found, **options):
        rows[name] += batch.to_pylist()
    owners = {row.pop("owner"): row for row in rows.pop(tables.OWNERS)}
    for row in (row for found in rows.values() for row in found if "owner" in row):
        row |= owners[row.pop("owner")]
    return rows


@pytest.fixture(scope="session")
def read_rows() -> Callable[..., Rows]:
    """Read files into the rows of each table; each has its owner's columns in it."""
    return rows_of_files


@pytest.fixture(scope="session")
def span() -> Callable[..., dict[str, Any]]:
    """A record as `gymlog` writes it, by name and number."""
    return our_span


@pytest.fixture(scope="session")
def clear_wraps() -> dict[str, Wrap]:
    """What wraps a line and is known by itself; a name begins with the wrapper's own."""
    return CLEAR


@pytest.fixture(scope="session")
def vague_wraps() -> dict[str, Wrap]:
    """The same of what is believed only where a whole file has it."""
    return VAGUE


@pytest.fixture(params=sorted(CLEAR | VAGUE))
def wrap_name(request: pytest.FixtureRequest) -> str:
    """Each of them all, by name."""
    return str(request.param)


@pytest.fixture(params=sorted(VAGUE))
def vague_name(request: pytest.FixtureRequest) -> str:
    """Each of the vague ones, by name."""
    return str(request.param)
