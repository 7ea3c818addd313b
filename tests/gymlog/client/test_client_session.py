"""Sessions: one per event loop, none left open, nothing shared that must not be."""

import asyncio
import gc
import subprocess
import sys

import aiohttp
import pytest
from aiohttp import web

from gymlog import client_session
from gymlog.client_session import close_sessions, current_session


class TestSessions:
    def test_one_per_loop_and_closed_with_it(self, get) -> None:
        """`asyncio.run` leaves nothing behind: warnings are errors here."""

        async def run() -> tuple[aiohttp.ClientSession, int]:
            ports = set()

            async def port(incoming: web.Request) -> web.StreamResponse:
                assert incoming.transport is not None
                ports.add(incoming.transport.get_extra_info("peername"))
                return web.Response()

            application = web.Application()
            application.router.add_get("/", port)
            runner = web.AppRunner(application)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
            for _ in range(3):
                await get(url)
            session = await current_session()
            await runner.cleanup()
            return session, len(ports)

        first, connections = asyncio.run(run())
        second, _ = asyncio.run(run())
        assert connections == 1
        assert first is not second
        assert first.closed
        assert second.closed
        assert client_session._held == {}

    def test_closed_session_is_replaced(self, raw_serving, get, ok_answer) -> None:
        async def run() -> bytes:
            async with raw_serving([ok_answer, ok_answer]) as url:
                await get(url)
                before = await current_session()
                await close_sessions()
                await close_sessions()
                assert before.closed
                return await get(url)

        assert asyncio.run(run()) == b"ok"

    def test_session_closed_by_somebody_else_is_replaced(self, raw_serving, get, ok_answer) -> None:
        async def run() -> aiohttp.ClientSession:
            await (await current_session()).close()
            after = await current_session()
            gc.collect()
            async with raw_serving([ok_answer]) as url:
                assert await get(url) == b"ok"
                assert await current_session() is after
            return after

        after = asyncio.run(run())
        assert after.closed
        assert client_session._held == {}

    @pytest.mark.parametrize(
        "ends", ["asyncio.run(main())", "new_event_loop().run_until_complete(main())"]
    )
    def test_nothing_is_said_at_exit(self, ends: str) -> None:
        """Also when a program leaves its loop open, the session is no matter of stderr."""
        program = f"""
import asyncio
from asyncio import new_event_loop
from gymlog.client_session import current_session
async def main():
    global session
    session = await current_session()
{ends}
"""
        run = subprocess.run(
            [sys.executable, "-X", "dev", "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert "client session" not in run.stderr

    def test_session_of_a_loop_that_was_just_closed_is_dropped(self) -> None:
        """A loop closed without ending its async generators: the next session clears up."""
        loop = asyncio.new_event_loop()
        session = loop.run_until_complete(current_session())
        loop.close()
        asyncio.run(close_sessions())
        assert session.closed
        assert client_session._held == {}

    def test_cookies_do_not_wander(self, serving, get) -> None:
        """A cookie that one rollout got is not sent with another one's request."""

        async def run() -> list[str | None]:
            seen = []

            async def cookie(incoming: web.Request) -> web.StreamResponse:
                seen.append(incoming.headers.get("Cookie"))
                response = web.Response()
                response.set_cookie("rollout", "1")
                return response

            async with serving(cookie) as url:
                await get(url)
                await get(url)
                await get(url, cookies={"mine": "2"})
            return seen

        assert asyncio.run(run()) == [None, None, "mine=2"]
