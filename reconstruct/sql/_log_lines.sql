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
    resource JSON,
    instance VARCHAR,
    service_name VARCHAR,
    service_instance_id VARCHAR,
    server_name VARCHAR,
    server_type VARCHAR,
    run_id VARCHAR,
    host_name VARCHAR,
    process_pid BIGINT,
    boot_id VARCHAR
);

COMMENT ON TABLE _log_lines IS 'One row is a log record as it lies in a file.';
