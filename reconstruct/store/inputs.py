"""What a store holds of which files, and what of them must be read.

A file is known again by device and inode, whatever it is called now, else by its path; and its
bytes by `intake.files.fingerprint` of as many as were read. So a file that grew is read from where
it ended, one that was rotated keeps its rows under its new name, and one that was truncated or
written anew is read as a new one.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
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
    fingerprint: str

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
    by_identity = {(each.device, each.inode): each for each in before}
    by_path = {each.path: each for each in before}
    to_read: list[LogFile] = []
    kept: list[Input] = []
    taken: set[str] = set()
    renamed: dict[str, str] = {}
    for file in found:
        known = by_identity.get(file.identity or (0, 0)) or by_path.get(file.path)
        if known is None or known.file in taken:
            to_read.append(file)
            continue
        is_same = (file.identity, file.size, file.mtime_ns) == (
            (known.device, known.inode),
            known.size,
            known.mtime_ns,
        )
        has_grown = not is_same and file.size > known.read_bytes
        if not (is_same or known.has_bytes_of(file)) or (has_grown and not known.can_go_on):
            to_read.append(file)
            continue
        taken.add(known.file)
        if known.file != file.name:
            renamed[known.file] = file.name
        kept.append(
            replace(
                known,
                file=file.name,
                path=file.path,
                device=(file.identity or (0, 0))[0],
                inode=(file.identity or (0, 0))[1],
            )
        )
        if has_grown:
            to_read.append(
                replace(file, start_offset=known.read_bytes, start_line=known.read_lines)
            )
    to_drop = frozenset(each.file for each in before if each.file not in taken)
    return Changes(tuple(to_read), to_drop, renamed, tuple(kept))


def forget(connection: duckdb.DuckDBPyConnection, change: Changes) -> None:
    """Delete the rows of files that are not wanted, and give renamed ones their new names."""
    for table in tables.TABLES:
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
            last(can_go_on) AS can_go_on
        FROM (SELECT * FROM {tables.FILES} ORDER BY rowid)
        GROUP BY file
        """
    ).fetchall()
    connection.execute(f"DELETE FROM {tables.FILES}").fetchall()
    connection.execute(f"INSERT INTO {tables.FILES} BY NAME FROM _merged").fetchall()
    connection.execute("DROP TABLE _merged").fetchall()
    read = {
        file: (size, lines, can_go_on)
        for file, size, lines, can_go_on in connection.execute(
            f"SELECT file, bytes, lines, can_go_on FROM {tables.FILES}"
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


def _read(file: LogFile, size: int, lines: int, can_go_on: object) -> Input:
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
        can_go_on=bool(can_go_on),
        fingerprint=digest,
    )
