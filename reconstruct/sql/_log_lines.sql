-- One row is a log record as it lies in a file.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _log_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    recovered BOOLEAN,
    seq BIGINT,
    time_unix_nano BIGINT,
    severity_number BIGINT,
    severity_text VARCHAR,
    body JSON,
    attributes JSON,
    trace_id VARCHAR,
    span_id VARCHAR,
    flags BIGINT,
    dropped_attributes_count BIGINT,
    scope_name VARCHAR,
    scope_version VARCHAR,
    rollout_id VARCHAR,
    owner BIGINT
);

COMMENT ON TABLE _log_lines IS 'One row is a log record as it lies in a file.';
