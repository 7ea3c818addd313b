-- One row is a physical line that is no clean record.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _rejected_lines (
    file VARCHAR,
    line BIGINT,
    byte_offset BIGINT,
    class VARCHAR,
    reason VARCHAR,
    sample VARCHAR,
    lost_lines BIGINT
);

COMMENT ON TABLE _rejected_lines IS 'One row is a physical line that is no clean record.';
