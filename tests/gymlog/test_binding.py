"""`bind` takes span and rollout into a pool's thread, `carrier` into another process."""

import asyncio
import contextvars
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import baggage
from opentelemetry.context import attach, detach

from gymlog import bind, carried, carrier, current_rollout_id, rollout_context
from gymlog.testing import Captured


def test_work_in_a_pool_belongs_to_whom_it_was_bound_for(telemetry: Captured) -> None:
    """One thread serves two rollouts: bound work follows its caller, bare work follows nobody.

    hA (r-A) ── cpu    and after its end ── late
    hB (r-B) ── cpu
    """
    tracer = telemetry.tracer

    def work(name: str) -> None:
        with tracer.start_as_current_span(name):
            pass

    async def request(rollout_id: str, pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        with rollout_context(rollout_id):
            with tracer.start_as_current_span(f"handler {rollout_id}"):
                await loop.run_in_executor(pool, bind(work), f"bound {rollout_id}")
                await loop.run_in_executor(pool, work, f"bare {rollout_id}")
                await asyncio.to_thread(work, f"to_thread {rollout_id}")
                late = bind(work)
            await loop.run_in_executor(pool, late, f"late {rollout_id}")

    async def main() -> None:
        with ThreadPoolExecutor(max_workers=1) as pool:
            await request("r-A", pool)
            await request("r-B", pool)

    asyncio.run(main())
    for rollout_id in ("r-A", "r-B"):
        handler = telemetry.span(f"handler {rollout_id}")
        for form in ("bound", "to_thread", "late"):
            span = telemetry.span(f"{form} {rollout_id}")
            assert span["parent_span_id"] == handler["span_id"], form
            assert span["attributes"]["nemo.gym.rollout.id"] == rollout_id
        bare = telemetry.span(f"bare {rollout_id}")
        assert bare["parent_span_id"] is None
        assert "nemo.gym.rollout.id" not in bare["attributes"]


def test_calls_of_one_bound_function_may_overlap() -> None:
    """A context can be entered once at a time; each call has a copy."""
    variable = contextvars.ContextVar("variable", default=0)

    def nested(depth: int) -> int:
        variable.set(depth)
        return depth if depth == 3 else bound(depth + 1)

    bound = bind(nested)
    assert bound(1) == 3
    assert variable.get() == 0


def test_a_carrier_takes_span_and_rollout_to_another_process(telemetry: Captured) -> None:
    """As plain text; the block's spans are the caller's, what comes after is not.

    caller (r-1) ── remote          · after
    """
    with rollout_context("r-1"), telemetry.tracer.start_as_current_span("caller") as caller:
        headers = carrier()
    assert json.loads(json.dumps(headers)) == headers

    def work() -> None:
        with carried(headers), telemetry.tracer.start_as_current_span("remote"):
            assert current_rollout_id() == "r-1"
            assert carrier()["baggage"] == headers["baggage"]
        with telemetry.tracer.start_as_current_span("after"):
            pass

    contextvars.Context().run(work)
    remote, after = telemetry.span("remote"), telemetry.span("after")
    assert remote["parent_span_id"] == caller.span_id
    assert remote["trace_id"] == caller.trace_id
    assert remote["flags"] & 0x200, "its parent is in another process"
    assert remote["attributes"] == {"nemo.gym.rollout.id": "r-1"}
    assert after["parent_span_id"] is None
    assert after["attributes"] == {}


def test_a_carrier_with_nothing_in_it_changes_nothing(telemetry: Captured) -> None:
    """The block stays where it is; what breaks a rule is passed over."""
    assert carrier() == {}
    bad = {"traceparent": "00-zz", "baggage": "nemo.gym.rollout.id=%2F"}
    with rollout_context("r-2"), telemetry.tracer.start_as_current_span("here"):
        for headers in ({}, bad):
            with carried(headers), telemetry.tracer.start_as_current_span("inner"):
                assert current_rollout_id() == "r-2"
    here = telemetry.span("here")
    inner = [span for span in telemetry.spans if span["name"] == "inner"]
    assert [span["parent_span_id"] for span in inner] == [here["span_id"]] * 2


@pytest.mark.parametrize("rollout_id", ["a b", "x\r\nset-cookie: y", ""])
def test_a_rollout_that_no_header_can_hold_is_passed_over(
    telemetry: Captured, rollout_id: str
) -> None:
    """Whatever the host has put into OpenTelemetry's baggage under our name."""
    token = attach(baggage.set_baggage("nemo.gym.rollout.id", rollout_id))
    try:
        with carried({}):
            assert current_rollout_id() is None
    finally:
        detach(token)


def test_a_carrier_has_the_rollout_with_telemetry_off() -> None:
    """The rollout's id is not telemetry's alone."""
    with rollout_context("r-3"):
        headers = carrier()
    with carried(headers):
        assert current_rollout_id() == "r-3"
    assert current_rollout_id() is None
