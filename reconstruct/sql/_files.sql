-- One row is a file that was read.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _files (
    file VARCHAR,
    bytes BIGINT,
    lines BIGINT,
    problem VARCHAR,
    wrapper VARCHAR,
    pending_bytes BIGINT,
    can_go_on BOOLEAN,
    begins_within BOOLEAN,
    ends_within BOOLEAN
);

COMMENT ON TABLE _files IS 'One row is a file that was read.';
