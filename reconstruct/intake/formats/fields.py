"""What formats have in common: a record, checked ids and numbers, the columns of its owner."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from gymlog import semconv
from gymlog.record import SPAN_KINDS, STATUS_CODES
from reconstruct.intake import tables
from reconstruct.intake.json_text import Json, encode
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.owners import Owner
from reconstruct.intake.tables import Row
from reconstruct.intake.times import to_unix_nano

__all__ = [
    "ZERO_SPAN",
    "ZERO_TRACE",
    "InvalidRecordError",
    "Record",
    "boolean",
    "float64",
    "int64",
    "items",
    "json_list",
    "json_object",
    "json_value",
    "kind",
    "listed",
    "main_class",
    "members",
    "microseconds",
    "owner",
    "parent_span_id",
    "required_text",
    "required_time",
    "rollout_id",
    "shown",
    "span_id",
    "status_code",
    "text",
    "time",
    "trace_id",
]

_NAMED_PROBLEMS: Final = 3
_HEX: Final = re.compile(r"[0-9a-f]+")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_INT64_MAX: Final = 2**63 - 1
_KINDS: Final = {name: name for name in SPAN_KINDS} | {
    f"SpanKind.{name}": name for name in SPAN_KINDS
}
ZERO_TRACE: Final = "0" * 32
ZERO_SPAN: Final = "0" * 16


class InvalidRecordError(ValueError):
    """A required field is missing or wrong; the message names it."""


class Record(NamedTuple):
    """What was recognised in one value: its line's class and its rows, without the place columns.

    `problems` names each part of the value that could not be read; the line is no clean one then.
    """

    line_class: LineClass
    rows: tuple[tuple[str, Row], ...]
    problems: tuple[str, ...] = ()

    @property
    def record_count(self) -> int:
        """How many records it holds; a note beside a span is none."""
        return sum(table != tables.SHARED_SPAN_LINES for table, _ in self.rows)

    @property
    def what_is_missing(self) -> str:
        """The problems in one sentence."""
        count = self.record_count
        return f"{count} record{'s' if count != 1 else ''} read; not read: {listed(self.problems)}"


def listed(problems: Sequence[str]) -> str:
    """Name the first problems, and how many more there are."""
    more = len(problems) - _NAMED_PROBLEMS
    named = "; ".join(problems[:_NAMED_PROBLEMS])
    return f"{named}; and {more} more" if more > 0 else named


def main_class(records: Counter[LineClass]) -> LineClass:
    """Return what a line has most of; where that is several, the first of `LineClass`: spans."""
    if len(records) == 1:
        return next(iter(records))
    return max((each for each in LineClass if each in records), key=records.__getitem__)


def trace_id(value: Json) -> str:
    """Return 32 lower-case hex digits; shorter 64-bit ids are filled up with zeros."""
    text = _hex(value)
    if len(text) == 16:
        text = ZERO_SPAN + text
    if len(text) != 32 or text == ZERO_TRACE:
        raise InvalidRecordError(f"trace_id is not 32 hex digits: {shown(value)}")
    return text


def span_id(value: Json, field: str = "span_id") -> str:
    """Return 16 lower-case hex digits."""
    text = _hex(value)
    if len(text) != 16 or text == ZERO_SPAN:
        raise InvalidRecordError(f"{field} is not 16 hex digits: {shown(value)}")
    return text


def parent_span_id(value: Json) -> str | None:
    """Return the parent's id; None, empty and all zeros are a root."""
    if value is None or value == "" or _hex(value) == ZERO_SPAN:
        return None
    return span_id(value, "parent_span_id")


def _hex(value: Json) -> str:
    """Lower-case hex digits of `value`, a leading 0x left out; empty when it is none."""
    if not isinstance(value, str):
        return ""
    if _HEX.fullmatch(value) is not None:
        return value
    text = value.lower().removeprefix("0x")
    return text if _HEX.fullmatch(text) is not None else ""


def shown(value: Json) -> str:
    """Write a value for a sentence, cut where it is long."""
    text = encode(value)
    return text if len(text) <= 60 else text[:59] + "…"


def required_text(value: Json, field: str) -> str:
    """Return `value`, which must be text."""
    if not isinstance(value, str):
        raise InvalidRecordError(f"{field} is missing or not text: {shown(value)}")
    return value


def required_time(value: int | None, field: str) -> int:
    """Return ns since 1970; None means that the field could not be read."""
    if value is None:
        raise InvalidRecordError(f"{field} is missing or not a time")
    return value


def time(value: Json, field: str) -> int:
    """Return ns since 1970 of ISO text or an epoch number, see `intake.times`."""
    nano = to_unix_nano(value)
    if nano is None:
        raise InvalidRecordError(
            f"{field} is missing"
            if value is None
            else f"{field} is neither ISO text nor an epoch number of s, ms, µs or ns between 1990 "
            f"and 2100: {shown(value)}"
        )
    return nano


def microseconds(value: Json, field: str) -> int:
    """Return ns of a whole number of µs, which must not be negative."""
    number = int64(value)
    if number is None or not 0 <= number <= _INT64_MAX // 1000:
        raise InvalidRecordError(f"{field} is missing or not µs: {shown(value)}")
    return number * 1000


def text(value: Json) -> str | None:
    """Return text as it is, other values as JSON."""
    return value if value is None or isinstance(value, str) else encode(value)


def int64(value: Json) -> int | None:
    """Return an integer that fits in 64 bits, also from text; None for anything else."""
    if value is None or (type(value) is int and -_INT64_MAX <= value <= _INT64_MAX):
        return value
    if isinstance(value, str) and _INTEGER.fullmatch(value) is not None:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_INT64_MAX - 1 <= value <= _INT64_MAX else None


def float64(value: Json) -> float | None:
    """Return a number as float, also from the text NaN and Infinity; None for anything else."""
    if isinstance(value, str):
        return float(value) if value in ("NaN", "Infinity", "-Infinity") else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def boolean(value: Json) -> bool | None:
    """Return true and false as they are; None for anything else."""
    return value if isinstance(value, bool) else None


def json_value(value: Json) -> str:
    """Write any value as JSON."""
    return encode(value)


def json_object(value: Json) -> str:
    """Write an object as JSON; anything else is an empty one."""
    return encode(value) if value and isinstance(value, dict) else "{}"


def json_list(value: Json) -> str | None:
    """Write a list as JSON; None when there is nothing in it."""
    return encode(value) if value and isinstance(value, list) else None


def members(value: Json) -> dict[str, Json]:
    """Return an object as it is; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Json) -> list[Json]:
    """Return a list as it is; anything else is an empty one."""
    return value if isinstance(value, list) else []


def kind(value: Json) -> str:
    """Return one of OpenTelemetry's span kinds; an unknown one is INTERNAL, as OTLP says."""
    return _KINDS.get(value, "INTERNAL") if isinstance(value, str) else "INTERNAL"


def status_code(value: Json) -> str:
    """Return UNSET, OK or ERROR."""
    return value if isinstance(value, str) and value in STATUS_CODES else "UNSET"


def rollout_id(attributes: dict[str, Json]) -> str | None:
    """Return the rollout that a record's attributes name."""
    return text(attributes.get(semconv.ROLLOUT_ID))


def owner(resource: dict[str, Json], server_hint: str | None, *, by_pid: bool) -> Owner:
    """Return a record's owner.

    `by_pid`: the writer gives several processes the same service.instance.id, so that the pid
    belongs to the instance's identity.
    """
    attributes = members(resource.get("attributes"))
    service = text(attributes.get(semconv.SERVICE_NAME))
    instance_id = text(attributes.get(semconv.SERVICE_INSTANCE_ID))
    pid = int64(attributes.get(semconv.PROCESS_PID))
    instance = f"{service or server_hint or ''}#{instance_id or ''}"
    if by_pid and pid is not None:
        instance = f"{instance}#{pid}"
    return Owner(
        json_object(resource),
        instance,
        service or server_hint,
        instance_id,
        text(attributes.get(semconv.SERVER_NAME)) or server_hint,
        text(attributes.get(semconv.SERVER_TYPE)),
        text(attributes.get(semconv.RUN_ID)),
        text(attributes.get(semconv.HOST_NAME)),
        pid,
        text(attributes.get(semconv.BOOT_ID)),
    )
