"""The worst that can happen on the way: the sender killed at any moment, the connection cut within
a request, a receiver whose certificate nobody in public has signed."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections import Counter
from contextlib import closing
from threading import Thread

import grpc
import pytest
import trustme
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc

from tests.reconstruct.export.otlp.conftest import GrpcServer, HttpServer

SPANS = 60
BASE = 1_800_000_000_000_000_000


@pytest.fixture
def logs(tmp_path):
    """60 finished spans in a folder."""
    folder = tmp_path / "logs"
    folder.mkdir()
    lines = (
        {
            "record_type": "span",
            "seq": number,
            "trace_id": f"{1 + number // 6:032x}",
            "span_id": f"{1 + number:016x}",
            "parent_span_id": None,
            "name": "work",
            "kind": "INTERNAL",
            "start_time_unix_nano": BASE + number,
            "end_time_unix_nano": BASE + number + 10,
            "attributes": {"text": "x" * 100},
            "resource": {"attributes": {"service.name": "a", "service.instance.id": "1"}},
        }
        for number in range(SPANS)
    )
    (folder / "a.log").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def start(logs, *options):
    """Start the command in a process of its own; a request holds some seven spans."""
    arguments = ["export", "otlp", str(logs), "--signals", "traces", "--max-bytes", "1500"]
    return subprocess.Popen(
        [sys.executable, "-m", "reconstruct.cli", *arguments, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def export(logs, *options):
    """Run it to its end; return its exit code and words."""
    process = start(logs, *options)
    _, words = process.communicate(timeout=60)
    return process.returncode, words


def arrived(server):
    """How often each span arrived."""
    return Counter(
        span.span_id
        for request in server.requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


@pytest.mark.parametrize("batches", [0, 1, 4])
def test_a_killed_export_goes_on_where_it_was(logs, http_server, batches):
    """SIGKILL comes between the receipt of a request and its answer, the worst moment: that one
    batch goes twice, and each other span once."""
    processes = []
    plain = http_server.answer

    def answer(request):
        if len(http_server.requests) == batches and processes:
            processes.pop().kill()
        return plain(request)

    http_server.answer = answer
    process = start(logs, "--endpoint", http_server.url)
    processes.append(process)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    http_server.answer = plain
    code, words = export(logs, "--endpoint", http_server.url)
    assert code == 0, words
    counts = arrived(http_server)
    assert len(counts) == SPANS
    assert set(counts.values()) <= {1, 2}
    twice = [span for span, times in counts.items() if times == 2]
    assert 0 < len(twice) < 12
    assert len(twice) == sum(
        len(scope.spans)
        for resource in http_server.requests[batches].resource_spans
        for scope in resource.scope_spans
    )


def test_ctrl_c_ends_cleanly_and_the_rest_goes_later(logs, http_server):
    """Exit code 130, and words that say so."""
    processes = []
    plain = http_server.answer

    def answer(request):
        if len(http_server.requests) == 2 and processes:
            processes.pop().send_signal(signal.SIGINT)
        return plain(request)

    http_server.answer = answer
    process = start(logs, "--endpoint", http_server.url)
    processes.append(process)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; run it again to send the rest" in words
    assert "Traceback" not in words
    http_server.answer = plain
    assert export(logs, "--endpoint", http_server.url)[0] == 0
    assert len(arrived(http_server)) == SPANS


class CuttingProxy:
    """Passes connections on to a server; the first ones are cut after so many bytes."""

    def __init__(self, server, *, cut, after_bytes):
        self._port = int(server.url.rpartition(":")[2])
        self._cut, self._after = cut, after_bytes
        self._passing = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._cut:
                self._cut -= 1
                client.recv(self._after)
                # Closed with data unread and without waiting: a reset, in the midst of the body.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.close()
                continue
            upstream = socket.create_connection(("127.0.0.1", self._port))
            threads = [
                Thread(target=self._pump, args=ends)
                for ends in ((client, upstream), (upstream, client))
            ]
            for thread in threads:
                thread.start()
            self._passing.append(((client, upstream), threads))

    @staticmethod
    def _pump(one, other):
        try:
            while data := one.recv(65_536):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for ends, threads in self._passing:
            for thread in threads:
                thread.join()
            for end in ends:
                end.close()


def test_a_connection_cut_within_a_request_is_tried_again(logs, http_server):
    """Twice; each span arrives once."""
    with closing(CuttingProxy(http_server, cut=2, after_bytes=300)) as proxy:
        code, words = export(logs, "--endpoint", proxy.url, "--timeout", "20")
    assert code == 0, words
    counts = arrived(http_server)
    assert (len(counts), set(counts.values())) == (SPANS, {1})


@pytest.fixture
def authority():
    return trustme.CA()


class SafeHttpServer(HttpServer):
    """One with a certificate of a private authority."""

    def __init__(self, authority):
        super().__init__()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")


class SafeGrpcServer(GrpcServer):
    """Likewise."""

    def __init__(self, authority):
        super().__init__()
        issued = authority.issue_cert("127.0.0.1")
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        credentials = grpc.ssl_server_credentials([(issued.private_key_pem.bytes(), chain)])
        self._server.stop(grace=None).wait()
        self._server = grpc.server(self._pool)
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        port = self._server.add_secure_port("127.0.0.1:0", credentials)
        self._server.start()
        self.url = f"https://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("protocol", "kind"), [("http/protobuf", SafeHttpServer), ("grpc", SafeGrpcServer)]
)
def test_a_private_authority_is_trusted_when_it_is_named(
    logs, authority, tmp_path, protocol, kind, monkeypatch
):
    """By the option or the variable; without either nothing is sent, and the reason is said."""
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    with closing(kind(authority)) as server:
        to = ("--endpoint", server.url, "--protocol", protocol, "--timeout", "5")
        code, words = export(logs, *to, "--no-store")
        assert code == 4
        assert "certificate" in words.lower()
        assert not server.requests
        code, words = export(logs, *to, "--no-store", "--certificate", str(trusted))
        assert code == 0, words
        assert len(arrived(server)) == SPANS
        monkeypatch.setitem(os.environ, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", str(trusted))
        code, words = export(logs, *to)
        assert code == 0, words
    assert set(arrived(server).values()) == {2}
