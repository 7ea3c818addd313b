"""What it costs to send spans: CPU time per span, against OpenTelemetry's own exporters.

The same spans go to a receiver in another process that only acknowledges: from logs by the room of
`reconstruct export otlp` (reading the logs is not counted, DuckDB's work for the export is), and
as ReadableSpans, built of the same rows, by the SDK's exporters. Over http/json the peer is the
SDK's http/protobuf exporter, since it has none for JSON.

    python tests/bench/bench_export.py [--json] [--spans 20000]
"""

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from gym_logs import write_gym_logs

from reconstruct.engine import Engine

NEEDED = {"grpc": 4.0, "http/protobuf": 4.0, "http/json": 12.0}
SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"


class Acknowledging(BaseHTTPRequestHandler):
    """Takes whatever it is sent."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", self.headers["content-type"])
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def receive(ports: Connection) -> None:
    import grpc

    server = ThreadingHTTPServer(("127.0.0.1", 0), Acknowledging)
    other = grpc.server(ThreadPoolExecutor(2), options=[("grpc.max_receive_message_length", -1)])
    take = grpc.unary_unary_rpc_method_handler(lambda request, context: b"")
    handlers = grpc.method_handlers_generic_handler(SERVICE, {"Export": take})
    other.add_generic_rpc_handlers((handlers,))
    ports.send((server.server_port, other.add_insecure_port("127.0.0.1:0")))
    other.start()
    server.serve_forever()


def ours(engine: Engine, protocol: Any, endpoint: str) -> int:
    from reconstruct.export.otlp.connecting import connect
    from reconstruct.export.otlp.records import Records
    from reconstruct.export.otlp.sending import Account, packed, send_all
    from reconstruct.export.otlp.settings import Options, Target
    from reconstruct.export.otlp.transport import form_of

    target = Target.of("traces", Options(endpoint=endpoint, protocol=protocol), {})
    records, account, form = Records("traces", "TRUE", {}), Account(), form_of(target)
    transport = connect(target)
    items = records.items(engine, form, lambda keys: [True] * len(keys))
    send_all(packed(items, form), transport, form, records, timeout=30, account=account)
    transport.close()
    return account.sent


def theirs(rows: list[dict[str, Any]], protocol: str, endpoint: str) -> int:
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    exporter: Any
    if protocol == "grpc":
        exporter = Grpc(endpoint=endpoint, insecure=True)
    else:
        exporter = Http(endpoint=f"{endpoint}/v1/traces")
    resources: dict[str, Resource] = {}
    for first in range(0, len(rows), 2_000):
        spans = []
        for row in rows[first : first + 2_000]:
            text = row["resource"]
            if text not in resources:
                resources[text] = Resource(json.loads(text)["attributes"])
            trace_id = int(row["trace_id"], 16)
            parent = row["parent_span_id"]
            flags = TraceFlags(row["flags"] & 255)
            spans.append(
                ReadableSpan(
                    row["name"],
                    context=SpanContext(trace_id, int(row["span_id"], 16), False, flags),
                    parent=SpanContext(trace_id, int(parent, 16), True) if parent else None,
                    resource=resources[text],
                    attributes=json.loads(row["attributes"]),
                    kind=SpanKind[row["kind"]],
                    status=Status(StatusCode[row["status_code"]]),
                    start_time=row["start_time_unix_nano"],
                    end_time=row["end_time_unix_nano"],
                )
            )
        exporter.export(spans)
    exporter.shutdown()
    return len(rows)


def cpu_us(work: Callable[[], int]) -> float:
    """Return µs of CPU per span, the best of three."""
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        spans = work()
        best = min(best, (time.process_time() - started) / spans * 1e6)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--spans", type=int, default=20_000)
    arguments = parser.parse_args()
    here, there = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    receiver = context.Process(target=receive, args=(there,))
    receiver.start()
    results = {}
    try:
        http_port, grpc_port = here.recv()
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder, "logs")
            write_gym_logs(logs, arguments.spans)
            with Engine.read([str(logs)]) as engine:
                rows = engine.rows("SELECT * FROM spans ORDER BY trace_id, start_time_unix_nano")
                for protocol in NEEDED:
                    port = grpc_port if protocol == "grpc" else http_port
                    url = f"http://127.0.0.1:{port}"
                    our = cpu_us(lambda p=protocol, u=url: ours(engine, p, u))
                    their = cpu_us(lambda p=protocol, u=url: theirs(rows, p, u))
                    results[protocol] = {"us": our, "peer_us": their, "ratio": their / our}
    finally:
        receiver.terminate()
        receiver.join()
    if arguments.json:
        print(json.dumps(results))
    else:
        for protocol, result in results.items():
            print(
                f"{protocol:14} {result['us']:6.1f} µs a span, the SDK {result['peer_us']:6.1f}: "
                f"{result['ratio']:.1f} times (at least {NEEDED[protocol]:g})"
            )
    return int(any(results[name]["ratio"] < least for name, least in NEEDED.items()))


if __name__ == "__main__":
    raise SystemExit(main())
