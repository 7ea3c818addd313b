"""`request` without telemetry: bodies, retries, and what a program pays for none of it."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from multidict import CIMultiDict

from gymlog import client
from gymlog.client import request
from gymlog.propagation import extract
from gymlog.rollout import rollout_context
from gymlog.testing import Captured


@pytest.fixture
def send(serving: Any, echo_handler: Any) -> Callable[..., Any]:
    """POST to a server; gives its handler, which kept what arrived."""

    def send(**options: Any) -> Any:
        async def main() -> Any:
            echo = echo_handler()
            async with serving(echo) as url, await request("POST", url, **options):
                return echo

        return asyncio.run(main())

    return send


class TestTelemetryOff:
    def test_request_is_sent_and_nothing_added(self, serving, echo_handler, get) -> None:
        async def run() -> tuple[bytes, Any]:
            echo = echo_handler()
            async with serving(echo) as url:
                return await get(f"{url}/a"), echo

        body, echo = asyncio.run(run())
        assert body == b"ok"
        assert not {"traceparent", "tracestate", "baggage"} & set(echo.headers[0])

    def test_opentelemetry_is_not_imported(self, ok_answer) -> None:
        """Light import: a program without telemetry pays nothing for it."""
        program = """
import asyncio, sys
from gymlog.client import request
async def main():
    served = asyncio.Event()
    async def answer(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        writer.write(b"HTTP/1.1 200 ok_answer\\r\\nConnection: close\\r\\n\\r\\nok")
        writer.close()
        await writer.wait_closed()
        served.set()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with await request("GET", f"http://127.0.0.1:{port}/") as response:
            assert await response.text() == "ok"
        await served.wait()
asyncio.run(main())
loaded = [name for name in sys.modules if name.split(".")[0] in ("opentelemetry", "fastapi")]
assert not loaded, loaded
"""
        run = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, "")

    def test_retries_work_the_same(self, raw_serving, get, ok_answer) -> None:
        async def run() -> bytes:
            async with raw_serving([b"", ok_answer]) as url:
                return await get(url)

        assert asyncio.run(run()) == b"ok"


class TestBody:
    def test_json_is_encoded_compactly(self, send) -> None:
        echo = send(json={"b": [1, None, "é"], 1: True})
        assert echo.bodies == ['{"b":[1,null,"é"],"1":true}'.encode()]
        assert echo.headers[0]["Content-Type"] == "application/json"

    @pytest.mark.parametrize("value", [0, "", [], {}, False])
    def test_falsy_json_is_a_body(self, value: object, send) -> None:
        assert send(json=value).bodies[0] != b""

    def test_content_type_of_the_caller_stays(self, send) -> None:
        echo = send(json={}, headers={"content-type": "application/x-ndjson"})
        assert echo.headers[0].getall("Content-Type") == ["application/x-ndjson"]

    def test_json_and_data_are_refused_by_aiohttp(self, send) -> None:
        with pytest.raises(ValueError, match="data and json"):
            send(json={}, data=b"x")

    @pytest.mark.parametrize("make", [dict, CIMultiDict, lambda pairs: pairs])
    def test_headers_of_the_caller_are_not_changed(
        self, telemetry: Captured, make: Callable[[list[tuple[str, str]]], Any], received, send
    ) -> None:
        pairs = [("X-A", "1"), ("traceparent", "stale"), ("Baggage", "a=1")]
        headers = make(pairs)
        with rollout_context("12-0"):
            echo = send(json={}, headers=headers)
        assert headers == make([("X-A", "1"), ("traceparent", "stale"), ("Baggage", "a=1")])
        assert echo.headers[0]["X-A"] == "1"
        assert extract(received(echo.headers[0])) is not None
        assert echo.headers[0].getall("baggage") == ["nemo.gym.rollout.id=12-0,a=1"]


class TestRetries:
    def test_lost_connection_is_tried_again(
        self, telemetry: Captured, raw_serving, ok_answer
    ) -> None:
        """One span around the logical request; two tries failed before the answer came."""

        async def run() -> bytes:
            async with raw_serving([b"", b"", ok_answer]) as url:
                async with await request("POST", url, json={}) as response:
                    return await response.read()

        assert asyncio.run(run()) == b"ok"
        span = telemetry.span("HTTP POST")
        assert span["attributes"]["http.request.resend_count"] == 2
        assert span["status"] == {"code": "UNSET"}

    def test_connection_retries_are_bounded(self, telemetry: Captured, raw_serving) -> None:
        async def run() -> None:
            async with raw_serving([]) as url:
                pass  # nobody listens there any more
            await request("GET", url, _internal=True, _max_connection_retries=2)

        with pytest.raises(aiohttp.ClientConnectorError):
            asyncio.run(run())
        attributes = telemetry.span("HTTP GET")["attributes"]
        assert attributes["http.request.resend_count"] == 2
        assert attributes["error.type"] == "ClientConnectorError"

    @pytest.mark.parametrize(
        ("options", "tries"),
        [
            ({}, 3),
            ({"_max_num_tries": 2}, 2),
            ({"_max_num_tries": 1}, 1),
            ({"_internal": True, "_max_num_tries": 5}, 5),
        ],
    )
    def test_other_failures(
        self, telemetry: Captured, options: dict[str, Any], tries: int, serving
    ) -> None:
        """Three tries to the outside; to the inside as many as allowed."""

        async def run() -> None:
            async def hang(incoming: web.Request) -> web.StreamResponse:
                await asyncio.Event().wait()
                raise AssertionError

            async with serving(hang) as url:
                timeout = aiohttp.ClientTimeout(total=0.02)
                with pytest.raises(TimeoutError):
                    await request("GET", url, timeout=timeout, **options)

        asyncio.run(run())
        attributes = telemetry.span("HTTP GET")["attributes"]
        assert attributes.get("http.request.resend_count", 0) == tries - 1
        assert attributes["error.type"] == "TimeoutError"

    def test_max_num_tries_bounds_lost_connections_too(self, raw_serving) -> None:
        async def run() -> list[bytes]:
            answers = [b""] * 5
            async with raw_serving(answers) as url:
                with pytest.raises(aiohttp.ServerDisconnectedError):
                    await request("POST", url, _max_num_tries=3)
            return answers

        assert len(asyncio.run(run())) == 2

    @pytest.mark.parametrize("kind", ["stream", "form with a file"])
    def test_body_that_cannot_be_sent_twice_is_sent_once(
        self, kind: str, tmp_path: Any, raw_serving, ok_answer
    ) -> None:
        async def stream() -> AsyncIterator[bytes]:
            yield b"once"

        async def run() -> list[bytes]:
            (tmp_path / "f").write_bytes(b"once")
            with (tmp_path / "f").open("rb") as file:
                data: Any = stream() if kind == "stream" else {"f": file}
                answers = [b"", ok_answer]
                async with raw_serving(answers) as url:
                    with pytest.raises(aiohttp.ClientError):
                        await request("POST", url, data=data)
            return answers

        assert asyncio.run(run()) == [ok_answer]

    def test_form_of_text_is_sent_again(self, raw_serving, ok_answer) -> None:
        async def run() -> int:
            async with raw_serving([b"", ok_answer]) as url:
                async with await request("POST", url, data={"a": "1"}) as response:
                    return response.status

        assert asyncio.run(run()) == 200

    def test_cancelled_between_two_tries(
        self, telemetry: Captured, monkeypatch: pytest.MonkeyPatch, raw_serving
    ) -> None:
        monkeypatch.setattr(client, "RETRY_SECONDS", 60)
        said = asyncio.Event()
        monkeypatch.setattr(client, "notice", lambda subject, text: said.set())

        async def run() -> None:
            async with raw_serving([b""]) as url:
                call = asyncio.create_task(request("POST", url, json={}))
                await said.wait()
                call.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await call

        asyncio.run(run())
        attributes = telemetry.span("HTTP POST")["attributes"]
        assert attributes["gymlog.cancelled"] is True

    def test_retries_are_said_first_and_every_hundredth(
        self, capfd: pytest.CaptureFixture[str], raw_serving
    ) -> None:
        async def run() -> None:
            async with raw_serving([]) as url:
                pass
            target = url.replace("http://", "http://user:pass@") + "/v1?api_key=SECRET"
            with pytest.raises(aiohttp.ClientConnectorError):
                await request("GET", target, _max_connection_retries=199, _server_name="model")

        asyncio.run(run())
        lines = capfd.readouterr().err.splitlines()
        assert [line.partition(" retries")[0].rpartition("(")[2] for line in lines] == [
            "1",
            "100",
        ]
        assert all("GET http://127.0.0.1:" in line and "/v1 (model)" in line for line in lines)
        assert not any("SECRET" in line or "pass" in line for line in lines)
