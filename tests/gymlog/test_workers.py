"""Servers with several worker processes: each is a service instance of its own, on one stdout."""

import concurrent.futures
import contextlib
import http.client
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

APP = """
import os

import gymlog
from fastapi import FastAPI

gymlog.init_telemetry("agent", "responses_api_agents")
app = FastAPI()
gymlog.instrument_fastapi(app)


@app.get("/long")
async def long() -> int:
    for _ in range(5):
        with gymlog.span_cm("long", **{f"k{n}": "x" * 8_000 for n in range(6)}):
            pass
    return os.getpid()
"""

SERVERS = {
    "uvicorn": "uvicorn app:app --workers 2 --fd {fd} --access-log --no-use-colors",
    "gunicorn": "gunicorn app:app --workers 2 --bind fd://{fd} --worker-class {worker}",
    "gunicorn --preload": (
        "gunicorn app:app --preload --workers 2 --bind fd://{fd} --worker-class {worker}"
    ),
}


@pytest.fixture
def listener():
    """A socket that listens before the server runs, so a client need not wait for it."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen(128)
        yield one


def ask(address):
    """Return the pid of the worker that served a request."""
    connection = http.client.HTTPConnection(*address, timeout=30)
    with contextlib.closing(connection):
        connection.request("GET", "/long")
        return int(connection.getresponse().read())


@contextlib.contextmanager
def read_slowly(pipe):
    """Read a pipe until its end, a little later than it could be."""
    chunks = []

    def read():
        while chunk := os.read(pipe.fileno(), 30_000):
            chunks.append(chunk)
            time.sleep(0.001)  # the slowness, not a wait for anything

    thread = threading.Thread(target=read)
    thread.start()
    yield chunks
    thread.join()


@pytest.mark.parametrize("command", SERVERS.values(), ids=SERVERS.keys())
def test_workers(command, listener, tmp_path, program):
    """Every line is whole, every worker has its own id and numbers from 0, no id is shared."""
    (tmp_path / "app.py").write_text(APP)
    words = command.format(fd=listener.fileno(), worker="uvicorn_worker.UvicornWorker").split()
    with subprocess.Popen(
        [sys.executable, "-m", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=program.environment(GYMLOG_WRITE_WAIT_SECONDS="10"),
        pass_fds=[listener.fileno()],
    ) as server:
        try:
            with read_slowly(server.stdout) as chunks, read_slowly(server.stderr) as words:
                pids = set()
                asked = 0
                time_limit = time.monotonic() + program.SECONDS
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    while len(pids) < 2 or asked < 60:
                        assert time.monotonic() < time_limit, (pids, asked)
                        pids |= set(pool.map(ask, [listener.getsockname()] * 20))
                        asked += 20
                server.terminate()
        finally:
            server.kill()
    said = b"".join(words).decode()
    assert "Traceback" not in said, said
    lines = b"".join(chunks).splitlines(keepends=True)
    records = program.parse(b"".join(line for line in lines if line.startswith(b"{")))
    records.no_gap_no_repeat()
    assert len(records.of("span", "GET /long")) == asked
    assert len(records.of("span", "long")) == asked * 5
    span_ids = [span["span_id"] for span in records.of("span")]
    assert len(set(span_ids)) == len(span_ids)
    assert len({span["trace_id"] for span in records.of("span")}) == asked
    workers = {
        facts["process.pid"]: mine
        for mine in records.instances().values()
        if (facts := mine[0]["resource"]["attributes"])["process.pid"] in pids
    }
    assert workers.keys() == pids
    for mine in workers.values():
        assert [mine[0]["state"], mine[-1]["state"]] == ["started", "stopped"]
        assert mine[-1]["records_dropped"] == 0
