"""A call from one server of the fleet to another, and what its failure means further up."""

import asyncio
import json
from typing import Any, Final, TypeAlias

import aiohttp
from fastapi import HTTPException

from gymlog import request

__all__ = ["JsonObject", "post", "read_answer"]

JsonObject: TypeAlias = dict[str, Any]  # Any: JSON as the other side sent it

_TIMEOUT_SECONDS: Final = 600.0
"""Long: under load, most of it is waiting for a turn."""
_CONNECTION_RETRIES: Final = 2
"""Half a second apart; a server of the fleet that was killed does not come back."""


async def post(
    url: str, body: JsonObject, *, timeout_seconds: float = _TIMEOUT_SECONDS
) -> JsonObject:
    """POST `body` and return the answer.

    Raises HTTPException 502 when the other server fails or is gone, 504 when it takes too long.
    """
    try:
        async with asyncio.timeout(timeout_seconds):
            response = await request(
                "POST", url, json=body, _internal=True, _max_connection_retries=_CONNECTION_RETRIES
            )
            async with response:
                return await read_answer(response)
    except TimeoutError:
        raise HTTPException(504, f"{url} gave no answer in {timeout_seconds:g} s") from None
    except aiohttp.ClientError as error:
        raise HTTPException(502, f"{url} cannot be reached: {type(error).__name__}") from error


async def read_answer(response: aiohttp.ClientResponse) -> JsonObject:
    """Return the body, or the `response` of a stream's last event; HTTPException 502 on errors."""
    if response.status >= 400:
        raise HTTPException(502, f"{response.url} answered {response.status}")
    if response.content_type != "text/event-stream":
        whole: JsonObject = await response.json()
        return whole
    last = b""
    async for line in response.content:
        if line.startswith(b"data: "):
            last = line.removeprefix(b"data: ")
    completed: JsonObject = json.loads(last)
    streamed: JsonObject = completed["response"]
    return streamed
