"""Rows to export, and receivers to export to: plain ones of our own, and rotel, a collector."""

import gzip
import json
import os
import socket
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

TRACE_ID = "a1b2c3d4e5f60718293a4b5c6d7e8f90"
START = 1_764_475_132_123_456_789


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    """Keep the tester's OTLP settings and proxies out."""
    for variable in list(os.environ):
        if variable.startswith("OTEL_") or variable.lower().endswith("_proxy"):
            monkeypatch.delenv(variable)


@pytest.fixture(scope="session")
def row():
    """Return a function that makes a row of `spans`; keywords replace columns."""

    def make(number=1, **columns):
        return {
            "trace_id": TRACE_ID,
            "span_id": f"{number:016x}",
            "parent_span_id": None,
            "trace_state": None,
            "flags": 257,
            "name": f"span {number}",
            "kind": "INTERNAL",
            "start_time_unix_nano": START + number,
            "end_time_unix_nano": START + number + 1_000,
            "attributes": "{}",
            "events": "[]",
            "links": "[]",
            "status_code": "UNSET",
            "status_message": None,
            "dropped_attributes_count": 0,
            "dropped_events_count": 0,
            "dropped_links_count": 0,
            "resource": json.dumps({"attributes": {"service.name": "agent"}}),
            "scope_name": None,
            "scope_version": None,
            **columns,
        }

    return make


class HttpServer:
    """Takes OTLP over HTTP and answers as `answer(request)` says: status, headers, body."""

    def __init__(self):
        self.requests = []
        self.paths = []
        self.headers = []
        self.answer = lambda request: (200, {"content-type": "application/x-protobuf"}, b"")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                encoding = self.headers.get("content-encoding")
                unpack = {"gzip": gzip.decompress, "deflate": zlib.decompress}.get(encoding)
                request = ExportTraceServiceRequest.FromString(unpack(body) if unpack else body)
                outer.paths.append(self.path)
                outer.headers.append({key.lower(): value for key, value in self.headers.items()})
                status, headers, answer = outer.answer(request)
                if 200 <= status < 300:
                    outer.requests.append(request)
                self.send_response(status)
                for key, value in {**headers, "content-length": str(len(answer))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class GrpcServer(trace_service_pb2_grpc.TraceServiceServicer):
    """Takes OTLP over gRPC and answers as `answer(request, context)` says."""

    def __init__(self):
        self.requests = []
        self.metadata = []
        self.answer = lambda request, context: ExportTraceServiceResponse()
        self._pool = ThreadPoolExecutor(max_workers=2)
        self._server = grpc.server(self._pool)
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"

    def Export(self, request, context):  # noqa: N802  # the service's own name for it
        self.metadata.append(dict(context.invocation_metadata()))
        answer = self.answer(request, context)
        self.requests.append(request)
        return answer

    def close(self):
        self._server.stop(grace=None).wait()


@pytest.fixture
def http_server():
    with closing(HttpServer()) as server:
        yield server


@pytest.fixture
def grpc_server():
    with closing(GrpcServer()) as server:
        yield server


class Rotel:
    """The rotel collector, printing every span that it is sent."""

    def __init__(self):
        self.ports = {"grpc": _free_port(), "http/protobuf": _free_port()}
        binary = Path(find_spec("rotel").origin).with_name("rotel-agent")
        self._process = subprocess.Popen(
            [
                binary,
                "start",
                "--exporter=blackhole",
                "--debug-log=traces",
                "--debug-log-verbosity=detailed",
                f"--otlp-grpc-endpoint=127.0.0.1:{self.ports['grpc']}",
                f"--otlp-http-endpoint=127.0.0.1:{self.ports['http/protobuf']}",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        deadline = time.monotonic() + 30
        for port in self.ports.values():
            while not _listens(port):
                assert self._process.poll() is None, self._process.stdout.read()
                assert time.monotonic() < deadline, "rotel does not listen"

    def printed(self):
        """Stop it and return all it printed."""
        self._process.terminate()
        text, _ = self._process.communicate(timeout=30)
        return text

    def close(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def rotel():
    if find_spec("rotel") is None:
        assert sys.version_info >= (3, 14) or sys.platform != "linux", "rotel is not installed"
        pytest.skip("rotel has no wheel for this Python or system")
    with closing(Rotel()) as collector:
        yield collector


def _free_port():
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return server.getsockname()[1]


def _listens(port):
    with closing(socket.socket()) as client:
        client.settimeout(1)
        return client.connect_ex(("127.0.0.1", port)) == 0
