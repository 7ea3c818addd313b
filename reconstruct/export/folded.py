"""Call stacks as folded text, which flamegraph.pl, inferno, speedscope and others read.

A line is the frames of a stack, the top first, with `;` between them, a space and its weight, whole
ns. Source: the comment at the head of flamegraph.pl. A `;` in a name becomes `,`.
"""

from collections.abc import Iterable
from typing import IO

from reconstruct.export.call_stacks import Stack

__all__ = ["write"]


def write(stacks: Iterable[Stack], out: IO[bytes]) -> int:
    """Write all stacks; return how many lines that were."""
    lines = 0
    for stack in stacks:
        frames = ";".join(frame.replace(";", ",") for frame in stack.frames)
        out.write(f"{frames} {stack.weight_ns}\n".encode(errors="replace"))
        lines += 1
    return lines
