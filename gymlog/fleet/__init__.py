"""The example gym: real processes that talk HTTP, each writing its own log.

    driver ── POST /run ─> environment ─> agent ─┬─> itself, /v1/responses ─┬─> model
                                                 │                          └─> resources, a tool
                                                 └─> resources, /verify

It is what `gymlog demo` runs, and it shows how a server is instrumented by hand: `serving` holds
the three calls that every server makes, the servers hold the spans. Faults can be planted, so that
one can see what each looks like in the logs.

Run a server alone with `python -m gymlog.fleet.model --port 8001`.
"""
