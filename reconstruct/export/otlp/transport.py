"""What a receiver answers to one try, over whichever protocol."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from reconstruct.export.otlp.forms import Form, JsonForm, ProtobufForm
from reconstruct.export.otlp.settings import Target
from reconstruct.export.otlp.signals import KINDS

__all__ = ["Answer", "Transport", "form_of", "shortened"]

_WORDS: Final = 300
"""Characters of an answer that are repeated."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a try ended, and the receiver's or the network's words for it.

    `taken`: all but `rejected` arrived. `refused`: not in this form; fewer records may pass.
    `busy`: the same may pass later. `unsupported`: no request of this signal will pass.
    `failed`: nothing will pass.
    """

    outcome: Literal["taken", "refused", "busy", "unsupported", "failed"]
    words: str = ""
    rejected: int = 0
    wait_seconds: float | None = None
    """How long the receiver asks to be left alone."""


class Transport(Protocol):
    """The way to a receiver for one signal."""

    def send(self, request: bytes, seconds: float) -> Answer:
        """Try once, for so many seconds."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


def form_of(target: Target) -> Form:
    """Return how requests to a target are written."""
    kind = KINDS[target.signal]
    return JsonForm(kind) if target.protocol == "http/json" else ProtobufForm(kind)


def shortened(text: str) -> str:
    """Put a receiver's words on one line that is not too long; what is cut is marked."""
    text = " ".join(text.split())
    return text if len(text) <= _WORDS else text[:_WORDS] + "…"
