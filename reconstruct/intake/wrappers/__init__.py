"""What stands around a record on its line, put there by whatever carried the line.

A wrapper takes one layer off: bytes of a line, or the object that the line is, to the payload
inside and what the layer told of it. `Unwrapper` decides which to try; layers lie within layers.
A new wrapper is a function in the module of its family and one entry here.
"""

import difflib
from typing import Final

from reconstruct.errors import UsageError
from reconstruct.intake.wrappers.containers import CRI, DOCKER
from reconstruct.intake.wrappers.journald import JOURNALD
from reconstruct.intake.wrappers.kubernetes import KUBECTL, STERN, STERN_JSON, STERN_NAMESPACED
from reconstruct.intake.wrappers.launchers import MPIRUN, PARALLEL, PDSH, SRUN, TORCHRUN
from reconstruct.intake.wrappers.layer import LineWrapper, ObjectWrapper
from reconstruct.intake.wrappers.ray import RAY
from reconstruct.intake.wrappers.supervisors import COMPOSE, GYM, HONCHO
from reconstruct.intake.wrappers.syslog import SYSLOG
from reconstruct.intake.wrappers.timestamps import TIMESTAMPS

__all__ = ["NAMES", "NONE", "OF_LINES", "OF_OBJECTS", "checked_name"]

OF_LINES: Final[tuple[LineWrapper, ...]] = (
    RAY,
    GYM,
    CRI,
    SYSLOG,
    TIMESTAMPS,
    KUBECTL,
    MPIRUN,
    TORCHRUN,
    HONCHO,
    COMPOSE,
    SRUN,
    PDSH,
    PARALLEL,
    STERN,
    STERN_NAMESPACED,
)
"""In the order in which they are tried: the more particular of two alike comes first."""
OF_OBJECTS: Final[tuple[ObjectWrapper, ...]] = (DOCKER, JOURNALD, STERN_JSON)
NONE: Final = "none"
NAMES: Final = (
    *sorted({wrapper.name for wrapper in OF_LINES} | {wrapper.name for wrapper in OF_OBJECTS}),
    NONE,
)
"""What `--wrapper` takes."""


def checked_name(name: str) -> str:
    """Return `name`; raise `UsageError` when no wrapper has it."""
    if name in NAMES:
        return name
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise UsageError(f"no wrapper '{name}'{hint} There are: {', '.join(NAMES)}")
