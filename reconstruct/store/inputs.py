"""What a store holds of which files, and what of them must be read.

A file is known again by device and inode, whatever it is called now, else by its path; and its
bytes by `intake.files.fingerprint` of as many as were read. So a file that grew is read from where
it ended, one that was rotated keeps its rows under its new name, and one that was truncated or
written anew is read as a new one.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Final

import duckdb

from reconstruct.intake import tables
from reconstruct.intake.files import LogFile, fingerprint

__all__ = ["Changes", "Input", "changes", "forget", "held", "remember"]

_INPUTS: Final = "_inputs"
_COLUMNS: Final[tables.Columns] = (
    ("file", tables.TEXT),
    ("path", tables.TEXT),
    ("device", tables.INT),
    ("inode", tables.INT),
    ("size", tables.INT),
    ("mtime_ns", tables.INT),
    ("read_bytes", tables.INT),
    ("read_lines", tables.INT),
    ("can_go_on", tables.BOOL),
    ("begins_within", tables.BOOL),
    ("ends_within", tables.BOOL),
    ("fingerprint", tables.TEXT),
)


@dataclass(frozen=True, slots=True)
class Input:
    """A file as it was when it was read; `read_bytes` of it have `fingerprint`."""

    file: str
    path: str
    device: int
    inode: int
    size: int
    mtime_ns: int
    read_bytes: int
    read_lines: int
    can_go_on: bool
    begins_within: bool
    ends_within: bool
    fingerprint: str

    def is_as_it_was(self, file: LogFile) -> bool:
        """Say whether a file has not been touched since."""
        return (file.identity, file.size, file.mtime_ns) == (
            (self.device, self.inode),
            self.size,
            self.mtime_ns,
        )

    def has_grown_to(self, file: LogFile) -> bool:
        """Say whether there is more in a file than was read."""
        return not self.is_as_it_was(file) and file.size > self.read_bytes

    def has_bytes_of(self, file: LogFile) -> bool:
        """Say whether a file begins with the bytes that were read."""
        if file.size < self.read_bytes:
            return False
        try:
            return fingerprint(file.path, self.read_bytes) == self.fingerprint
        except OSError:
            return False


@dataclass(frozen=True, slots=True)
class Changes:
    """What to do so that a store holds what the files do."""

    to_read: tuple[LogFile, ...]
    """New files, and grown ones from where they ended."""
    to_drop: frozenset[str]
    """Names of files of which the rows are not wanted any more."""
    renamed: dict[str, str]
    """New names by old ones."""
    kept: tuple[Input, ...]
    """What stays as it is, grown files among them, under the new names."""

    @property
    def is_none(self) -> bool:
        """Nothing has changed."""
        return not (self.to_read or self.to_drop or self.renamed)


def held(connection: duckdb.DuckDBPyConnection) -> list[Input]:
    """Return what the database holds."""
    names = ", ".join(name for name, _ in _COLUMNS)
    return [Input(*row) for row in connection.execute(f"SELECT {names} FROM {_INPUTS}").fetchall()]


def changes(before: Sequence[Input], found: Sequence[LogFile]) -> Changes:
    """Compare what a store holds with the files that there are now."""
    known = _known(before, found)
    _leave_out_half_lines(known, found)
    to_read: list[LogFile] = []
    kept: list[Input] = []
    renamed: dict[str, str] = {}
    for file in found:
        mine = known.get(file.name)
        if mine is None:
            to_read.append(file)
            continue
        if mine.file != file.name:
            renamed[mine.file] = file.name
        device, inode = file.identity or (0, 0)
        kept.append(replace(mine, file=file.name, path=file.path, device=device, inode=inode))
        if mine.has_grown_to(file):
            to_read.append(replace(file, start_offset=mine.read_bytes, start_line=mine.read_lines))
    stay = {mine.file for mine in known.values()}
    to_drop = frozenset(each.file for each in before if each.file not in stay)
    return Changes(tuple(to_read), to_drop, renamed, tuple(kept))


def _known(before: Sequence[Input], found: Sequence[LogFile]) -> dict[str, Input]:
    """Return what is held of each file, by its name now; others must be read from their start."""
    by_identity = {(each.device, each.inode): each for each in before}
    by_path = {each.path: each for each in before}
    known: dict[str, Input] = {}
    taken: set[str] = set()
    for file in found:
        mine = by_identity.get(file.identity or (0, 0)) or by_path.get(file.path)
        if mine is None or mine.file in taken:
            continue
        if not (mine.is_as_it_was(file) or mine.has_bytes_of(file)):
            continue
        if mine.can_go_on or not mine.has_grown_to(file):
            known[file.name] = mine
            taken.add(mine.file)
    return known


def _leave_out_half_lines(known: dict[str, Input], found: Sequence[LogFile]) -> None:
    """Let two files of a rotation set be read together where a line or record lies in both."""
    pairs = [
        (one.name, next_.name)
        for one, next_ in pairwise(found)
        if one.rotation_set is not None and one.rotation_set == next_.rotation_set
    ]
    for older, newer in [*pairs, *reversed(pairs)]:
        if newer not in known and older in known and known[older].ends_within:
            del known[older]
        elif older not in known and newer in known and known[newer].begins_within:
            del known[newer]


def forget(connection: duckdb.DuckDBPyConnection, change: Changes) -> None:
    """Delete the rows of files that are not wanted, and give renamed ones their new names.

    Owners stay: an instance is made only of those that have lines.
    """
    for table in tables.TABLES.keys() - {tables.OWNERS}:
        if change.to_drop:
            connection.execute(
                f"DELETE FROM {table} WHERE list_contains($names, file)",
                {"names": sorted(change.to_drop)},
            ).fetchall()
        if change.renamed:
            connection.execute(
                f"UPDATE {table} SET file = $new[list_position($old, file)] "
                "WHERE list_contains($old, file)",
                {"old": list(change.renamed), "new": list(change.renamed.values())},
            ).fetchall()


def remember(
    connection: duckdb.DuckDBPyConnection, change: Changes, found: Sequence[LogFile]
) -> None:
    """Write down what the database holds now that the files have been read.

    A file that was read in two parts becomes one row of `_files`.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE _merged AS
        SELECT
            file,
            sum(bytes)::BIGINT AS bytes,
            sum(lines)::BIGINT AS lines,
            last(problem) AS problem,
            first(wrapper ORDER BY wrapper IS NULL) AS wrapper,
            last(pending_bytes) AS pending_bytes,
            last(can_go_on) AS can_go_on,
            first(begins_within) AS begins_within,
            last(ends_within) AS ends_within
        FROM (SELECT * FROM {tables.FILES} ORDER BY rowid)
        GROUP BY file
        """
    ).fetchall()
    connection.execute(f"DELETE FROM {tables.FILES}").fetchall()
    connection.execute(f"INSERT INTO {tables.FILES} BY NAME FROM _merged").fetchall()
    connection.execute("DROP TABLE _merged").fetchall()
    read = {
        file: facts
        for file, *facts in connection.execute(
            f"SELECT file, bytes, lines, can_go_on, begins_within, ends_within FROM {tables.FILES}"
        ).fetchall()
    }
    kept = {each.file: each for each in change.kept}
    changed = {file.name for file in change.to_read}
    rows = [
        _read(file, *read[file.name])
        if file.name in changed
        else replace(kept[file.name], size=file.size, mtime_ns=file.mtime_ns)
        for file in found
    ]
    connection.register("_rows", tables.arrow(_COLUMNS, [astuple(row) for row in rows]))
    connection.execute(f"CREATE OR REPLACE TABLE {_INPUTS} AS FROM _rows").fetchall()
    connection.unregister("_rows")


def _read(
    file: LogFile,
    size: int,
    lines: int,
    can_go_on: bool,  # noqa: FBT001  # columns of a row, here and below
    begins_within: bool,  # noqa: FBT001
    ends_within: bool,  # noqa: FBT001
) -> Input:
    """Describe a file that has just been read: `size` bytes of it, unpacked."""
    read_bytes = size if can_go_on else file.size
    try:
        digest = fingerprint(file.path, read_bytes)
    except OSError:  # gone meanwhile, so never to be known again
        digest = ""
    device, inode = file.identity or (0, 0)
    return Input(
        file=file.name,
        path=file.path,
        device=device,
        inode=inode,
        size=file.size,
        mtime_ns=file.mtime_ns,
        read_bytes=read_bytes,
        read_lines=lines,
        can_go_on=can_go_on,
        begins_within=begins_within,
        ends_within=ends_within,
        fingerprint=digest,
    )
