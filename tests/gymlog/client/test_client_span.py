"""The CLIENT span over real sockets: what it says, and who gets its context."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from multidict import CIMultiDict
from opentelemetry import trace

from gymlog import destinations, http_detail
from gymlog.client import request
from gymlog.destinations import Destinations
from gymlog.propagation import extract, extract_rollout_id
from gymlog.rollout import rollout_context
from gymlog.testing import Captured, captured


@pytest.fixture
def call(serving: Any, echo_handler: Any, get: Any) -> Callable[..., CIMultiDict[str]]:
    """Send one request; gives the headers that arrived."""

    def call(host: str = "127.0.0.1", **options: Any) -> CIMultiDict[str]:
        async def main() -> CIMultiDict[str]:
            echo = echo_handler()
            async with serving(echo) as url:
                await get(url.replace("127.0.0.1", host), **options)
            return echo.headers[0]

        return asyncio.run(main())

    return call


class TestSpan:
    def test_says_what_was_asked_and_answered(
        self, telemetry: Captured, serving, echo_handler, get, received
    ) -> None:
        async def run() -> tuple[str, Any]:
            echo = echo_handler()
            async with serving(echo) as url:
                target = url.replace("http://", "http://user:pass@") + "/v1/é?api_key=SECRET#here"
                with telemetry.tracer.start_as_current_span("caller"), rollout_context("12-0"):
                    await get(target)
                return url, echo

        url, echo = asyncio.run(run())
        span, caller = telemetry.span("HTTP GET"), telemetry.span("caller")
        assert span["kind"] == "CLIENT"
        assert span["status"] == {"code": "UNSET"}
        assert span["parent_span_id"] == caller["span_id"]
        assert span["attributes"] == {
            "nemo.gym.rollout.id": "12-0",
            "http.request.method": "GET",
            "url.full": f"{url}/v1/%C3%A9",
            "http.response.status_code": 200,
        }
        remote = extract(received(echo.headers[0]))
        assert remote == (span["trace_id"], span["span_id"], 3, "")
        assert extract_rollout_id(received(echo.headers[0])) == "12-0"

    @pytest.mark.parametrize(("is_full", "is_internal"), [(True, True), (False, False)])
    def test_says_where_it_went_on_demand_and_outside_of_the_fleet(
        self, telemetry: Captured, call, monkeypatch, is_full, is_internal
    ) -> None:
        """Within the fleet `url.full` says it already."""
        monkeypatch.setattr(http_detail, "is_full", lambda: is_full)
        spec = "" if is_internal else "-*"
        monkeypatch.setattr(destinations, "from_environment", lambda: Destinations(spec))
        call()
        attributes = telemetry.span("HTTP GET")["attributes"]
        assert attributes["server.address"] == "127.0.0.1"
        assert f":{attributes['server.port']}/" in attributes["url.full"]

    @pytest.mark.parametrize("status", [400, 404, 500, 503])
    def test_error_answers_are_errors(
        self, telemetry: Captured, status: int, serving, echo_handler, get
    ) -> None:
        async def run() -> None:
            async with serving(echo_handler(status)) as url:
                await get(url)

        asyncio.run(run())
        span = telemetry.span("HTTP GET")
        assert span["status"] == {"code": "ERROR"}
        assert span["attributes"]["error.type"] == str(status)
        assert span["attributes"]["http.response.status_code"] == status
        assert "http.request.resend_count" not in span["attributes"]

    @pytest.mark.parametrize(
        ("method", "name", "attributes"),
        [
            ("post", "HTTP POST", ("POST", None)),
            ("BREW", "HTTP", ("_OTHER", "BREW")),
        ],
    )
    def test_name_has_few_values(
        self,
        telemetry: Captured,
        method: str,
        name: str,
        attributes: tuple[str, str | None],
        serving,
        echo_handler,
    ) -> None:
        async def run() -> None:
            async with serving(echo_handler()) as url:
                await request(method, url)

        asyncio.run(run())
        found = telemetry.span(name)["attributes"]
        assert found["http.request.method"] == attributes[0]
        assert found.get("http.request.method_original") == attributes[1]

    def test_is_current_only_while_request_runs(
        self, telemetry: Captured, serving, streaming_handler
    ) -> None:
        seen = []

        async def look(
            outgoing: aiohttp.ClientRequest,
            handler: Callable[[aiohttp.ClientRequest], Awaitable[aiohttp.ClientResponse]],
        ) -> aiohttp.ClientResponse:
            seen.append(trace.get_current_span())
            return await handler(outgoing)

        async def run() -> None:
            async with serving(streaming_handler()) as url:
                with telemetry.tracer.start_as_current_span("caller") as caller:
                    response = await request("GET", url, middlewares=[look])
                    assert trace.get_current_span() is caller
                    response.close()

        asyncio.run(run())
        assert [f"{span.get_span_context().span_id:016x}" for span in seen] == [
            telemetry.span("HTTP GET")["span_id"]
        ]

    def test_many_at_once_keep_their_parents(
        self, telemetry: Captured, serving, echo_handler, get, received
    ) -> None:
        """Interleaved tasks: each request is its own caller's child and carries its own rollout."""

        async def one(url: str, number: int) -> None:
            name = f"caller {number}"
            with rollout_context(f"{number}-0"), telemetry.tracer.start_as_current_span(name):
                await get(url)

        async def run() -> Any:
            echo = echo_handler()
            async with serving(echo) as url:
                await asyncio.gather(*(one(url, number) for number in range(100)))
            return echo

        echo = asyncio.run(run())
        spans = telemetry.spans
        calls = {span["span_id"]: span for span in spans if span["kind"] == "CLIENT"}
        callers = {span["span_id"]: span for span in spans if span["kind"] == "INTERNAL"}
        assert len(calls) == len(callers) == 100
        for headers in echo.headers:
            remote = extract(received(headers))
            assert remote is not None
            call = calls[remote.span_id]
            rollout_id = call["attributes"]["nemo.gym.rollout.id"]
            assert extract_rollout_id(received(headers)) == rollout_id
            assert callers[call["parent_span_id"]]["name"] == f"caller {rollout_id[:-2]}"

    def test_not_sampled_sends_its_context_and_writes_nothing(
        self, serving, echo_handler, get, received
    ) -> None:
        async def run() -> Any:
            echo = echo_handler()
            async with serving(echo) as url:
                await get(url)
            return echo

        with captured("http_client", sampler=lambda trace_id, parent_flags: False) as telemetry:
            echo = asyncio.run(run())
        assert telemetry.spans == []
        remote = extract(received(echo.headers[0]))
        assert remote is not None
        assert remote.flags == 2

    def test_trace_state_is_handed_on(
        self, telemetry: Captured, serving, echo_handler, get
    ) -> None:
        async def run() -> Any:
            echo = echo_handler()
            headers = [
                (b"traceparent", b"00-11112222333344445555666677778888-aaaabbbbccccdddd-01"),
                (b"tracestate", b"a@=1,2b=2"),
            ]
            span = telemetry.tracer.open_span("served", "SERVER", parent=extract(headers))
            token = span.attach()
            async with serving(echo) as url:
                await get(url)
            span.detach(token)
            span.end()
            return echo

        echo = asyncio.run(run())
        assert echo.headers[0]["tracestate"] == "a@=1,2b=2"
        assert telemetry.span("HTTP GET")["trace_state"] == "a@=1,2b=2"


class TestFailure:
    def failed(self, telemetry: Captured) -> dict[str, Any]:
        span = telemetry.span("HTTP GET")
        assert span["status"]["code"] == "ERROR"
        return dict(span["attributes"])

    def test_cancelled_before_the_answer(self, telemetry: Captured, serving) -> None:
        async def run() -> None:
            arrived = asyncio.Event()

            async def hang(incoming: web.Request) -> web.StreamResponse:
                arrived.set()
                await asyncio.Event().wait()
                raise AssertionError

            async with serving(hang) as url:
                with telemetry.tracer.start_as_current_span("caller") as caller:
                    call = asyncio.create_task(request("GET", url))
                    await arrived.wait()
                    call.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await call
                    assert trace.get_current_span() is caller

        asyncio.run(run())
        attributes = self.failed(telemetry)
        assert attributes["error.type"] == "CancelledError"
        assert attributes["gymlog.cancelled"] is True
        assert "http.request.resend_count" not in attributes

    def test_asyncio_timeout_is_a_cancellation(self, telemetry: Captured, serving) -> None:
        async def run() -> None:
            async def hang(incoming: web.Request) -> web.StreamResponse:
                await asyncio.Event().wait()
                raise AssertionError

            async with serving(hang) as url:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await request("GET", url, _internal=True)

        asyncio.run(run())
        span = telemetry.span("HTTP GET")
        assert self.failed(telemetry)["gymlog.cancelled"] is True
        assert span["end_time_unix_nano"] - span["start_time_unix_nano"] >= 45_000_000

    def test_interrupt_is_marked_and_goes_on(self, telemetry: Captured) -> None:
        async def interrupt(outgoing: Any, handler: Any) -> aiohttp.ClientResponse:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            asyncio.run(request("GET", "http://127.0.0.1:1/", middlewares=[interrupt]))
        assert self.failed(telemetry)["error.type"] == "KeyboardInterrupt"

    def test_raise_for_status_is_an_answer(
        self, telemetry: Captured, serving, echo_handler
    ) -> None:
        async def run() -> Any:
            echo = echo_handler(503)
            async with serving(echo) as url:
                with pytest.raises(aiohttp.ClientResponseError):
                    await request("GET", url, _internal=True, raise_for_status=True)
            return echo

        echo = asyncio.run(run())
        assert len(echo.headers) == 1
        attributes = self.failed(telemetry)
        assert attributes["error.type"] == "ClientResponseError"
        assert attributes["http.response.status_code"] == 503

    @pytest.mark.parametrize("url", ["", "/relative", "http://", "ftp://host/", "http://[::1/"])
    def test_bad_url_is_refused_as_aiohttp_does(self, telemetry: Captured, url: str) -> None:
        with pytest.raises((aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError)):
            asyncio.run(request("GET", url, _internal=True))
        assert self.failed(telemetry)["error.type"].endswith("ClientError")

    def test_unknown_option_is_refused_as_aiohttp_does(self, telemetry: Captured) -> None:
        with pytest.raises(TypeError, match="no_such_option"):
            asyncio.run(request("GET", "http://127.0.0.1:1/", no_such_option=1))
        assert self.failed(telemetry)["error.type"] == "TypeError"


class TestPropagation:
    def test_host_outside_the_fleet_gets_nothing(
        self, telemetry: Captured, propagate_to: Callable[[str], None], call
    ) -> None:
        propagate_to("-127.0.0.1")
        with rollout_context("12-0"):
            headers = call()
        assert not {"traceparent", "tracestate", "baggage"} & set(headers)
        assert telemetry.span("HTTP GET")["attributes"]["nemo.gym.rollout.id"] == "12-0"

    @pytest.mark.parametrize(
        ("first", "second"), [("localhost", "127.0.0.1"), ("127.0.0.1", "localhost")]
    )
    def test_redirect_out_of_the_fleet_takes_no_context_along(
        self,
        telemetry: Captured,
        propagate_to: Callable[[str], None],
        first: str,
        second: str,
        serving,
        get,
        received,
    ) -> None:
        """Each hop is judged by its own host; 127.0.0.1 plays the outside."""
        propagate_to("-127.0.0.1")

        async def run() -> dict[str, CIMultiDict[str]]:
            seen: dict[str, CIMultiDict[str]] = {}

            async def redirect(incoming: web.Request) -> web.StreamResponse:
                seen[incoming.url.host or ""] = CIMultiDict(incoming.headers)
                if incoming.path == "/end":
                    return web.Response()
                raise web.HTTPTemporaryRedirect(f"http://{second}:{incoming.url.port}/end")

            async with serving(redirect) as url:
                with rollout_context("12-0"):
                    await get(url.replace("127.0.0.1", first))
            return seen

        seen = asyncio.run(run())
        assert set(seen) == {"localhost", "127.0.0.1"}
        span = telemetry.span("HTTP GET")
        remote = extract(received(seen["localhost"]))
        assert remote is not None
        assert remote.span_id == span["span_id"]
        assert extract_rollout_id(received(seen["localhost"])) == "12-0"
        assert not {"traceparent", "baggage"} & set(seen["127.0.0.1"])
        assert span["attributes"]["http.request.resend_count"] == 1

    def test_what_a_middleware_of_the_caller_sends_again_is_counted(
        self, telemetry, serving
    ) -> None:
        """As one that answers a challenge does: the same request, a second time."""

        async def twice(outgoing, handler):
            (await handler(outgoing)).release()
            return await handler(outgoing)

        async def run() -> int:
            served = 0

            async def serve(incoming: web.Request) -> web.StreamResponse:
                nonlocal served
                served += 1
                return web.Response()

            async with serving(serve) as url:
                async with await request("GET", url, middlewares=[twice]) as response:
                    await response.read()
            return served

        assert asyncio.run(run()) == 2
        assert telemetry.span("HTTP GET")["attributes"]["http.request.resend_count"] == 1

    def test_closed_group_hands_on_what_is_current(self, received, call) -> None:
        """No CLIENT span, and yet the next server is a child of the span that called."""
        with captured("rollout") as telemetry:
            with telemetry.tracer.start_as_current_span("caller"), rollout_context("12-0"):
                headers = call()
        assert [span["name"] for span in telemetry.spans] == ["caller"]
        remote = extract(received(headers))
        assert remote is not None
        assert remote.span_id == telemetry.span("caller")["span_id"]
        assert extract_rollout_id(received(headers)) == "12-0"

    def test_closed_group_without_a_span_sends_the_rollout_alone(self, call) -> None:
        with captured("rollout"), rollout_context("12-0"):
            headers = call(headers={"baggage": "a=1"})
        assert "traceparent" not in headers
        assert headers["baggage"] == "nemo.gym.rollout.id=12-0,a=1"

    def test_closed_group_and_nothing_current_sends_nothing(self, call) -> None:
        with captured("rollout"):
            headers = call()
        assert not {"traceparent", "tracestate", "baggage"} & set(headers)
