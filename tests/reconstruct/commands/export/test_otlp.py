"""`reconstruct export otlp`: which spans go, what is said about them, the exit code."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse


class Receiver(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes what it gets, or refuses it with `refusal`."""

    def __init__(self):
        self.spans = []
        self.refusal = None
        self._server = grpc.server(ThreadPoolExecutor(max_workers=1))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.endpoint = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def Export(self, request, context):  # noqa: N802  # the service's own name for it
        if self.refusal:
            context.abort(*self.refusal)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans += scope.spans
        return ExportTraceServiceResponse()

    def close(self):
        self._server.stop(grace=None).wait()


@pytest.fixture
def receiver():
    with closing(Receiver()) as server:
        yield server


@pytest.fixture
def export(run, receiver):
    def run_export(*arguments):
        options = ["--endpoint", receiver.endpoint, "--protocol", "grpc"]
        return run("export", "otlp", "logs", *options, *arguments)

    return run_export


def test_all_finished_spans_go_and_one_line_says_so(logs, export, receiver):
    done = export()
    address = receiver.endpoint.removeprefix("http://")
    assert (done.code, done.out) == (0, "")
    assert done.err == (
        f"exported 9 spans in 1 batch to {address} (gRPC); held back 0 unfinished\n"
    )
    assert len({span.span_id for span in receiver.spans}) == 9


def test_unfinished_spans_are_held_back_and_counted(logs, export, receiver):
    logs["driver"].span(0xC0, 0xC01, None, "gym.rollout", 300, None)
    done = export()
    assert done.code == 0
    assert done.err.endswith("held back 1 unfinished\n")
    assert len(receiver.spans) == 9


@pytest.mark.parametrize(
    "arguments", [("--rollout", "1-0"), ("--trace", f"{0xA1:032x}"), ("--trace", f"0x{0xA1:032X}")]
)
def test_one_rollout_or_trace_can_be_chosen(arguments, logs, export, receiver):
    assert export(*arguments).code == 0
    assert {span.trace_id.hex() for span in receiver.spans} == {f"{0xA1:032x}"}
    assert len(receiver.spans) == 3


@pytest.mark.parametrize("arguments", [("--rollout", "7-7"), ("--trace", "ff")])
def test_an_unknown_choice_sends_nothing(arguments, logs, export, receiver):
    done = export(*arguments)
    assert done.code == 1
    assert done.err.startswith(f"error: no rollout or trace '{arguments[1]}'")
    assert receiver.spans == []


def test_json_says_the_same_as_data(logs, export, receiver):
    done = export("--json")
    assert done.json["held_back"] == 0
    assert [facts["signal"] for facts in done.json["signals"]] == ["traces", "logs", "metrics"]
    assert done.json["signals"][0] == {
        "signal": "traces",
        "destination": f"{receiver.endpoint.removeprefix('http://')} (gRPC)",
        "sent": 9,
        "sent_before": 0,
        "not_sent": 0,
        "requests": 1,
        "stopped": None,
    }


def test_a_refusal_is_4_with_the_receivers_words_and_names_spans(logs, export, receiver):
    receiver.refusal = (grpc.StatusCode.INVALID_ARGUMENT, "no such tenant")
    done = export()
    assert (done.code, done.out) == (4, "")
    assert done.err.count("INVALID_ARGUMENT: no such tenant") == 9
    assert "not sent: span " in done.err
    assert "error: 9 of 9 spans did not arrive at" in done.err.splitlines()[-1]


def test_unreachable_is_4_and_says_why(logs, export, receiver):
    receiver.close()
    done = export("--timeout", "1")
    assert done.code == 4
    assert "exported 0 spans in 0 batches to" in done.err
    assert "refused" in done.err.splitlines()[-1]


def test_the_protocol_comes_from_the_standard_variable(logs, run, receiver, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.endpoint)
    assert run("export", "otlp", "logs").code == 0
    assert len(receiver.spans) == 9
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "thrift")
    done = run("export", "otlp", "logs")
    assert done.code == 2
    assert "protocol 'thrift' is not spoken here" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("--headers", "no-value"),
        ("--timeout", "0"),
        ("--endpoint", "https://localhost:1", "--insecure"),
        ("--protocol", "thrift"),
        ("--signals", "spans"),
    ],
)
def test_wrong_usage_is_2(arguments, logs, export, receiver):
    assert export(*arguments).code == 2
    assert receiver.spans == []


def test_a_second_run_sends_only_what_is_new(logs, export, receiver):
    assert export().code == 0
    logs["driver"].span(0xC0, 0xC01, None, "gym.rollout", 300, 400)
    done = export()
    assert done.code == 0
    assert done.err.startswith("exported 1 span in 1 batch to ")
    assert done.err.endswith("; 9 had arrived before\n")
    assert len(receiver.spans) == 10
    assert export("--again").code == 0
    assert len(receiver.spans) == 20


def test_after_an_outage_the_rest_goes_and_nothing_twice(logs, export, receiver):
    receiver.refusal = (grpc.StatusCode.UNAVAILABLE, "restarting")
    assert export("--timeout", "0.3").code == 4
    receiver.refusal = None
    assert export("--max-bytes", "1000").code == 0
    assert sorted(span.span_id for span in receiver.spans) == sorted(
        {span.span_id for span in receiver.spans}
    )
    assert len(receiver.spans) == 9


def test_without_a_store_nothing_is_remembered(logs, export, receiver):
    for _ in range(2):
        assert export("--no-store").code == 0
    assert len(receiver.spans) == 18


def test_unfinished_spans_can_go_marked_and_go_again_when_they_end(logs, export, receiver):
    logs["driver"].span(0xC0, 0xC01, None, "gym.rollout", 300, None)
    assert export("--unfinished", "mark").code == 0
    (marked,) = [span for span in receiver.spans if span.trace_id.hex() == f"{0xC0:032x}"]
    assert ("gymlog.unfinished", True) in [
        (pair.key, pair.value.bool_value) for pair in marked.attributes
    ]
    assert marked.end_time_unix_nano > marked.start_time_unix_nano
    logs["driver"].span(0xC0, 0xC01, None, "gym.rollout", 300, 900)
    done = export()
    assert done.err.startswith("exported 1 span in 1 batch")


def test_a_signal_that_is_not_taken_does_not_spoil_the_others(logs, export, receiver):
    point = {"name": "n", "unit": "1", "type": "gauge", "time_unix_nano": 10**18, "value": 1.5}
    resource = {"attributes": {"service.name": "gym/driver"}}
    logs["driver"].record("metric", **point, attributes={}, resource=resource)
    done = export()
    assert done.code == 4
    assert len(receiver.spans) == 9
    assert done.err.startswith("exported 9 spans in 1 batch")
    assert "error: 1 of 1 metric point did not arrive at" in done.err.splitlines()[-1]
    assert "UNIMPLEMENTED" in done.err.splitlines()[-1]
    assert export("--signals", "traces").code == 0
