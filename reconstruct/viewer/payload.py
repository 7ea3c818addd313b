"""The payload of a page: its contents as columns, packed by gzip.

Layout, little-endian: a uint32, the length of a JSON head in bytes; the head (UTF-8); the columns
it lists as [name, type, length], one after the other. Times are ns after `t0`, a decimal string,
each as two columns, its lower 32 bits and its upper, signed ones: JavaScript's numbers round
beyond 2^53.
Attributes of equal keys form a shape; their values stand shape by shape, key by key, which packs
best. Text columns are lines of JSON; attribute values keep their JSON, so no number is rounded.
"""

import gzip
import json
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconstruct.intake.json_text import Json, decode_encoded, encode
from reconstruct.render.text import plural
from reconstruct.tree import MISSING
from reconstruct.viewer.contents import Contents

__all__ = ["VALUE_LIMIT", "payload"]

Row = Mapping[str, Any]  # Any: a row's values are of as many types as its columns

VALUE_LIMIT: Final = 2_000
"""Characters of an attribute's value, or of a log record's body, that a page holds."""
_KINDS: Final = ("INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_STATES: Final = ("finished", "open", "lost", MISSING)
_CODES: Final = {"u8": "B", "u32": "I", "i32": "i"}
_LOW: Final = 0xFFFF_FFFF
_NO_TIME: Final = -(2**31)
"""Upper half of a time that is not known."""


@dataclass(slots=True)
class _Columns:
    """The head's list, and the bytes."""

    listed: list[tuple[str, str, int]] = field(default_factory=list)
    parts: list[bytes] = field(default_factory=list)

    def numbers(self, name: str, values: Iterable[int], kind: str) -> None:
        packed = array(_CODES[kind], values)
        if sys.byteorder == "big":
            packed.byteswap()
        self._add(name, kind, packed.tobytes())

    def times(self, name: str, values: Sequence[int | None]) -> None:
        self.numbers(f"{name}Low", ((value or 0) & _LOW for value in values), "u32")
        high = (_NO_TIME if value is None else value >> 32 for value in values)
        self.numbers(f"{name}High", high, "i32")

    def words(self, name: str, values: Iterable[object]) -> list[str]:
        """Number the distinct words; return them, null as an empty one."""
        texts = ["" if value is None else str(value) for value in values]
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        self.numbers(name, (distinct[text] for text in texts), "u32")
        return list(distinct)

    def lines(self, name: str, values: Sequence[str]) -> None:
        self._add(name, "text", "\n".join(values).encode())

    def ids(self, name: str, values: Iterable[str]) -> None:
        self._add(name, "u8", b"".join(map(bytes.fromhex, values)))

    def _add(self, name: str, kind: str, data: bytes) -> None:
        self.listed.append((name, kind, len(data)))
        self.parts.append(data)


@dataclass(slots=True)
class _Cuts:
    """How many texts were too long."""

    values: int = 0

    def cut(self, text: str) -> str:
        if len(text) <= VALUE_LIMIT:
            return text
        words: str = decode_encoded(text) if text.startswith('"') else text
        left = len(words) - VALUE_LIMIT
        if left <= 0:
            return text
        self.values += 1
        return encode(f"{words[:VALUE_LIMIT]}… ({left:,} more characters)")


def payload(contents: Contents) -> bytes:
    """Return the packed bytes of a page's data."""
    spans = contents.spans
    times = [row["start_time_unix_nano"] for row in spans]
    times += [row["time_unix_nano"] for row in contents.logs]
    t0 = min(times)
    columns, cuts = _Columns(), _Cuts()
    head: dict[str, Json] = {
        "version": 1,
        "title": contents.title,
        "t0": str(t0),
        "count": len(spans),
        "kinds": _KINDS,
        "states": _STATES,
    }
    columns.numbers("parent", (row["parent"] for row in spans), "i32")
    columns.numbers("kind", (_number(_KINDS, row["kind"]) for row in spans), "u8")
    columns.numbers("flags", (_flags(row) for row in spans), "u8")
    columns.times("start", [row["start_time_unix_nano"] - t0 for row in spans])
    columns.times("length", [row["length_ns"] for row in spans])
    columns.times("self", [row["self_time_ns"] for row in spans])
    for name in ("name", "service_name", "service_instance_id", "trace_id", "rollout_id", "file"):
        head[name] = columns.words(name, (row[name] for row in spans))
    head["offset_ns"] = columns.words("offset_ns", (row.get("offset_ns", 0) for row in spans))
    columns.numbers("line", (row["line"] or 0 for row in spans), "u32")
    columns.ids("id", (row["span_id"] for row in spans))
    _attributes(head, columns, cuts, spans)
    _extras(columns, cuts, spans)
    columns.numbers("pathSpan", (row["span"] for row in contents.path), "i32")
    columns.times("pathStart", [row["start_time_unix_nano"] - t0 for row in contents.path])
    columns.times("pathLength", [row["duration_ns"] for row in contents.path])
    _logs(columns, cuts, contents.logs, t0)
    head["rollouts"] = [_overview(row, t0) for row in contents.rollouts]
    head["causes"] = list(contents.causes)
    head["edges"] = list(contents.edges)
    head["concurrency"] = [
        [row["start_time_unix_nano"] - t0, row["mean_running"], row["max_running"]]
        for row in contents.concurrency
    ]
    notes = list(contents.notes)
    if cuts.values:
        notes.append(f"cut after {VALUE_LIMIT:,} characters: {plural(cuts.values, 'value')}")
    head["notes"] = notes
    head["columns"] = columns.listed
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=True, default=str).encode()
    # No time stamp in it: the same logs give the same bytes.
    return gzip.compress(
        b"".join([len(text).to_bytes(4, "little"), text, *columns.parts]), 9, mtime=0
    )


def _number(words: Sequence[str], word: str) -> int:
    return words.index(word) if word in words else 0


def _flags(row: Row) -> int:
    state = _number(_STATES, row["state"])
    return state | bool(row["is_error"]) << 2 | bool(row["orphan"]) << 3 | bool(row["cycle"]) << 4


def _attributes(
    head: dict[str, Json], columns: _Columns, cuts: _Cuts, spans: Sequence[Row]
) -> None:
    shapes: dict[tuple[str, ...], int] = {}
    members: list[list[Sequence[Json]]] = []
    numbers = []
    for row in spans:
        attributes = decode_encoded(row["attributes"] or "{}")
        number = shapes.setdefault(tuple(attributes), len(shapes))
        if number == len(members):
            members.append([])
        members[number].append(tuple(attributes.values()))
        numbers.append(number)
    columns.numbers("shape", numbers, "u32")
    head["shapes"] = list(shapes)
    values = [
        cuts.cut(encode(value))
        for rows in members
        for column in zip(*rows, strict=True)
        for value in column
    ]
    columns.lines("values", values)


def _extras(columns: _Columns, cuts: _Cuts, spans: Sequence[Row]) -> None:
    """What few spans have: events, links, a status message, attributes that were dropped."""
    places, texts = [], []
    for place, row in enumerate(spans):
        events = decode_encoded(row["events"] or "[]")
        links = decode_encoded(row["links"] or "[]")
        extra = {
            "events": [_event(event, row, cuts) for event in events],
            "links": [
                {
                    "trace_id": link.get("trace_id"),
                    "span_id": link.get("span_id"),
                    "attributes": _texts(link.get("attributes"), cuts),
                }
                for link in links
            ],
            "message": row["status_message"] or "",
            "dropped": row["dropped_attributes_count"] or 0,
        }
        if any(extra.values()):
            places.append(place)
            texts.append(encode(extra))
    columns.numbers("extraSpan", places, "i32")
    columns.lines("extras", texts)


def _event(event: Json, row: Row, cuts: _Cuts) -> Json:
    time = event.get("time_unix_nano")
    after = time - row["start_time_unix_nano"] if isinstance(time, int) else None
    return {
        "name": event.get("name"),
        "after": None if after is None else str(after),
        "attributes": _texts(event.get("attributes"), cuts),
    }


def _texts(attributes: Json, cuts: _Cuts) -> dict[str, str]:
    """Return attributes with their values as JSON texts."""
    return {key: cuts.cut(encode(value)) for key, value in (attributes or {}).items()}


def _logs(columns: _Columns, cuts: _Cuts, logs: Sequence[Row], t0: int) -> None:
    columns.numbers("logSpan", (row["span"] for row in logs), "i32")
    columns.times("logTime", [row["time_unix_nano"] - t0 for row in logs])
    columns.numbers("logSeverity", (_severity(row) for row in logs), "u8")
    texts = []
    for row in logs:
        record = {
            "body": cuts.cut(row["body"] or '""'),
            "severity": row["severity_text"] or "",
            "logger": row["scope_name"] or "",
            "attributes": _texts(decode_encoded(row["attributes"] or "{}"), cuts),
        }
        texts.append(encode(record))
    columns.lines("logs", texts)


def _severity(row: Row) -> int:
    return min(max(row["severity_number"] or 0, 0), 24)


def _overview(row: Row, t0: int) -> Json:
    return [
        row["rollout_id"],
        row["run_id"],
        row["start_time_unix_nano"] - t0,
        row["duration_ns"],
        row["outcome"],
        row["span_count"],
        row["error_count"],
        row["open_count"],
        row["why"],
        row["span"],
    ]
