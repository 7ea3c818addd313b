"""Both protocols through OpenTelemetry's exporters: variables, answers, and silence on stderr."""

import logging
import threading
import time
from contextlib import closing

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import Counter, MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from gymlog.otlp.encoding import logs_request, trace_request
from gymlog.otlp.metric_exporters import metric_exporters
from gymlog.otlp.protocols import receiver_for
from gymlog.otlp.receiver import Outcome, quietly

RESOURCE = {"service.name": "agent"}


@pytest.fixture(autouse=True)
def _no_noise(caplog, capfd):
    """Whatever happens, the host's handlers and stderr get nothing from an exporter."""
    caplog.set_level(logging.DEBUG)
    yield
    assert [one for one in caplog.records if one.name.startswith("opentelemetry")] == []
    assert "grpc" not in capfd.readouterr().err


@pytest.fixture
def environment(monkeypatch):
    def put(variables):
        for name, text in variables.items():
            monkeypatch.setenv(name, text)

    return put


def send(records, signal="traces", most_seconds=10.0):
    """Send records in one request and return what came of it."""
    encode = {"traces": trace_request, "logs": logs_request}[signal]
    request, _ = encode(records, RESOURCE)
    with closing(receiver_for(signal, most_seconds)) as receiver, quietly():
        return receiver.send(request, len(records))


LOG = {
    "record_type": "log", "seq": 0, "time_unix_nano": 1, "severity_number": 9,
    "severity_text": "INFO", "body": "hello", "attributes": {},
}  # fmt: skip


def test_spans_arrive_as_they_are(receiver, environment, span_record):
    """With the W3C bits of their flags, which OpenTelemetry's own encoder drops."""
    environment(receiver.variables | {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"})
    environment({"OTEL_EXPORTER_OTLP_HEADERS": "x-api-key=abc"})
    assert send([span_record(1, flags=0x303), span_record(2, flags=0)]) == Outcome(0)
    assert [(one.name, one.flags) for one in receiver.spans] == [
        ("span 1", 0x303),
        ("span 2", 0),
    ]
    assert receiver.headers[0]["x-api-key"] == "abc"


def test_logs_go_by_the_protocol_that_is_set(receiver, environment):
    """The released package sends them over gRPC whatever is set."""
    environment(receiver.variables)
    assert send([LOG], "logs") == Outcome(0)
    assert [log.body.string_value for log in receiver.logs] == ["hello"]


def test_each_signal_has_variables_of_its_own(
    grpc_receiver, http_receiver, environment, span_record
):
    """Endpoint, protocol and headers, which count before those of all signals."""
    environment(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": grpc_receiver.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_HEADERS": "x-for=all",
            "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": f"{http_receiver.url}/v1/logs",
            "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_LOGS_HEADERS": "x-for=logs",
        }
    )
    assert send([span_record()]) == send([LOG], "logs") == Outcome(0)
    assert len(grpc_receiver.spans) == len(http_receiver.logs) == 1
    assert grpc_receiver.headers[0]["x-for"] == "all"
    assert (http_receiver.headers[0]["x-for"], http_receiver.paths) == ("logs", ["/v1/logs"])


def test_what_a_receiver_rejects_is_lost(receiver, environment, span_record):
    """Though it says that it took the request."""
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = 2
    response.partial_success.error_message = "too old"
    receiver.answer = lambda signal, request: response
    environment(receiver.variables)
    assert send([span_record(n) for n in (1, 2, 3)]) == Outcome(2, "too old")


def test_who_is_not_let_in_hears_why(receiver, environment, span_record):
    """In the receiver's words, at once."""
    refusals = {
        "grpc": grpc.StatusCode.UNAUTHENTICATED,
        "http/protobuf": (401, {"content-type": "text/plain"}, b"who are you?"),
    }
    receiver.answer = lambda signal, request: refusals[receiver.protocol]
    environment(receiver.variables)
    outcome = send([span_record()])
    assert outcome.lost == 1
    assert "who are you?" in outcome.words
    assert "401" in outcome.words or "UNAUTHENTICATED" in outcome.words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((302, {"location": "/login"}, b""), "302"),
        ((200, {"content-type": "text/html"}, b"<html>"), "200"),
    ],
)
def test_a_redirect_or_a_web_page_took_nothing(
    answer, words, http_receiver, environment, span_record
):
    """Though the exporter takes both for success."""
    http_receiver.answer = lambda signal, request: answer
    environment(http_receiver.variables)
    outcome = send([span_record()])
    assert outcome.lost == 1
    assert words in outcome.words


def test_nobody_there(nobody, environment, span_record):
    """The network's words, within the timeout."""
    environment(nobody)
    began = time.monotonic()
    outcome = send([span_record()], most_seconds=0.5)
    assert time.monotonic() - began < 5
    assert outcome.lost == 1
    assert "refused" in outcome.words.lower()


def test_a_receiver_that_does_not_answer_in_time(receiver, environment, span_record):
    """By OTEL_EXPORTER_OTLP_TIMEOUT where that is the shorter one."""
    may_go = threading.Event()
    receiver.answer = lambda signal, request: may_go.wait(20) and None
    environment(receiver.variables | {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "0.3"})
    began = time.monotonic()
    outcome = send([span_record()])
    assert time.monotonic() - began < 5
    may_go.set()
    assert outcome.lost == 1
    assert "time" in outcome.words or "DEADLINE" in outcome.words


# Metrics.


def points():
    """Return what the SDK collects of a counter with two series."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    counter = provider.get_meter("app").create_counter("done")
    counter.add(1, {"a": 1})
    counter.add(2, {"a": 2})
    data = reader.get_metrics_data()
    provider.shutdown()
    return data


def test_metrics_arrive(receiver, environment):
    """Through the official exporter of the protocol that is set."""
    environment(receiver.variables)
    lost = []
    (exporter,) = metric_exporters(lost.append)
    assert exporter.export(points()).name == "SUCCESS"
    exporter.shutdown()
    (metric,) = receiver.metrics
    assert sorted(point.as_int for point in metric.sum.data_points) == [1, 2]
    assert lost == []


def test_points_that_do_not_arrive_are_counted(nobody, environment, capfd):
    """One notice."""
    environment(nobody | {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "0.3"})
    lost = []
    (exporter,) = metric_exporters(lost.append)
    for _ in range(2):
        assert exporter.export(points()).name == "FAILURE"
    exporter.shutdown()
    assert lost == [2, 2]
    (said,) = capfd.readouterr().err.splitlines()
    assert "export_failed" in said


def test_metrics_that_cannot_be_set_up_are_one_notice(environment, capfd):
    """And no exporter."""
    environment({"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "zstd"})
    assert metric_exporters(print) == []
    (said,) = capfd.readouterr().err.splitlines()
    assert "zstd" in said


def test_the_temporality_of_metrics_is_the_variables(environment):
    """OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE, which the exporter reads."""
    environment({"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta"})
    (exporter,) = metric_exporters(print)
    assert exporter._preferred_temporality[Counter].name == "DELTA"
    exporter.shutdown()


def test_another_thread_is_not_silenced(caplog):
    """A host's own exporter may complain while gymlog's is quiet."""
    logger = logging.getLogger("opentelemetry.exporter.of.the.host")
    with quietly() as complaints:
        logger.warning("from here")
        thread = threading.Thread(target=logger.warning, args=["from there"])
        thread.start()
        thread.join()
    assert complaints == ["from here"]
    assert [one.getMessage() for one in caplog.records] == ["from there"]
    caplog.clear()
