"""How a process may end: kills, signals, exits; what had ended is in the log, and nothing hangs."""

import os
import select
import signal
import subprocess
import time

import pytest


class TestC12Ends:
    """A process that ends in any way leaves every span that had ended, as a whole line."""

    OPEN = """
        with managed_span("job", "root"):
            spans(10)
            say("ready")
            {how}
    """

    @pytest.mark.parametrize("to_file", [True, False], ids=["file", "pipe"])
    def test_kill_9(self, program, to_file, tmp_path):
        """Nothing needs an exit hook."""
        with (
            open(tmp_path / "log", "wb") as log,
            program(
                self.OPEN.format(how="signal.pause()"), stdout=log if to_file else subprocess.PIPE
            ) as process,
        ):
            program.await_word(process)
            process.kill()
            out, _ = process.communicate(timeout=program.SECONDS)
        records = program.parse((tmp_path / "log").read_bytes() if to_file else out)
        assert len(records.of("span", "done")) == 10
        records.no_gap_no_repeat()

    def test_kill_9_names_what_was_open_for_long(self, program):
        """A span over the threshold has its span_start."""
        with program(
            self.OPEN.format(how="signal.pause()"), GYMLOG_SPAN_START_AFTER_SECONDS="0.05"
        ) as process:
            data = b""
            while b'"span_start"' not in data:
                assert select.select([process.stdout], [], [], program.SECONDS)[0]
                data += os.read(process.stdout.fileno(), 65_536)
            process.kill()
        assert b'"name":"root"' in data.partition(b'"span_start"')[2]

    def test_kill_9_under_load(self, program):
        """Whatever moment: no torn line but the last, no gap."""
        with program('say("ready")\nspans(10**9)') as process:
            program.await_word(process)
            data = b""
            while len(data) < 500_000:
                data += os.read(process.stdout.fileno(), 65_536)
            process.kill()
            data += process.stdout.read()
        program.parse(data[: data.rindex(b"\n") + 1]).no_gap_no_repeat()

    def test_os_exit_of_a_thread(self, program):
        """As a crash of a library ends it."""
        how = "threading.Thread(target=lambda: os._exit(3)).start(); signal.pause()"
        with program(self.OPEN.format(how=how)) as process:
            out, _ = process.communicate(timeout=program.SECONDS)
            assert process.returncode == 3
        assert len(program.parse(out).of("span", "done")) == 10

    def test_an_ordinary_exit_and_an_unhandled_exception(self, program):
        """The span has the exception, the process its `stopped`."""
        with program(self.OPEN.format(how="raise ValueError('boom')")) as process:
            out, _ = process.communicate(timeout=program.SECONDS)
        records = program.parse(out)
        assert records.of("span", "root")[0]["status"]["message"] == "ValueError: boom"
        assert [record["state"] for record in records.of("process")] == ["started", "stopped"]

    def test_sigterm(self, program):
        """The open root is named, `stopped` is the last line, and the signal ends the process."""
        with program(self.OPEN.format(how="signal.pause()")) as process:
            program.await_word(process)
            process.terminate()
            out, _ = process.communicate(timeout=program.SECONDS)
            assert process.returncode == -signal.SIGTERM
        records = program.parse(out)
        assert records.of("span_start", "root")
        assert records[-1]["state"] == "stopped"
        assert records[-1]["open_spans"] == 1
        records.no_gap_no_repeat()

    def test_sigterm_in_the_middle_of_a_write(self, program):
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
            out, _ = process.communicate(timeout=program.SECONDS)
            assert process.returncode == -signal.SIGTERM
        records = program.parse(out)
        assert records.of("span_start", "root")
        assert records[-1]["record_type"] == "process"
        assert records[-1]["state"] == "stopped"
        records.no_gap_no_repeat()

    def test_sigterm_while_nobody_reads_the_full_pipe(self, program, full_pipe):
        """The process ends; it does not wait for a reader."""
        with program(
            'with managed_span("job", "root"):\n    spans(10)\n    say("ready"); signal.pause()',
            stdout=full_pipe[0],
        ) as process:
            while program.await_word(process) != "ready":
                pass
            start = time.monotonic()
            process.terminate()
            assert process.wait(program.SECONDS) == -signal.SIGTERM
            assert time.monotonic() - start < 2

    def test_an_ordinary_exit_while_nobody_reads_the_full_pipe(self, program, full_pipe):
        """What runs at exit waits no longer than a write may."""
        code = """
            root = handle.tracer.start_span("root")
            spans(10)
            say("ready")
        """
        with program(code, stdout=full_pipe[0]) as process:
            while program.await_word(process) != "ready":
                pass
            start = time.monotonic()
            assert process.wait(program.SECONDS) == 0
            assert time.monotonic() - start < 2

    def test_sigint(self, program):
        """As Ctrl-C: the exception is on the span that it left, `stopped` is the last line."""
        with program(self.OPEN.format(how="signal.pause()")) as process:
            program.await_word(process)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=program.SECONDS)
            assert process.returncode == -signal.SIGINT
        records = program.parse(out)
        (root,) = records.of("span", "root")
        assert root["attributes"]["error.type"] == "KeyboardInterrupt"
        assert root["status"]["code"] == "ERROR"
        assert records[-1]["state"] == "stopped"
        records.no_gap_no_repeat()

    def test_sigterm_while_a_thread_keeps_the_process_alive(self, program):
        """The main thread is over, another one hangs with a span open: both are told."""
        code = """
            def hang():
                with managed_span("job", "hanging"):
                    say("ready")
                    threading.Event().wait()
            threading.Thread(target=hang).start()
        """
        with program(code) as process:
            program.await_word(process)
            process.terminate()
            out, _ = process.communicate(timeout=program.SECONDS)
            assert process.returncode == -signal.SIGTERM
        records = program.parse(out)
        assert records.of("span_start", "hanging")
        assert records[-1]["state"] == "stopped"

    @pytest.mark.parametrize("to_file", [True, False], ids=["file", "pipe"])
    def test_signal_handlers_and_finalisers_at_any_moment(self, program, to_file, tmp_path):
        """Both may end spans in the middle of a write, under load of threads: no line is lost."""
        code = """
            import gc
            ended = {"signal": 0, "finaliser": 0}
            def handler(number, frame):
                spans(1, "signal")
                ended["signal"] += 1
            class Holder:
                def __init__(self):
                    self.cycle = self
                    self.span = handle.tracer.start_span("finaliser")
                def __del__(self):
                    self.span.end()
                    ended["finaliser"] += 1
            signal.signal(signal.SIGALRM, handler)
            gc.set_threshold(20)
            threads = [threading.Thread(target=spans, args=(1500, "thread")) for _ in range(2)]
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.0007)
            for thread in threads: thread.start()
            for _ in range(1500):
                Holder()
                spans(1, "main")
            while ended["signal"] < 20: pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            for thread in threads: thread.join()
            gc.collect()
            say(f"{ended['signal']} {ended['finaliser']}")
        """
        log = tmp_path / "log"
        with open(log, "wb") as file:
            stdout = file if to_file else subprocess.PIPE
            with program(code, stdout=stdout, GYMLOG_WRITE_WAIT_SECONDS="10") as process:
                out, err = process.communicate(timeout=program.SECONDS)
        records = program.parse(log.read_bytes() if to_file else out)
        by_signal, by_finaliser = map(int, err.split())
        records.no_gap_no_repeat()
        assert len(records.of("span", "signal")) == by_signal >= 20
        assert len(records.of("span", "finaliser")) == by_finaliser == 1500
        assert len(records.of("span", "thread")) == 3000
        assert len(records.of("span", "main")) == 1500

    def test_a_handler_of_the_hosts_stays(self, program):
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
        program.output(code)

    @pytest.mark.parametrize(
        "where",
        ["before the server runs", "in the running server"],
    )
    def test_sigterm_of_a_uvicorn_server(self, program, where):
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
            while program.await_word(process) != "ready":
                pass
            start = time.monotonic()
            process.terminate()
            out, err = process.communicate(timeout=program.SECONDS)
            assert time.monotonic() - start < 3
        records = program.parse(out)
        assert len(records.of("span", "done")) == 10
        assert records.of("span_start", "root"), err.decode()
        assert records[-1]["state"] == "stopped"
