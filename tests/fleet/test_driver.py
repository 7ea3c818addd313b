"""The driver: which rollouts it makes, how many at a time, and how it counts failures."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from gymlog import testing
from gymlog.fleet.driver import Driver, rollouts
from gymlog.fleet.sockets import listen, local_url


@asynccontextmanager
async def environment(handler):
    """An environment server whose `/run` is `handler`; yields its URL."""
    app = web.Application()
    app.router.add_post("/run", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def test_rollouts_are_attempts_at_tasks_with_seeds_of_their_own():
    """Four attempts per task; ids and seeds differ, and a seed repeats them all."""
    made = list(rollouts(10, turns=3, seed=1))
    assert [rollout.id for rollout in made[:5]] == ["0-0", "0-1", "0-2", "0-3", "1-0"]
    assert len({rollout.seed for rollout in made}) == 10
    assert made == list(rollouts(10, turns=3, seed=1))
    assert made != list(rollouts(10, turns=3, seed=2))


def test_some_rollouts_of_each_task_are_streamed():
    """Both ways of answering occur, with one tool call less than turns."""
    asked = [r.body()["responses_create_params"] for r in rollouts(4, turns=3, seed=0)]
    assert {params["stream"] for params in asked} == {True, False}
    assert {params["max_tool_calls"] for params in asked} == {2}


def test_as_many_rollouts_are_in_flight_as_asked_for():
    """The server sees exactly the concurrency, never more."""
    in_flight = peak = 0

    async def run():
        full = asyncio.Event()

        async def handler(_request):
            nonlocal in_flight, peak
            in_flight += 1
            peak = max(peak, in_flight)
            if in_flight == 5:
                full.set()
            await full.wait()
            in_flight -= 1
            return web.json_response({})

        async with environment(handler) as url:
            driver = Driver(url, timeout_seconds=30)
            await driver.run(rollouts(20, turns=2, seed=0), concurrency=5)
            return driver.progress

    progress = asyncio.run(run())
    assert (peak, progress.done, progress.failed, progress.in_flight) == (5, 20, 0, 0)


def test_failed_rollouts_are_counted_by_reason_and_end_nothing():
    """A status, an answer that never comes, a rollout that is fine: each is counted."""

    async def run():
        async def handler(request):
            task = (await request.json())["_ng_task_index"]
            if task == 1:
                return web.json_response({}, status=502)
            if task == 2:
                await asyncio.Event().wait()
            return web.json_response({})

        async with environment(handler) as url:
            driver = Driver(url, timeout_seconds=0.5)
            await driver.run(rollouts(12, turns=2, seed=0), concurrency=12)
            return driver.progress

    progress = asyncio.run(run())
    assert progress.done == 4
    assert progress.failures == {"status 502": 4, "no answer in 0.5 s": 4}


def test_a_server_that_is_gone_fails_rollouts_and_no_more():
    """Nobody listens at the URL: the rollout is counted under the error's name."""

    with listen() as listener:
        nobody = local_url(listener)

    async def run():
        driver = Driver(nobody, timeout_seconds=30)
        await driver.run(rollouts(2, turns=2, seed=0), concurrency=2)
        return driver.progress

    progress = asyncio.run(run())
    assert (progress.done, progress.failures) == (0, {"ClientConnectorError": 2})


@pytest.mark.parametrize(("groups", "traces"), [("default", 1), ("per_rollout", 3)])
def test_the_job_is_one_trace_only_when_its_group_is_open(groups, traces):
    """Each request carries its own rollout's id; gym.job joins them or is not there."""

    async def run():
        async def handler(_request):
            return web.json_response({})

        async with environment(handler) as url:
            await Driver(url, timeout_seconds=30).run(rollouts(3, turns=2, seed=0), concurrency=2)

    with testing.captured(groups) as telemetry:
        asyncio.run(run())
    requests = [span for span in telemetry.spans if span["kind"] == "CLIENT"]
    assert {span["attributes"]["nemo.gym.rollout.id"] for span in requests} == {"0-0", "0-1", "0-2"}
    assert len({span["trace_id"] for span in requests}) == traces
