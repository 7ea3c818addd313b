"""From the bytes of log files to records, or to lines with a reason why they are none.

`files` finds what to read, `wrappers` takes off what carried a line, `unwrap` takes apart what is
left when it is no single value, `formats` recognises records, `ledger` gives every line its class,
`tables` holds rows until they are a batch; `reader` drives them. Nothing in a file raises, and no
line vanishes. DuckDB is not known here.
"""
