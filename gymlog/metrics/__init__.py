"""Metrics: what gymlog measures of a gym's servers, and OpenTelemetry's meters for the gym's own.

What the servers measure is kept in `series` and costs a fraction of a microsecond; a gym's own
metrics go through OpenTelemetry's SDK, which is loaded when the first of its instruments is made.
`collector` writes both as `metric` lines, every interval and at the end.
"""
