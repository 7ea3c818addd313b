"""Spans to an OTLP receiver, exact, with an account of every span that did not arrive.

`encoding` turns rows into OTLP's messages, `batches` packs them, `over_http` and `over_grpc` speak
to the receiver, `sending` runs the export. Import from those; this file imports nothing, since the
exporters behind them take most of a second.
"""
