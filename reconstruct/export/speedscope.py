"""Call stacks as a speedscope profile, a JSON file for https://www.speedscope.app.

One sampled profile for each weight, its samples the stacks and its weights whole ns. Numbers there
are doubles: a profile of more than 2^53 ns is in whole µs, each rounded down, and says so by its
unit. Source: https://www.speedscope.app/file-format-schema.json.
"""

import json
from collections.abc import Iterable, Mapping
from typing import IO, Final

from reconstruct.export.call_stacks import CallStacks, Stack

__all__ = ["SCHEMA", "write"]

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"
_EXACT_BELOW: Final = 2**53


def write(profiles: Mapping[str, CallStacks], out: IO[bytes], *, name: str) -> int:
    """Write one profile for each entry, under its key; return how many samples they have.

    `name` is what the file is called in the viewer. Frames are gathered in a first pass over the
    stacks, so that memory is theirs alone.
    """
    numbers: dict[str, int] = {}
    for stacks in profiles.values():
        for stack in stacks:
            for frame in stack.frames:
                numbers.setdefault(frame, len(numbers))
    head = {"$schema": SCHEMA, "name": name, "exporter": "reconstruct", "activeProfileIndex": 0}
    out.write(_json(head)[:-1] + b',"shared":{"frames":[')
    _write_list(({"name": frame} for frame in numbers), out)
    out.write(b']},"profiles":[')
    samples = 0
    for place, (title, stacks) in enumerate(profiles.items()):
        is_exact = stacks.total_ns < _EXACT_BELOW
        weights = [stack.weight_ns if is_exact else stack.weight_ns // 1_000 for stack in stacks]
        profile = {
            "type": "sampled",
            "name": title,
            "unit": "nanoseconds" if is_exact else "microseconds",
            "startValue": 0,
            "endValue": sum(weights),
        }
        out.write((b"," if place else b"") + _json(profile)[:-1] + b',"samples":[')
        samples += _write_list(_numbered(stacks, numbers), out)
        out.write(b'],"weights":' + _json(weights) + b"}")
    out.write(b"]}\n")
    return samples


def _numbered(stacks: Iterable[Stack], numbers: Mapping[str, int]) -> Iterable[list[int]]:
    for stack in stacks:
        yield [numbers[frame] for frame in stack.frames]


def _write_list(values: Iterable[object], out: IO[bytes]) -> int:
    written = 0
    for value in values:
        out.write((b"," if written else b"") + b"\n" + _json(value))
        written += 1
    return written


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")
