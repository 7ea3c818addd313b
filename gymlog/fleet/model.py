"""The model server: answers after a seeded, log-normal time, whole or as a stream.

The time of a call follows from the seed in its body and the length of its conversation alone, so
that a run can be repeated whatever the order in which its calls arrive.
"""

import asyncio
import itertools
import math
import random
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any, Final

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from opentelemetry.trace import Span

from gymlog import GymSpanGroup, clock, managed_span, safe_set_span_attributes
from gymlog.fleet.calls import JsonObject
from gymlog.fleet.dialects import CHAT, RESPONSES, Dialect, ModelRequest, Reply, read_reply
from gymlog.fleet.serving import serve, server_parser
from gymlog.metrics import instruments
from gymlog.metrics.instruments import MODEL_CALL_DURATION, MODEL_TIME_TO_FIRST_BYTE, timed
from gymlog.semconv import (
    GEN_AI_OPERATION_NAME,
    GEN_AI_REQUEST_MODEL,
    GEN_AI_USAGE_INPUT_TOKENS,
    GEN_AI_USAGE_OUTPUT_TOKENS,
)

__all__ = ["latency_seconds", "make_app"]

_SERVER_NAME: Final = "model"
_MEDIAN_SECONDS: Final = 0.4
_SIGMA: Final = 0.4


def latency_seconds(seed: int, step: int) -> float:
    """Return how long a call takes: log-normal, equal for equal arguments.

    Half of the calls take less than 0.4 s, few several times as long.
    """
    draw = random.Random(f"{seed}/{step}").lognormvariate(0.0, _SIGMA)
    return _MEDIAN_SECONDS * draw


def make_app(*, latency_scale: float = 1.0, hanging_call: int = 0) -> FastAPI:
    """Return the application; the `hanging_call`-th call hangs, from 1, streams apart; 0: none."""
    app = FastAPI(title="model")
    call_numbers = itertools.count(1)

    @app.get("/health")
    async def health() -> str:
        return "ok"

    @app.post("/v1/responses", response_model=None)
    async def responses(request: ModelRequest) -> JsonObject | StreamingResponse:
        return await answer(request, RESPONSES)

    @app.post("/v1/chat/completions", response_model=None)
    async def chat_completions(request: ModelRequest) -> JsonObject | StreamingResponse:
        return await answer(request, CHAT)

    async def answer(request: ModelRequest, dialect: Dialect) -> JsonObject | StreamingResponse:
        reply = read_reply(request)
        seconds = latency_scale * latency_seconds(request.seed, len(request.messages))
        # A stream ends when its caller leaves; an answer that is due whole does not.
        if not request.stream and next(call_numbers) == hanging_call:
            seconds = math.inf
        if request.stream:
            return StreamingResponse(
                _stream(reply, dialect, seconds), media_type="text/event-stream"
            )
        began_ns = clock.monotonic_ns()
        with _timed(dialect), _model_span(reply, dialect) as span:
            await _infer(seconds)
            _measure_first_byte(dialect, began_ns)
            safe_set_span_attributes(span, _usage(reply))
            return dialect.whole(reply)

    return app


async def _stream(reply: Reply, dialect: Dialect, seconds: float) -> AsyncIterator[str]:
    """Yield the answer's events over the time it takes; the span lasts as long."""
    events = dialect.events(reply)
    began_ns = clock.monotonic_ns()
    with _timed(dialect), _model_span(reply, dialect) as span:
        for number, event in enumerate(events):
            await _infer(seconds / len(events))
            if number == 0:
                _measure_first_byte(dialect, began_ns)
            yield f"data: {event}\n\n"
        safe_set_span_attributes(span, _usage(reply))


def _model_span(reply: Reply, dialect: Dialect) -> AbstractContextManager[Span | None]:
    attributes: dict[str, Any] = {  # Any: as managed_span takes it
        GEN_AI_OPERATION_NAME: "chat",
        GEN_AI_REQUEST_MODEL: reply.model,
    }
    return managed_span(GymSpanGroup.MODEL_CALL, dialect.span_name, **attributes)


def _timed(dialect: Dialect) -> AbstractContextManager[None]:
    return timed(MODEL_CALL_DURATION, dialect.name, _SERVER_NAME)


def _measure_first_byte(dialect: Dialect, began_ns: int) -> None:
    if instruments.are_on:
        MODEL_TIME_TO_FIRST_BYTE.record_since(began_ns, (dialect.name, _SERVER_NAME))


def _usage(reply: Reply) -> dict[str, int]:
    return {
        GEN_AI_USAGE_INPUT_TOKENS: reply.input_tokens,
        GEN_AI_USAGE_OUTPUT_TOKENS: reply.output_tokens,
    }


async def _infer(seconds: float) -> None:
    """Take the time that a model would; for ever when it is infinite."""
    if math.isinf(seconds):
        await asyncio.Event().wait()
    await asyncio.sleep(seconds)


def main() -> None:
    """Run as `python -m gymlog.fleet.model`."""
    parser = server_parser("model", "The example gym's model server.")
    parser.add_argument("--latency-scale", type=float, default=1.0, help="multiplies every time")
    parser.add_argument("--hanging-call", type=int, default=0, help="this call (from 1) hangs")
    arguments = parser.parse_args()

    def app(_url: str) -> FastAPI:
        return make_app(latency_scale=arguments.latency_scale, hanging_call=arguments.hanging_call)

    serve(arguments, app, name=_SERVER_NAME)


if __name__ == "__main__":
    main()
