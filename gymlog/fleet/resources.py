"""The resources server: a tool that the agent calls for the model, and the verification."""

import asyncio
import itertools
import time
from typing import Final

from fastapi import FastAPI
from pydantic import BaseModel

from gymlog import GymSpanGroup, managed_span
from gymlog.fleet.calls import JsonObject
from gymlog.fleet.serving import serve, server_parser
from gymlog.metrics.instruments import VERIFY_DURATION, VERIFY_SUCCESS_RATE, timed

__all__ = ["make_app"]

_TOOL_SECONDS: Final = 0.05
_VERIFY_SECONDS: Final = 0.02
_BLOCKED_SECONDS: Final = 0.6


class WeatherRequest(BaseModel):
    """The tool's arguments."""

    city: str


class VerifyRequest(BaseModel):
    """What the agent made of a task."""

    response: JsonObject

    @property
    def last_words(self) -> str:
        """The text of the response's last message."""
        message = self.response["output"][-1]
        return " ".join(part["text"] for part in message["content"])


def make_app(
    *, latency_scale: float = 1.0, failing_every: int = 0, blocking_every: int = 0
) -> FastAPI:
    """Return the application; every `failing_every`-th tool call fails, and every
    `blocking_every`-th verification blocks the event loop; 0 is none."""
    app = FastAPI(title="resources")
    call_numbers = itertools.count(1)
    verification_numbers = itertools.count(1)

    @app.get("/health")
    async def health() -> str:
        return "ok"

    @app.post("/get_weather")
    async def get_weather(request: WeatherRequest) -> JsonObject:
        await asyncio.sleep(_TOOL_SECONDS * latency_scale)
        if failing_every and next(call_numbers) % failing_every == 0:
            raise RuntimeError("the weather station does not answer")
        return {"city": request.city, "celsius": sum(request.city.encode()) % 35}

    @app.post("/verify")
    async def verify(request: VerifyRequest) -> JsonObject:
        with (
            managed_span(GymSpanGroup.VERIFY, "gym.verify"),
            timed(VERIFY_DURATION, share=VERIFY_SUCCESS_RATE),
        ):
            await asyncio.sleep(_VERIFY_SECONDS * latency_scale)
            if blocking_every and next(verification_numbers) % blocking_every == 0:
                _wait_without_await()
            reward = float("celsius" in request.last_words)
            return {"response": request.response, "reward": reward}

    return app


def _wait_without_await() -> None:
    time.sleep(_BLOCKED_SECONDS)


def main() -> None:
    """Run as `python -m gymlog.fleet.resources`."""
    parser = server_parser("resources", "The example gym's tools and verification.")
    parser.add_argument("--latency-scale", type=float, default=1.0, help="multiplies every time")
    parser.add_argument("--failing-every", type=int, default=0, help="every n-th tool call fails")
    parser.add_argument(
        "--blocking-every", type=int, default=0, help="every n-th verification blocks"
    )
    arguments = parser.parse_args()

    def app(_url: str) -> FastAPI:
        return make_app(
            latency_scale=arguments.latency_scale,
            failing_every=arguments.failing_every,
            blocking_every=arguments.blocking_every,
        )

    serve(arguments, app, name="resources")


if __name__ == "__main__":
    main()
