"""The agent server: lets the model and the tools talk until there is an answer, then verifies it.

As in NeMo Gym, `/run` calls the server's own `/v1/responses` over HTTP, behind the path that
carries the rollout id, so that an agent which runs elsewhere would look the same.
"""

import itertools
import json
from collections.abc import Sequence
from functools import partial

import aiohttp
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from gymlog import GymSpanGroup, managed_span, rollout_path
from gymlog.fleet.calls import JsonObject, post, read_answer
from gymlog.fleet.serving import serve, server_parser
from gymlog.metrics.instruments import ROLLOUT_DURATION, timed

__all__ = ["make_app"]


class ResponsesRequest(BaseModel, extra="allow"):
    """The body of `/v1/responses`; what else it holds is the model's business."""

    input: list[JsonObject]

    def followed_by(self, output: list[JsonObject]) -> JsonObject:
        """Return the request for the model's next answer."""
        return self.model_dump() | {"input": self.input + output}


class RunRequest(BaseModel, extra="allow"):
    """The body of `/run`."""

    responses_create_params: ResponsesRequest


def make_app(
    own_url: str,
    *,
    models: Sequence[str],
    resources: str,
    model_timeout_seconds: float = 600.0,
    is_bypassing: bool = False,
) -> FastAPI:
    """Return the application; model calls go to the servers at the URLs `models` in turn.

    `is_bypassing` makes them without `gymlog.request`: the model then knows the rollout by the
    path, but not which span called it.
    """
    app = FastAPI(title="agent")
    post_traced = partial(post, timeout_seconds=model_timeout_seconds)
    call_model = _post_bare if is_bypassing else post_traced
    next_model = itertools.cycle(models)

    @app.get("/health")
    async def health() -> str:
        return "ok"

    @app.post("/run")
    async def run(request: RunRequest) -> JsonObject:
        with managed_span(GymSpanGroup.ROLLOUT, "gym.rollout"), timed(ROLLOUT_DURATION):
            url = own_url + rollout_path("/v1/responses")
            response = await post(url, request.responses_create_params.model_dump())
            return await post(f"{resources}/verify", {"response": response})

    @app.post("/v1/responses")
    async def responses(request: ResponsesRequest) -> JsonObject:
        with managed_span(GymSpanGroup.AGENT, "gym.agent.responses"):
            output: list[JsonObject] = []
            while True:
                url = next(next_model) + rollout_path("/v1/responses")
                response = await call_model(url, request.followed_by(output))
                output += response["output"]
                calls = [item for item in response["output"] if item["type"] == "function_call"]
                if not calls:
                    return {**response, "output": output}
                output += [await call_tool(call) for call in calls]

    async def call_tool(call: JsonObject) -> JsonObject:
        """Return the tool's result for the model; a tool that fails is a result too."""
        try:
            result = await post(f"{resources}/{call['name']}", json.loads(call["arguments"]))
        except HTTPException as error:
            result = {"error": error.detail}
        output = json.dumps(result, ensure_ascii=False)
        return {"type": "function_call_output", "call_id": call["call_id"], "output": output}

    return app


async def _post_bare(url: str, body: JsonObject) -> JsonObject:
    """POST with a session of its own, which sends nothing of the trace along."""
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as response:
        return await read_answer(response)


def main() -> None:
    """Run as `python -m gymlog.fleet.agent`."""
    parser = server_parser("agent", "The example gym's agent server.")
    parser.add_argument(
        "--model", required=True, action="append", metavar="URL", help="a model server; repeatable"
    )
    parser.add_argument("--resources", required=True, metavar="URL", help="the resources server")
    parser.add_argument("--model-timeout-seconds", type=float, default=600.0)
    parser.add_argument("--bypass", action="store_true", help="call models without gymlog.request")
    arguments = parser.parse_args()

    def app(own_url: str) -> FastAPI:
        return make_app(
            own_url,
            models=arguments.model,
            resources=arguments.resources,
            model_timeout_seconds=arguments.model_timeout_seconds,
            is_bypassing=arguments.bypass,
        )

    serve(arguments, app, name="agent")


if __name__ == "__main__":
    main()
