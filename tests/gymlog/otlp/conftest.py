"""OTLP receivers of our own, over both protocols and for all signals, on free loopback ports."""

import gzip
import os
import queue
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from gymlog import notices

SIGNALS = {
    "traces": (
        trace_service_pb2.ExportTraceServiceRequest,
        trace_service_pb2.ExportTraceServiceResponse,
        trace_service_pb2_grpc.TraceServiceServicer,
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server,
    ),
    "logs": (
        logs_service_pb2.ExportLogsServiceRequest,
        logs_service_pb2.ExportLogsServiceResponse,
        logs_service_pb2_grpc.LogsServiceServicer,
        logs_service_pb2_grpc.add_LogsServiceServicer_to_server,
    ),
    "metrics": (
        metrics_service_pb2.ExportMetricsServiceRequest,
        metrics_service_pb2.ExportMetricsServiceResponse,
        metrics_service_pb2_grpc.MetricsServiceServicer,
        metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server,
    ),
}


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    """Keep the tester's OTLP settings and proxies out, and let each test have its notices."""
    for variable in list(os.environ):
        if variable.startswith("OTEL_") or variable.lower().endswith("_proxy"):
            monkeypatch.delenv(variable)
    notices.reset()
    yield
    notices.reset()


class Receiver:
    """Takes OTLP; `answer(signal, request)` may return a response, a status, or wait."""

    protocol = ""

    def __init__(self):
        self.requests = {signal: [] for signal in SIGNALS}
        self.headers = []
        self.paths = []
        self.arrived = queue.SimpleQueue()
        """A signal for each request, once it is in `requests`."""
        self.answer = lambda signal, request: None

    @property
    def variables(self):
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": self.protocol,
        }

    def take(self, signal, request):
        answer = self.answer(signal, request)
        self.requests[signal].append(request)
        self.arrived.put(signal)
        return answer

    @property
    def owned_spans(self):
        """Each span with its scope and resource."""
        return [
            (span, scope.scope, owner.resource)
            for request in self.requests["traces"]
            for owner in request.resource_spans
            for scope in owner.scope_spans
            for span in scope.spans
        ]

    @property
    def spans(self):
        return [span for span, _, _ in self.owned_spans]

    @property
    def logs(self):
        return [
            log
            for request in self.requests["logs"]
            for owner in request.resource_logs
            for scope in owner.scope_logs
            for log in scope.log_records
        ]

    @property
    def metrics(self):
        return [
            metric
            for request in self.requests["metrics"]
            for owner in request.resource_metrics
            for scope in owner.scope_metrics
            for metric in scope.metrics
        ]


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client may leave while it waits for an answer."""


class HttpReceiver(Receiver):
    protocol = "http/protobuf"

    def __init__(self):
        super().__init__()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                outer.paths.append(self.path)
                outer.headers.append({key.lower(): value for key, value in self.headers.items()})
                signal = self.path.rpartition("/")[2]
                request, response, *_ = SIGNALS[signal]
                answer = outer.take(signal, request.FromString(body)) or response()
                status, headers, content = (
                    answer
                    if isinstance(answer, tuple)
                    else (200, {"content-type": "application/x-protobuf"}, answer)
                )
                content = content if isinstance(content, bytes) else content.SerializeToString()
                self.send_response(status)
                for key, value in {**headers, "content-length": str(len(content))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcReceiver(Receiver):
    protocol = "grpc"

    def __init__(self):
        super().__init__()
        self._server = grpc.server(ThreadPoolExecutor(max_workers=4))
        for signal, (_, response, servicer, add) in SIGNALS.items():
            add(self._servicer(signal, response, servicer), self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.url = f"http://127.0.0.1:{port}"

    def _servicer(self, signal, response, servicer):
        outer = self

        class Servicer(servicer):
            def Export(self, request, context):  # noqa: N802 - the service's own name for it
                outer.headers.append(dict(context.invocation_metadata()))
                answer = outer.take(signal, request)
                if isinstance(answer, grpc.StatusCode):
                    context.abort(answer, "who are you?")
                return answer or response()

        return Servicer()

    def close(self):
        self._server.stop(grace=None).wait()


RECEIVERS = {"grpc": GrpcReceiver, "http/protobuf": HttpReceiver}


@pytest.fixture(params=RECEIVERS)
def receiver(request):
    """A receiver, once of each protocol."""
    with closing(RECEIVERS[request.param]()) as receiver:
        yield receiver


@pytest.fixture
def grpc_receiver():
    with closing(GrpcReceiver()) as receiver:
        yield receiver


@pytest.fixture
def http_receiver():
    with closing(HttpReceiver()) as receiver:
        yield receiver


@pytest.fixture(params=RECEIVERS)
def nobody(request):
    """Variables that name an address where nobody listens, once for each protocol."""
    with closing(socket.socket()) as reserved:
        reserved.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        yield {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{reserved.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": request.param,
        }


@pytest.fixture(scope="session")
def span_record():
    """Return a function that makes a `span` record; keywords replace fields."""

    def make(number=1, **fields):
        return {
            "record_type": "span",
            "seq": 0,
            "trace_id": "a1b2c3d4e5f60718293a4b5c6d7e8f90",
            "span_id": f"{number:016x}",
            "parent_span_id": None,
            "name": f"span {number}",
            "kind": "INTERNAL",
            "start_time_unix_nano": 1_764_475_132_123_456_789 + number,
            "end_time_unix_nano": 1_764_475_132_123_457_789 + number,
            "flags": 0x101,
            "status": {"code": "UNSET"},
            "attributes": {},
            "resource": {"attributes": {"service.name": "agent"}},
            **fields,
        }

    return make


@pytest.fixture(scope="session")
def plain():
    """Return a function that reads OTLP's attributes back into a dict."""

    def value(any_value):
        kind = any_value.WhichOneof("value")
        if kind is None:
            return None
        if kind == "array_value":
            return [value(item) for item in any_value.array_value.values]
        if kind == "kvlist_value":
            return read(any_value.kvlist_value.values)
        return getattr(any_value, kind)

    def read(attributes):
        return {pair.key: value(pair.value) for pair in attributes}

    return read
