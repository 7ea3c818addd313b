"""In-process OTLP: what a server records goes to a receiver while the server runs.

`tee` stands in front of the sink, `queue` waits and sends in a thread of its own, `encoding` makes
OTLP's messages, `protocols` chooses between `over_grpc` and `over_http`, which speak through
OpenTelemetry's own exporters, and `metric_exporters` counts what is lost of metrics. Import from
those; this file imports nothing, since the exporters take most of a second.
"""
