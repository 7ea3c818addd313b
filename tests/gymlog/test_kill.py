"""kill -9 at a random moment under load: what had ended is in the log, what was open is named.

A fork server with everything imported forks each writer, so that a kill costs little more than the
writer's short life. GYMLOG_TEST_KILLS says how many writers are killed.
"""

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

KILLS = int(os.environ.get("GYMLOG_TEST_KILLS", "14"))
MOST_SECONDS = 0.8
"""A writer is killed at any moment from its first ended span until then."""

SPAN_START_AFTER_SECONDS = 0.05
TICK_SECONDS = 0.05
"""Time between two sweeps with that threshold, see `gymlog.service`."""
SLACK_SECONDS = 0.25
"""How late the sweep's thread may be: it shares two cores and the interpreter with the load."""
ANNOUNCED_NS = round((SPAN_START_AFTER_SECONDS + TICK_SECONDS + SLACK_SECONDS) * 1e9)

FORK_SERVER = """
import asyncio, json, os, sys, threading, time, traceback
import gymlog, gymlog.config, gymlog.resource, gymlog.service, gymlog.tracer

def write(log, notes):
    answers = os.dup(1)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    os.dup2(os.open(log, flags), 1)
    notes = os.open(notes, flags)
    gymlog.init_telemetry("agent", "responses_api_agents")

    def note(what, span):
        span_id = f"{span.get_span_context().span_id:016x}"
        os.write(notes, f"{what} {span_id} {time.monotonic_ns()}\\n".encode())

    def quick(name):
        with gymlog.managed_span("rollout", name, text="é" * 50) as span:
            pass
        note("ended", span)

    def in_a_thread():
        while True:
            quick("threaded")

    async def in_a_task():
        while True:
            quick("quick")
            await asyncio.sleep(0)

    async def held(seconds):
        while True:
            with gymlog.managed_span("rollout", "held") as span:
                note("opened", span)
                await asyncio.sleep(seconds)
            note("ended", span)

    async def load():
        tasks = [asyncio.create_task(held(seconds)) for seconds in (0.06, 0.4, 3600)]
        tasks += [asyncio.create_task(in_a_task()) for _ in range(4)]
        threading.Thread(target=in_a_thread, daemon=True).start()
        await asyncio.sleep(0)  # each task has its first turn
        os.write(answers, f"running {os.getpid()}\\n".encode())
        await asyncio.wait_for(asyncio.gather(*tasks), 30)  # when there is nobody left to kill it

    asyncio.run(load())

for order in sys.stdin:
    pid = os.fork()
    if not pid:
        try:
            write(*json.loads(order))
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    _, status = os.waitpid(pid, 0)
    os.write(1, f"ended {os.waitstatus_to_exitcode(status)}\\n".encode())
"""


@pytest.fixture(scope="module")
def fork_server():
    """The process that forks a writer for each order on its stdin."""
    variables = {
        "NEMO_GYM_OTEL_ENABLED": "true",
        "NEMO_GYM_OTEL_SPAN_GROUPS": "all",
        "NEMO_GYM_OTEL_METRICS_ENABLED": "false",
        "GYMLOG_SPAN_START_AFTER_SECONDS": str(SPAN_START_AFTER_SECONDS),
    }
    with subprocess.Popen(
        [sys.executable, "-c", FORK_SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={key: value for key, value in os.environ.items() if "OTEL" not in key} | variables,
    ) as process:
        yield process
        process.stdin.close()


def killed_writer(fork_server, folder, moment):
    """Kill a writer `moment` seconds after its first ended span.

    Return its whole lines, what it noted as {what: {span_id: monotonic ns}}, and when it was
    killed (monotonic ns).
    """
    log, notes = folder / "log", folder / "notes"
    fork_server.stdin.write(json.dumps([str(log), str(notes)]).encode() + b"\n")
    fork_server.stdin.flush()
    pid = answer(fork_server, "running")
    time.sleep(moment)  # not to wait for anything: it is the random moment
    killed_at = time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)
    assert answer(fork_server, "ended") == -signal.SIGKILL
    noted = collections.defaultdict(dict)
    for line in whole_lines(notes):
        what, span_id, at = line.split()
        noted[what.decode()][span_id.decode()] = int(at)
    return [json.loads(line) for line in whole_lines(log)], noted, killed_at


def answer(fork_server, word):
    """Return the number that the fork server says after `word`."""
    said, _, number = fork_server.stdout.readline().decode().partition(" ")
    assert said == word, f"the writer is not {word} but {said} {number}; see stderr"
    return int(number)


def whole_lines(path):
    """Return all lines of a file but what comes after its last newline."""
    return path.read_bytes().split(b"\n")[:-1]


@pytest.mark.parametrize("number", range(KILLS))
def test_kill_9_under_load(number, fork_server, tmp_path):
    """Ended spans are there, once; lines are whole, numbers without a gap; long ones announced."""
    moment = random.Random(number).uniform(0, MOST_SECONDS)
    records, noted, killed_at = killed_writer(fork_server, tmp_path, moment)
    spans = {record["span_id"]: record for record in records if record["record_type"] == "span"}
    starts = [record["span_id"] for record in records if record["record_type"] == "span_start"]

    assert noted["ended"], "there was no load"
    assert noted["ended"].keys() <= spans.keys()
    assert len(spans) == sum(record["record_type"] == "span" for record in records)
    assert len(starts) == len(set(starts))
    assert sorted(record["seq"] for record in records) == list(range(len(records)))

    open_for = {
        span_id: span["end_time_unix_nano"] - span["start_time_unix_nano"]
        for span_id, span in spans.items()
    } | {
        span_id: killed_at - opened_at
        for span_id, opened_at in noted["opened"].items()
        if span_id not in spans
    }
    long = {span_id for span_id, age_ns in open_for.items() if age_ns > ANNOUNCED_NS}
    assert long <= set(starts)
    assert long or moment * 1e9 < ANNOUNCED_NS + 1e8, "no span was open for long"
