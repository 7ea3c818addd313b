-- One row is a span or span_start record as it lies in a file.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _span_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    recovered BOOLEAN,
    record_type VARCHAR,
    seq BIGINT,
    trace_id VARCHAR,
    span_id VARCHAR,
    parent_span_id VARCHAR,
    name VARCHAR,
    kind VARCHAR,
    start_time_unix_nano BIGINT,
    end_time_unix_nano BIGINT,
    flags BIGINT,
    trace_state VARCHAR,
    status_code VARCHAR,
    status_message VARCHAR,
    attributes JSON,
    events JSON,
    links JSON,
    dropped_attributes_count BIGINT,
    dropped_events_count BIGINT,
    dropped_links_count BIGINT,
    scope_name VARCHAR,
    scope_version VARCHAR,
    rollout_id VARCHAR,
    owner BIGINT
);

COMMENT ON TABLE _span_lines IS 'One row is a span or span_start record as it lies in a file.';
