"""Prefixes of programs that start many others: srun, mpirun, torchrun, pdsh, GNU parallel."""

import re
from typing import Final

from reconstruct.intake.wrappers.layer import Layer, LineWrapper

__all__ = ["MPIRUN", "PARALLEL", "PDSH", "SRUN", "TORCHRUN"]

_SPACE: Final = rb"(?: (?![\s\"}\]]|\{\s*\Z))?"
"""Some versions write a space. Before a piece of a record over several lines it may be the record's
own, and stays: on all of them or on none."""
_MPIRUN: Final = re.compile(
    rb"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
    rb"\[((?:[^\]\s@]{1,253}@)?\d{1,9}, ?\d{1,9})\]<(stdout|stderr)>:" + _SPACE
)
_TORCHRUN: Final = re.compile(rb"\[([A-Za-z][\w-]{0,99}?\d{1,9})\]:" + _SPACE)
_SRUN: Final = re.compile(rb" {0,9}((?:\d{1,9}\+)?\d{1,9}):" + _SPACE)
_PDSH: Final = re.compile(rb"([A-Za-z0-9][\w.-]{0,253}):" + _SPACE)
_PARALLEL: Final = re.compile(rb"([^\t\r\n{}\"]{1,200})\t")
_LEVELS: Final = frozenset(
    b"TRACE DEBUG INFO NOTICE WARN WARNING SEVERE ERROR CRITICAL FATAL".split()
)


def _mpirun(line: bytes) -> Layer | None:
    match = _MPIRUN.match(line)
    if match is None:
        return None
    return Layer(line[match.end() :], source=f"{_text(match[1])} {_text(match[2])}")


def _torchrun(line: bytes) -> Layer | None:
    """The role and rank of a worker; `--local-ranks-filter` and `--tee` write the same."""
    match = _TORCHRUN.match(line)
    return None if match is None else Layer(line[match.end() :], source=_text(match[1]))


def _srun(line: bytes) -> Layer | None:
    """A task's number, alone or behind that of its component."""
    match = _SRUN.match(line)
    return None if match is None else Layer(line[match.end() :], source=_text(match[1]))


def _pdsh(line: bytes) -> Layer | None:
    match = _PDSH.match(line)
    if match is None or match[1].upper() in _LEVELS:
        return None
    host = _text(match[1])
    return Layer(line[match.end() :], source=host, host=host)


def _parallel(line: bytes) -> Layer | None:
    """The arguments of a job, whatever they are."""
    match = _PARALLEL.match(line)
    return None if match is None else Layer(line[match.end() :], source=_text(match[1]))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


MPIRUN: Final = LineWrapper("mpirun", _mpirun, b"[FMSTW")
TORCHRUN: Final = LineWrapper("torchrun", _torchrun, b"[")
SRUN: Final = LineWrapper("srun", _srun, b"", is_vague=True)
PDSH: Final = LineWrapper("pdsh", _pdsh, b"", is_vague=True)
PARALLEL: Final = LineWrapper("parallel", _parallel, b"", is_vague=True)
