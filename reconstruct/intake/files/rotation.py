"""Which files are one log in pieces, and their order: the oldest first, the current one last.

`x.log.2.gz`, `x.log.1`, `x.log` (logrotate, Python, docker, Ray) and `x.1.log`, `x.log`: the higher
the number the older, and only beside `x.log`, as workers are numbered too. `x-20250615.log`,
`x.log-20250615.gz`, `x.log.2025-06-15`, `x.2025-06-15.1.log`: by date and time, then by number.
Only names are looked at: copying changes times.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from reconstruct.intake.files.compressed import SUFFIXES
from reconstruct.intake.files.log_file import LogFile

__all__ = ["arranged", "place"]

_DATED: Final = re.compile(
    r"(?P<stem>.+?)[-._]"
    r"(?P<date>20\d\d(?P<dash>-?)(?:0[1-9]|1[0-2])(?P=dash)(?:0[1-9]|[12]\d|3[01]))"
    r"(?P<time>[-_T]?[0-2]\d[-:_]?[0-5]\d(?:[-:_]?[0-5]\d(?:[._]\d{3,9})?)?)?Z?"
    r"(?:[-._](?P<number>\d{1,5}))?"
    r"(?P<suffix>\.[A-Za-z]\w*)?"
)
_NUMBERED: Final = re.compile(r"(?P<stem>.+?)\.(?P<number>\d{1,4})(?P<suffix>\.[A-Za-z]\w*)?")

Age = tuple[int, str, int]
"""Sorts the files of a set: the oldest is the least."""
_BY_DATE, _BY_NUMBER, _CURRENT = range(3)


def place(name: str) -> tuple[str, Age]:
    """Return the name of the current file of the set that a file name speaks of, and its age."""
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    if match := _DATED.fullmatch(name):
        when = re.sub(r"\D", "", match["date"] + (match["time"] or ""))
        return match["stem"] + (match["suffix"] or ""), (_BY_DATE, when, int(match["number"] or 0))
    if match := _NUMBERED.fullmatch(name):
        return match["stem"] + (match["suffix"] or ""), (_BY_NUMBER, "", -int(match["number"]))
    return name, (_CURRENT, "", 0)


def arranged(files: Sequence[LogFile]) -> list[LogFile]:
    """Put the files of a set together, where its first one stood, and write the set on each."""
    sets: dict[str, list[tuple[Age, str, LogFile]]] = defaultdict(list)
    for file in files:
        folder, slash, name = file.name.rpartition("/")
        current, age = place(name)
        sets[f"{folder}{slash}{current}"].append((age, file.name, file))
    result: list[LogFile] = []
    for name, members in sets.items():
        kinds = {age[0] for age, _, _ in members}
        is_set = len(members) > 1 and (
            kinds == {_BY_DATE} or (len(kinds) > 1 and _CURRENT in kinds)
        )
        if is_set:
            members.sort(key=lambda member: member[:2])
        result += [replace(file, rotation_set=name) if is_set else file for _, _, file in members]
    return result
