"""The supervisor when a server cannot start: its last words, and nothing left behind."""

import asyncio
import socket

import pytest

from gymlog.errors import FleetError
from gymlog.fleet.plan import Plan
from gymlog.fleet.sockets import listen, local_url
from gymlog.fleet.supervisor import Fleet


class BrokenPlan(Plan):
    """A plan whose model server is started with an option that it does not have."""

    __slots__ = ()

    def server_options(self, urls):
        return super().server_options(urls) | {"model": ["--no-such-option"]}


def test_a_server_that_cannot_start_is_named_with_its_last_words(tmp_path):
    """The error says which, how it ended, why and where to read more; then all is stopped."""

    async def run():
        fleet = Fleet(BrokenPlan(tmp_path, has_telemetry=False))
        try:
            with pytest.raises(FleetError) as caught:
                await fleet.start()
        finally:
            early = fleet.ended_early()
            await fleet.stop()
        return str(caught.value), early, fleet.ended_early()

    error, early, after = asyncio.run(run())
    assert error.startswith("model ended with exit code 2: ")
    assert "unrecognized arguments: --no-such-option" in error
    assert str(tmp_path / "model.stderr") in error
    assert [line.partition(" ")[0] for line in early] == ["model"]
    assert after == []


def test_workers_listen_on_one_port_of_their_own():
    """Shared sockets have one URL; a socket that is not shared refuses company."""
    with listen(is_shared=True) as first:
        with listen(first.getsockname()[1], is_shared=True) as second:
            assert local_url(first) == local_url(second)
    with listen() as lonely, pytest.raises(OSError, match="in use"):
        listen(lonely.getsockname()[1])


def test_callers_queue_before_a_server_serves():
    """A port is open from the moment it is bound: nobody is refused while a server starts."""
    with listen() as listener, socket.create_connection(listener.getsockname()) as caller:
        caller.sendall(b"GET / HTTP/1.1\r\n\r\n")
