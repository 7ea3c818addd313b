"""The CLIENT span lasts until the body has arrived, or until nobody waits for it any more."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from gymlog.client import request
from gymlog.testing import Captured


@pytest.fixture
def run_streaming(
    telemetry: Captured, serving: Any, streaming_handler: Any
) -> Callable[[Callable[[aiohttp.ClientResponse, Any], Awaitable[None]]], dict[str, Any]]:
    """Let a function use a response whose body is still to come; gives its span."""

    def run(
        use: Callable[[aiohttp.ClientResponse, Any], Awaitable[None]],
    ) -> dict[str, Any]:
        async def main() -> None:
            streaming = streaming_handler()
            async with serving(streaming) as url:
                response = await request("GET", url)
                assert telemetry.spans == []
                await use(response, streaming)
                del response
                gc.collect()
                assert len(telemetry.spans) == 1

        asyncio.run(main())
        return telemetry.span("HTTP GET")

    return run


def test_ends_with_the_body(telemetry: Captured, run_streaming) -> None:
    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        assert await response.content.readany() == b"first "
        assert telemetry.spans == []
        streaming.goes_on.set()
        assert await response.read() == b"last"
        assert len(telemetry.spans) == 1

    assert run_streaming(use)["status"] == {"code": "UNSET"}


def test_ends_without_anybody_reading(telemetry: Captured, run_streaming) -> None:
    """What ends the span is the arrival of the body, not its being read."""

    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        arrived = asyncio.Event()
        response.content.on_eof(arrived.set)
        streaming.goes_on.set()
        await arrived.wait()
        assert len(telemetry.spans) == 1
        response.release()

    assert run_streaming(use)["status"] == {"code": "UNSET"}


@pytest.mark.parametrize("way", ["release", "close"])
def test_leaving_early_is_no_error(telemetry: Captured, way: str, run_streaming) -> None:
    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        getattr(response, way)()
        assert len(telemetry.spans) == 1

    span = run_streaming(use)
    assert span["status"] == {"code": "UNSET"}
    assert "error.type" not in span["attributes"]


def test_context_manager_ends_it(telemetry: Captured, run_streaming) -> None:
    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        async with response:
            assert telemetry.spans == []
        assert len(telemetry.spans) == 1

    assert run_streaming(use)["status"] == {"code": "UNSET"}


def test_dropped_response_ends_with_its_body(
    telemetry: Captured, serving, streaming_handler
) -> None:
    """Nobody holds it any more, yet aiohttp goes on to receive it."""

    async def run() -> None:
        streaming = streaming_handler()
        async with serving(streaming) as url:
            response = await request("GET", url)
            arrived = asyncio.Event()
            response.content.on_eof(arrived.set)
            del response
            gc.collect()
            assert telemetry.spans == []
            streaming.goes_on.set()
            await arrived.wait()
            assert len(telemetry.spans) == 1

    asyncio.run(run())


def test_dropped_response_whose_connection_breaks(
    telemetry: Captured, serving, streaming_handler
) -> None:
    async def run() -> None:
        async with serving(streaming_handler()) as url:
            response = await request("GET", url)
            assert response.connection is not None
            assert response.connection.transport is not None
            response.connection.transport.abort()
            del response
            for _ in range(100):
                await asyncio.sleep(0)
            gc.collect()

    asyncio.run(run())
    attributes = telemetry.span("HTTP GET")["attributes"]
    assert attributes["error.type"] in ("ClientPayloadError", "ClientConnectionError")


def test_caller_that_fails_is_no_failure_of_the_request(telemetry: Captured, run_streaming) -> None:
    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        with pytest.raises(KeyError):
            async with response:
                raise KeyError

    assert "error.type" not in run_streaming(use)["attributes"]


def test_exception_handled_before_is_not_taken_for_a_failure(
    telemetry: Captured, serving, streaming_handler
) -> None:
    """A request made while an earlier timeout is dealt with, and left early, went well."""

    async def run() -> None:
        async with serving(streaming_handler()) as url:
            try:
                raise TimeoutError
            except TimeoutError:
                (await request("GET", url)).release()

    asyncio.run(run())
    assert telemetry.span("HTTP GET")["status"] == {"code": "UNSET"}


def test_reading_cancelled(telemetry: Captured, run_streaming) -> None:
    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        await response.content.readany()
        reading = asyncio.create_task(response.read())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    span = run_streaming(use)
    assert span["status"]["code"] == "ERROR"
    assert span["attributes"]["error.type"] == "CancelledError"
    assert span["attributes"]["gymlog.cancelled"] is True


def test_streaming_cancelled(telemetry: Captured, run_streaming) -> None:
    """Chunks are read one by one, and the reader's task is cancelled between two."""

    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        async def stream() -> None:
            async with response:
                async for _ in response.content.iter_any():
                    pass

        reading = asyncio.create_task(stream())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    assert run_streaming(use)["attributes"]["gymlog.cancelled"] is True


def test_generator_closed_early(telemetry: Captured, run_streaming) -> None:
    async def use(response: aiohttp.ClientResponse, streaming: Any) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            async with response:
                async for chunk in response.content.iter_any():
                    yield chunk

        relay = chunks()
        assert await anext(relay) == b"first "
        await relay.aclose()

    span = run_streaming(use)
    assert span["attributes"]["error.type"] == "GeneratorExit"
    assert span["status"] == {"code": "UNSET"}


def test_body_that_times_out(telemetry: Captured, serving, streaming_handler) -> None:
    async def run() -> None:
        async with serving(streaming_handler()) as url:
            timeout = aiohttp.ClientTimeout(total=0.2)
            response = await request("GET", url, timeout=timeout)
            with pytest.raises(TimeoutError):
                await response.read()

    asyncio.run(run())
    span = telemetry.span("HTTP GET")
    assert span["status"]["code"] == "ERROR"
    assert span["attributes"]["error.type"] == "TimeoutError"
    assert span["attributes"]["http.response.status_code"] == 200


def test_body_that_breaks_off(telemetry: Captured, raw_serving) -> None:
    async def run() -> None:
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this"
        async with raw_serving([cut]) as url:
            response = await request("GET", url)
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()

    asyncio.run(run())
    span = telemetry.span("HTTP GET")
    assert span["status"]["code"] == "ERROR"
    assert span["attributes"]["error.type"] == "ClientPayloadError"
