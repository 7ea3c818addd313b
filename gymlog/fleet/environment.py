"""The environment server: the fleet's front, which hands each rollout to the agent."""

from fastapi import FastAPI

from gymlog.fleet.calls import JsonObject, post
from gymlog.fleet.serving import serve, server_parser

__all__ = ["make_app"]


def make_app(agent: str) -> FastAPI:
    """Return the application in front of the agent server at the URL `agent`."""
    app = FastAPI(title="environment")

    @app.get("/health")
    async def health() -> str:
        return "ok"

    @app.post("/run")
    async def run(body: JsonObject) -> JsonObject:
        return await post(f"{agent}/run", body)

    return app


def main() -> None:
    """Run as `python -m gymlog.fleet.environment`."""
    parser = server_parser("environment", "The example gym's front.")
    parser.add_argument("--agent", required=True, metavar="URL", help="the agent server")
    arguments = parser.parse_args()

    def app(_url: str) -> FastAPI:
        return make_app(arguments.agent)

    serve(arguments, app, name="environment")


if __name__ == "__main__":
    main()
