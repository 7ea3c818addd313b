"""Spans, log records and metrics to an OTLP receiver, exact, each once, and all accounted for.

`settings` says where each signal goes, `records` reads what is to be sent, `encoding` and `signals`
make OTLP's messages of it, `forms` the bytes of requests; `sending` packs and sends them through a
`transport`, and `checkpoint` remembers what arrived. Import from those; this file imports nothing,
since protobuf and gRPC behind them take most of a second.
"""
