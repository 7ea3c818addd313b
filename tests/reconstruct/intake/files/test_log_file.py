"""How a file is known again: by the ends of the bytes that were there."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconstruct.intake.files import LogFile, fingerprint
from reconstruct.intake.files.log_file import fingerprint_of, shown

OLD = b"".join(b"old line %d\n" % number for number in range(1_000))


def test_a_file_that_grew_keeps_the_fingerprint_of_its_size(tmp_path: Path) -> None:
    """However small it was, under whatever name."""
    path = tmp_path / "a.log"
    for size in (0, 1, 1023, 1024, 1025, 2047, 2048, 2049, len(OLD)):
        path.write_bytes(OLD[:size])
        before = fingerprint(str(path), size)
        path.write_bytes(OLD[:size] + b"more\n" * 1_000)
        renamed = path.rename(tmp_path / "a.log.1")
        assert fingerprint(str(renamed), size) == before
        renamed.rename(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 1023) | st.integers(len(OLD) - 1024, len(OLD) - 1))
def test_another_byte_at_either_end_is_another_file(tmp_path: Path, place: int) -> None:
    """So is one that was truncated, and one written anew past its size."""
    path = tmp_path / "a.log"
    path.write_bytes(OLD)
    before = fingerprint(str(path), len(OLD))
    other = bytearray(OLD)
    other[place] ^= 1
    path.write_bytes(bytes(other))
    assert fingerprint(str(path), len(OLD)) != before
    path.write_bytes(OLD[:place])
    assert fingerprint(str(path), len(OLD)) != before
    path.write_bytes(OLD[:1024] + b"new line\n" * 2_000)
    assert fingerprint(str(path), len(OLD)) != before


def test_a_file_that_cannot_be_read_has_none(tmp_path: Path) -> None:
    """The error is the system's."""
    with pytest.raises(FileNotFoundError):
        fingerprint(str(tmp_path / "gone"), 10)


def test_a_name_can_always_be_printed_and_stored() -> None:
    """Bytes that are no UTF-8 are escaped; what is text stays as it is."""
    assert shown("schön\nа.log") == "schön\nа.log"
    assert shown("a\udcff\udc80.log") == r"a\xff\x80.log"


def test_a_file_is_where_its_name_says_unless_told_otherwise() -> None:
    """`path` can always be opened."""
    assert LogFile("a.log", 0).path == "a.log"
    assert LogFile(r"\xff.log", 0, "\udcff.log").path == "\udcff.log"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 3_000), st.lists(st.integers(0, 3_000)))
def test_what_comes_in_chunks_has_the_same_fingerprint(
    tmp_path: Path, size: int, cuts: list[int]
) -> None:
    """Of as many bytes, wherever it is cut; of fewer there is none."""
    path = tmp_path / "a.log"
    path.write_bytes(OLD)
    ends = [0, *sorted(cuts), 3_000]
    chunks = [OLD[start:end] for start, end in pairwise(ends)]
    assert fingerprint_of(chunks, size) == fingerprint(str(path), size)
    assert fingerprint_of(chunks, 3_001) is None
