"""The rollout id in a JSON body, found while the application reads it and without holding it up."""

import json
from collections.abc import Mapping
from typing import Any, Final

from gymlog import rollout
from gymlog.errors import InvalidRolloutIdError
from gymlog.notices import notice
from gymlog.semconv import ROLLOUT_ID
from gymlog.spans import Span

__all__ = ["BODY_MAX_BYTES", "BodyWatch"]

BODY_MAX_BYTES: Final = 1 << 20
"""A larger body is not searched."""

_KEY_START: Final = b'"_ng_'


class BodyWatch:
    """Sees each `http.request` message of one request; the bodies stay the application's.

    A body without the text `"_ng_` costs that search; one with it is parsed once, when it is
    complete. The id becomes the current rollout in the context that reads the body, and an
    attribute of `span`.
    """

    __slots__ = ("_chunks", "_size", "_span")

    def __init__(self, span: Span | None) -> None:
        self._span = span
        self._chunks: list[bytes] | None = []
        self._size = 0

    def see(self, message: Mapping[str, Any]) -> None:  # Any: an ASGI message
        """Take one message on its way to the application; never raises."""
        chunks = self._chunks
        if chunks is None or message["type"] != "http.request":
            return
        chunk = message.get("body", b"")
        self._size += len(chunk)
        if self._size > BODY_MAX_BYTES:
            self._chunks = None
            return
        chunks.append(chunk)
        if message.get("more_body", False):
            return
        self._chunks = None
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if _KEY_START in body:
            self._found(_rollout_id(body))

    def _found(self, rollout_id: str | None) -> None:
        if rollout_id is None:
            return
        rollout.set_rollout_id(rollout_id)
        if self._span is not None:
            self._span.set_attribute(ROLLOUT_ID, rollout_id)


def _rollout_id(body: bytes) -> str | None:
    try:
        document = json.loads(body)
        return rollout.rollout_id_from_body(document) if isinstance(document, dict) else None
    except InvalidRolloutIdError as error:
        notice("rollout id in a body", f"a request body is traced without its rollout: {error}")
    except (ValueError, RecursionError):
        pass  # no JSON after all: the application says so to its caller
    return None
