-- One row is a metric point as it lies in a file; one line may give several.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _metric_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    recovered BOOLEAN,
    seq BIGINT,
    name VARCHAR,
    description VARCHAR,
    unit VARCHAR,
    type VARCHAR,
    is_monotonic BOOLEAN,
    aggregation_temporality VARCHAR,
    start_time_unix_nano BIGINT,
    time_unix_nano BIGINT,
    attributes JSON,
    value DOUBLE,
    count BIGINT,
    sum DOUBLE,
    min DOUBLE,
    max DOUBLE,
    bucket_counts JSON,
    explicit_bounds JSON,
    exemplars JSON,
    scope_name VARCHAR,
    scope_version VARCHAR,
    owner BIGINT
);

COMMENT ON TABLE _metric_lines IS 'One row is a metric point as it lies in a file; one line may give several.';
