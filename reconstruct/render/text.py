"""How a value reads in one line of text: harmless, of a known width, with a fitting unit.

Logs are written by others, so a span's name may hold anything. `clean` makes it inert for a
terminal; `width` counts columns, not characters; the rest turns int64 nanoseconds and counts into
words. Pure functions, standard library only.
"""

import json
import math
import re
import textwrap
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

__all__ = [
    "Line",
    "Part",
    "clean",
    "count",
    "duration",
    "fit",
    "flow",
    "instant",
    "json_text",
    "plain",
    "plural",
    "rate",
    "short_names",
    "size",
    "width",
    "wrapped",
]


class Part(NamedTuple):
    """A piece of a line; `style` says what it is (`error`, `quiet`, …), not how it looks."""

    text: str
    style: str = ""


Line = tuple[Part, ...]

# Controls (ESC among them), line separators, characters that turn, hide or join their neighbours,
# and lone surrogates: what a terminal would obey rather than show.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)
_NUMBER_AND_UNIT: Final = re.compile(r"(\d) (?=(?:ns|µs|ms|s|min|h|d)\b|%)")
_SHORT_ESCAPES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def clean(text: str) -> str:
    r"""Make text inert: every character a terminal would obey becomes its escape, ESC `\x1b`."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json_text(
    value: Any,  # Any: whatever a query answers with
    *,
    indent: int | None = None,
) -> str:
    """Write JSON that is exact as data and inert on a terminal.

    What JSON has no word for is text: bytes as base64, `"NaN"` and `"Infinity"` as on our lines.
    """
    encoder = _encoder(indent)
    try:
        text = encoder.encode(value)
    except (ValueError, TypeError):  # a float that is not finite, a key that is no text; rare
        text = encoder.encode(_json_ready(value))
    # What json leaves raw stands inside strings, where \u escapes mean the same; a line feed is
    # layout.
    return _UNSAFE.sub(lambda match: match[0] if match[0] == "\n" else _json_escaped(match), text)


@lru_cache(maxsize=2)
def _encoder(indent: int | None) -> json.JSONEncoder:
    return json.JSONEncoder(
        ensure_ascii=False,
        allow_nan=False,
        indent=indent,
        separators=(",", ": ") if indent is not None else (",", ":"),
        default=_json_default,
    )


def _json_default(value: object) -> str:
    return b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _json_ready(value: Any) -> Any:  # Any: JSON of any shape
    if isinstance(value, float) and not math.isfinite(value):
        return str(value).replace("inf", "Infinity").replace("nan", "NaN")
    if isinstance(value, dict):
        return {str(key): _json_ready(item) for key, item in value.items()}
    return [_json_ready(item) for item in value] if isinstance(value, (list, tuple)) else value


def _json_escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def plain(lines: Iterable[Line]) -> str:
    """Join lines without their styles; each ends in one line feed, none in spaces."""
    return "".join("".join(part.text for part in line).rstrip() + "\n" for line in lines)


def flow(chunks: Iterable[Line], columns: int, indent: str = "") -> Iterator[Line]:
    """Set pieces of a line side by side, three columns apart, in as many lines as they need."""
    line: list[Part] = []
    used = 0
    for chunk in chunks:
        needed = sum(width(part.text) for part in chunk)
        if line and used + 3 + needed > columns:
            yield tuple(line)
            line = []
        if line:
            line.append(Part("   "))
            used += 3
        else:
            line.append(Part(indent))
            used = len(indent)
        line += chunk
        used += needed
    if line:
        yield tuple(line)


def wrapped(words: str, columns: int) -> list[str]:
    """Clean words and break them into lines of so many columns; a number keeps its unit."""
    words = _NUMBER_AND_UNIT.sub("\\1\xa0", clean(words))
    lines = textwrap.wrap(words, columns, break_on_hyphens=False, break_long_words=False)
    return [line.replace("\xa0", " ") for line in lines]


def width(text: str) -> int:
    """Count the terminal columns of cleaned text: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def fit(text: str, columns: int, *, right: bool = False, keep_end: bool = False) -> str:
    """Clean, pad or cut text to exactly `columns`; `…` stands for what is cut, at the end.

    `right` sets it at the right; `keep_end` cuts the beginning instead.
    """
    text = clean(text)
    if width(text) > columns:
        text = _cut(text[::-1], columns)[::-1] if keep_end else _cut(text, columns)
    missing = " " * (columns - width(text))
    return missing + text if right else text + missing


def _cut(text: str, columns: int) -> str:
    if columns <= 0:
        return ""
    kept, left = [], columns - 1
    for character in text:
        left -= _columns(character)
        if left < 0:
            break
        kept.append(character)
    return "".join(kept) + "…"


def count(number: int) -> str:
    """Write a whole number with thousands separators."""
    return f"{number:,}"


def plural(number: int, singular: str, several: str | None = None) -> str:
    """Write a count and its noun: `1 span`, `1,204 spans`."""
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"


def rate(per_second: float) -> str:
    """Write how often something comes with three digits: `7.50/s`, `1,204/s`."""
    digits = _three_digits(per_second) if per_second < 999.5 else f"{per_second:,.0f}"
    return f"{digits}/s"


def size(number: int) -> str:
    """Write bytes with three digits and a decimal unit: `820 B`, `1.24 MB`."""
    if number < 1_000:
        return f"{number} B"
    power = min((len(str(number)) - 1) // 3, len(_BYTE_UNITS) - 1)
    return f"{_three_digits(number / 1_000**power)} {_BYTE_UNITS[power]}"


def short_names(names: Iterable[str | None]) -> dict[str | None, str]:
    """Take off what all names start with, up to a slash: `nemo-gym/` says nothing in a column."""
    distinct = list(dict.fromkeys(names))
    known = [name for name in distinct if name]
    first, last = min(known, default=""), max(known, default="")
    pairs = enumerate(zip(first, last, strict=False))
    same = next((index for index, (one, other) in pairs if one != other), 0)
    shared = first[: first.rfind("/", 0, same) + 1]
    return {name: clean((name or "").removeprefix(shared) or name or "-") for name in distinct}


_BYTE_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_NS_PER_SECOND: Final = 1_000_000_000
_DECIMAL_UNITS: Final = ((1_000, "µs"), (1_000_000, "ms"), (_NS_PER_SECOND, "s"))
_SECONDS_PER_UNIT: Final = ((86_400, 3_600, "d", "h"), (3_600, 60, "h", "min"), (60, 1, "min", "s"))


def duration(length_ns: int) -> str:
    """Write nanoseconds with three digits and a fitting unit: `850 ns`, `1.24 s`, `2 min 3 s`."""
    if length_ns < 0:
        return "-" + duration(-length_ns)
    if length_ns < 1_000:
        return f"{length_ns} ns"
    for size, unit in _DECIMAL_UNITS:
        digits = _three_digits(length_ns / size)
        if float(digits) < (60 if unit == "s" else 1_000):
            return f"{digits} {unit}"
    seconds = round(length_ns / _NS_PER_SECOND)
    for whole, part, whole_unit, part_unit in _SECONDS_PER_UNIT:
        if seconds >= whole:
            rest = seconds % whole // part
            return f"{seconds // whole:,} {whole_unit}" + (f" {rest} {part_unit}" if rest else "")
    raise AssertionError(length_ns)


def _three_digits(value: float) -> str:
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def instant(time_unix_nano: int) -> str:
    """Write ns since 1970 as ISO 8601 in UTC, cut to milliseconds."""
    seconds, rest = divmod(time_unix_nano, _NS_PER_SECOND)
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # beyond year 1 to 9999
        return f"{time_unix_nano} ns since 1970"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest // 1_000_000:03d}Z"
