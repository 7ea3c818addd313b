"""Calls between servers: what comes back, and what a failure becomes."""

import asyncio
import json

import pytest
from aiohttp import web
from fastapi import HTTPException

from gymlog.fleet.calls import post


def call(handler, **options):
    """POST `{"n": 1}` to a server with that handler and return the answer."""

    async def run():
        app = web.Application()
        app.router.add_post("/", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            return await post(f"http://127.0.0.1:{runner.addresses[0][1]}/", {"n": 1}, **options)
        finally:
            await runner.cleanup()

    return asyncio.run(run())


def test_an_answer_in_one_piece_comes_back():
    """The JSON body, as it was sent."""

    async def handler(request):
        return web.json_response({"got": await request.json()})

    assert call(handler) == {"got": {"n": 1}}


def test_of_a_stream_the_last_event_comes_back():
    """Deltas pass by; the completed response counts."""

    async def handler(request):
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in ({"delta": "a"}, {"response": {"output": ["a"]}}):
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        return response

    assert call(handler) == {"output": ["a"]}


def test_an_error_status_becomes_502():
    """Whoever asked this server learns that it was the one behind it."""

    async def handler(_request):
        return web.json_response({}, status=500)

    with pytest.raises(HTTPException, match="answered 500") as caught:
        call(handler)
    assert caught.value.status_code == 502


def test_no_answer_in_time_becomes_504():
    """The wait is bounded."""

    async def handler(_request):
        await asyncio.Event().wait()

    with pytest.raises(HTTPException, match=r"no answer in 0\.1 s") as caught:
        call(handler, timeout_seconds=0.1)
    assert caught.value.status_code == 504
