"""What is new in a set of files, folders and streams since one looked last.

Each byte is read once, through the same intake as everything else. A file is known by its identity,
so that a rotation, be it by renaming or by copying, neither repeats nor loses a line; one that was
truncated is read from its start. A line that someone is writing waits for its end. What has been
read before costs nothing: a look costs a `stat` per file, and what is new.

A file that begins with a JSON document over many lines is read as one when it is first seen; what
is appended to it later is read as lines.
"""

import heapq
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from reconstruct.errors import InputError
from reconstruct.intake import files, tables
from reconstruct.intake.files import STDIN, LogFile
from reconstruct.intake.files.log_file import shown
from reconstruct.intake.reader import Reader
from reconstruct.intake.tables import Batches, Row
from reconstruct.intake.wrappers import checked_name
from reconstruct.live.bell import Bell
from reconstruct.live.following import Followed
from reconstruct.live.streams import Stream

__all__ = ["Batch", "Tail"]

Batch = tuple[str, list[Row]]
"""The name of a table of `intake.tables`, and rows of it; `tables.arrow` makes Arrow of them."""

_TIME_COLUMNS: Final = ("end_time_unix_nano", "time_unix_nano", "start_time_unix_nano")
_SHARE: Final = 10
"""A search for new files takes at most one tenth of the time, …"""
_CHEAP_SECONDS: Final = 0.02
"""… and is done at every look where it takes less than this."""
_LONGEST_WAIT_SECONDS: Final = 0.8
_LEFT_SECONDS: Final = 60.0
"""So long a file that no path means any more is read on, for those who still write to it."""
_MOST_OPEN: Final = 256
_TIMES: Final = {
    table: tuple(names.index(name) for name in _TIME_COLUMNS if name in names)
    for table, columns in tables.TABLES.items()
    if (names := [name for name, _ in columns])
}


class Tail:
    """The files that `paths` mean, now and later.

    `wrapper` names the only wrapper to look for; `since_now` leaves out what the files hold when
    they are looked at first, and counts their lines from there. Raises `InputError` when there are
    no paths, `UsageError` when there is no such wrapper. For one thread.
    """

    def __init__(
        self, paths: Sequence[str], *, wrapper: str | None = None, since_now: bool = False
    ) -> None:
        if not paths:
            raise InputError("nothing to follow; pass log files, a folder, a glob or '-' for stdin")
        self._paths = paths
        self._wrapper = None if wrapper is None else checked_name(wrapper)
        self._skips = since_now
        self._batches = Batches()
        self._followed: dict[tuple[int, int], Followed] = {}
        self._streams: dict[str, tuple[Stream, Reader]] = {}
        self._bell = Bell()
        self._next_search = 0.0
        self._look_seconds = 0.0
        self._notices: list[str] = []
        self._problems: set[str] = set()

    def past(self) -> Iterator[Batch]:
        """Yield what the files hold now, about in the order of its times; streams have no past."""
        self._look()
        yield from self._read_files()

    def look(self) -> Iterator[Batch]:
        """Yield what is new, of files about in the order of its times."""
        self._bell.quiet()
        self._look()
        for stream, reader in list(self._streams.values()):
            yield from self._read_stream(stream, reader)
        yield from self._read_files()

    def _look(self) -> None:
        begun = time.thread_time()
        if time.monotonic() >= self._next_search or not self._look_at_each():
            self._search()
            self._skips = False
            spent = time.thread_time() - begun
            if spent > _CHEAP_SECONDS:
                self._next_search = time.monotonic() + spent * _SHARE
        self._look_seconds = time.thread_time() - begun

    def wait(self, seconds: float) -> None:
        """Wait until it is worth to look again: after `seconds`, or when a stream has something.

        Where there are very many files, longer, so that looking takes a tenth of the time, but
        never more than 0.8 s for that.
        """
        self._bell.wait(max(seconds, min(self._look_seconds * _SHARE, _LONGEST_WAIT_SECONDS)))

    def wake(self) -> None:
        """End a `wait`, this one or the next; from any thread, or a signal handler."""
        self._bell.ring()

    def close(self) -> Iterator[Batch]:
        """Yield what waits for more that will not come: last lines without an end."""
        for followed in self._followed.values():
            if followed.bytes_left:
                for batches in self._read(followed, is_last=True):
                    yield from batches
        for reader in self._readers():
            reader.give_up()
        yield from self._rows()

    @property
    def bytes_left(self) -> int:
        """Bytes that were seen and not read yet."""
        return sum(followed.bytes_left for followed in self._followed.values())

    @property
    def file_count(self) -> int:
        """Files and streams that are followed."""
        return len(self._followed) + len(self._streams)

    @property
    def is_over(self) -> bool:
        """Every path is a stream, and all of them have ended."""
        streams = self._streams.values()
        return (
            all(map(_is_stream, self._paths))
            and bool(streams)
            and all(stream.is_over for stream, _ in streams)
        )

    @property
    def positions(self) -> list[LogFile]:
        """The files, each with how far it was read as its `start_offset` and `start_line`."""
        return [followed.to_read() for followed in self._followed.values()]

    def notices(self) -> list[str]:
        """Return, once, what there is to say about the inputs."""
        notices, self._notices = self._notices, []
        return notices

    def _say_once(self, words: str) -> None:
        if words not in self._problems:
            self._problems.add(words)
            self._notices.append(words)

    def _readers(self) -> Iterable[Reader]:
        readers = [followed.reader for followed in self._followed.values()]
        readers += [reader for _, reader in self._streams.values()]
        return dict.fromkeys(readers)

    def _look_at_each(self) -> bool:
        """Look at the known files; say whether each is where it was."""
        there = [followed.look() for followed in self._followed.values()]
        return all(there)

    def _search(self) -> None:
        """Find out which files there are now: new ones, and those that were moved or are gone."""
        logs: dict[str, list[Followed]] = {}
        for followed in self._followed.values():
            logs.setdefault(followed.log, []).append(followed)
        found: dict[tuple[int, int], Followed] = {}
        for file in files.search(self._paths, may_be_missing=True).files:
            key = file.identity
            if key is None:
                self._begin_stream(file)
            elif (known := self._followed.get(key)) is not None:
                known.see(file)
                known.left_at = None
                found[key] = known
            else:
                found[key] = self._begin(file, logs)
        now = time.monotonic()
        stays = {
            key: followed
            for key, followed in self._followed.items()
            if key not in found and self._stays(followed, now)
        }
        if not (self._followed or found or self._streams):
            self._say_once(
                f"no log files match {' '.join(map(shown, self._paths))} yet; waiting for them"
            )
        self._followed = stays | found  # what was renamed is older than what has its name now

    def _begin(self, file: LogFile, logs: dict[str, list[Followed]]) -> Followed:
        pieces = logs.setdefault(file.rotation_set or file.name, [])
        reader = pieces[0].reader if pieces else Reader(self._batches, self._wrapper)
        followed = Followed.begin(file, reader)
        if self._skips:
            followed.skip()
        else:
            original = next((piece for piece in pieces if followed.is_copy_of(piece)), None)
            if original is not None:
                followed.go_on_from(original)
        pieces.append(followed)
        return followed

    def _stays(self, followed: Followed, now: float) -> bool:
        """Say whether a file that no path means any more is still read."""
        if followed.left_at is None:
            followed.left_at = now
        if not followed.look() and not followed.find_again():
            if followed.bytes_left:
                name = followed.file.name
                self._notices.append(
                    f"{name} is gone; {followed.bytes_left:,} bytes of it were not read"
                )
            return False
        if followed.has_changed:
            followed.left_at = now
        return now - followed.left_at < _LEFT_SECONDS

    def _begin_stream(self, file: LogFile) -> None:
        if file.path not in self._streams:
            stream = Stream(file, self._bell)
            self._streams[file.path] = stream, Reader(self._batches, self._wrapper)

    def _read_stream(self, stream: Stream, reader: Reader) -> Iterator[Batch]:
        if stream.is_over:
            return
        place = LogFile(stream.file.name, 0, start_offset=reader.offset, start_line=reader.number)
        reader.read_on(place, stream.take())
        yield from self._rows()
        if stream.problem is not None:
            self._notices.append(f"{stream.file.name}: {stream.problem}")

    def _read_files(self) -> Iterator[Batch]:
        """Read what has changed: pieces of a log after each other, logs side by side by time."""
        logs: dict[Reader, list[Followed]] = {}
        for followed in self._followed.values():
            if followed.has_changed:
                logs.setdefault(followed.reader, []).append(followed)
        waiting = [self._read_log(pieces) for pieces in reversed(logs.values())]
        open_logs: list[tuple[int, int, Iterator[list[Batch]]]] = []
        while waiting or open_logs:
            while waiting and len(open_logs) < _MOST_OPEN:
                heapq.heappush(open_logs, (0, len(waiting), waiting.pop()))
            reached, number, log = open_logs[0]
            batches = next(log, None)
            if batches is None:
                heapq.heappop(open_logs)
                continue
            reached = max(reached, *map(_time, batches)) if batches else reached
            heapq.heapreplace(open_logs, (reached, number, log))
            yield from batches

    def _read_log(self, pieces: Sequence[Followed]) -> Iterator[list[Batch]]:
        for followed in pieces:
            if followed.was_rewritten():
                self._notices.append(
                    f"{followed.file.name} was truncated or written anew; read from its start"
                )
                followed.start_anew()
            followed.has_changed = False
            yield from self._read(followed)

    def _read(self, followed: Followed, *, is_last: bool = False) -> Iterator[list[Batch]]:
        reader = followed.reader
        for offset in reader.read(followed.to_read(is_last=is_last), goes_on=True):
            followed.offset = offset
            yield list(self._rows())
        followed.reached(reader.offset, reader.number)

    def _rows(self) -> Iterator[Batch]:
        for table, rows in self._batches.rows():
            if table == tables.FILES:
                for name, _, _, problem, *_ in rows:
                    if problem is not None:
                        self._say_once(f"{name}: {problem}")
            yield table, rows


def _is_stream(path: str) -> bool:
    try:
        mode = 0 if path == STDIN else Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _time(batch: Batch) -> int:
    """Return the time on the last line of a batch, 0 where there is none."""
    table, rows = batch
    return next((rows[-1][index] for index in _TIMES.get(table, ()) if rows[-1][index]), 0)
