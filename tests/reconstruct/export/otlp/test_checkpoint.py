"""A checkpoint remembers exactly what was noted, whatever moment its process was killed at."""

import numpy as np
import pytest

from reconstruct.errors import DestinationError, InputError
from reconstruct.export.otlp.checkpoint import Checkpoint, checkpoint_path
from reconstruct.export.otlp.settings import Options, Target

TARGET = Target.of("traces", Options(endpoint="http://h"), {})
OTHER = Target.of("traces", Options(endpoint="http://other"), {})
BATCHES = [[3, 2**64 - 1], [1], [7, 8, 9]]


def known(path, keys):
    with Checkpoint(path, TARGET) as checkpoint:
        news = checkpoint.news(np.array(keys, dtype="uint64"))
    return [key for key, new in zip(keys, news, strict=True) if not new]


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "deep" / "checkpoint"
    for batch in BATCHES:
        with Checkpoint(path, TARGET) as checkpoint:
            checkpoint.add(batch)
    return path


def test_what_was_noted_is_known_and_nothing_else(written):
    assert known(written, [9, 4, 1, 2**64 - 1, 0, 3]) == [9, 1, 2**64 - 1, 3]


def test_a_file_cut_at_any_byte_has_whole_batches_and_can_be_added_to(written):
    whole = written.read_bytes()
    keys = [key for batch in BATCHES for key in batch]
    possible = [[], keys[:2], keys[:3], keys]
    for length in range(len(whole) + 1):
        written.write_bytes(whole[:length])
        found = known(written, keys)
        assert found in possible
        with Checkpoint(written, TARGET) as checkpoint:
            checkpoint.add([42])
        assert known(written, [*keys, 42]) == [*found, 42]


def test_a_flipped_bit_is_noticed(written):
    data = bytearray(written.read_bytes())
    data[-1] ^= 1
    written.write_bytes(data)
    assert known(written, [1, 7, 8, 9]) == [1]


def test_two_at_once_are_refused(written):
    with Checkpoint(written, TARGET), pytest.raises(DestinationError, match="under way"):
        Checkpoint(written, TARGET)


@pytest.mark.parametrize("content", [b"hello", b"hello\n", b"{}\n"])
def test_another_file_is_not_written_to(tmp_path, content):
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no checkpoint"):
        Checkpoint(path, TARGET)
    assert path.read_bytes() == content


def test_destinations_do_not_share_one(written, tmp_path):
    assert checkpoint_path(tmp_path, TARGET) != checkpoint_path(tmp_path, OTHER)
    with pytest.raises(InputError, match="http://other"):
        Checkpoint(written, OTHER)
