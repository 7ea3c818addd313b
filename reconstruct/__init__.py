"""Traces from logs: reads the lines of a gym's servers and answers where the time went.

`reconstruct.engine.Engine` reads files into DuckDB relations; the command line is in
`reconstruct.cli`.
"""
