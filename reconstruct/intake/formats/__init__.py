"""Which JSON objects are records, and of what.

Each module recognises one writer's objects and turns them into rows of `intake.tables`; a new
format is a new module and one entry in `_FORMATS`. Order matters only where two could claim the
same object: the more particular one comes first.
"""

from collections.abc import Callable
from typing import Final

from reconstruct.intake.formats import gymlog, otel_python, plain
from reconstruct.intake.formats.fields import InvalidRecordError, Record
from reconstruct.intake.json_text import Json

__all__ = ["InvalidRecordError", "Record", "recognise"]

_FORMATS: Final[tuple[Callable[[dict[str, Json], str | None], Record | None], ...]] = (
    gymlog.recognise,
    otel_python.recognise,
    plain.recognise,
)


def recognise(value: dict[str, Json], server_hint: str | None) -> Record | None:
    """Turn `value` into a record, or return None when no format knows it.

    `server_hint` is the name that stood before the object on its line. Raises
    `InvalidRecordError` when a format claims the object, yet a required field is missing or wrong.
    """
    for recognise_format in _FORMATS:
        record = recognise_format(value, server_hint)
        if record is not None:
            return record
    return None
