"""Folders that this user may not read, also where the tests run as root."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65_534


@pytest.fixture
def as_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a context in which file permissions count, with `tmp_path` as the current folder."""
    monkeypatch.chdir(tmp_path)

    @contextmanager
    def context() -> Iterator[None]:
        is_root = os.geteuid() == 0
        if is_root:
            for path in (tmp_path, *tmp_path.rglob("*")):
                os.chown(path, NOBODY, -1, follow_symlinks=False)
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)
            for path in tmp_path.rglob("*"):
                if path.is_dir():
                    path.chmod(0o700)

    return context
