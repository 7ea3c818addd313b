"""Whatever standard output is, the program goes on and says once what is the matter."""

import contextlib
import json
import os
import select
import subprocess
import sys
import textwrap
import time

import pytest


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
    def test_a_stdout_that_takes_nothing(self, program, redirect):
        """Closed, or a full disk: every record is counted."""
        shell = ["bash", "-c", f'exec "$@" {redirect}', "-"]
        _, err = program.output(self.GOES_ON, before=shell)
        lines = err.splitlines()
        assert len(lines) == 2
        assert "cannot be written to" in lines[0]
        assert lines[1] == "went on"

    def test_a_reader_that_left(self, program):
        """As `program | head -1` does."""
        read_end, write_end = os.pipe()
        os.close(read_end)
        try:
            _, err = program.output(self.GOES_ON, stdout=write_end)
        finally:
            os.close(write_end)
        assert "cannot be written to" in err
        assert len(err.splitlines()) == 2

    @pytest.mark.parametrize("with_stderr", [False, True], ids=["stdout", "2>&1"])
    def test_a_full_pipe_that_nobody_reads(self, program, full_pipe, with_stderr):
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
            [sys.executable, "-c", program.BEGIN + textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=write_end,
            stderr=write_end if with_stderr else subprocess.DEVNULL,
            env=program.environment(GYMLOG_PROCESS_INTERVAL_SECONDS="600"),
        )
        with process:
            try:
                os.set_blocking(read_end, False)
                # The pipe takes nothing until the program has written all its spans: the line on
                # its stdin is what it reads after them.
                time_limit = time.monotonic() + program.SECONDS
                while process.poll() is None and not _waits_for_stdin(process.pid):
                    assert time.monotonic() < time_limit, "the program is stuck"
                    select.select([], [], [], 0.02)
                with contextlib.suppress(BlockingIOError):
                    while os.read(read_end, 65_536):
                        pass
                process.stdin.write(b"\n")
                process.stdin.close()
                assert process.wait(program.SECONDS) == 0, "writing took longer than its bound"
            finally:
                process.kill()
        data = os.read(read_end, 65_536)
        last = json.loads(data.splitlines()[-1])
        assert last["state"] == "stopped"
        assert last["records_dropped"] == 2001
        assert last["spans_written"] == 0

    def test_a_file_that_the_host_opens_as_fd_1_gets_no_line(self, program, tmp_path):
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
        program.output(code, before=["bash", "-c", 'exec "$@" >&-', "-"])
        assert path.read_bytes() == b"data"

    def test_a_log_that_is_put_on_fd_1_later_is_followed(self, program, tmp_path):
        """As a daemon does with dup2."""
        path = tmp_path / "log"
        code = f"""
            spans(1, "early")
            log = open({str(path)!r}, "ab")
            os.dup2(log.fileno(), 1)
            handle.tracer_provider.service.sweep()
            spans(1, "late")
        """
        records, _ = program.output(code)
        assert records.of("span", "early")
        late = program.parse(path.read_bytes())
        assert late.of("span", "late")
        (records + late).no_gap_no_repeat()

    FEW = ("bash", "-c", 'ulimit -n 64; exec "$@"', "-")
    EXHAUST = """
        held = []
        try:
            while True: held.append(os.open("/dev/null", os.O_RDONLY))
        except OSError: pass
    """

    def test_out_of_descriptors_in_a_forked_child(self, program):
        """No descriptor is left when a child starts anew: its lines still pass."""
        code = """
            pid = os.fork()
            spans(5, "child" if pid == 0 else "parent")
            if pid: os.waitpid(pid, 0)
            else: os._exit(0)
        """
        records, err = program.output(
            textwrap.dedent(self.EXHAUST) + textwrap.dedent(code), before=self.FEW
        )
        assert len(records.of("span", "child")) == len(records.of("span", "parent")) == 5
        assert err.count("gymlog: ") == 1
        assert "Too many open files" in err

    def test_out_of_descriptors_in_a_server(self, program):
        """Requests on open connections are served, each has its span; nothing else is said."""
        code = """
            import contextlib, http.client, socket, uvicorn
            from fastapi import FastAPI
            app = FastAPI()
            gymlog.instrument_fastapi(app)
            @app.get("/fails")
            async def fails():
                with contextlib.suppress(ValueError), gymlog.span_cm("failing"):
                    raise ValueError("no descriptor for the source of this line either")
            @app.get("/ends")
            async def ends():
                return len(held)
            held = []
            listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen()
            server = uvicorn.Server(uvicorn.Config(app, log_config=None))
            run = lambda: server.run(sockets=[listener])
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            connection = http.client.HTTPConnection(*listener.getsockname())
            def ask(path):
                connection.request("GET", path)
                response = connection.getresponse()
                response.read()
                return response.status
            assert ask("/ends") == 200
            try:
                while True: held.append(os.open("/dev/null", os.O_RDONLY))
            except OSError: pass
            assert [ask("/fails") for _ in range(5)] == [200] * 5
            handle.tracer_provider.service.sweep()
            assert ask("/ends") == 200
            for fd in held: os.close(fd)
            server.should_exit = True
            thread.join()
        """
        records, err = program.output(code, before=self.FEW)
        assert len(records.of("span", "GET /ends")) == 2
        assert len(records.of("span", "GET /fails")) == 5
        assert all(span["events"] for span in records.of("span", "failing"))
        records.no_gap_no_repeat()
        assert err == ""

    def test_out_of_descriptors_from_the_start(self, program):
        """Not even a module can be loaded: telemetry stays off, says so once, the host goes on."""
        code = """
            for name in [name for name in sys.modules if name.startswith(("gymlog.c", "opentel"))]:
                del sys.modules[name]
            gymlog.setup._initialised = False
            gymlog.init_telemetry("again")
            gymlog.init_telemetry("again")
            spans(3, "never")
            say("went on")
        """
        stop = "gymlog.shutdown_telemetry()\n"
        records, err = program.output(
            stop + textwrap.dedent(self.EXHAUST) + textwrap.dedent(code), before=self.FEW
        )
        assert records.of("span") == []
        first, last = err.splitlines()
        assert "telemetry stays off" in first
        assert "Too many open files" in first
        assert last == "went on"


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
    def test_every_line_that_arrives_is_whole(self, program, run):
        """Finished before the next one starts, or dropped whole and counted; no exception."""
        code = self.CODE.replace("SPANS", "25").replace("RUN", run)
        variables = {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "60000"}
        with program(code, stdout=subprocess.PIPE, **variables) as process:
            out, err = process.stdout.fileno(), process.stderr.fileno()
            data = said = b""
            while b"done" not in said:
                ready, _, _ = select.select([out, err], [], [], program.SECONDS)
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
            assert process.wait(program.SECONDS) == 0, process.stderr.read().decode()
        records = program.parse(data)
        arrived = records.of("span", "big")
        assert all(span["attributes"]["filling"] == "x" * 50_000 for span in arrived)
        last = records[-1]
        assert last["state"] == "stopped"
        assert len(records) - 1 + last["records_dropped"] == last["seq"]
        assert 0 < len(arrived) < 250, "the reader was meant to be too slow"
