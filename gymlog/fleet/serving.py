"""How every server of the fleet runs: telemetry on, the application served, telemetry off.

`serve` is the part to copy: `init_telemetry` once per process, `instrument_fastapi` once per
application, `shutdown_telemetry` at the end, and the stages of the start in between. The rest
takes over the socket that the supervisor has bound, and tells it when this process is ready.
"""

import argparse
import socket
from collections.abc import Callable
from typing import Final

import uvicorn
from fastapi import FastAPI

from gymlog import ServerStartup, init_telemetry, instrument_fastapi, shutdown_telemetry
from gymlog.fleet.lifeline import Lifeline, exit_on_signals
from gymlog.fleet.plan import SERVER_TYPES
from gymlog.fleet.sockets import BACKLOG, listen, local_url
from gymlog.semconv import WORKER

__all__ = ["serve", "server_parser"]

_KEEP_ALIVE_SECONDS: Final = 60
"""More than the client's 15: who lets go first must be the one that would send."""


def server_parser(name: str, purpose: str) -> argparse.ArgumentParser:
    """Return the command line that every server has; the caller adds its own options."""
    parser = argparse.ArgumentParser(prog=f"python -m gymlog.fleet.{name}", description=purpose)
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--socket-fd", type=int, help="serve this inherited listening socket")
    parser.add_argument("--lifeline-fd", type=int, help="end when this inherited socket closes")
    parser.add_argument("--worker", action="store_true", help="one of several on the same port")
    return parser


def serve(
    arguments: argparse.Namespace,
    make_app: Callable[[str], FastAPI],
    *,
    name: str,
) -> None:
    """Serve `make_app(own URL)` until a signal comes or the supervisor is gone."""
    exit_on_signals()
    server_type = SERVER_TYPES[name]
    with ServerStartup.from_environment(name, server_type) as startup:
        startup.stage("init_server")
        lifeline = Lifeline(arguments.lifeline_fd)
        if arguments.socket_fd is None:
            listener = listen(arguments.port)
        else:
            listener = socket.socket(fileno=arguments.socket_fd)

        startup.stage("init_telemetry")
        init_telemetry(name, server_type, {WORKER: True} if arguments.worker else None)
        try:
            startup.stage("setup_webserver")
            app = make_app(local_url(listener))
            startup.stage("configure_app")
            instrument_fastapi(app)
            config = uvicorn.Config(
                app,
                access_log=False,
                log_level="warning",
                backlog=BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            )
            startup.stage("uvicorn_startup")
            _Server(config, lifeline, startup).run(sockets=[listener])
        finally:
            shutdown_telemetry()


class _Server(uvicorn.Server):
    """uvicorn that says when it serves."""

    def __init__(self, config: uvicorn.Config, lifeline: Lifeline, startup: ServerStartup) -> None:
        super().__init__(config)
        self._lifeline = lifeline
        self._startup = startup

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            self._startup.ready()
            self._lifeline.tell(is_ready=True)
