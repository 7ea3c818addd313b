"""A database to ask, of both kinds that others may ask.

Every promise holds for both: a database in memory, as an `Engine` has, and a database file opened
by `connect_read_only`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from reconstruct.safe_sql import Answer, Limits, answer, connect_read_only


class Asker:
    """Asks a database of one kind; knows what must not change."""

    SECRET = "what lies beside the store"

    def __init__(self, connect: Callable[[], duckdb.DuckDBPyConnection], folder: Path) -> None:
        self.connect = connect
        self.folder = folder
        (folder / "secret.csv").write_text(self.SECRET)
        self.before = self.state()

    def open(self, sql: str, *parameters: object, **limits: Any) -> AbstractContextManager[Answer]:
        limits = {"timeout_seconds": 30.0, **limits}
        return answer(self.connect, sql, parameters or None, limits=Limits(**limits))

    def __call__(self, sql: str, *parameters: object, **limits: Any) -> list[tuple[Any, ...]]:
        with self.open(sql, *parameters, **limits) as it:
            return list(it.rows())

    def state(self) -> tuple[object, ...]:
        """Return the files there are with their contents, and what the tables hold."""
        files = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        with self.connect() as connection:
            rows = connection.execute("FROM spans ORDER BY ALL").fetchall()
            return files, rows, connection.execute("SHOW ALL TABLES").fetchall()


def fill(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        """
        CREATE TABLE spans AS
        SELECT 'span ' || i AS name, i AS duration_ns, '{"a.b":1}'::JSON AS attributes
        FROM range(3) AS t(i)
        """
    )


def write_store(folder: Path) -> Path:
    store = folder / "store.db"
    with duckdb.connect(str(store)) as owner:
        fill(owner)
    return store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A database file that nobody has open, in a folder of its own."""
    return write_store(tmp_path)


@pytest.fixture(scope="module", params=["memory", "file"])
def ask(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asker]:
    """One database of each kind for all: nothing that is asked here changes it."""
    tmp_path = tmp_path_factory.mktemp("store")
    spill = tmp_path / "spill"
    spill.mkdir()
    if request.param == "memory":
        config: dict[str, Any] = {
            "temp_directory": str(spill),
            "memory_limit": "200MB",
            "python_enable_replacements": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        owner = duckdb.connect(config=config)
        fill(owner)
        owner.execute("SET enable_external_access = false")
        owner.execute("SET lock_configuration = true")
        yield Asker(owner.cursor, tmp_path)
        owner.close()
    else:
        path = write_store(tmp_path)

        def connect() -> duckdb.DuckDBPyConnection:
            return connect_read_only(str(path), spill=str(spill), memory_limit="200MB")

        with connect():  # the same instance for all who come
            yield Asker(connect, tmp_path)
