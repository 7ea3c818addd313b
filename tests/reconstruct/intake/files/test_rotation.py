"""Which names are pieces of one log, and in which order."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconstruct.intake.files import LogFile
from reconstruct.intake.files.rotation import arranged

SETS = [
    ["x.log.10.gz", "x.log.2.gz", "x.log.1", "x.log"],
    ["x.3.log", "x.1.log", "x.log"],
    ["c0ffee-json.log.2.zst", "c0ffee-json.log.1", "c0ffee-json.log"],
    ["worker.out.2", "worker.out.1", "worker.out"],
    ["log.2", "log.1", "log"],
    ["x.log-20250615.gz", "x.log-20250616.gz", "x.log-20250617", "x.log"],
    ["x-20250615.log.xz", "x-20250616.log", "x.log"],
    ["x.log.2025-06-15", "x.log.2025-07-01", "x.log"],
    ["x.log.2025-06-15_00-00-00", "x.log.2025-06-15_12-00-00", "x.log"],
    ["x.2025-06-15.0.log.gz", "x.2025-06-15.2.log.gz", "x.2025-06-15.10.log", "x.log"],
    ["x-2025-06-15T13-45-00.000.log", "x-2025-06-15T13-45-00.123.log", "x.log"],
    ["x.2025-06-15_13-45-00_123456.log", "x.2025-06-16_00-00-00_000000.log"],
    ["0.log.20250615-134500.gz", "0.log.20250615-150000", "0.log"],
    ["x.log-20250615", "x.log.2", "x.log.1", "x.log"],
]


def names(files: list[LogFile]) -> list[str]:
    return [file.name for file in files]


@pytest.mark.parametrize("members", SETS, ids=lambda members: members[0])
def test_the_oldest_is_first_whatever_the_order(members: list[str]) -> None:
    """And each says to which set it belongs."""
    for order in permutations(members):
        files = arranged([LogFile(f"logs/{name}", 0) for name in order])
        assert names(files) == [f"logs/{name}" for name in members]
        assert {file.rotation_set for file in files} == {f"logs/{members[-1]}"} or (
            members[-1] == "x.2025-06-16_00-00-00_000000.log"
        )
        assert len({file.rotation_set for file in files}) == 1
        assert files[0].rotation_set is not None


@pytest.mark.parametrize(
    "alone",
    [
        ["a.log", "b.log"],
        ["worker.1.log", "worker.2.log"],  # workers, as long as there is no worker.log
        ["rank.out.0", "rank.out.1"],
        ["x.log", "x.log.gz"],  # a copy
        ["slurm-20251301.out", "slurm.out"],  # no month, so a job's number
        ["x-12345678.log", "x.log"],
        ["one/x.log.1", "two/x.log"],
        ["-", "1.log"],
    ],
    ids=lambda alone: alone[0],
)
def test_what_is_no_rotation_stays_as_it_is(alone: list[str]) -> None:
    """In the given order, of no set."""
    files = arranged([LogFile(name, 0) for name in alone])
    assert names(files) == alone
    assert {file.rotation_set for file in files} == {None}


@given(st.lists(st.text(alphabet="x.-_0123456789log/gz", max_size=20), unique=True))
def test_no_file_is_lost_or_added(paths: list[str]) -> None:
    """Whatever the names are; and doing it again changes nothing."""
    files = arranged([LogFile(name, 0) for name in paths])
    assert sorted(names(files)) == sorted(paths)
    assert arranged(files) == files
