"""What may befall a writing process, each with the real thing: kills, signals, forks, bad stdouts.

Every program here is a process of its own whose standard output is what the test gives it.
"""

import collections
import contextlib
import dataclasses
import datetime as dt
import decimal
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
import uuid

import numpy as np
import pydantic
import pytest

SECONDS = 20
"""More than any program here takes; a program that is still there hangs."""

BEGIN = """
import asyncio, os, signal, sys, threading, time
import gymlog
from gymlog import managed_span
handle = gymlog.init_telemetry("agent", "responses_api_agents")
def say(text):
    os.write(2, text.encode() + b"\\n")
def spans(count, name="done", **attributes):
    for number in range(count):
        with managed_span("verify", name, number=number, **attributes):
            pass
"""


def environment(**variables):
    """Return this process's environment with telemetry on."""
    return {
        **{key: value for key, value in os.environ.items() if "OTEL" not in key},
        "NEMO_GYM_OTEL_ENABLED": "true",
        "NEMO_GYM_OTEL_SPAN_GROUPS": "all",
        "NEMO_GYM_OTEL_METRICS_ENABLED": "false",
        **variables,
    }


@contextlib.contextmanager
def program(code, *, stdout=subprocess.PIPE, before=(), **variables):
    """Run a program that has telemetry on; it is killed when the block is left with it running."""
    process = subprocess.Popen(
        [*before, sys.executable, "-c", BEGIN + textwrap.dedent(code)],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        bufsize=0,  # so that no word waits in a buffer while `await_word` looks at the pipe
        env=environment(**variables),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def output(code, **options):
    """Return the records and the stderr of a program that ends by itself without failure."""
    with program(code, **options) as process:
        out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err.decode()
    return parse(out or b""), err.decode()


def parse(data):
    """Return the record of every line; each must be whole."""
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def of(records, record_type, name=None):
    """Return the records of a type (and name)."""
    return [
        record
        for record in records
        if record["record_type"] == record_type and name in (None, record.get("name"))
    ]


def instances(records):
    """Return the records by service instance, in the order of their lines."""
    grouped = collections.defaultdict(list)
    for record in records:
        grouped[record["resource"]["attributes"]["service.instance.id"]].append(record)
    return grouped


def no_gap_no_repeat(records):
    """Assert that each instance's numbers are 0, 1, 2 …"""
    for mine in instances(records).values():
        assert sorted(record["seq"] for record in mine) == list(range(len(mine)))


def await_word(process):
    """Wait for one line on stderr and return it."""
    assert select.select([process.stderr], [], [], SECONDS)[0], "the program says nothing"
    return process.stderr.readline().decode().strip()


@pytest.fixture
def full_pipe():
    """A pipe that is full and that nobody reads: the end to give away, the end to read."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"f" * 4096)
    os.set_blocking(write_end, True)
    yield write_end, read_end
    for end in (read_end, write_end):
        with contextlib.suppress(OSError):
            os.close(end)


class TestC01SeededPrograms:
    """A program that seeds the global generators has ids of its own all the same."""

    CODE = """
        import random, numpy
        drawn = []
        for _ in range(2):
            random.seed(10); numpy.random.seed(10)
            with managed_span("job", "root"), managed_span("job", "child"):
                pass
            drawn.append(random.random())
        random.seed(10)
        assert drawn == [random.random()] * 2, "tracing took numbers of the program's"
    """

    def test_two_processes_share_no_id(self):
        """4 trace ids and 8 span ids over two processes."""
        found = [span for _ in range(2) for span in of(output(self.CODE)[0], "span")]
        assert len({span["trace_id"] for span in found}) == 4
        assert len({span["span_id"] for span in found}) == 8
        assert all(int(span["trace_id"], 16) and len(span["trace_id"]) == 32 for span in found)


class TestC12Ends:
    """A process that ends in any way leaves every span that had ended, as a whole line."""

    OPEN = """
        with managed_span("job", "root"):
            spans(10)
            say("ready")
            {how}
    """

    @pytest.mark.parametrize("to_file", [True, False], ids=["file", "pipe"])
    def test_kill_9(self, to_file, tmp_path):
        """Nothing needs an exit hook."""
        with (
            open(tmp_path / "log", "wb") as log,
            program(
                self.OPEN.format(how="signal.pause()"), stdout=log if to_file else subprocess.PIPE
            ) as process,
        ):
            await_word(process)
            process.kill()
            out, _ = process.communicate(timeout=SECONDS)
        records = parse((tmp_path / "log").read_bytes() if to_file else out)
        assert len(of(records, "span", "done")) == 10
        no_gap_no_repeat(records)

    def test_kill_9_names_what_was_open_for_long(self):
        """A span over the threshold has its span_start."""
        with program(
            self.OPEN.format(how="signal.pause()"), GYMLOG_SPAN_START_AFTER_SECONDS="0.05"
        ) as process:
            data = b""
            while b'"span_start"' not in data:
                assert select.select([process.stdout], [], [], SECONDS)[0]
                data += os.read(process.stdout.fileno(), 65_536)
            process.kill()
        assert b'"name":"root"' in data.partition(b'"span_start"')[2]

    def test_kill_9_under_load(self):
        """Whatever moment: no torn line but the last, no gap."""
        with program('say("ready")\nspans(10**9)') as process:
            await_word(process)
            data = b""
            while len(data) < 500_000:
                data += os.read(process.stdout.fileno(), 65_536)
            process.kill()
            data += process.stdout.read()
        no_gap_no_repeat(parse(data[: data.rindex(b"\n") + 1]))

    def test_os_exit_of_a_thread(self):
        """As a crash of a library ends it."""
        how = "threading.Thread(target=lambda: os._exit(3)).start(); signal.pause()"
        with program(self.OPEN.format(how=how)) as process:
            out, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == 3
        assert len(of(parse(out), "span", "done")) == 10

    def test_an_ordinary_exit_and_an_unhandled_exception(self):
        """The span has the exception, the process its `stopped`."""
        with program(self.OPEN.format(how="raise ValueError('boom')")) as process:
            out, _ = process.communicate(timeout=SECONDS)
        records = parse(out)
        assert of(records, "span", "root")[0]["status"]["message"] == "ValueError: boom"
        assert [record["state"] for record in of(records, "process")] == ["started", "stopped"]

    def test_sigterm(self):
        """The open root is named, `stopped` is the last line, and the signal ends the process."""
        with program(self.OPEN.format(how="signal.pause()")) as process:
            await_word(process)
            process.terminate()
            out, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == -signal.SIGTERM
        records = parse(out)
        assert of(records, "span_start", "root")
        assert records[-1]["state"] == "stopped"
        assert records[-1]["open_spans"] == 1
        no_gap_no_repeat(records)

    def test_sigterm_in_the_middle_of_a_write(self):
        """Likely under load: the open span and `stopped` are there all the same."""
        code = """
            real = os.write
            def write(fd, data):
                if b'"number":5' in data:
                    signal.raise_signal(signal.SIGTERM)
                return real(fd, data)
            os.write = write
            with managed_span("job", "root"):
                spans(6)
                signal.pause()
        """
        with program(code) as process:
            out, _ = process.communicate(timeout=SECONDS)
            assert process.returncode == -signal.SIGTERM
        records = parse(out)
        assert of(records, "span_start", "root")
        assert records[-1]["record_type"] == "process"
        assert records[-1]["state"] == "stopped"
        no_gap_no_repeat(records)

    def test_sigterm_while_nobody_reads_the_full_pipe(self, full_pipe):
        """The process ends; it does not wait for a reader."""
        with program(
            'with managed_span("job", "root"):\n    spans(10)\n    say("ready"); signal.pause()',
            stdout=full_pipe[0],
        ) as process:
            while await_word(process) != "ready":
                pass
            start = time.monotonic()
            process.terminate()
            assert process.wait(SECONDS) == -signal.SIGTERM
            assert time.monotonic() - start < 2

    def test_a_handler_of_the_hosts_stays(self):
        """Who handles SIGTERM already is not overridden."""
        code = """
            seen = []
            signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
            gymlog.shutdown_telemetry()
            import gymlog.setup as setup
            setup._initialised = False
            gymlog.init_telemetry("again")
            signal.raise_signal(signal.SIGTERM)
            assert seen == [1]
        """
        output(code)

    @pytest.mark.parametrize(
        "where",
        ["before the server runs", "in the running server"],
    )
    def test_sigterm_of_a_uvicorn_server(self, where):
        """A root that is open outside of any request is visible, the end within its grace."""
        early = where == "before the server runs"
        code = f"""
            import contextlib, socket, uvicorn
            from fastapi import FastAPI
            early = {early}
            if not early:
                gymlog.shutdown_telemetry()
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                gymlog.setup._initialised = False
            @contextlib.asynccontextmanager
            async def lifespan(app):
                if not early:
                    gymlog.init_telemetry("late")
                app.state.root = gymlog.get_telemetry().tracer.start_span("root")
                spans(10)
                say("ready")
                yield
            app = FastAPI(lifespan=lifespan)
            gymlog.instrument_fastapi(app)
            listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
            config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
            uvicorn.Server(config).run(sockets=[listener])
        """
        with program(code) as process:
            while await_word(process) != "ready":
                pass
            start = time.monotonic()
            process.terminate()
            out, err = process.communicate(timeout=SECONDS)
            assert time.monotonic() - start < 3
        records = parse(out)
        assert len(of(records, "span", "done")) == 10
        assert of(records, "span_start", "root"), err.decode()
        assert records[-1]["state"] == "stopped"


class TestForks:
    """A child is an instance of its own; nothing of its parent's is written twice."""

    def test_os_fork(self):
        """The child's spans have its own id and numbers, below the parent's span.

        parent  |------------- root (written by the parent) ---------|
        child        |-- child --|  its end of root writes nothing
        """
        code = """
            with managed_span("job", "root"):
                with managed_span("job", "before"):
                    pass
                pid = os.fork()
                if pid == 0:
                    with managed_span("job", "child"):
                        pass
                else:
                    os.waitpid(pid, 0)
        """
        records, _ = output(code)
        no_gap_no_repeat(records)
        assert len(instances(records)) == 2
        assert len(of(records, "span")) == 3
        root, child = of(records, "span", "root")[0], of(records, "span", "child")[0]
        assert child["parent_span_id"] == root["span_id"]
        assert child["trace_id"] == root["trace_id"]
        introduced = [r["resource"]["attributes"] for r in of(records, "process")]
        pids = {facts["process.pid"] for facts in introduced}
        assert len(pids) == 2
        child_facts = instances(records)[child["resource"]["attributes"]["service.instance.id"]]
        assert child_facts[0]["resource"]["attributes"]["process.parent_pid"] in pids

    def test_many_forks_under_load_of_threads(self):
        """No deadlock on a lock that another thread held; every id is new."""
        code = """
            threads = [threading.Thread(target=spans, args=(2000,)) for _ in range(2)]
            for thread in threads: thread.start()
            pids = []
            for number in range(8):
                pid = os.fork()
                if pid == 0:
                    spans(20, "child")
                    os._exit(0)
                pids.append(pid)
            for pid in pids: os.waitpid(pid, 0)
            for thread in threads: thread.join()
        """
        records, _ = output(code)
        no_gap_no_repeat(records)
        assert len(instances(records)) == 9
        assert len(of(records, "span", "child")) == 160
        span_ids = [span["span_id"] for span in of(records, "span")]
        assert len(set(span_ids)) == len(span_ids) == 4160

    def test_multiprocessing(self, tmp_path):
        """Workers that are forked and workers that are spawned, on one pipe."""
        (tmp_path / "work.py").write_text(
            BEGIN
            + textwrap.dedent(
                """
                import multiprocessing
                def work(name):
                    spans(50, name)
                if __name__ == "__main__":
                    for method in ("fork", "spawn"):
                        context = multiprocessing.get_context(method)
                        workers = [context.Process(target=work, args=(method,)) for _ in range(2)]
                        for worker in workers: worker.start()
                        for worker in workers: worker.join()
                """
            )
        )
        done = subprocess.run(
            [sys.executable, tmp_path / "work.py"],
            stdout=subprocess.PIPE,
            env=environment(),
            timeout=SECONDS,
            check=True,
        )
        records = parse(done.stdout)
        no_gap_no_repeat(records)
        assert len(instances(records)) == 5
        assert len(of(records, "span", "fork")) == len(of(records, "span", "spawn")) == 100

    def test_several_processes_tear_no_line_on_one_pipe(self):
        """Lines up to 4,096 bytes, four writers at once, a pipe that is full most of the time."""
        code = """
            for size in (1, 2, 3):
                if os.fork() == 0:
                    break
            for number in range(150):
                spans(1, "one", filling="x" * (number * 24))
            for _ in range(3):
                try: os.wait()
                except ChildProcessError: break
        """
        with program(code, GYMLOG_WRITE_WAIT_SECONDS="10") as process:
            data = process.stdout.read()
        lines = data.splitlines(keepends=True)
        assert max(map(len, lines)) <= 4096
        assert max(map(len, lines)) > 3900
        records = parse(data)
        no_gap_no_repeat(records)
        assert len(of(records, "span", "one")) == 600


class TestStandardOutputs:
    """Whatever stdout is, the program goes on and says once on stderr what is the matter."""

    GOES_ON = """
        start = time.monotonic()
        spans(2000)
        assert time.monotonic() - start < 5
        assert handle.tracer_provider.service.sink.records_dropped >= 2000
        say("went on")
    """

    @pytest.mark.parametrize("redirect", [">&-", ">/dev/full"])
    def test_a_stdout_that_takes_nothing(self, redirect):
        """Closed, or a full disk: every record is counted."""
        shell = ["bash", "-c", f'exec "$@" {redirect}', "-"]
        _, err = output(self.GOES_ON, before=shell)
        lines = err.splitlines()
        assert len(lines) == 2
        assert "cannot be written to" in lines[0]
        assert lines[1] == "went on"

    def test_a_reader_that_left(self):
        """As `program | head -1` does."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            _, err = output(self.GOES_ON, stdout=write_end)
        finally:
            os.close(write_end)
        assert "cannot be written to" in err
        assert len(err.splitlines()) == 2

    @pytest.mark.parametrize("with_stderr", [False, True], ids=["stdout", "2>&1"])
    def test_a_full_pipe_that_nobody_reads(self, full_pipe, with_stderr):
        """Writes return within the bound; drops stand in the next process record."""
        write_end, read_end = full_pipe
        code = """
            start = time.monotonic()
            spans(2000)
            elapsed = time.monotonic() - start
            sys.stdin.readline()
            gymlog.shutdown_telemetry()
            sys.exit(elapsed > 1.5)
        """
        process = subprocess.Popen(
            [sys.executable, "-c", BEGIN + textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=write_end,
            stderr=write_end if with_stderr else subprocess.DEVNULL,
            env=environment(GYMLOG_PROCESS_INTERVAL_SECONDS="600"),
        )
        with process:
            try:
                os.set_blocking(read_end, False)
                # The pipe takes nothing until the program has written all its spans: the line on
                # its stdin is what it reads after them.
                time_limit = time.monotonic() + SECONDS
                while process.poll() is None and not _waits_for_stdin(process.pid):
                    assert time.monotonic() < time_limit, "the program is stuck"
                    select.select([], [], [], 0.02)
                with contextlib.suppress(BlockingIOError):
                    while os.read(read_end, 65_536):
                        pass
                process.stdin.write(b"\n")
                process.stdin.close()
                assert process.wait(SECONDS) == 0, "writing took longer than its bound"
            finally:
                process.kill()
        data = os.read(read_end, 65_536)
        last = json.loads(data.splitlines()[-1])
        assert last["state"] == "stopped"
        assert last["records_dropped"] == 2001
        assert last["spans_written"] == 0

    def test_a_file_that_the_host_opens_as_fd_1_gets_no_line(self, tmp_path):
        """stdout closed, so the next file that is opened has its number: it is not stdout."""
        path = tmp_path / "data"
        code = f"""
            file = open({str(path)!r}, "wb", buffering=0)
            assert file.fileno() == 1
            file.write(b"data")
            handle.tracer_provider.service.sweep()
            spans(3)
            handle.tracer_provider.service.sweep()
            spans(3)
        """
        output(code, before=["bash", "-c", 'exec "$@" >&-', "-"])
        assert path.read_bytes() == b"data"

    def test_a_log_that_is_put_on_fd_1_later_is_followed(self, tmp_path):
        """As a daemon does with dup2."""
        path = tmp_path / "log"
        code = f"""
            spans(1, "early")
            log = open({str(path)!r}, "ab")
            os.dup2(log.fileno(), 1)
            handle.tracer_provider.service.sweep()
            spans(1, "late")
        """
        records, _ = output(code)
        assert of(records, "span", "early")
        late = parse(path.read_bytes())
        assert of(late, "span", "late")
        no_gap_no_repeat(records + late)

    def test_out_of_descriptors(self):
        """No descriptor is left when a child starts anew: its lines still pass."""
        code = """
            import resource
            held = []
            try:
                while True: held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError: pass
            pid = os.fork()
            spans(5, "child" if pid == 0 else "parent")
            if pid: os.waitpid(pid, 0)
            else: os._exit(0)
        """
        records, _ = output(code, before=["bash", "-c", 'ulimit -n 64; exec "$@"', "-"])
        assert len(of(records, "span", "child")) == len(of(records, "span", "parent")) == 5

    def test_a_file_truncated_under_the_writer(self, tmp_path):
        """Log rotation by copying and truncating: what is written afterwards is there."""
        path = tmp_path / "log"
        with (
            open(path, "ab") as log,
            program(
                'spans(5, "old"); say("x"); sys.stdin.readline(); spans(5, "new")', stdout=log
            ) as process,
        ):
            await_word(process)
            os.truncate(path, 0)
            process.communicate(b"\n", timeout=SECONDS)
        assert len(of(parse(path.read_bytes()), "span", "new")) == 5


def _waits_for_stdin(pid):
    """Say whether a process sleeps in a read of its stdin."""
    try:
        with open(f"/proc/{pid}/syscall") as file:
            return file.read().split()[:2] == ["0", "0x0"]
    except OSError:
        return False


class TestC21NonBlockingStdout:
    """A host that made stdout non-blocking, and a reader that is too slow."""

    CODE = """
        os.set_blocking(1, False)
        late = []
        async def ping(stop):
            while not stop.is_set():
                start = time.monotonic()
                await asyncio.sleep(0.01)
                late.append(time.monotonic() - start)
        async def task(number):
            for _ in range(SPANS):
                spans(1, "big", filling="x" * 50_000)
                await asyncio.sleep(0)
        async def main():
            stop = asyncio.Event()
            pinging = asyncio.ensure_future(ping(stop))
            big = lambda: spans(SPANS, "big", filling="x" * 50_000)
            threads = [asyncio.to_thread(big) for _ in range(2)]
            await asyncio.gather(*(task(n) for n in range(8)), *threads)
            stop.set()
            await pinging
        RUN
        assert not os.get_blocking(1)
        assert max(late) < 1, max(late)
        say("done")
        sys.stdin.readline()
    """

    @pytest.mark.parametrize(
        "run",
        ["asyncio.run(main())", "import uvloop; uvloop.run(main())"],
        ids=["asyncio", "uvloop"],
    )
    def test_every_line_that_arrives_is_whole(self, run):
        """Finished before the next one starts, or dropped whole and counted; no exception."""
        code = self.CODE.replace("SPANS", "25").replace("RUN", run)
        variables = {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "60000"}
        with program(code, stdout=subprocess.PIPE, **variables) as process:
            out, err = process.stdout.fileno(), process.stderr.fileno()
            data = said = b""
            while b"done" not in said:
                ready, _, _ = select.select([out, err], [], [], SECONDS)
                assert ready, "nothing comes any more"
                data += os.read(out, 65_536) if out in ready else b""
                said += os.read(err, 65_536) if err in ready else b""
                select.select([], [], [], 0.03)
            # Now the reader is quick; the program ends when it has room for its last lines.
            while select.select([out], [], [], 0.3)[0]:
                data += os.read(out, 65_536)
            process.stdin.write(b"\n")
            process.stdin.close()
            data += process.stdout.read()
            assert process.wait(SECONDS) == 0, process.stderr.read().decode()
        records = parse(data)
        arrived = of(records, "span", "big")
        assert all(span["attributes"]["filling"] == "x" * 50_000 for span in arrived)
        last = records[-1]
        assert last["state"] == "stopped"
        assert len(records) - 1 + last["records_dropped"] == last["seq"]
        assert 0 < len(arrived) < 250, "the reader was meant to be too slow"


def test_c19_objects_of_every_kind_leave_the_span_whole(telemetry):
    """One line, known types by value, others as short text, the other attributes intact."""

    class Tensor:
        def __repr__(self):
            raise RuntimeError("no repr")

    class Key(str):
        __slots__ = ()

    @dataclasses.dataclass
    class Point:
        x: int

    class Model(pydantic.BaseModel):
        x: int

    cycle: dict = {}
    cycle["self"] = cycle
    deep: dict = {}
    for _ in range(300):
        deep = {"d": deep}
    with telemetry.tracer.start_as_current_span("request") as span:
        for key, value in {
            "float32": np.float32(0.5),
            "arange": np.arange(3),
            "tensor": Tensor(),
            "naive": dt.datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001 - naive is the case
            "uuid": uuid.UUID(int=1),
            "decimal": decimal.Decimal("1.50"),
            "set": {7},
            "dataclass": Point(1),
            "model": Model(x=1),
            Key("key"): "subclass",
            "cycle": cycle,
            "deep": deep,
            "list": list(range(100_000)),
            "text": "a\nb\u2028c\x00d",
            "before": 1,
        }.items():
            span.set_attribute(key, value)
    line = telemetry.file.writes[-1]
    assert line.count(b"\n") == 1
    assert len(line) <= 65_536
    attributes = json.loads(line)["attributes"]
    assert len(attributes) == 15, list(attributes)
    assert attributes.pop("deep")["d"]["d"]
    assert attributes.pop("list")[:3] == [0, 1, 2]
    assert attributes.pop("dataclass").endswith("Point(x=1)")
    assert attributes == {
        "float32": 0.5,
        "arange": [0, 1, 2],
        "tensor": "<Tensor>",
        "naive": "2026-01-02T03:04:05",
        "uuid": "00000000-0000-0000-0000-000000000001",
        "decimal": "1.50",
        "set": [7],
        "model": "Model(x=1)",
        "key": "subclass",
        "cycle": {"self": "<cycle>"},
        "text": "a\nb\u2028c\x00d",
        "before": 1,
    }
