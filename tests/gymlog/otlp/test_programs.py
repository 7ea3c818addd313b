"""Programs that send as they go: all signals, forks, kills, and receivers that are away or slow."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

SECONDS = 30
"""More than anything here takes; what is not there by then hangs."""

EVERYTHING = {
    "NEMO_GYM_OTEL_LOGS_ENABLED": "1",
    "NEMO_GYM_OTEL_METRICS_ENABLED": "1",
}
OTLP = {"NEMO_GYM_OTEL_EXPORTER": "otlp"}
BOTH = {"NEMO_GYM_OTEL_EXPORTER": " OTLP , console"}
FORKS = {"PYTHONWARNINGS": "ignore::DeprecationWarning"}
"""Python 3.12 and later warn of a fork beside threads."""


def test_all_signals_go_over_either_protocol(program, receiver, plain):
    """Spans, log records and metrics, exact, with the whole resource; only processes are lines."""
    records, said = program.output(
        """
        import logging
        counter = handle.meter.create_counter("done")
        with gymlog.rollout_context("3-1"), managed_span("verify", "gym.verify", a=1) as span:
            span.add_event("mark", {"n": 1})
            logging.getLogger("app").warning("hello")
            counter.add(3)
        """,
        **EVERYTHING, **OTLP, **receiver.variables,
    )  # fmt: skip
    assert said == "hello\n"
    assert {record["record_type"] for record in records} == {"process"}
    whole = records[0]["resource"]["attributes"]
    ((span, scope, resource),) = receiver.owned_spans
    assert plain(resource.attributes) == whole
    assert (span.name, scope.name, span.flags) == ("gym.verify", "", 0x103)
    assert plain(span.attributes) == {"a": 1, "nemo.gym.rollout.id": "3-1"}
    assert [event.name for event in span.events] == ["mark"]
    (log,) = receiver.logs
    assert log.body.string_value == "hello"
    assert (log.trace_id, log.span_id) == (span.trace_id, span.span_id)
    done = [metric for metric in receiver.metrics if metric.name == "done"]
    assert [point.as_int for metric in done for point in metric.sum.data_points][-1:] == [3]


def test_both_are_the_same_spans(program, receiver):
    """The words may stand in any order, with blanks."""
    records, _ = program.output("spans(1000)", **BOTH, **receiver.variables)
    written = {record["span_id"]: record for record in records.of("span")}
    sent = {span.span_id.hex(): span for span in receiver.spans}
    assert len(written) == 1000
    assert written.keys() == sent.keys()
    for span_id, record in written.items():
        span = sent[span_id]
        assert span.trace_id.hex() == record["trace_id"]
        assert span.start_time_unix_nano == record["start_time_unix_nano"]
        assert span.end_time_unix_nano == record["end_time_unix_nano"]
    records.no_gap_no_repeat()
    assert "export_failed" not in records.of("process")[-1]


def test_spans_arrive_while_the_program_runs(program, receiver):
    """After the schedule delay, not at its end."""
    code = "spans(3); say('made'); sys.stdin.read()"
    with program(code, OTEL_BSP_SCHEDULE_DELAY="10", **OTLP, **receiver.variables) as process:
        assert program.await_word(process) == "made"
        while len(receiver.spans) < 3:
            assert receiver.arrived.get(timeout=SECONDS) == "traces"
        assert process.poll() is None


def test_an_unknown_exporter_is_one_notice_and_lines(program):
    """As ever."""
    records, said = program.output("spans(1)", NEMO_GYM_OTEL_EXPORTER="otlp,jaeger")
    assert len(records.of("span")) == 1
    (line,) = said.splitlines()
    assert "'otlp,jaeger'" in line
    assert "console, otlp" in line


def test_nobody_there_costs_a_program_nothing_but_its_spans(program, nobody):
    """Each is counted, one notice says why, and the end is within its bound."""
    records, said = program.output(
        """
        spans(700)
        began = time.monotonic()
        gymlog.shutdown_telemetry(timeout_ms=700)
        assert time.monotonic() - began < 5
        """,
        **BOTH, **nobody,
    )  # fmt: skip
    assert len(records.of("span")) == 700, "the log has them all"
    last = records.of("process")[-1]
    assert last["state"] == "stopped"
    assert last.get("export_failed", 0) + last.get("export_dropped", 0) == 700
    assert 1 <= len(said.splitlines()) <= 2
    assert all(line.startswith("gymlog: spans ") for line in said.splitlines())


def test_the_notice_says_where_and_why(program, nobody):
    """And in which field the loss is counted."""
    records, said = program.output(
        "spans(600); handle.tracer_provider.service.sink.flush(20)",
        OTEL_EXPORTER_OTLP_TIMEOUT="0.3", **OTLP, **nobody,
    )  # fmt: skip
    (line,) = said.splitlines()
    assert nobody["OTEL_EXPORTER_OTLP_ENDPOINT"].removeprefix("http://") in line
    assert "refused" in line.lower()
    assert "export_failed" in line
    assert records.of("process")[-1]["export_failed"] == 600


def test_what_a_slow_receiver_leaves_no_room_for_is_counted(program, receiver):
    """Sent and dropped add up; the program is not held up."""
    may_go = threading.Event()
    receiver.answer = lambda *_: may_go.wait(SECONDS) and None
    with program(
        "spans(3000); say('made'); sys.stdin.read()",
        OTEL_BSP_MAX_QUEUE_SIZE="1000", **OTLP, **receiver.variables,
    ) as process:  # fmt: skip
        assert "export_dropped" in program.await_word(process)
        assert program.await_word(process) == "made"
        may_go.set()
        out, _ = process.communicate(timeout=SECONDS)
    last = program.parse(out).of("process")[-1]
    assert len(receiver.spans) + last["export_dropped"] == 3000
    assert 1000 <= len(receiver.spans) < 2500
    assert "export_failed" not in last


def test_a_forked_child_sends_its_own_and_nothing_of_its_parents(program, receiver, plain):
    """By queues of its own, under its own instance id, as often as it forks."""
    records, said = program.output(
        """
        spans(5, "of parent before")
        children = []
        for _ in range(4):
            pid = os.fork()
            if not pid:
                spans(3, "of child")
                sys.exit()
            children.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
        spans(5, "of parent after")
        """,
        **FORKS, **BOTH, **receiver.variables,
    )  # fmt: skip
    assert said == ""
    sent = [
        (span.name, plain(resource.attributes)["service.instance.id"], span.span_id.hex())
        for span, _, resource in receiver.owned_spans
    ]
    written = [
        (one["name"], one["resource"]["attributes"]["service.instance.id"], one["span_id"])
        for one in records.of("span")
    ]
    assert sorted(sent) == sorted(written)
    assert len(set(written)) == 5 + 4 * 3 + 5
    assert len({instance for _, instance, _ in sent}) == 5


def test_a_child_forked_while_its_parent_sends(program, receiver):
    """The parent's exporter has a connection and a request under way."""
    _, said = program.output(
        """
        spans(600, "of parent")
        sink = handle.tracer_provider.service.sink
        assert sink.flush(20)
        stop = threading.Event()
        def send():
            while not stop.is_set():
                spans(5, "of parent")
                sink.flush(20)
        thread = threading.Thread(target=send)
        thread.start()
        for _ in range(5):
            pid = os.fork()
            if not pid:
                spans(3, "of child")
                began = time.monotonic()
                gymlog.shutdown_telemetry()
                os._exit(time.monotonic() - began > 10)
            assert os.waitpid(pid, 0)[1] == 0
        stop.set()
        thread.join()
        """,
        **FORKS, **BOTH, **receiver.variables,
    )  # fmt: skip
    assert len([span for span in receiver.spans if span.name == "of child"]) == 15
    assert said == ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_loses_what_waits_and_the_log_has_it(number, program, grpc_receiver):
    """A SIGTERM sends it first."""
    code = "spans(20); say('made'); time.sleep(60)"
    with program(code, **BOTH, **grpc_receiver.variables) as process:
        assert program.await_word(process) == "made"
        process.send_signal(number)
        out, _ = process.communicate(timeout=SECONDS)
    assert len(program.parse(out).of("span")) == 20
    assert len(grpc_receiver.spans) == (20 if number == signal.SIGTERM else 0)


def test_an_exit_from_a_thread_pool_or_uvloop_is_no_different(program, receiver):
    """The queue cares for neither."""
    _, said = program.output(
        """
        import uvloop
        async def work():
            with managed_span("verify", "in loop"):
                await asyncio.to_thread(spans, 3, "in thread")
        uvloop.run(work())
        """,
        **OTLP, **receiver.variables,
    )  # fmt: skip
    assert sorted(span.name for span in receiver.spans) == ["in loop", *["in thread"] * 3]
    assert said == ""


def test_an_instrumented_http_client_does_not_trace_the_exporter(program, http_receiver):
    """Else each request would make spans for the next one, for ever."""
    _, said = program.output(
        """
        import requests
        from opentelemetry import trace
        from opentelemetry.instrumentation.utils import is_instrumentation_enabled
        plain = requests.Session.send
        def send(self, *args, **kwargs):
            if not is_instrumentation_enabled():
                return plain(self, *args, **kwargs)
            with trace.get_tracer("requests").start_as_current_span("POST"):
                return plain(self, *args, **kwargs)
        requests.Session.send = send
        spans(600)
        assert handle.tracer_provider.service.sink.flush(20)
        """,
        **OTLP, **http_receiver.variables,
    )  # fmt: skip
    assert {span.name for span in http_receiver.spans} == {"done"}
    assert said == ""


class Rotel:
    """The rotel collector, printing every span that it is sent."""

    def __init__(self):
        with (
            closing(socket.create_server(("127.0.0.1", 0))) as one,
            closing(socket.create_server(("127.0.0.1", 0))) as other,
        ):
            self.ports = {
                "grpc": one.getsockname()[1],
                "http/protobuf": other.getsockname()[1],
            }
        binary = Path(find_spec("rotel").origin).with_name("rotel-agent")
        self._process = subprocess.Popen(
            [
                binary, "start", "--exporter=blackhole", "--debug-log=traces",
                "--debug-log-verbosity=detailed",
                f"--otlp-grpc-endpoint=127.0.0.1:{self.ports['grpc']}",
                f"--otlp-http-endpoint=127.0.0.1:{self.ports['http/protobuf']}",
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + SECONDS
        for port in self.ports.values():
            while True:
                assert self._process.poll() is None
                assert time.monotonic() < deadline, "rotel does not listen"
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    continue

    def printed(self):
        self._process.terminate()
        return self._process.communicate(timeout=SECONDS)[0]

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.mark.skipif(
    sys.platform != "linux" or sys.version_info >= (3, 14), reason="rotel has no wheel for it"
)
@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
def test_a_collector_that_nobody_here_wrote_prints_what_the_lines_say(protocol, program):
    """Ids, parents, times, kinds and attributes of every span."""
    with closing(Rotel()) as rotel:
        records, said = program.output(
            """
            for number in range(50):
                with managed_span("verify", f"outer {number}", number=number, share=number / 7):
                    spans(2, "inner", flag=True)
            """,
            OTEL_EXPORTER_OTLP_PROTOCOL=protocol,
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{rotel.ports[protocol]}",
            **BOTH,
        )
        assert said == ""
        text = rotel.printed()
    printed = {
        found["span"]: found.groupdict()
        for found in re.finditer(
            r"Trace ID +: (?P<trace>\w+)\s+Parent ID +: (?P<parent>\w*)\s+ID +: (?P<span>\w+)\s+"
            r"Name +: (?P<name>[^\n]*?)\s*\n\s*Kind +: (?P<kind>\w+)(?:\s+TraceState +:[^\n]*)?"
            r"\s+Start time *: (?P<start>\d+)\s+End time *: (?P<end>\d+)",
            text,
        )
    }
    spans = records.of("span")
    assert len(spans) == len(printed) == 150
    for record in spans:
        found = printed[record["span_id"]]
        assert found == {
            "trace": record["trace_id"],
            "parent": record["parent_span_id"] or "",
            "span": record["span_id"],
            "name": record["name"],
            "kind": f"SPAN_KIND_{record['kind']}",
            "start": str(record["start_time_unix_nano"]),
            "end": str(record["end_time_unix_nano"]),
        }
    assert text.count("-> flag: Bool(true)") == 100
    assert json.dumps(records[0]["resource"]["attributes"]["service.instance.id"])[1:-1] in text
