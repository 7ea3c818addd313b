"""One aiohttp session per event loop, and its response that tells when it is over.

A session is made at the first request of a loop and closed with the loop: `asyncio.run` and
uvicorn end a loop's async generators before they close it, and one of these closes the session.
Sessions of loops that were never ended are closed when the program exits.
"""

import asyncio
import atexit
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, ClassVar, Final, NamedTuple

import aiohttp

from gymlog.connection_pool import make_connector
from gymlog.observers import watch_event_loop

__all__ = ["Request", "Response", "close_sessions", "current_session"]

_INTERRUPTIONS: Final = (
    asyncio.CancelledError,
    GeneratorExit,
    KeyboardInterrupt,
    SystemExit,
    TimeoutError,
)


class _Held(NamedTuple):
    """A session and what closes it."""

    session: aiohttp.ClientSession
    closing: AsyncGenerator[None, None]


_held: dict[asyncio.AbstractEventLoop, _Held] = {}


async def current_session() -> aiohttp.ClientSession:
    """Return the running loop's session; no cookies are kept, rollouts must not share any."""
    loop = asyncio.get_running_loop()
    held = _held.get(loop)
    if held is not None and not held.session.closed:
        return held.session
    _forget_closed_loops()
    watch_event_loop()
    session = aiohttp.ClientSession(
        connector=make_connector(),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),  # a model may take its time
        request_class=Request,
        response_class=Response,
    )
    held = _held[loop] = _Held(session, _closing(session))
    await anext(held.closing)
    return session


async def close_sessions() -> None:
    """Close the session of the running event loop; a later request opens another one.

    `asyncio.run` and uvicorn do so by themselves when they end.
    """
    _forget_closed_loops()
    held = _held.get(asyncio.get_running_loop())
    if held is not None:
        await held.closing.aclose()


class Request(aiohttp.ClientRequest):
    """aiohttp's request, which tells when it is about to go out: each try, each redirect's hop.

    Its headers are its own: aiohttp makes each hop's anew from the caller's. A middleware would do
    as well, at the cost of two coroutines a request. A caller's middleware may send one again.
    """

    _is_sent = False

    when_made: "ClassVar[Callable[[Request], None] | None]" = None
    """Set by `client_span`, which needs OpenTelemetry, once telemetry is on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: aiohttp's own arguments
        super().__init__(*args, **kwargs)
        if Request.when_made is not None:
            Request.when_made(self)

    def send(self, conn: Any) -> Coroutine[Any, Any, aiohttp.ClientResponse]:  # Any: aiohttp's
        """Send it, once more if it was sent before."""
        if self._is_sent and Request.when_made is not None:
            Request.when_made(self)
        self._is_sent = True
        return super().send(conn)


class Response(aiohttp.ClientResponse):
    """aiohttp's response, which tells when its body has arrived or nobody waits for it any more."""

    _when_over: Callable[[BaseException | None], None] | None = None
    _handled_before: int = 0

    def when_over(self, callback: Callable[[BaseException | None], None]) -> None:
        """Call back once: when the body is complete, or when it is released, closed or collected.

        The callback gets what broke the transfer off, or None; leaving early breaks nothing.
        """
        self._when_over = callback
        self._handled_before = id(sys.exception())
        self.content.on_eof(self._over)

    def close(self) -> None:
        """Close the connection."""
        self._left()
        super().close()

    def release(self) -> Any:  # Any: as aiohttp has it
        """Give the connection back."""
        self._left()
        return super().release()

    def __del__(self) -> None:  # type: ignore[override]  # aiohttp's argument is for itself
        if self._when_over is not None:
            self._over(self.content.exception())
        super().__del__()

    def _left(self) -> None:
        """Look for what made the caller leave: an interruption on its way through the caller."""
        if self._when_over is None:
            return
        failure = self.content.exception()
        leaving = sys.exception()
        if (
            failure is None
            and id(leaving) != self._handled_before
            and isinstance(leaving, _INTERRUPTIONS)
        ):
            failure = leaving
        self._over(failure)

    def _over(self, failure: BaseException | None = None) -> None:
        callback, self._when_over = self._when_over, None
        if callback is not None:
            callback(failure)


async def _closing(session: aiohttp.ClientSession) -> AsyncGenerator[None, None]:
    """Close the session when the loop ends: it then closes its async generators."""
    try:
        yield
    finally:
        loop = asyncio.get_running_loop()
        held = _held.get(loop)
        if held is not None and held.session is session:
            del _held[loop]
        await session.close()


def _forget_closed_loops() -> None:
    """Close the sessions of loops that were closed without ending their generators."""
    for loop, held in list(_held.items()):
        if loop.is_closed():
            del _held[loop]
            closing = held.session.close()
            try:
                closing.send(None)  # with its loop closed nothing is left to wait for
            except StopIteration:
                continue
            closing.close()


@atexit.register
def _close_at_exit() -> None:
    for loop, held in list(_held.items()):
        if not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(held.closing.aclose())
