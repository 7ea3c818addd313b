"""What a line is of which no single record was made, and why, in words."""

from typing import Final

from reconstruct.intake.formats import explain
from reconstruct.intake.ledger import LineClass
from reconstruct.intake.unwrap import Pieces

__all__ = ["NO_RECORD", "verdict"]

NO_RECORD: Final = "no record in it"
"""Why plain text is nothing else."""


def verdict(body: bytes, pieces: Pieces, found: int, problem: str | None) -> tuple[LineClass, str]:
    """Return the class of a line that is no single object, and the reason, from what is in it."""
    if found:
        if pieces.is_alone and not pieces.is_utf8:
            return LineClass.RECOVERED, "bytes that are not UTF-8 were read as U+FFFD"
        reason = f"{found} record{'s' if found > 1 else ''} found among other things"
        if pieces.has_damage or problem:
            reason += "; the rest is a piece of a record that is not whole"
        return LineClass.RECOVERED, reason
    if problem is not None:
        return LineClass.INVALID, problem
    explanation = explain(body)
    if explanation is not None:
        return LineClass.TEXT, explanation
    if pieces.has_damage:
        return LineClass.TORN, f"a record that is not whole: {pieces.reason}"
    if not pieces.is_utf8:
        return LineClass.BAD_ENCODING, "no record, and not UTF-8"
    return LineClass.TEXT, NO_RECORD
