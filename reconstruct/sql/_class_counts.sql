-- One row is a class of lines in a file, duplicates not yet told apart.
-- Filled by intake; the columns are those of reconstruct/intake/tables.py.
CREATE TABLE _class_counts (
    file VARCHAR,
    class VARCHAR,
    lines BIGINT
);

COMMENT ON TABLE _class_counts IS 'One row is a class of lines in a file, duplicates not yet told apart.';
