"""From a record to one line and one write: the only place that serialises and writes.

A record is a dict in the order of `gymlog.record` with a place for `seq`, which is filled in here:
lines are numbered in the order in which they are written, so a gap is a lost line. A line goes
through structlog's BytesLogger onto a channel that makes one `write` of it; only the announcements
of a sweep share one, into a file. Nothing here raises into the host: what cannot be written is
counted in `records_dropped` and told once on stderr.
Cost: `orjson.dumps` plus one `write`, about 4 µs.
"""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import orjson
from structlog import BytesLogger

from gymlog.channel import SPAN_LINE, Channel
from gymlog.notices import notice
from gymlog.record import DEFAULT_LINE_MAX_BYTES, DEFAULT_VALUE_MAX_CHARACTERS
from gymlog.values import clean, clean_key, cut

__all__ = ["BytesFile", "Sink"]

Record = dict[str, Any]  # Any: the one untyped dict, see gymlog.record

_KEPT: Final = frozenset(
    {
        "record_type", "trace_id", "span_id", "parent_span_id", "kind", "state", "code", "type",
        "unit", "severity_text", "trace_state", "service.name", "service.instance.id",
    }
)  # fmt: skip
"""Texts that readers compare: whole or not at all."""

_dumps = orjson.dumps
_REFUSALS: Final = (TypeError, ValueError, RecursionError)
"""What orjson raises for a value that it does not take."""

_LINES_AT_ONCE: Final = 64
"""Lines of one write into a file, of those that are not the program's own thread's."""

_NO_LIMIT: Final = 1 << 62
_BARE_CHARACTERS: Final = 64


class BytesFile(Protocol):
    """What a sink writes to: a `Channel`, or memory in tests."""

    @property
    def lines_dropped(self) -> int:
        """Lines that did not get through."""

    @property
    def spans_dropped(self) -> int:
        """Those of them that were `span` records."""

    def write(self, line: bytes, /) -> object:
        """Write one whole line."""

    def flush(self) -> object:
        """Nothing is buffered, so nothing to do."""


class Sink:
    """The lines of one service instance: their numbers, their bytes, their losses."""

    __slots__ = (
        "_lock",
        "_log",
        "_lost",
        "_max_bytes",
        "_next_seq",
        "_pending",
        "_spans_lost",
        "file",
        "is_writing",
    )

    def __init__(
        self, file: BytesFile | None = None, *, line_max_bytes: int = DEFAULT_LINE_MAX_BYTES
    ) -> None:
        self.file: BytesFile = Channel(1) if file is None else file
        self._next_seq = itertools.count().__next__
        self._log = BytesLogger(self.file).msg  # type: ignore[arg-type]  # write and flush is all it takes
        self._max_bytes = line_max_bytes
        self._lost = self._spans_lost = 0
        self._lock = threading.RLock()
        self.is_writing: Callable[[], bool] = self._lock._is_owned  # type: ignore[attr-defined]  # as threading.Condition asks
        """Say whether the calling thread was interrupted in a write, by a signal handler say."""
        self._pending: deque[bytes] = deque()

    @property
    def records_dropped(self) -> int:
        """Records that did not reach the file."""
        return self._lost + self.file.lines_dropped

    @property
    def spans_dropped(self) -> int:
        """Those of them that were `span` records."""
        return self._spans_lost + self.file.spans_dropped

    def write(self, record: Record) -> None:
        """Write one record; it is dropped and counted when that is impossible."""
        # structlog holds a plain lock while it writes; a signal handler or a finaliser that
        # ends a span meanwhile, in the same thread, must not wait for itself.
        if self.is_writing():
            self._pending.append(self._encode(record))
            return
        with self._lock:  # explicit calls are faster, but an interrupt between them keeps it locked
            line = b""
            try:
                record["seq"] = self._next_seq()
                try:
                    line = _dumps(record)
                except _REFUSALS:
                    line = self._encode_carefully(record)
                if len(line) >= self._max_bytes:
                    line = self._shrink(record)
                self._log(line)
            except Exception as error:  # noqa: BLE001 - the host must not notice
                self._lose(line, error)
            if self._pending:
                self._write_pending()

    def write_all(self, records: Sequence[Record]) -> None:
        """Write many records, for a thread beside the program's: into a file in few writes.

        Each write lets other threads run, and one that wants to write meanwhile has to wait.
        """
        if self.is_writing() or not getattr(self.file, "takes_many_lines", False):
            for record in records:
                self.write(record)
            return
        for start in range(0, len(records), _LINES_AT_ONCE):
            batch = records[start : start + _LINES_AT_ONCE]
            lines = b""
            with self._lock:
                try:
                    lines = b"\n".join([self._encode(record) for record in batch])
                    self._log(lines)
                except Exception as error:  # noqa: BLE001 - the host must not notice
                    self._lose(lines, error, len(batch))
                if self._pending:
                    self._write_pending()

    def _write_pending(self) -> None:
        """Write what was ended by a signal handler or a finaliser in the middle of a write."""
        while self._pending:
            line = b""
            try:
                line = self._pending.popleft()
                self._log(line)
            except Exception as error:  # noqa: BLE001 - the host must not notice
                self._lose(line, error)

    def _encode(self, record: Record) -> bytes:
        """Number a record and return its line; the lock is held, so lines stand in that order."""
        record["seq"] = self._next_seq()
        try:
            line = _dumps(record)
        except _REFUSALS:
            line = self._encode_carefully(record)
        return self._shrink(record) if len(line) >= self._max_bytes else line

    def _lose(self, line: bytes, error: Exception, lines: int = 1) -> None:
        self._lost += lines
        self._spans_lost += line.startswith(SPAN_LINE)
        notice(
            "sink", f"a line could not be written and is lost ({error!r}); more are counted only"
        )

    def _encode_carefully(self, record: Record) -> bytes:
        """Encode a record with something in it that orjson refuses."""
        return orjson.dumps(_plain(record))

    def _shrink(self, record: Record) -> bytes:
        """Cut the largest values of a record until its line fits; count them as dropped."""
        plain = _plain(record)
        room = self._max_bytes - 1
        limit = DEFAULT_VALUE_MAX_CHARACTERS
        dropped = int(plain.get("dropped_attributes_count", 0))
        line = orjson.dumps(plain)
        while len(line) > room and limit >= 1:
            shrunk: Record = _cut_values(plain, limit)
            attributes, before = shrunk.get("attributes"), plain.get("attributes")
            if isinstance(attributes, dict) and isinstance(before, dict):
                changed = sum(attributes[key] != before[key] for key in before)
                _insert_dropped(shrunk, dropped + changed)
            line = orjson.dumps(shrunk)
            limit //= 2
        if len(line) > room:
            line = orjson.dumps(_bare(plain, dropped))
        return line


def _plain(record: Record) -> Record:
    """Return a copy of a record that orjson can encode (fragments become objects)."""
    plain: Record = {}
    for key, value in record.items():
        if isinstance(value, orjson.Fragment):
            plain[key] = orjson.loads(orjson.dumps(value))
        elif isinstance(value, dict | list):
            plain[key] = clean(_copy(value), _NO_LIMIT)
        else:
            plain[key] = clean((value,), _NO_LIMIT)[0]
    return plain


def _copy(value: dict[Any, Any] | list[Any]) -> object:  # Any: whatever the host gave
    """Return a shallow copy, taken in one step, that other threads do not change."""
    return (
        {clean_key(key): item for key, item in list(value.items())}
        if isinstance(value, dict)
        else list(value)
    )


def _cut_values(value: Any, limit: int) -> Any:  # Any: one JSON value, cut
    """Return a JSON value with each text cut at `limit` characters, each list at `limit` items."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, list):
        return [_cut_values(item, limit) for item in value[:limit]]
    if isinstance(value, dict):
        return {
            key: item if key in _KEPT else _cut_values(item, limit) for key, item in value.items()
        }
    return value


def _insert_dropped(record: Record, count: int) -> None:
    """Set dropped_attributes_count, before scope and resource as the contract orders it."""
    tail = ("dropped_events_count", "dropped_links_count", "scope", "resource")
    after = {key: record.pop(key) for key in tail if key in record}
    if count:
        record["dropped_attributes_count"] = count
    record.update(after)


def _bare(record: Record, dropped: int) -> Record:
    """Return a record without attributes, events, links and trace state: what always fits."""
    bare: Record = {
        key: value if key in _KEPT else _cut_values(value, _BARE_CHARACTERS)
        for key, value in record.items()
        if key != "trace_state"
    }
    for key, counter in (("events", "dropped_events_count"), ("links", "dropped_links_count")):
        if key in bare:
            del bare[key]
            bare[counter] = int(record.get(counter, 0)) + len(record[key])
    bare["attributes"] = {}
    facts = record["resource"]["attributes"]
    bare["resource"] = {
        "attributes": {
            key: cut(str(facts[key]), 4 * _BARE_CHARACTERS)
            for key in ("service.name", "service.instance.id")
            if key in facts
        }
    }
    _insert_dropped(bare, dropped + len(record.get("attributes", {})))
    return bare
