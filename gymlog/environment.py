"""Reading settings from the environment: which variable counts, and what a bad value does.

`NEMO_GYM_OTEL_X` counts before `NEMO_LENS_X`; a blank value counts as unset. A bad value is one
warning on stderr that names the variable, the value and what is accepted, and is then ignored.
Standard library only: a process with telemetry off reads one switch here and loads nothing more.
"""

import math
import os
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from gymlog.notices import notice

__all__ = [
    "GYM_PREFIX",
    "LENS_PREFIX",
    "NotAcceptedError",
    "as_bool",
    "as_choice",
    "as_choices",
    "as_count",
    "as_number",
    "as_specified_bool",
    "as_text",
    "is_telemetry_env_enabled",
    "is_telemetry_metrics_enabled",
    "read",
    "read_setting",
    "variables_of",
]

T = TypeVar("T")

GYM_PREFIX: Final = "NEMO_GYM_OTEL_"
LENS_PREFIX: Final = "NEMO_LENS_"

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class NotAcceptedError(ValueError):
    """A value that a variable does not take; the text says what it takes."""


def read(
    name: str, parse: Callable[[str], T], environ: Mapping[str, str] | None = None
) -> T | None:
    """Return the parsed value of one variable, None when unset, blank or not accepted."""
    text = (os.environ if environ is None else environ).get(name, "").strip()
    if not text:
        return None
    try:
        return parse(text)
    except NotAcceptedError as error:
        notice(name, f"{name}={text!r} is not accepted and ignored; accepted: {error}")
        return None


def read_setting(
    suffix: str, parse: Callable[[str], T], environ: Mapping[str, str] | None = None
) -> T | None:
    """Return `NEMO_GYM_OTEL_{suffix}`, else `NEMO_LENS_{suffix}`, else None."""
    for name in variables_of(suffix):
        value = read(name, parse, environ)
        if value is not None:
            return value
    return None


def variables_of(suffix: str) -> tuple[str, str]:
    """Return the variables of a telemetry setting, the one that counts first."""
    return GYM_PREFIX + suffix, LENS_PREFIX + suffix


def as_text(text: str) -> str:
    """Accept anything."""
    return text


def as_bool(text: str) -> bool:
    """Accept 1, true, yes, on, 0, false, no, off in any case."""
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise NotAcceptedError("1, true, yes, on, 0, false, no, off")
    return word in _TRUE


def as_specified_bool(text: str) -> bool:
    """Accept true and false in any case: what OpenTelemetry's own variables take, and no more."""
    word = text.lower()
    if word not in ("true", "false"):
        raise NotAcceptedError("true, false")
    return word == "true"


def as_count(text: str) -> int:
    """Accept whole numbers, 0 or more, of at most 18 digits."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise NotAcceptedError("a whole number, 0 or more")
    return int(text)


def as_number(least: float = -math.inf, *, above: float | None = None) -> Callable[[str], float]:
    """Return a parser of finite numbers, at least `least`, greater than `above`."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or number < least or (above is not None and number <= above):
            bound = f" above {above:g}" if above is not None else ""
            bound = bound or ("" if least == -math.inf else f", {least:g} or more")
            raise NotAcceptedError(f"a number{bound}")
        return number

    return parse


def as_choice(*choices: str) -> Callable[[str], str]:
    """Return a parser of one of `choices` in any case."""

    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise NotAcceptedError(", ".join(choices))
        return text.lower()

    return parse


def as_choices(*choices: str) -> Callable[[str], str]:
    """Return a parser of comma lists of `choices` in any case, given back in their order."""

    def parse(text: str) -> str:
        words = {word.strip().lower() for word in text.split(",")} - {""}
        if not words or not words <= set(choices):
            several = ", or several with commas" if len(choices) > 1 else ""
            raise NotAcceptedError(f"{', '.join(choices)}{several}")
        return ",".join(choice for choice in choices if choice in words)

    return parse


def is_telemetry_env_enabled() -> bool:
    """Say whether the environment switches telemetry on; loads nothing."""
    return read_setting("ENABLED", as_bool) is True


def is_telemetry_metrics_enabled() -> bool:
    """Say whether metrics are on by the environment (default: yes)."""
    return read_setting("METRICS_ENABLED", as_bool) is not False
