"""Databases of the relations: what may be taken to answer from them."""

from pathlib import Path

import duckdb
import pytest

from reconstruct.store import building


def in_bytes(limit: str) -> int:
    """As DuckDB has it, which tells it rounded."""
    with duckdb.connect(config={"memory_limit": limit}) as connection:
        (size,) = connection.execute(
            "SELECT parse_formatted_bytes(current_setting('memory_limit'))"
        ).fetchone() or (0,)
    return int(size)


@pytest.mark.parametrize("size", [0, 100_000_000, 499_000_000])
def test_small_databases_are_answered_within_the_default(tmp_path: Path, size: int) -> None:
    path = tmp_path / "logs.duckdb"
    path.touch()
    with path.open("r+b") as file:
        file.truncate(size)  # a hole: it takes no room
    limit = in_bytes(building.memory_for_answers(path))
    assert limit == pytest.approx(in_bytes(building.DEFAULT_MEMORY_LIMIT), rel=0.05)


def test_large_ones_may_take_more_but_not_the_whole_machine(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        (own,) = connection.execute(
            "SELECT parse_formatted_bytes(current_setting('memory_limit'))"
        ).fetchone() or (0,)
    path = tmp_path / "logs.duckdb"
    for size in (own // 8, 100 * own):
        path.touch()
        with path.open("r+b") as file:
            file.truncate(size)
        limit = in_bytes(building.memory_for_answers(path))
        default = in_bytes(building.DEFAULT_MEMORY_LIMIT)
        assert limit == pytest.approx(max(default, min(2 * size, own // 2)), rel=0.05)
