"""Rows as the text of a data format: JSON, JSON lines or CSV, written as they come.

Data is exact, with two exceptions in CSV, unless raw: a text that a spreadsheet would run as a
formula gets a `'` before it, and NUL becomes U+FFFD.
"""

import csv
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from reconstruct.render.text import json_text

__all__ = ["FORMATS", "distinct", "texts"]

FORMATS: Final = ("json", "jsonl", "csv")

_FORMULA: Final = re.compile(r"[=+\-@\t\r]")
"""What a spreadsheet takes for the start of a formula …"""
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
"""… unless the text is one of these."""
_NUMBERS: Final = frozenset({int, float})


def texts(
    names: Sequence[str], rows: Iterable[Sequence[object]], form: str, *, is_raw: bool = False
) -> Iterator[str]:
    """Yield the text of one of `FORMATS` in pieces, one a row; it ends in a line feed.

    `is_raw` leaves texts in CSV as they are.
    """
    names = distinct(names)
    if form == "csv":
        return _csv_lines(chain([names], rows), _raw_value if is_raw else _csv_value)
    objects = (dict(zip(names, row, strict=True)) for row in rows)
    if form == "jsonl":
        return (json_text(value) + "\n" for value in objects)
    return _json_array(objects)


def distinct(names: Sequence[str]) -> list[str]:
    """Number the repeats of a name, so that no column hides another."""
    taken: list[str] = []
    for name in names:
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.append(candidate)
    return taken


def _json_array(objects: Iterable[object]) -> Iterator[str]:
    before = "["
    for value in objects:
        yield f"{before}\n  " + json_text(value, indent=2).replace("\n", "\n  ")
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"


class _Echo:
    """A file whose `write` gives back what it was given, and `writerow` with it."""

    @staticmethod
    def write(text: str) -> str:
        return text


def _csv_lines(rows: Iterable[Sequence[object]], cell: Callable[[object], object]) -> Iterator[str]:
    # What is in the line's end is quoted: a lone \r would end a line for many readers.
    write = csv.writer(_Echo(), lineterminator="\r\n").writerow
    for row in rows:
        yield str(write(map(cell, row))).removesuffix("\r\n") + "\n"


def _csv_value(value: object) -> object:
    if isinstance(value, str):
        # Many readers end a text at a NUL.
        text = value.replace("\0", "\ufffd")
        return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
    return _raw_value(value)


def _raw_value(value: object) -> object:
    if value is None or isinstance(value, str) or type(value) in _NUMBERS:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return json_text(value) if isinstance(value, (dict, list, tuple)) else value
