"""Hostile logs for the reader, without end: what breaks a promise of the intake is made small.

Each log of `hostile_logs` is read line by line, with DuckDB vouching for lines, from chunks of few
bytes, and in two sittings where the first says that one can go on from there. Whatever the bytes
are, nothing raises, each physical line has exactly one class, lines and bytes add up, every place
is that of a line, and all these ways give the same rows.

Each find is told with its seed and the least input that still shows it. Exit code 1 when there is
one.

    python tests/bench/fuzz_intake.py [--seconds 60] [--seed 0] [--logs N] [FILE …]

`FILE`s are read as they are, and make part of the logs. `--logs` ends after so many, 0: the files.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
from hostile_logs import hostile_log

from reconstruct.intake import files, reader, tables
from reconstruct.intake.files import lines as file_lines
from reconstruct.intake.owners import Owners
from reconstruct.intake.wrappers import unwrapper
from reconstruct.store import relations
from reconstruct.store.vouching import Voucher

LINE_FEED = ord("\n")
MOST_FINDS = 50
CAN_GO_ON = [name for name, _ in tables.TABLES[tables.FILES]].index("can_go_on")
OWNED = {name for name, columns in tables.TABLES.items() if columns[-1][0] == "owner"}

Rows = dict[str, list[Any]]  # Any: rows have as many types as their tables have columns


class Broken(Exception):  # noqa: N818  # what a promise is
    """A promise of the intake that an input breaks."""


class Reading:
    """Reads one input in all ways; keeps what costs time to make."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "a.log"
        self._connection = duckdb.connect(config={"threads": 1})
        relations.create_base_tables(self._connection)

    def check(self, data: bytes) -> None:
        """Raise `Broken` where a promise does not hold, and whatever the reader raises."""
        self._path.write_bytes(data)
        careful = self._careful()
        _check_ledger(careful, data)
        if b'{"record_type":' in data:
            _check_equal(careful, self._vouched(), "vouched for")
        with mock.patch.object(file_lines, "_CHUNK_BYTES", 997):
            _check_equal(careful, self._careful(), "in small chunks")
        middle = data.find(b"\n", len(data) // 2) + 1
        # wrappers that look like text are told from the lines nearby, those of one sitting
        with mock.patch.object(unwrapper, "_VAGUE", ()):
            if 0 < middle < len(data) and (rows := self._in_two_sittings(data, middle)):
                _check_equal(_without_files(self._careful()), rows, "in two sittings")

    def _careful(self) -> Rows:
        return _added_up(self._rows())

    def _vouched(self) -> Rows:
        owners = Owners()
        voucher = Voucher(self._connection, owners)
        voucher.open()
        rows = self._read(owners=owners, vouch=lambda batch: partial(voucher.read, batch))
        voucher.close()
        for name in (tables.SPAN_LINES, tables.LOG_LINES, tables.METRIC_LINES, tables.CLASS_COUNTS):
            rows[name] += self._connection.execute(f"FROM {name}").fetchall()
            self._connection.execute(f"DELETE FROM {name}")
        return _added_up(_with_owners(rows))

    def _in_two_sittings(self, data: bytes, middle: int) -> Rows | None:
        """Read on where the file ended before it grew; None when that is not allowed."""
        self._path.write_bytes(data[:middle])
        rows = self._rows()
        can_go_on = rows[tables.FILES][0][CAN_GO_ON]
        if not can_go_on:
            return None
        self._path.write_bytes(data)
        (file,) = files.find([str(self._path)])
        grown = replace(file, start_offset=middle, start_line=data.count(b"\n", 0, middle))
        for name, found in self._rows(file=grown).items():
            rows[name] += found
        return _without_files(_added_up(rows))

    def _rows(self, file: files.LogFile | None = None) -> Rows:
        return _with_owners(self._read(file))

    def _read(self, file: files.LogFile | None = None, **options: Any) -> Rows:
        rows: Rows = {name: [] for name in tables.TABLES}
        found = files.find([str(self._path)]) if file is None else [file]
        for name, batch in reader.read(found, **options):
            rows[name] += [tuple(row.values()) for row in batch.to_pylist()]
        return rows


def _with_owners(rows: Rows) -> Rows:
    """Put owners in place of their numbers."""
    owners = {number: owner for number, *owner in rows.pop(tables.OWNERS)}
    return {
        name: [(*row[:-1], *owners[row[-1]]) for row in found] if name in OWNED else found
        for name, found in rows.items()
    }


def _added_up(rows: Rows) -> Rows:
    """Put rows in an order, and counts of one class together."""
    counts: Counter[tuple[str, str]] = Counter()
    for file, name, lines in rows[tables.CLASS_COUNTS]:
        counts[file, name] += lines
    rows[tables.CLASS_COUNTS] = [(*key, lines) for key, lines in counts.items()]
    return {name: sorted(found, key=repr) for name, found in rows.items()}


def _without_files(rows: Rows) -> Rows:
    return {name: found for name, found in rows.items() if name != tables.FILES}


def _check_equal(rows: Rows, others: Rows, how: str) -> None:
    for name, found in rows.items():
        if list(map(repr, found)) != list(map(repr, others[name])):  # repr: NaN is NaN here
            differing = next(
                (
                    pair
                    for pair in zip(found, others[name], strict=False)
                    if repr(pair[0]) != repr(pair[1])
                ),
                (len(found), len(others[name])),
            )
            raise Broken(f"{name} differs when {how}", differing)


def _check_ledger(rows: Rows, data: bytes) -> None:
    if not rows[tables.FILES]:
        raise Broken("a file is nowhere")
    ((_, size, lines, _, _, pending, *_),) = rows[tables.FILES]
    classes = sum(count for _, _, count in rows[tables.CLASS_COUNTS])
    if classes != lines:
        raise Broken("the classes do not add up", classes, lines)
    places = Counter(row[1] for row in rows[tables.REJECTED_LINES])
    if places and max(places.values()) > 1:
        raise Broken("a line has two classes", places.most_common(1))
    if data.startswith((b"\x1f\x8b", b"BZ", b"\xfd7")):
        return
    begins = [0, *(at + 1 for at, byte in enumerate(data) if byte == LINE_FEED)]
    if begins[-1] == len(data):
        begins.pop()
    if (lines, size, pending) != (len(begins), len(data), 0):
        raise Broken("not every line was read", lines, len(begins), size, len(data))
    _check_places(rows, begins)


def _check_places(rows: Rows, begins: Sequence[int]) -> None:
    for name in rows.keys() - {tables.FILES, tables.CLASS_COUNTS}:
        for row in rows[name]:
            if name != tables.REJECTED_LINES and row[3]:
                continue  # of several records on a line, or in a document
            if begins[row[1] - 1] != row[2]:
                raise Broken("a place is none", name, row[1:3])


def problem_of(reading: Reading, data: bytes) -> tuple[str, str] | None:
    """Return what is wrong: a kind that stays when the input is made smaller, and details."""
    try:
        reading.check(data)
    except Broken as error:
        return str(error.args[0]), str(error.args[1:])[:600]
    except Exception as error:
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        place = traceback.tb_frame.f_code.co_name if traceback is not None else ""
        return f"{type(error).__name__} in {place}", str(error)[:300]
    return None


def minimised(data: bytes, is_bad: Callable[[bytes], bool], *, seconds: float = 15) -> bytes:
    """Leave out lines, then bytes, as long as `is_bad` of what is left."""
    end = time.monotonic() + seconds
    for unit in (b"\n", b""):
        pieces = (
            [piece + unit for piece in data.split(unit)] if unit else [bytes([b]) for b in data]
        )
        if unit:
            pieces[-1] = pieces[-1][:-1]
        size = len(pieces) // 2
        while size and time.monotonic() < end:
            begin = 0
            while begin < len(pieces) and time.monotonic() < end:
                fewer = pieces[:begin] + pieces[begin + size :]
                if is_bad(b"".join(fewer)):
                    pieces = fewer
                else:
                    begin += size
            size //= 2
        data = b"".join(pieces)
    return data


def finds(
    reading: Reading, numbers: Iterator[int], seeds: Sequence[bytes], seconds: float
) -> Iterator[tuple[int, str, str, bytes] | None]:
    """Yield None for each log that is read as promised, else its seed, the problem, the input."""
    known: set[str] = set()
    end = time.monotonic() + seconds
    for number in numbers:
        data = hostile_log(number, seeds)
        problem = problem_of(reading, data)
        if problem is None or problem[0] in known:
            yield None
        else:
            known.add(problem[0])
            kind = problem[0]

            def is_bad(smaller: bytes, kind: str = kind) -> bool:
                found = problem_of(reading, smaller)
                return found is not None and found[0] == kind

            least = minimised(data, is_bad)
            yield number, kind, (problem_of(reading, least) or problem)[1], least
        if time.monotonic() >= end or len(known) >= MOST_FINDS:
            return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--logs", type=int, default=sys.maxsize)
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    seeds = [path.read_bytes() for path in arguments.files]
    numbers = iter(range(arguments.seed, arguments.seed + arguments.logs))
    logs = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        reading = Reading(Path(folder))
        for path, data in zip(arguments.files, seeds, strict=True):
            problem = problem_of(reading, data)
            if problem is not None:
                bad += 1
                print("{}: {}: {}".format(path, *problem), flush=True)
        for find in finds(reading, numbers, seeds, arguments.seconds):
            logs += 1
            if find is not None:
                bad += 1
                print("seed {}: {}: {}\n    {!r}".format(*find), flush=True)
    print(f"{logs:,} logs, {bad} kinds of finds", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
