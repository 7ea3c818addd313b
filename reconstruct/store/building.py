"""A database of the relations, made from log files, or from an older one and what has changed.

It is built under a name of its own and takes its place in one step, so that whoever reads the old
one goes on reading it, and a crash leaves it as it was. Two who build at once both get a whole one;
the later stays.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

import duckdb

from reconstruct.errors import UsageError
from reconstruct.intake.files import LogFile
from reconstruct.intake.ours import BATCH_BYTES
from reconstruct.safe_sql import PLANS
from reconstruct.store import filling, inputs, location, making, relations

__all__ = [
    "DEFAULT_MEMORY_LIMIT",
    "attach",
    "build",
    "connect",
    "detach",
    "lacking",
    "memory_for_answers",
    "new_path",
    "put_in_place",
]

DEFAULT_MEMORY_LIMIT: Final = "1GB"
"""Of DuckDB; what it needs beyond is on disk. Python and a batch of lines come on top."""
_ANSWER_PART: Final = 2
"""Some answers keep every duration in memory: so many times a database's size is enough."""
_LARGE_BYTES: Final = 500_000_000
"""Up to this size the default is enough."""

_CATALOG: Final = "logs"
"""Views name what they read with it, so a database file is called so, too."""
_CHECKPOINT_AFTER: Final = "256MB"
_ROW_GROUP_ROWS: Final = 16_384
"""A batch of lines fills several row groups: those are compressed and written by all threads as
they come, not copied first and compressed by one thread in the end."""
_PYTHON_BYTES: Final = 128 << 20
"""What the process has before it reads anything."""
_BATCH_PART: Final = 16
"""A batch is at most so small a part of the limit; it takes a few times its size."""
_BATCH_COPIES: Final = 4
_THREAD_BYTES: Final = 128 << 20
"""Below this each, several threads have no room to sort and join a million spans."""


def connect(spill: str, memory_limit: str | None) -> duckdb.DuckDBPyConnection:
    """Open an empty database in memory that spills into the folder `spill`.

    Raises `UsageError` when the limit is none.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": spill,
        "memory_limit": memory_limit or DEFAULT_MEMORY_LIMIT,
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        **PLANS,
    }
    try:
        connection = duckdb.connect(":memory:", config=config)
        connection.execute("SET enable_progress_bar = false")  # DuckDB writes it to stdout
        return connection
    except duckdb.Error as error:
        words = str(error).strip().splitlines()[0]
        raise UsageError(f"memory limit {memory_limit!r}: {words}") from None


def memory_for_answers(path: Path) -> str:
    """Return the limit with which questions about all of a database are answered: more than the
    default when that is large, at most half of what DuckDB takes of the machine by itself."""
    size = path.stat().st_size
    if size <= _LARGE_BYTES:
        return DEFAULT_MEMORY_LIMIT
    with duckdb.connect() as connection:
        default, most = connection.execute(
            """
            SELECT
                parse_formatted_bytes($default),
                parse_formatted_bytes(current_setting('memory_limit')) // 2
            """,
            {"default": DEFAULT_MEMORY_LIMIT},
        ).fetchall()[0]
    return f"{max(int(default), min(_ANSWER_PART * size, int(most)))}B"


def share_memory(connection: duckdb.DuckDBPyConnection) -> int:
    """Lower the limit of a connection that is to be filled, so that Python and a batch of lines fit
    below it too, as far as DuckDB keeps half; return the bytes of a batch."""
    (limit,) = connection.execute(
        "SELECT parse_formatted_bytes(current_setting('memory_limit'))::BIGINT"
    ).fetchone() or (0,)
    batch = int(min(BATCH_BYTES, limit // _BATCH_PART))
    share = max(limit - _PYTHON_BYTES - _BATCH_COPIES * batch, limit // 2)
    connection.execute(f"SET memory_limit = '{share}B'")
    (threads,) = connection.execute("SELECT current_setting('threads')").fetchone() or (1,)
    connection.execute(f"SET threads = {max(1, min(threads, share // _THREAD_BYTES))}")
    return batch


def lacking(path: Path, found: Sequence[LogFile]) -> inputs.Changes | None:
    """Say what a database lacks of the files; None when there is none, or none that fits."""
    if not path.exists():
        return None
    try:
        with duckdb.connect() as connection:
            connection.execute(f"ATTACH {_quoted(path)} AS {_CATALOG} (READ_ONLY)")
            connection.execute(f"USE {_CATALOG}")
            versions = connection.execute("SELECT fingerprint FROM _store").fetchall()
            if versions != [(relations.fingerprint(),)]:
                return None
            return inputs.changes(inputs.held(connection), found)
    except duckdb.Error:  # no database, or one of another version
        return None


def build(
    path: Path,
    found: Sequence[LogFile],
    *,
    change: inputs.Changes | None,
    spill: str,
    memory_limit: str | None,
    progress: Callable[[int, int], None] | None = None,
    wrapper: str | None = None,
) -> None:
    """Make the database at `path` hold what the files do; `change` says what the one there lacks.

    Raises `OSError` or `duckdb.IOException` when it cannot be written, and
    `duckdb.OutOfMemoryException` when the memory limit is too small.
    """
    new = new_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        is_new = change is None
        if change is None:
            new.unlink(missing_ok=True)
            change = inputs.changes((), found)
        else:
            shutil.copyfile(path, new)
        with connect(spill, memory_limit) as connection:
            batch_bytes = BATCH_BYTES if memory_limit is None else share_memory(connection)
            attach(connection, new)
            if is_new:
                relations.create_base_tables(connection)
                connection.execute("CREATE TABLE _store (fingerprint VARCHAR)")
                connection.execute("INSERT INTO _store VALUES ($1)", [relations.fingerprint()])
            else:
                inputs.forget(connection, change)
            with making.all_beside(connection) if is_new else nullcontext():
                filling.fill(
                    connection,
                    change.to_read,
                    progress=progress,
                    wrapper=wrapper,
                    batch_bytes=batch_bytes,
                )
            inputs.remember(connection, change, found)
            made = making.drop_tables(connection)
            # Row ids, by which relations refer to lines, change where rows were deleted: now, not
            # when the tables made of them are there.
            connection.execute(f"CHECKPOINT {_CATALOG}").fetchall()
            making.make_again(connection, made)
            detach(connection)
        put_in_place(new, path)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise


def new_path(path: Path) -> Path:
    """Return a name under which a database can be written that is to take the place of `path`."""
    return path.with_name(f"{path.stem}.{secrets.token_hex(4)}{location.UNFINISHED}")


def attach(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Open the database at `path` for writing, as the one that names mean."""
    connection.execute(f"SET checkpoint_threshold = '{_CHECKPOINT_AFTER}'")
    connection.execute(
        f"ATTACH {_quoted(path)} AS {_CATALOG} "
        f"(RECOVERY_MODE no_wal_writes, ROW_GROUP_SIZE {_ROW_GROUP_ROWS})"
    )
    connection.execute(f"USE {_CATALOG}")


def detach(connection: duckdb.DuckDBPyConnection) -> None:
    """Have all of it in the file, and close that."""
    connection.execute(f"CHECKPOINT {_CATALOG}").fetchall()
    connection.execute("USE memory")
    connection.execute(f"DETACH {_CATALOG}")


def put_in_place(new: Path, path: Path) -> None:
    """Give a database that is whole the name under which it is looked for."""
    with open(new, "rb") as handle:  # its bytes are on disk before its name says that they are
        os.fsync(handle.fileno())
    new.replace(path)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
