"""A file that is whole or as it was before."""

import os
import threading

import pytest

from reconstruct.errors import DestinationError
from reconstruct.export.whole_file import whole_file


def test_it_appears_at_the_end(tmp_path):
    """Until then there is what was there before."""
    path = tmp_path / "out"
    path.write_bytes(b"before")
    path.chmod(0o640)
    with whole_file(str(path)) as out:
        out.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_is_as_readable_as_any(tmp_path):
    """Not for its owner alone, as temporary files are."""
    with whole_file(str(tmp_path / "out")) as out:
        out.write(b"x")
    (tmp_path / "plain").write_text("x")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failure_leaves_nothing(tmp_path):
    """Neither half a file nor a temporary one."""
    path = tmp_path / "out"
    path.write_bytes(b"before")

    def fail():
        with whole_file(str(path)) as out:
            out.write(b"half")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path):
    """What it points to is written."""
    (tmp_path / "link").symlink_to("out")
    with whole_file(str(tmp_path / "link")) as out:
        out.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "out").read_bytes() == b"x"


def test_a_pipe_is_written_directly(tmp_path):
    """It is not replaced by a file."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
    reader.start()
    with whole_file(str(path)) as out:
        out.write(b"x")
    reader.join()
    assert read == [b"x"]
    assert path.is_fifo()


@pytest.mark.parametrize("name", ["nowhere/out", ".", "x" * 300])
def test_what_cannot_be_written_is_one_line(tmp_path, name):
    """With the name as it was given."""
    with pytest.raises(DestinationError, match=f"^cannot write .*{name}: [^\n]+$"):
        with whole_file(str(tmp_path / name)):
            pass
