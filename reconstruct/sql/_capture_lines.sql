-- One row is a captured model call as it lies in a file.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _capture_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    recovered BOOLEAN,
    model_call_id VARCHAR,
    rollout_id VARCHAR,
    dialect VARCHAR,
    server_name VARCHAR,
    server_type VARCHAR,
    model VARCHAR,
    response_id VARCHAR,
    start_time_unix_nano BIGINT,
    end_time_unix_nano BIGINT,
    duration_ns BIGINT,
    time_to_first_token_ns BIGINT,
    status_code BIGINT,
    error_category VARCHAR,
    input_tokens BIGINT,
    cached_input_tokens BIGINT,
    output_tokens BIGINT,
    reasoning_tokens BIGINT,
    record JSON
);

COMMENT ON TABLE _capture_lines IS 'One row is a captured model call as it lies in a file.';
