-- One row is a span that was given an id of its own: in its file it has its caller's.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _shared_span_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    recovered BOOLEAN,
    trace_id VARCHAR,
    span_id VARCHAR,
    shared_span_id VARCHAR,
    parent_span_id VARCHAR,
    service_name VARCHAR
);

COMMENT ON TABLE _shared_span_lines IS 'One row is a span that was given an id of its own: in its file it has its caller''s.';
