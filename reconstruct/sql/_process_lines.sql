-- One row is a process record as it lies in a file.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _process_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    recovered BOOLEAN,
    seq BIGINT,
    state VARCHAR,
    schema BIGINT,
    time_unix_nano BIGINT,
    spans_written BIGINT,
    records_dropped BIGINT,
    open_spans BIGINT,
    export_dropped BIGINT,
    export_failed BIGINT,
    owner BIGINT
);

COMMENT ON TABLE _process_lines IS 'One row is a process record as it lies in a file.';
