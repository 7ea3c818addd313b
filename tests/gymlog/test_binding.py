"""`bind` takes span and rollout into a pool's thread."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor

from gymlog import bind, rollout_context
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
