"""Both protocols against receivers that take, refuse, redirect, reject, fall silent or are away."""

import os
import socket
import time
from contextlib import closing

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from reconstruct.errors import UsageError
from reconstruct.export.otlp.connecting import connect
from reconstruct.export.otlp.encoding import span_message
from reconstruct.export.otlp.forms import Item
from reconstruct.export.otlp.records import Records
from reconstruct.export.otlp.sending import Account, packed, send_all
from reconstruct.export.otlp.settings import Options, Target
from reconstruct.export.otlp.transport import form_of

PROTOCOLS = ["grpc", "http/protobuf"]
LIMIT = 4 * 1024 * 1024
PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture
def server(request, http_server, grpc_server):
    return {"grpc": grpc_server, "http/protobuf": http_server}


class Result(Account):
    """An account that knows how many there were."""

    total = 0

    @property
    def not_sent(self):
        return self.total - self.sent


def run(protocol, endpoint, rows, **options):
    options = Options(endpoint=endpoint, protocol=protocol, **options)
    target = Target.of("traces", options, os.environ)
    form, account = form_of(target), Result()
    account.total = len(rows)
    items = [
        Item(
            form.encoded(span_message(one)),
            (one["resource"], one["scope_name"], one["scope_version"]),
            number,
            (one["trace_id"], one["span_id"]),
        )
        for number, one in enumerate(rows)
    ]
    records = Records("traces", "TRUE", {})
    with closing(connect(target)) as transport:
        send_all(
            packed(items, form), transport, form, records, timeout=target.timeout, account=account
        )
    return account


def spans(server):
    return [
        span
        for request in server.requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compression", [None, "none", "gzip", "deflate"])
def test_flags_and_dropped_counts_arrive_as_they_are(protocol, compression, server, row):
    """The W3C bits and the counts are what OpenTelemetry's own encoder would have lost."""
    rows = [row(1, flags=0x301, dropped_events_count=2), row(2, flags=0)]
    account = run(protocol, server[protocol].url, rows, compression=compression, timeout=10)
    assert (account.sent, account.not_sent, account.requests) == (2, 0, 1)
    first, second = spans(server[protocol])
    assert (first.flags, first.dropped_events_count, second.flags) == (0x301, 2, 0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_headers_arrive(protocol, server, row):
    run(protocol, server[protocol].url, [row()], headers={"x-api-key": "a=b c"})
    received = {"grpc": "metadata", "http/protobuf": "headers"}[protocol]
    assert getattr(server[protocol], received)[0]["x-api-key"] == "a=b c"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_standard_variables_are_honoured(protocol, server, row, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server[protocol].url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-from=variable")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    assert run(protocol, None, [row()]).sent == 1
    received = {"grpc": "metadata", "http/protobuf": "headers"}[protocol]
    assert getattr(server[protocol], received)[0]["x-from"] == "variable"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partial_success_is_not_success(protocol, server, row):
    response = ExportTraceServiceResponse()
    response.partial_success.rejected_spans = 1
    response.partial_success.error_message = "one too old"
    body = response.SerializeToString()
    server["grpc"].answer = lambda request, context: response
    server["http/protobuf"].answer = lambda request: (200, PROTOBUF, body)
    account = run(protocol, server[protocol].url, [row(1), row(2)])
    assert (account.sent, account.not_sent, account.remarks) == (1, 1, ["one too old"])


def _limited(request, context=None):
    """Refuse what is over 4 MiB, as collectors do."""
    if request.ByteSize() <= LIMIT:
        return ExportTraceServiceResponse() if context else (200, PROTOBUF, b"")
    if context:
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "message larger than max")
    return (413, {"content-type": "text/plain"}, b"request body too large")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_span_over_the_receivers_limit_is_reported_and_its_neighbours_arrive(
    protocol, compression, server, row
):
    server["grpc"].answer = _limited
    server["http/protobuf"].answer = _limited
    rows = [row(number, name="x" * 30_000) for number in range(1, 101)]
    rows.insert(50, row(999, name="y" * 5_000_000))
    account = run(protocol, server[protocol].url, rows, compression=compression, timeout=10)
    assert (account.sent, account.not_sent, account.stopped) == (100, 1, "")
    (unsent,) = account.unsent
    assert unsent.what == f"span {999:016x} of trace {row()['trace_id']}"
    assert "larger" in unsent.words or "413" in unsent.words
    assert {span.name[0] for span in spans(server[protocol])} >= {"x"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_not_let_in_ends_at_once_with_the_receivers_words(protocol, server, row):
    status = Status(code=16, message="who are you?").SerializeToString()
    server["http/protobuf"].answer = lambda request: (401, PROTOBUF, status)
    server["grpc"].answer = lambda request, context: context.abort(
        grpc.StatusCode.UNAUTHENTICATED, "who are you?"
    )
    account = run(protocol, server[protocol].url, [row(1), row(2)], timeout=10)
    assert (account.sent, account.not_sent, account.requests) == (0, 2, 0)
    assert "who are you?" in account.stopped
    assert "401" in account.stopped or "UNAUTHENTICATED" in account.stopped


def test_text_in_an_answer_is_repeated(http_server, row):
    http_server.answer = lambda request: (403, {"content-type": "text/plain"}, b"no\n  tenant")
    assert run("http/protobuf", http_server.url, [row()]).stopped == (
        "answered 403 Forbidden: no tenant"
    )


def test_a_redirect_is_not_success(http_server, row):
    http_server.answer = lambda request: (301, {"location": "https://else.where/v1/traces"}, b"")
    account = run("http/protobuf", http_server.url, [row()])
    assert account.sent == 0
    assert "it points to https://else.where/v1/traces: give that endpoint" in account.stopped


def test_a_web_page_is_no_receiver(http_server, row):
    http_server.answer = lambda request: (200, {"content-type": "text/html"}, b"<html>")
    account = run("http/protobuf", http_server.url, [row()])
    assert account.sent == 0
    assert "web page" in account.stopped


def test_an_answer_that_cannot_be_read_is_remarked(http_server, row):
    http_server.answer = lambda request: (200, PROTOBUF, b"\xff\xff")
    account = run("http/protobuf", http_server.url, [row()])
    assert account.sent == 1
    assert account.remarks == ["its answer is not OTLP's; whether it kept all is not known"]


def test_a_wrong_path_is_explained(http_server, row):
    http_server.answer = lambda request: (404, {"content-type": "text/plain"}, b"")
    account = run("http/protobuf", http_server.url + "/otlp", [row()])
    assert http_server.paths == ["/otlp/v1/traces"]
    assert "404" in account.stopped
    assert f"(tried {http_server.url}/otlp/v1/traces)" in account.stopped
    assert "check the endpoint's path" in account.stopped


@pytest.mark.parametrize(
    ("variable", "value", "path"),
    [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "/otlp/", "/otlp/v1/traces"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/custom", "/custom"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/custom/", "/custom/"),
    ],
)
def test_endpoints_of_the_variables_mean_what_the_specification_says(
    variable, value, path, http_server, row, monkeypatch
):
    monkeypatch.setenv(variable, http_server.url + value)
    assert run("http/protobuf", None, [row()]).sent == 1
    assert http_server.paths == [path]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nobody_there_ends_within_the_timeout(protocol, row):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    started = time.monotonic()
    account = run(protocol, f"http://127.0.0.1:{port}", [row(1), row(2)], timeout=1)
    assert time.monotonic() - started < 10
    assert (account.sent, account.not_sent) == (0, 2)
    assert "refused" in account.stopped.lower()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_silent_receiver_ends_within_the_timeout(protocol, row):
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        started = time.monotonic()
        account = run(protocol, endpoint, [row(number) for number in range(1, 9)], timeout=0.5)
    assert time.monotonic() - started < 10
    assert (account.sent, account.not_sent) == (0, 8)
    assert account.stopped


def test_a_busy_receiver_is_asked_again(http_server, row):
    answers = iter([(503, {"retry-after": "0"}, b""), (200, PROTOBUF, b"")])
    http_server.answer = lambda request: next(answers)
    account = run("http/protobuf", http_server.url, [row()], timeout=10)
    assert (account.sent, account.requests) == (1, 1)


@pytest.mark.parametrize(
    ("protocol", "other", "hint"),
    [
        ("grpc", "http/protobuf", "--protocol http/protobuf"),
        ("http/protobuf", "grpc", "--protocol grpc"),
    ],
)
def test_the_wrong_protocol_is_named(protocol, other, hint, server, row):
    account = run(protocol, server[other].url, [row()], timeout=2)
    assert account.sent == 0
    assert hint in account.stopped


def test_plain_or_tls_is_decided_by_the_scheme(grpc_server, row, monkeypatch):
    assert run("grpc", grpc_server.url, [row()]).sent == 1
    assert run("grpc", grpc_server.address, [row()], insecure=True).sent == 1
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
    assert run("grpc", grpc_server.address, [row()]).sent == 1
    secure = run("grpc", f"https://{grpc_server.address}", [row()], timeout=2)
    assert secure.sent == 0
    assert "for a receiver without TLS give http://host:port, or --insecure" in secure.stopped


def test_a_receiver_that_asks_for_too_long_a_wait_ends_the_export_at_once(http_server, row):
    http_server.answer = lambda request: (429, {"retry-after": "3600"}, b"slow down")
    started = time.monotonic()
    account = run("http/protobuf", http_server.url, [row()], timeout=10)
    assert time.monotonic() - started < 5
    assert account.stopped == (
        "answered 429 Too Many Requests: slow down; it asks to wait 3600 s; tried once within "
        "10 s, --timeout SECONDS tries longer"
    )


def test_retry_info_makes_exhaustion_a_wait_and_not_a_split(grpc_server, row):
    info = AnyMessage()
    info.Pack(RetryInfo(retry_delay=Duration(nanos=1_000_000)))
    status = Status(code=8, message="later", details=[info]).SerializeToString()
    tries = []

    def answer(request, context):
        tries.append(request)
        if len(tries) < 3:
            context.set_trailing_metadata((("grpc-status-details-bin", status),))
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "later")
        return ExportTraceServiceResponse()

    grpc_server.answer = answer
    account = run("grpc", grpc_server.url, [row(1), row(2)], timeout=10)
    assert (account.sent, account.requests, len(tries)) == (2, 1, 3)


def test_a_missing_certificate_is_named():
    target = Target.of(
        "traces",
        Options(endpoint="https://localhost:1", protocol="grpc", certificate="/no/such/file"),
        {},
    )
    with pytest.raises(UsageError, match="/no/such/file"):
        connect(target)
